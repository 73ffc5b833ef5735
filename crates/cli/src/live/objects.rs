//! Autoscalers as they are stored, and their events.

use api::autoscaling::{describe, v2};
use api::keda::{Conditions, ScaledJob, ScaledObject};
use api::plimsoll::{self, Autoscaler};
use api::yaml::nearest;
use cluster::AutoscalerKind;
use cluster::request::{below, with_query, within};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::named::WorkloadName;
use super::{AutoscalerName, ClusterClient, RequestError, Scope};
use crate::failure::Failure;

/// Objects per request, as in kubectl.
const LIST_PAGE_SIZE: usize = 500;
/// Names that a message lists.
const MAX_LISTED_NAMES: usize = 5;

/// An autoscaler.
#[derive(Clone, Debug)]
pub(crate) struct Object {
    pub(crate) kind: AutoscalerKind,
    /// As the server sent it; null if it was watched.
    pub(crate) raw: Value,
    /// As an HPA.
    pub(crate) hpa: v2::HorizontalPodAutoscaler,
    /// `spec.dryRun` of an Autoscaler.
    pub(crate) dry_run: bool,
}

/// Which objects.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ObjectFilter<'a> {
    pub(crate) kinds: &'a [AutoscalerKind],
    pub(crate) scope: Scope<'a>,
    pub(crate) labels: Option<&'a str>,
    /// Whether the server may answer from its watch cache.
    pub(crate) cached: bool,
}

/// An event about an object.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ObjectEvent {
    #[serde(rename = "type")]
    pub(crate) type_: Option<String>,
    pub(crate) reason: Option<String>,
    pub(crate) message: Option<String>,
    pub(crate) count: Option<u64>,
    first_timestamp: Option<Timestamp>,
    pub(crate) last_timestamp: Option<Timestamp>,
    event_time: Option<Timestamp>,
    source: Option<EventSource>,
    reporting_component: Option<String>,
}

/// The component that recorded an event.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct EventSource {
    component: Option<String>,
}

#[derive(Deserialize)]
struct List<T> {
    #[serde(default)]
    metadata: ListMeta,
    #[serde(default = "Vec::new")]
    items: Vec<T>,
}

#[derive(Default, Deserialize)]
struct ListMeta {
    #[serde(default, rename = "continue")]
    rest: Option<String>,
}

impl Object {
    /// Reads an object of a kind.
    fn read(kind: AutoscalerKind, mut raw: Value) -> Result<Self, RequestError> {
        // Objects of a list have no kind.
        let (api_version, kind_name) = (kind.api_version(), kind.name());
        if let Some(fields) = raw.as_object_mut().filter(|fields| !fields.contains_key("kind")) {
            let rest = std::mem::take(fields);
            fields.insert("apiVersion".into(), api_version.into());
            fields.insert("kind".into(), kind_name.into());
            fields.extend(rest);
        }
        // Like kubectl, without `managedFields`.
        if let Some(metadata) = raw.pointer_mut("/metadata").and_then(Value::as_object_mut) {
            metadata.shift_remove("managedFields");
        }
        let nonsense = |error: serde_json::Error| RequestError::InvalidResponse(error.to_string());
        let object: Self = match kind {
            AutoscalerKind::Hpa => v2::HorizontalPodAutoscaler::deserialize(&raw).map_err(nonsense)?.into(),
            AutoscalerKind::Autoscaler => Autoscaler::deserialize(&raw).map_err(nonsense)?.into(),
            AutoscalerKind::ScaledObject => ScaledObject::deserialize(&raw).map_err(nonsense)?.into(),
            AutoscalerKind::ScaledJob => ScaledJob::deserialize(&raw).map_err(nonsense)?.into(),
        };
        Ok(Self { raw, ..object })
    }

    pub(crate) fn named(&self) -> AutoscalerName {
        AutoscalerName { kind: self.kind, name: self.hpa.metadata.name.clone() }
    }

    pub(crate) fn namespace(&self) -> &str {
        &self.hpa.metadata.namespace
    }
}

