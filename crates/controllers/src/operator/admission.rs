//! Reviews writes of KEDA's objects: reads what the rules need, and records their events.

use std::collections::BTreeSet;
use std::sync::Arc;

use api::keda::{KedaProfile, Trigger};
use api::provider::Compat;
use cluster::discovery::Discovery;
use cluster::events::EventRecorder;
use cluster::lease::Leadership;
use cluster::request::ApiError;
use keda::admission::{
    self, AdmissionInput, AdmissionNeeds, AdmissionRules, Allowed, ClusterSnapshot, Target, Verdict,
};
use kube::Client;
use serde_json::{Map, Value};
use tokio::sync::Semaphore;

use super::admission_events::AdmissionEvents;
use super::handle::OperatorHandle;
use super::id::NamespacedName;
use super::leader_client::{LeaderClient, ResourcePath};

/// The component of the events.
const COMPONENT: &str = "keda-admission";

/// Why the related objects of a write are not known.
#[derive(Debug, thiserror::Error)]
enum SnapshotError {
    /// They were not read.
    #[error(transparent)]
    Request(#[from] ApiError),
    /// One of them cannot be decoded.
    #[error(transparent)]
    Decode(#[from] serde_json::Error),
}

/// How many reviews read related objects at a time. Every client that reaches the webhook can cause such reads, and they share the
/// limit of requests to the API server with writes of scales.
const MAX_CONCURRENT_READS: usize = 8;

/// Reviews writes.
#[derive(Clone)]
pub struct Admission {
    client: LeaderClient,
    reads: Arc<Semaphore>,
    events: Option<AdmissionEvents>,
    compat: Compat,
    profile: KedaProfile,
}

impl Admission {
    /// Reads related objects with this client.
    pub fn new(client: Client, discovery: Discovery, compat: Compat) -> Self {
        let client = LeaderClient::new(client, discovery, Leadership::without_election());
        let reads = Arc::new(Semaphore::new(MAX_CONCURRENT_READS));
        Self { client, reads, events: None, compat, profile: KedaProfile::default() }
    }

    /// With the rules and texts of this release of KEDA.
    #[must_use]
    pub fn in_profile(self, profile: KedaProfile) -> Self {
        Self { profile, ..self }
    }

    /// Records events about objects that the watches of this operator show.
    pub fn recording(self, recorder: &EventRecorder, operator: &OperatorHandle) -> Self {
        let events = AdmissionEvents::new(operator.context(), recorder.with_component(COMPONENT));
        Self { events: Some(events), ..self }
    }

    /// Reviews a write. If related objects cannot be read, the write is allowed with a warning, so that an outage blocks nobody.
    pub async fn review(&self, request: &AdmissionInput<'_>) -> Verdict {
        let around = match admission::needs(request) {
            None => ClusterSnapshot::default(),
            Some(needs) => match self.gather(request, &needs).await {
                Ok(around) => around,
                Err(error) => {
                    tracing::warn!(%error, "a write was allowed without a check");
                    let warning = format!("this object was not checked by the webhook: {error}");
                    return Verdict::Allowed(Allowed { warnings: vec![warning], events: Vec::new() });
                }
            },
        };
        let rules = AdmissionRules { compat: self.compat, profile: self.profile, advice: &advice };
        let verdict = admission::review(request, &around, &rules);
        if let Verdict::Allowed(allowed) = &verdict {
            self.record_events(request, allowed);
        }
        verdict
    }

    fn record_events(&self, request: &AdmissionInput<'_>, allowed: &Allowed) {
        let Some(events) = &self.events else { return };
        let text = |path: &str| request.object.pointer(path).and_then(Value::as_str).unwrap_or_default();
        let name = NamespacedName::new(text("/metadata/namespace"), text("/metadata/name"));
        events.offer(request.kind, name, text("/metadata/uid"), &allowed.events);
    }

    async fn gather(
        &self,
        request: &AdmissionInput<'_>,
        needs: &AdmissionNeeds,
    ) -> Result<ClusterSnapshot, SnapshotError> {
        // The semaphore is never closed.
        let _permit = self.reads.acquire().await;
        let mut around = ClusterSnapshot::default();
        let namespace = needs.namespace.as_str();
        let mut targets: BTreeSet<(String, String)> = BTreeSet::new();
        let named = |object: &Value| {
            let text = |field: &str| {
                let path = format!("/spec/scaleTargetRef/{field}");
                object.pointer(&path).and_then(Value::as_str).unwrap_or_default().to_owned()
            };
            (text("apiVersion"), text("kind"))
        };
        targets.insert(named(request.object));
        let collections = [
            (ResourcePath::keda("scaledobjects", namespace, ""), "ScaledObject"),
            (ResourcePath::hpa(namespace, ""), "HorizontalPodAutoscaler"),
        ];
        for (path, kind) in collections {
            for object in self.items(path, kind).await? {
                let target = named(&object);
                // An object that cannot be decoded conflicts with nothing, and must not block the review of others.
                match around.add(object) {
                    Ok(()) => drop(targets.insert(target)),
                    Err(error) => tracing::debug!(namespace, kind, %error, "an object cannot be decoded"),
                }
            }
        }
        if let Some((workload, name)) = &needs.workload {
            let path =
                ResourcePath { group: "apps", version: "v1", plural: workload.plural(), namespace, name };
            match self.client.get::<Value>(path).await {
                Ok(object) => around.add(object)?,
                Err(error) if error.code == Some(404) => {}
                Err(error) => return Err(error.into()),
            }
            for object in self.items(ResourcePath::core("limitranges", namespace, ""), "LimitRange").await? {
                around.add(object)?;
            }
        }
        for (api_version, kind) in &targets {
            self.look_up(&mut around, api_version, kind).await;
        }
        Ok(around)
    }

    /// Adds a kind if the cluster serves it. The rules judge unknown kinds.
    async fn look_up(&self, around: &mut ClusterSnapshot, api_version: &str, kind: &str) {
        let Ok(target) = Target::parse(api_version, kind, "") else { return };
        // The version in the reference counts, not the preferred one of the server.
        if let Ok(Some(found)) =
            self.client.discovery.mapping(&target.group, &target.version, &target.kind).await
        {
            around.add_kind(&found.group, &found.version, &found.kind);
        }
    }

    /// The objects of a collection with their `kind` set; none if the cluster does not serve it.
    async fn items(&self, path: ResourcePath<'_>, kind: &str) -> Result<Vec<Value>, ApiError> {
        let list: Value = match self.client.list(path, "").await {
            Ok(list) => list,
            Err(ApiError { code: Some(404), .. }) => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let items = list.get("items").and_then(Value::as_array).cloned().unwrap_or_default();
        let dressed = items.into_iter().map(|item| {
            let mut object: Map<String, Value> = item.as_object().cloned().unwrap_or_default();
            object.insert("kind".to_owned(), Value::from(kind));
            Value::Object(object)
        });
        Ok(dressed.collect())
    }
}

/// Warnings about a trigger: an unknown type or parameter, with the nearest known name.
fn advice(trigger: &Trigger) -> Vec<String> {
    let Some(known) = scalers::table::find(&trigger.type_) else {
        let meant = scalers::table::nearest(&trigger.type_);
        let meant = meant.map(|meant| format!("; did you mean {:?}?", meant.name)).unwrap_or_default();
        return vec![format!("there is no trigger type {:?}{meant}", trigger.type_)];
    };
    let given = scalers::Trigger {
        type_: trigger.type_.clone(),
        metadata: trigger.metadata.clone().into_iter().collect(),
        ..scalers::Trigger::default()
    };
    // External scalers have parameters of their own.
    if trigger.type_.starts_with("external") {
        return Vec::new();
    }
    let unknown = scalers::parameters::unknown(known.parameters, &given);
    unknown.iter().map(|unknown| format!("trigger {:?}: {unknown}", trigger.type_)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trigger(type_: &str, key: &str) -> Trigger {
        let metadata = [(key.to_owned(), "x".to_owned())].into();
        Trigger { type_: type_.to_owned(), metadata, ..Trigger::default() }
    }

    #[test]
    fn advice_names_the_nearest_known_name() {
        assert_eq!(advice(&trigger("prometheus", "query")), [""; 0]);
        assert_eq!(
            advice(&trigger("prometheus", "quarry")),
            ["trigger \"prometheus\": unknown parameter \"quarry\"; did you mean \"query\"?"]
        );
        assert_eq!(
            advice(&trigger("promotheus", "query")),
            ["there is no trigger type \"promotheus\"; did you mean \"prometheus\"?"]
        );
        assert_eq!(advice(&trigger("external", "anything")), [""; 0]);
    }
}
