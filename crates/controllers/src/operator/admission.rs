//! Reviews writes of KEDA's objects: reads what the rules need, and records their events.

use std::collections::BTreeSet;
use std::panic::resume_unwind;
use std::sync::Arc;

use api::autoscaling::v2::HorizontalPodAutoscaler;
use api::keda::{KedaProfile, ScaledObject, Trigger};
use api::provider::Compat;
use cluster::discovery::Discovery;
use cluster::events::EventRecorder;
use cluster::lease::Leadership;
use cluster::request::ApiError;
use keda::admission::{
    self, AdmissionInput, AdmissionNeeds, AdmissionRules, Allowed, ClusterSnapshot, Target, Verdict,
};
use kube::Client;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::task::JoinError;

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
const MAX_CONCURRENT_READS: usize = 2;

/// How many reviews are checked at a time, each on a thread of its own: decoding an object and the trial run of a formula take long,
/// and anybody who reaches the webhook can request them.
const MAX_CONCURRENT_CHECKS: usize = 1;

/// Maximum length of the names of a kind that is looked up, in bytes: those of the API are DNS names with a version.
const MAX_KIND_BYTES: usize = 512;

/// Unknown parameters of a trigger that are named, because each costs a search for the nearest known one.
const MAX_UNKNOWN_PARAMETERS: usize = 10;

/// Reviews writes.
#[derive(Clone)]
pub struct Admission {
    client: LeaderClient,
    reads: Arc<Semaphore>,
    checks: Arc<Semaphore>,
    events: Option<AdmissionEvents>,
    compat: Compat,
    profile: KedaProfile,
}

impl Admission {
    /// Reads related objects with this client.
    pub fn new(client: Client, discovery: Discovery, compat: Compat) -> Self {
        let client = LeaderClient::new(client, discovery, Leadership::without_election());
        let reads = Arc::new(Semaphore::new(MAX_CONCURRENT_READS));
        let checks = Arc::new(Semaphore::new(MAX_CONCURRENT_CHECKS));
        Self { client, reads, checks, events: None, compat, profile: KedaProfile::default() }
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
        let verdict = self.check(request, around).await;
        if let Verdict::Allowed(allowed) = &verdict {
            self.record_events(request, allowed);
        }
        verdict
    }

    /// Checks a write on another thread. A panic there is a panic here.
    async fn check(&self, request: &AdmissionInput<'_>, around: ClusterSnapshot) -> Verdict {
        // The semaphore is never closed. The thread holds the permit, because it goes on when the client has gone.
        let permit = Arc::clone(&self.checks).acquire_owned().await.ok();
        let AdmissionInput { operation, kind, dry_run, object, old } = *request;
        let (object, old) = (object.clone(), old.cloned());
        let (compat, profile) = (self.compat, self.profile);
        let checked = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let request = AdmissionInput { operation, kind, dry_run, object: &object, old: old.as_ref() };
            admission::review(&request, &around, &AdmissionRules { compat, profile, advice: &advice })
        });
        match checked.await.map_err(JoinError::try_into_panic) {
            Ok(verdict) => verdict,
            Err(Ok(panic)) => resume_unwind(panic),
            // The runtime shuts down and takes this task with it.
            Err(Err(_)) => std::future::pending().await,
        }
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
        let text = |field: &str| {
            let path = format!("/spec/scaleTargetRef/{field}");
            request.object.pointer(&path).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let own = (text("apiVersion"), text("kind"));
        for object in self.items::<ScaledObject>(ResourcePath::keda("scaledobjects", namespace, "")).await? {
            let target = &object.spec.scale_target_ref;
            targets.insert((target.api_version.clone(), target.kind.clone()));
            around.add_scaled_object(Arc::new(object));
        }
        for object in self.items::<HorizontalPodAutoscaler>(ResourcePath::hpa(namespace, "")).await? {
            let target = &object.spec.scale_target_ref;
            targets.insert((target.api_version.clone(), target.kind.clone()));
            around.add_autoscaler(Arc::new(object));
        }
        targets.retain(|target| self.compat.is_strict() || is_same_kind(target, &own));
        targets.insert(own);
        if let Some((workload, name)) = &needs.workload {
            let path =
                ResourcePath { group: "apps", version: "v1", plural: workload.plural(), namespace, name };
            match self.client.get::<Value>(path).await {
                Ok(object) => around.add(object)?,
                Err(error) if error.code == Some(404) => {}
                Err(error) => return Err(error.into()),
            }
            for mut object in self.items::<Value>(ResourcePath::core("limitranges", namespace, "")).await? {
                if let Some(fields) = object.as_object_mut() {
                    fields.insert("kind".to_owned(), Value::from("LimitRange"));
                }
                around.add(object)?;
            }
        }
        for (api_version, kind) in &targets {
            self.look_up(&mut around, api_version, kind).await?;
        }
        Ok(around)
    }

    /// Adds a kind if the cluster serves it. The rules judge unknown kinds; a failed discovery request does not mean that the kind is
    /// unknown.
    async fn look_up(
        &self,
        around: &mut ClusterSnapshot,
        api_version: &str,
        kind: &str,
    ) -> Result<(), ApiError> {
        let Ok(target) = Target::parse(api_version, kind, "") else { return Ok(()) };
        // The rules need no discovery for these kinds.
        let is_known = matches!(target.kind.as_str(), "Deployment" | "StatefulSet");
        if is_known || api_version.len().max(kind.len()) > MAX_KIND_BYTES {
            return Ok(());
        }
        // The version in the reference counts, not the preferred one of the server.
        let found = self.client.discovery.mapping(&target.group, &target.version, &target.kind).await?;
        if let Some(found) = found {
            around.add_kind(&found.group, &found.version, &found.kind);
        }
        Ok(())
    }

    /// The objects of a collection that can be decoded; none if the cluster does not serve it. An object that cannot be decoded conflicts
    /// with nothing, and must not block the review of others.
    async fn items<T: DeserializeOwned + Send + 'static>(
        &self,
        path: ResourcePath<'_>,
    ) -> Result<Vec<T>, ApiError> {
        let list: ListedObjects<T> = match self.client.list_in_background(path).await {
            Ok(list) => list,
            Err(ApiError { code: Some(404), .. }) => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let decoded = list.items.into_iter().filter_map(|ListedObject(decoded)| {
            decoded.inspect_err(|error| tracing::debug!(%error, "an object cannot be decoded")).ok()
        });
        Ok(decoded.collect())
    }
}