impl From<v2::HorizontalPodAutoscaler> for Object {
    fn from(hpa: v2::HorizontalPodAutoscaler) -> Self {
        Self { kind: AutoscalerKind::Hpa, raw: Value::Null, hpa, dry_run: false }
    }
}

impl From<Autoscaler> for Object {
    fn from(object: Autoscaler) -> Self {
        let dry_run = object.spec.dry_run;
        let hpa = plimsoll::v2_view(object);
        Self { kind: AutoscalerKind::Autoscaler, raw: Value::Null, hpa, dry_run }
    }
}

impl From<ScaledObject> for Object {
    fn from(object: ScaledObject) -> Self {
        Self { kind: AutoscalerKind::ScaledObject, raw: Value::Null, hpa: scaled(object), dry_run: false }
    }
}

impl From<ScaledJob> for Object {
    fn from(object: ScaledJob) -> Self {
        Self { kind: AutoscalerKind::ScaledJob, raw: Value::Null, hpa: scaled_job(object), dry_run: false }
    }
}

impl ObjectEvent {
    /// When it was last seen.
    pub(crate) fn last(&self) -> Option<Timestamp> {
        self.last_timestamp.or(self.event_time).or(self.first_timestamp)
    }

    /// The text of `kubectl describe`.
    pub(crate) fn describe(&self, now: Timestamp) -> describe::Event {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let last = api::age::since(self.last(), now);
        let age = match (self.count, self.first_timestamp) {
            (Some(count), Some(first)) if count > 1 => {
                format!("{last} (x{count} over {})", api::age::since(Some(first), now))
            }
            _ => last,
        };
        let component = self.source.as_ref().and_then(|source| source.component.clone());
        describe::Event {
            type_: text(&self.type_),
            reason: text(&self.reason),
            age,
            from: component
                .filter(|name| !name.is_empty())
                .unwrap_or_else(|| text(&self.reporting_component)),
            message: text(&self.message),
        }
    }
}

impl ClusterClient {
    /// One autoscaler.
    pub(crate) async fn object(
        &self,
        namespace: &str,
        named: &AutoscalerName,
    ) -> Result<Object, RequestError> {
        let path = path(named.kind, Scope::Namespace(namespace));
        let raw = self.get(&below(&path, [&*named.name])).await?;
        Object::read(named.kind, raw)
    }

    /// Autoscalers, by namespace and name. A kind that the cluster does not have counts as empty.
    pub(crate) async fn objects(&self, filter: ObjectFilter<'_>) -> Result<Vec<Object>, RequestError> {
        let mut found = Vec::new();
        for &kind in filter.kinds {
            match self.list(kind, filter).await {
                Ok(objects) => found.extend(objects),
                Err(RequestError::Refused { code: 403 | 404, .. })
                    if kind != AutoscalerKind::Hpa && filter.kinds.len() > 1 => {}
                Err(RequestError::Refused { code: 404, .. }) if kind != AutoscalerKind::Hpa => {}
                Err(error) => return Err(error),
            }
        }
        found.sort_by(|a, b| {
            let key = |object: &Object| (object.hpa.metadata.namespace.clone(), object.kind);
            key(a).cmp(&key(b)).then_with(|| a.hpa.metadata.name.cmp(&b.hpa.metadata.name))
        });
        Ok(found)
    }

    async fn list(
        &self,
        kind: AutoscalerKind,
        filter: ObjectFilter<'_>,
    ) -> Result<Vec<Object>, RequestError> {
        let size = LIST_PAGE_SIZE.to_string();
        let amount = if filter.cached { ("resourceVersion", "0") } else { ("limit", &*size) };
        let query = [("labelSelector", filter.labels.unwrap_or_default()), amount];
        let raws = self.pages(&path(kind, filter.scope), &query).await?;
        raws.into_iter().map(|raw| Object::read(kind, raw)).collect()
    }

