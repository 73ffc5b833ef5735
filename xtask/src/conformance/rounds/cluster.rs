//! The scripted cluster: the target, its scale subresource and its pods.

use std::collections::BTreeMap;

use api::autoscaling::v2::MetricTarget;
use api::keda::{GroupVersionKindResource, ScaledObject};
use api::selector::Selector;
use keda::OperationError;
use keda::activity::{MetricValue, Reading};
use keda::executor::TARGET_NOT_RESOLVED;
use keda::fallback::{TargetFacts, is_ready};
use quantity::Quantity;
use serde::Deserialize;
use serde_json::{Value, json};

/// The target.
#[derive(Deserialize)]
pub(super) struct Target {
    #[serde(rename = "specReplicas", default)]
    replicas: Value,
    #[serde(default)]
    missing: bool,
}

/// The response of its scale subresource.
#[derive(Deserialize)]
pub(super) struct RoundsScale {
    #[serde(rename = "specReplicas", default)]
    pub(super) replicas: i32,
    #[serde(default)]
    selector: String,
    #[serde(rename = "getError")]
    pub(super) get_error: Option<String>,
    #[serde(rename = "updateError")]
    pub(super) update_error: Option<String>,
}

/// A pod.
#[derive(Deserialize)]
pub(super) struct RoundsPod {
    phase: String,
    ready: Option<String>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

impl RoundsScale {
    /// Replicas, or why they cannot be read.
    pub(super) fn read(&self) -> Result<i32, OperationError> {
        self.get_error.as_deref().map_or(Ok(self.replicas), |error| Err(error.into()))
    }
}

/// Whether replicas of the target were read from its scale subresource, and what they are.
pub(super) fn current(
    object: &ScaledObject,
    target: &Target,
    scale: &RoundsScale,
) -> (bool, Result<i32, OperationError>) {
    let Some(found) = &object.status.scale_target_gvkr else {
        return (false, Err(TARGET_NOT_RESOLVED.into()));
    };
    let GroupVersionKindResource { group, kind, resource, .. } = found;
    let given = target.replicas.as_i64().and_then(|replicas| i32::try_from(replicas).ok());
    let is_known = group == "apps" && matches!(kind.as_str(), "Deployment" | "StatefulSet" | "ReplicaSet");
    let name = &object.spec.scale_target_ref.name;
    match (is_known, target.missing) {
        (true, true) => (false, Err(format!("{resource}.{group} {name:?} not found").into())),
        (true, false) => (false, Ok(given.unwrap_or(1))),
        (false, false) if given.is_some() => (false, given.ok_or_else(|| "".into())),
        (false, _) => (true, scale.read()),
    }
}

/// The input of fallback.
pub(super) fn facts(
    object: &ScaledObject,
    target: &Target,
    scale: &RoundsScale,
    pods: &[RoundsPod],
) -> TargetFacts {
    let ready_pods = || -> Result<u32, OperationError> {
        scale.read()?;
        let selector = Selector::parse(&scale.selector).map_err(OperationError::from_error)?;
        let is_counted = |pod: &&RoundsPod| {
            selector.matches_map(&pod.labels) && is_ready(&pod.phase, pod.ready.as_deref())
        };
        u32::try_from(pods.iter().filter(is_counted).count()).map_err(OperationError::from_error)
    };
    TargetFacts { current: current(object, target, scale).1, ready_pods: ready_pods() }
}

/// A target of a metric.
pub(super) fn target(type_: &str, text: &str) -> anyhow::Result<MetricTarget> {
    let quantity = Quantity::parse(text)?;
    let mut target = MetricTarget { type_: type_.to_owned(), ..MetricTarget::default() };
    match type_ {
        "Value" => target.value = Some(quantity),
        _ => target.average_value = Some(quantity),
    }
    Ok(target)
}

/// The response of a source.
pub(super) fn reading(
    name: &str,
    values: Option<&[String]>,
    active: bool,
    error: Option<&str>,
) -> anyhow::Result<Result<Reading, OperationError>> {
    if let Some(error) = error {
        return Ok(Err(error.into()));
    }
    let value = |text: &String| {
        let value = Quantity::parse(text)?;
        Ok(MetricValue { name: name.to_owned(), value })
    };
    let values = values.unwrap_or_default().iter().map(value).collect::<anyhow::Result<_>>()?;
    Ok(Ok(Reading { values, active }))
}

/// One call of the scale subresource.
pub(super) fn call(object: &ScaledObject, replicas: Option<i32>) -> Value {
    let resource = object
        .status
        .scale_target_gvkr
        .as_ref()
        .map_or_else(String::new, |found| format!("{}.{}", found.resource, found.group));
    let name = format!("{}/{}", object.metadata.namespace, object.spec.scale_target_ref.name);
    match replicas {
        None => json!({"op": "get", "resource": resource, "name": name}),
        Some(replicas) => {
            json!({"op": "update", "resource": resource, "name": name, "replicas": replicas})
        }
    }
}
