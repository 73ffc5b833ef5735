//! The generated HPA of a ScaledObject, which scales 1 ↔ N (docs/spec/keda.md 2.6).

mod labels;
#[cfg(test)]
mod tests;
mod update;

use std::collections::BTreeSet;

use api::autoscaling::v2::{
    self, CrossVersionObjectReference, ExternalMetricSource, HPAScalingRules, HorizontalPodAutoscaler,
    HorizontalPodAutoscalerBehavior, HorizontalPodAutoscalerSpec, MetricIdentifier, MetricSpec, MetricTarget,
};
use api::keda::{
    COMPOSITE_METRIC, KedaProfile, ScaledObject, ScalingModifiers, Trigger, TriggerHealth, annotations,
};
use api::map::{Map, StringMap};
use api::meta::{ObjectMeta, OwnerReference};
use api::provider::Compat;
use api::selector::LabelSelector;
use quantity::{Format, Quantity};

pub(crate) use labels::{others as other_labels, own as own_labels};
pub use update::needs_update;

/// The desired HPA and the status fields of the ScaledObject that follow from it.
#[derive(Clone, Debug, PartialEq)]
pub struct GeneratedHpa {
    /// The HPA.
    pub hpa: HorizontalPodAutoscaler,
    /// Status fields that follow from the spec.
    pub status: HpaStatusFields,
}

/// The parts of a ScaledObject's status that follow from its metrics.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HpaStatusFields {
    /// Names of all external metrics, in the order of the triggers.
    pub external_metric_names: Vec<String>,
    /// Names of resource metrics, without container resources.
    pub resource_metric_names: Vec<String>,
    /// Health of the metrics that still exist.
    pub health: Map<TriggerHealth>,
    /// `composite-metric` if there is or was a formula.
    pub composite_scaler_name: String,
}

/// Why no HPA can be generated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HpaError {
    /// The target is not resolved yet.
    #[error("failed to get ScaledObject.Status.ScaleTargetGVKR, probably invalid ScaledObject cache")]
    NoTarget,
    /// No trigger has a metric.
    #[error("no metric specs returned from scalers for ScaledObject {namespace}/{name}")]
    NoMetrics {
        /// Namespace of the ScaledObject.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// Two triggers have a metric of the same name.
    #[error("metricName {metric} defined multiple times in ScaledObject {name}")]
    Duplicate {
        /// The metric.
        metric: String,
        /// The ScaledObject.
        name: String,
    },
    /// The target type of the formula is invalid for external metrics.
    #[error("error metric target type is {0}, but it needs to be AverageValue or Value for external metrics")]
    TargetType(String),
    /// The target of the formula is not a number.
    #[error(
        "error converting target for scalingModifiers (string->float) to valid target: {0:?} is no number"
    )]
    Target(String),
}

/// Generates the HPA of a ScaledObject whose target is resolved. `triggers` are the metric specs of each trigger without
/// selectors; empty if they are unknown.
pub fn generate(
    object: &ScaledObject,
    triggers: &[Vec<MetricSpec>],
    compat: Compat,
) -> Result<GeneratedHpa, HpaError> {
    let target = object.status.scale_target_gvkr.as_ref().ok_or(HpaError::NoTarget)?;
    let (mut metrics, mut status) = metrics(object, triggers)?;
    if let Some(modifiers) = object.modifiers()
        && let Some(composite) = composite(modifiers, compat)?
    {
        // KEDA drops container resource metrics, too, so that such triggers have no effect.
        let stays =
            |type_: &str| type_ == v2::RESOURCE || (type_ == v2::CONTAINER_RESOURCE && !compat.is_strict());
        metrics.retain(|metric| stays(&metric.type_));
        metrics.push(external(COMPOSITE_METRIC, composite, object));
        COMPOSITE_METRIC.clone_into(&mut status.composite_scaler_name);
    }
    let spec = HorizontalPodAutoscalerSpec {
        scale_target_ref: CrossVersionObjectReference {
            kind: target.kind.clone(),
            name: object.spec.scale_target_ref.name.clone(),
            api_version: target.api_version(),
        },
        min_replicas: Some(object.hpa_min()),
        max_replicas: object.hpa_max(),
        metrics,
        behavior: behavior(object),
    };
    let hpa = HorizontalPodAutoscaler {
        kind: "HorizontalPodAutoscaler".to_owned(),
        api_version: v2::API_VERSION.to_owned(),
        metadata: metadata(object),
        spec,
        ..HorizontalPodAutoscaler::default()
    };
    Ok(GeneratedHpa { hpa, status })
}