    /// All pages of a list.
    async fn pages<T: serde::de::DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, &str)],
    ) -> Result<Vec<T>, RequestError> {
        let mut all = Vec::new();
        let mut rest = String::new();
        loop {
            let query = query.iter().copied().chain([("continue", &*rest)]);
            let page: List<T> = self.get(&with_query(path, query)).await?;
            all.extend(page.items);
            match page.metadata.rest.filter(|rest| !rest.is_empty()) {
                Some(token) => rest = token,
                None => return Ok(all),
            }
        }
    }

    /// The events about an autoscaler, newest first.
    pub(crate) async fn events(
        &self,
        namespace: &str,
        named: &AutoscalerName,
    ) -> Result<Vec<ObjectEvent>, RequestError> {
        let fields = format!("involvedObject.name={},involvedObject.kind={}", named.name, named.kind.name());
        let path = within("/api/v1/events", namespace);
        let mut events: Vec<ObjectEvent> = self.pages(&path, &[("fieldSelector", &fields)]).await?;
        events.sort_by_key(|event| std::cmp::Reverse(event.last()));
        Ok(events)
    }

    /// The autoscalers of a workload. An HPA that a listed ScaledObject generated is left out: that one explains both.
    pub(crate) async fn scaling(
        &self,
        namespace: &str,
        workload: &WorkloadName,
    ) -> Result<Vec<AutoscalerName>, Failure> {
        let scope = Scope::Namespace(namespace);
        let filter = ObjectFilter { kinds: &AutoscalerKind::ALL, scope, labels: None, cached: false };
        let all = self.objects(filter).await.map_err(|error| self.failure("list autoscalers", &error))?;
        let names = scaling(&all, workload);
        if names.is_empty() {
            let WorkloadName { kind, name } = workload;
            return Err(Failure::Outside(format!(
                "no autoscaler in namespace {namespace} scales {kind}/{name}; `plimsoll get` lists the autoscalers there are"
            )));
        }
        Ok(names)
    }

    /// The failure when an autoscaler cannot be read; if it does not exist, with similar names.
    pub(crate) async fn lost(
        &self,
        namespace: &str,
        named: &AutoscalerName,
        error: &RequestError,
    ) -> Failure {
        if error.code() != Some(404) {
            return self.failure(&format!("get {named}"), error);
        }
        let filter = |kinds, scope| ObjectFilter { kinds, scope, labels: None, cached: true };
        let here =
            self.objects(filter(&AutoscalerKind::ALL, Scope::Namespace(namespace))).await.unwrap_or_default();
        let everywhere = self.objects(filter(&AutoscalerKind::ALL, Scope::All)).await.unwrap_or_default();
        let namespaces: Vec<&str> =
            everywhere.iter().filter(|o| o.named() == *named).map(Object::namespace).collect();
        Failure::Outside(unknown(namespace, named, &here, &namespaces))
    }
}

fn scaling(all: &[Object], workload: &WorkloadName) -> Vec<AutoscalerName> {
    let is_target = |object: &&Object| {
        let target = &object.hpa.spec.scale_target_ref;
        (target.kind.as_str(), &target.name) == (workload.kind, &workload.name)
    };
    let found: Vec<&Object> = all.iter().filter(is_target).collect();
    let generated = |object: &Object| {
        let mut owners = object.hpa.metadata.owner_references.iter();
        let listed = |name: &str| {
            found.iter().any(|o| o.kind == AutoscalerKind::ScaledObject && o.hpa.metadata.name == name)
        };
        owners.any(|owner| owner.kind == "ScaledObject" && listed(&owner.name))
    };
    found.iter().filter(|object| !generated(object)).map(|object| object.named()).collect()
}