/// Whether two references to targets, which have different versions, can name the same kind. Only such kinds can conflict; looking up all
/// would let one namespace cause any number of requests.
fn is_same_kind((api_version, kind): &(String, String), own: &(String, String)) -> bool {
    let parse = |api_version: &str, kind: &str| Target::parse(api_version, kind, "").ok();
    let (Some(theirs), Some(own)) = (parse(api_version, kind), parse(&own.0, &own.1)) else { return false };
    (theirs.group, theirs.kind) == (own.group, own.kind)
}

/// A list whose items are decoded one by one.
#[derive(Deserialize)]
#[serde(bound = "T: DeserializeOwned")]
struct ListedObjects<T> {
    #[serde(default = "Vec::new")]
    items: Vec<ListedObject<T>>,
}

/// An object of a list, or why it cannot be decoded.
struct ListedObject<T>(Result<T, serde_json::Error>);

impl<'de, T: DeserializeOwned> Deserialize<'de> for ListedObject<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(|value| Self(T::deserialize(value)))
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
    let unknown = scalers::parameters::unknown(known.parameters, &given).take(MAX_UNKNOWN_PARAMETERS);
    unknown.map(|unknown| format!("trigger {:?}: {unknown}", trigger.type_)).collect()
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::json;

    use super::*;

    fn trigger(type_: &str, key: &str) -> Trigger {
        let metadata = [(key.to_owned(), "x".to_owned())].into();
        Trigger { type_: type_.to_owned(), metadata, ..Trigger::default() }
    }

    #[test]
    fn writes_are_checked_on_another_thread() {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_all().max_blocking_threads(1).build().unwrap();
        runtime.block_on(async {
            let server = tower::service_fn(|_: Request<Body>| async {
                Ok::<_, Infallible>(Response::new(Body::from(Vec::<u8>::new())))
            });
            let client = Client::new(server, "default");
            let admission = Admission::new(client.clone(), Discovery::new(client), Compat::Better);
            let object = json!({"metadata": {"name": "a", "namespace": "shop"}, "spec": {"triggers": []}});
            let request = AdmissionInput {
                operation: admission::Operation::Create,
                kind: admission::AdmissionKind::ScaledJob,
                dry_run: false,
                object: &object,
                old: None,
            };
            // Nothing is checked while the only other thread is busy.
            let (release, held) = std::sync::mpsc::channel::<()>();
            let busy = tokio::task::spawn_blocking(move || held.recv());
            let mut review = Box::pin(admission.review(&request));
            assert!(futures::poll!(&mut review).is_pending());
            drop(review);
            assert_eq!(admission.checks.available_permits(), 0, "the check goes on without its client");
            drop(release);
            assert!(busy.await.unwrap().is_err(), "the sender is gone");
            assert!(matches!(admission.review(&request).await, Verdict::Denied(_)), "there is no trigger");
        });
    }

    #[test]
    fn only_kinds_that_can_conflict_are_looked_up() {
        let reference = |api_version: &str, kind: &str| (api_version.to_owned(), kind.to_owned());
        let own = reference("apps/v1", "Deployment");
        assert!(is_same_kind(&reference("apps/v1beta1", "Deployment"), &own));
        // A target is a Deployment unless it says otherwise.
        assert!(is_same_kind(&reference("", ""), &own));
        assert!(!is_same_kind(&reference("apps/v1", "StatefulSet"), &own));
        assert!(!is_same_kind(&reference("tenant.example/v1", "Deployment"), &own));
        assert!(!is_same_kind(&reference("a/b/c", "Deployment"), &own));
    }

    #[test]
    fn list_without_the_items_that_cannot_be_decoded() {
        let list = r#"{"items": [{"spec": {"maxReplicas": 3}}, {"spec": {"maxReplicas": "many"}}, 7]}"#;
        let list: ListedObjects<HorizontalPodAutoscaler> = serde_json::from_str(list).unwrap();
        let decoded: Vec<bool> = list.items.into_iter().map(|ListedObject(object)| object.is_ok()).collect();
        assert_eq!(decoded, [true, false, false]);
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