/// The metric specs of one trigger in the existing HPA, without selectors: used while a source is unavailable or its
/// configuration is invalid, so that its metrics stay in the HPA.
pub fn metrics_from_hpa(hpa: &HorizontalPodAutoscaler, index: usize, trigger: &Trigger) -> Vec<MetricSpec> {
    let prefix = prefix(index);
    let container = trigger.metadata.get("containerName").filter(|name| !name.is_empty());
    let is_its = |metric: &&MetricSpec| {
        if let Some(own) = &metric.resource {
            return trigger.is_resource() && own.name == trigger.type_ && container.is_none();
        }
        if let Some(own) = &metric.container_resource {
            return trigger.is_resource() && own.name == trigger.type_ && container == Some(&own.container);
        }
        metric.external.as_ref().is_some_and(|own| own.metric.name.starts_with(&prefix))
    };
    let bare = |metric: &MetricSpec| {
        let mut metric = metric.clone();
        if let Some(external) = &mut metric.external {
            external.metric.selector = None;
        }
        metric
    };
    hpa.spec.metrics.iter().filter(is_its).map(bare).collect()
}

/// The metrics of a trigger that are known only by name, from the status. Their targets are
/// placeholders, so they may only be used to report the metrics as missing.
pub fn metrics_from_status(object: &ScaledObject, index: usize) -> Vec<MetricSpec> {
    let prefix = prefix(index);
    let names = object.status.external_metric_names.iter().filter(|name| name.starts_with(&prefix));
    let target = MetricTarget {
        type_: v2::AVERAGE_VALUE.to_owned(),
        average_value: Some(Quantity::new(1, Format::DecimalSi)),
        ..MetricTarget::default()
    };
    let metric = |name: &String| {
        let metric = MetricIdentifier { name: name.clone(), selector: None };
        MetricSpec {
            type_: v2::EXTERNAL.to_owned(),
            external: Some(ExternalMetricSource { metric, target: target.clone() }),
            ..MetricSpec::default()
        }
    };
    names.map(metric).collect()
}

fn prefix(index: usize) -> String {
    format!("s{index}-")
}

/// All metrics sorted by type, with selectors, and the status fields that follow.
fn metrics(
    object: &ScaledObject,
    triggers: &[Vec<MetricSpec>],
) -> Result<(Vec<MetricSpec>, HpaStatusFields), HpaError> {
    let mut metrics: Vec<MetricSpec> = triggers.iter().flatten().cloned().collect();
    if metrics.is_empty() {
        let ObjectMeta { namespace, name, .. } = object.metadata.clone();
        return Err(HpaError::NoMetrics { namespace, name });
    }
    let mut status = HpaStatusFields {
        composite_scaler_name: object.status.composite_scaler_name.clone(),
        ..HpaStatusFields::default()
    };
    let mut known = BTreeSet::new();
    for metric in &mut metrics {
        if let Some(external) = &mut metric.external {
            if !known.insert(external.metric.name.clone()) {
                let (metric, name) = (external.metric.name.clone(), object.metadata.name.clone());
                return Err(HpaError::Duplicate { metric, name });
            }
            external.metric.selector = Some(selector(object));
            status.external_metric_names.push(external.metric.name.clone());
        }
        if let Some(resource) = &metric.resource {
            status.resource_metric_names.push(resource.name.clone());
        }
    }
    let health = object.status.health.iter().filter(|(name, _)| known.contains(*name));
    status.health = health.map(|(name, health)| (name.clone(), health.clone())).collect();
    metrics.sort_by(|one, other| one.type_.cmp(&other.type_));
    Ok((metrics, status))
}

fn selector(object: &ScaledObject) -> LabelSelector {
    let name = (annotations::SCALED_OBJECT_NAME.to_owned(), object.metadata.name.clone());
    LabelSelector { match_labels: StringMap::from([name]), ..LabelSelector::default() }
}