/// The failure for an autoscaler that does not exist, with the existing ones.
fn unknown(namespace: &str, named: &AutoscalerName, here: &[Object], elsewhere: &[&str]) -> String {
    let mut text = format!("there is no {named} in namespace {namespace}");
    if let [first, rest @ ..] = elsewhere {
        let more = if rest.is_empty() { String::new() } else { format!(" (and in {})", rest.join(", ")) };
        return text + &format!("\n  it exists in namespace {first}{more}: add -n {first}");
    }
    if let Some(other) = here.iter().find(|object| object.hpa.metadata.name == named.name) {
        return text + &format!("\n  there is {}; did you mean that?", other.named());
    }
    let of_kind: Vec<&str> =
        here.iter().filter(|o| o.kind == named.kind).map(|o| o.hpa.metadata.name.as_str()).collect();
    if let Some(near) = nearest(&named.name, of_kind.iter().copied()) {
        return text + &format!("\n  did you mean {}/{near}?", named.kind.short());
    }
    text += &match of_kind.as_slice() {
        [] => format!("; that namespace has no {}", named.kind.name()),
        all => {
            let names = all.iter().take(MAX_LISTED_NAMES).copied().collect::<Vec<_>>().join(", ");
            let more = all.len().saturating_sub(MAX_LISTED_NAMES);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("\n  there: {names}{more}")
        }
    };
    text
}

/// Current and desired replicas of the status of an HPA or Autoscaler; none while no controller has written it: missing is not zero.
pub(crate) fn status_counts(status: &v2::HorizontalPodAutoscalerStatus) -> Option<(i32, i32)> {
    let is_written = !status.conditions.is_empty() || status.current_replicas != 0;
    is_written.then_some((status.current_replicas, status.desired_replicas))
}

/// A ScaledObject as an HPA: bounds, target, conditions.
fn scaled(object: ScaledObject) -> v2::HorizontalPodAutoscaler {
    let mut hpa = v2::HorizontalPodAutoscaler::default();
    hpa.status.conditions = conditions(&object.status.conditions);
    let spec = &object.spec;
    hpa.spec.scale_target_ref = v2::CrossVersionObjectReference {
        kind: object.target_kind().to_owned(),
        name: spec.scale_target_ref.name.clone(),
        api_version: object.target_api_version().to_owned(),
    };
    hpa.spec.min_replicas = Some(spec.idle_replica_count.or(spec.min_replica_count).unwrap_or(0));
    hpa.spec.max_replicas = object.hpa_max();
    hpa.metadata = object.metadata;
    hpa
}

/// A ScaledJob as an HPA: bounds, conditions, and the jobs that it creates as its target.
fn scaled_job(object: ScaledJob) -> v2::HorizontalPodAutoscaler {
    let mut hpa = v2::HorizontalPodAutoscaler::default();
    hpa.status.conditions = conditions(&object.status.conditions);
    let spec = &object.spec;
    let bounds = keda::jobs::bounds(spec.min_replica_count, spec.max_replica_count);
    let count = |jobs: i64| i32::try_from(jobs).unwrap_or(i32::MAX);
    hpa.spec.scale_target_ref = v2::CrossVersionObjectReference {
        kind: "Job".to_owned(),
        name: format!("{}-*", object.metadata.name),
        api_version: "batch/v1".to_owned(),
    };
    hpa.spec.min_replicas = Some(count(bounds.min));
    hpa.spec.max_replicas = count(bounds.min.saturating_add(bounds.max));
    hpa.metadata = object.metadata;
    hpa
}

fn conditions(own: &Conditions) -> Vec<v2::HorizontalPodAutoscalerCondition> {
    let condition = |own: &api::keda::Condition| v2::HorizontalPodAutoscalerCondition {
        type_: own.type_.clone(),
        status: format!("{:?}", own.status),
        reason: own.reason.clone(),
        message: own.message.clone(),
        ..v2::HorizontalPodAutoscalerCondition::default()
    };
    own.iter().map(condition).collect()
}

fn path(kind: AutoscalerKind, scope: Scope<'_>) -> String {
    let (api_version, plural) = (kind.api_version(), kind.plural());
    within(&format!("/apis/{api_version}/{plural}"), scope.namespace())
}

/// An HPA of that name, with a status.
#[cfg(test)]
pub(crate) fn sample(name: &str, status: Value) -> Object {
    let mut raw = super::sample::hpa(name);
    raw.as_object_mut().unwrap().insert("status".into(), status);
    Object::read(AutoscalerKind::Hpa, raw).unwrap()
}

#[cfg(test)]
mod tests;