fn external(name: &str, target: MetricTarget, object: &ScaledObject) -> MetricSpec {
    let metric = MetricIdentifier { name: name.to_owned(), selector: Some(selector(object)) };
    MetricSpec {
        type_: v2::EXTERNAL.to_owned(),
        external: Some(ExternalMetricSource { metric, target }),
        ..MetricSpec::default()
    }
}

/// The target of the composite metric; none without a positive target, then the triggers' metrics are used.
fn composite(modifiers: &ScalingModifiers, compat: Compat) -> Result<Option<MetricTarget>, HpaError> {
    let type_ = match modifiers.metric_type.as_str() {
        "" => v2::AVERAGE_VALUE,
        known @ (v2::AVERAGE_VALUE | v2::VALUE) => known,
        other => return Err(HpaError::TargetType(other.to_owned())),
    };
    if modifiers.target.is_empty() {
        return Ok(None);
    }
    let target = match crate::float::parse_float(&modifiers.target) {
        Ok(target) => target,
        // With a formula KEDA has refused this target before; without one it uses the metrics of the triggers.
        Err(_) if compat.is_strict() && modifiers.formula.is_empty() => return Ok(None),
        Err(_) => return Err(HpaError::Target(modifiers.target.clone())),
    };
    if target.is_nan() || target <= 0.0 {
        return Ok(None);
    }
    let milli = Quantity::from_milli(thousandths(target, compat), Format::DecimalSi);
    let (value, average_value) = match type_ {
        v2::VALUE => (Some(milli), None),
        _ => (None, Some(milli)),
    };
    Ok(Some(MetricTarget { type_: type_.to_owned(), value, average_value, average_utilization: None }))
}

/// A positive number in thousandths, truncated. In KEDA it overflows to the smallest integer.
#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)]
fn thousandths(number: f64, compat: Compat) -> i64 {
    let milli = number * 1000.0;
    if milli >= i64::MAX as f64 && compat.is_strict() { i64::MIN } else { milli as i64 }
}

/// The configured behavior, with paused directions disabled.
fn behavior(object: &ScaledObject) -> Option<HorizontalPodAutoscalerBehavior> {
    let advanced = object.spec.advanced.as_ref();
    let config = advanced.and_then(|advanced| advanced.horizontal_pod_autoscaler_config.as_ref());
    let mut behavior = config.and_then(|config| config.behavior.clone());
    let disable = |rules: &mut HPAScalingRules| rules.select_policy = Some("Disabled".to_owned());
    if object.is_scale_in_paused() {
        disable(behavior.get_or_insert_default().scale_down.get_or_insert_default());
    }
    if object.is_scale_out_paused() {
        disable(behavior.get_or_insert_default().scale_up.get_or_insert_default());
    }
    behavior
}

impl GeneratedHpa {
    /// The HPA with the labels of this release of KEDA; `object` is the ScaledObject that it was generated for.
    #[must_use]
    pub fn in_profile(mut self, object: &ScaledObject, profile: KedaProfile) -> Self {
        self.hpa.metadata.labels = labels_of(object, profile);
        self
    }
}

fn labels_of(object: &ScaledObject, profile: KedaProfile) -> StringMap {
    let excluded = object.metadata.annotations.get(annotations::HPA_EXCLUDED_LABELS);
    let mut labels = own_labels(&object.hpa_name(), &object.metadata.name, profile);
    labels.extend(other_labels(&object.metadata.labels, excluded));
    labels
}

fn metadata(object: &ScaledObject) -> ObjectMeta {
    ObjectMeta {
        name: object.hpa_name(),
        namespace: object.metadata.namespace.clone(),
        labels: labels_of(object, KedaProfile::default()),
        annotations: object.metadata.annotations.clone(),
        owner_references: vec![owner("ScaledObject", &object.metadata)],
        ..ObjectMeta::default()
    }
}

/// The owner reference of generated objects.
pub(crate) fn owner(kind: &str, metadata: &ObjectMeta) -> OwnerReference {
    OwnerReference {
        api_version: api::keda::API_VERSION.to_owned(),
        kind: kind.to_owned(),
        name: metadata.name.clone(),
        uid: metadata.uid.clone(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}
