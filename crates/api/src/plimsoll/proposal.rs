//! The form once proposed as `autoscaling/v2alpha1`, which can be converted to an [`Autoscaler`].
//!
//! | In the proposal | In an Autoscaler |
//! |---|---|
//! | `replicasAggregator` | the same |
//! | `name: cpu`, `memory` (or `cpu/…`, `memory/…`) with `targetRequestPercentage` | `Resource`, utilization of the requests |
//! | `name: memory/usage`, `memory/working_set`, `memory`, `cpu/usage_rate`, `cpu` with `targetValue` | `Resource`, average value |
//! | `name: custom/NAME` | the prefix is dropped |
//! | any other `/` in a name | `_`, since metric names may hold none |
//! | no `from`, `from.current: pod` | `Metric` from each pod, average value |
//! | `from.current: namespace` | `Metric` from the namespace, total value |
//! | `from.current: controller` | `Metric` from the scale target, total value |
//! | `from.object` | `Metric` from that object, total value |
//!
//! Resources are measured on pods only, so a resource name with another `from` is an ordinary metric. A capital `K`
//! behind a target value means thousands, as in the example of the proposal.

use std::fmt;

use quantity::Quantity;
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize};

use super::{API_VERSION, Autoscaler, AutoscalerSpec, KIND, METRIC, MetricOrigin, MetricSource, MetricSpec};
use super::{ResourceMetricSource, ResourceTarget};
use crate::autoscaling::v2::{self, CrossVersionObjectReference, MetricIdentifier, MetricTarget};
use crate::field::{AsJson, FieldError};
use crate::meta::ObjectMeta;
use crate::wire::nullable;

/// Group and version of the proposal.
pub const PROPOSAL_API_VERSION: &str = "autoscaling/v2alpha1";

/// An autoscaler as proposed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct HorizontalPodAutoscaler {
    /// `HorizontalPodAutoscaler`.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// `autoscaling/v2alpha1`.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// Name, namespace, labels and the like.
    #[serde(deserialize_with = "nullable")]
    pub metadata: ObjectMeta,
    /// Desired state.
    #[serde(deserialize_with = "nullable")]
    pub spec: HorizontalPodAutoscalerSpec,
}

/// Bounds and metrics as proposed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct HorizontalPodAutoscalerSpec {
    /// Scale target.
    #[serde(deserialize_with = "nullable")]
    pub scale_target_ref: CrossVersionObjectReference,
    /// Lower bound; absent means 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_replicas: Option<i32>,
    /// Upper bound.
    #[serde(deserialize_with = "nullable")]
    pub max_replicas: i32,
    /// The metrics.
    #[serde(deserialize_with = "nullable")]
    pub metrics: Vec<ProposedMetric>,
    /// `max`, `min` or `average`; absent means `max`.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub replicas_aggregator: String,
}

/// One metric as proposed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ProposedMetric {
    /// The metric's name, with the prefix of its origin.
    #[serde(deserialize_with = "nullable")]
    pub name: String,
    /// Target value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_value: Option<TargetValue>,
    /// Target percentage of the requests; resources only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_request_percentage: Option<i32>,
    /// The object the metric describes; absent means each pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<MetricOrigin>,
}

/// A quantity that may also be written with a capital `K`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TargetValue(pub Quantity);

impl<'de> Deserialize<'de> for TargetValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TargetVisitor;
        impl Visitor<'_> for TargetVisitor {
            type Value = TargetValue;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a quantity such as 20 or 256Mi")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<TargetValue, E> {
                let text = text.trim();
                let thousands = text.strip_suffix('K').map(|number| format!("{number}k"));
                Quantity::parse(thousands.as_deref().unwrap_or(text)).map(TargetValue).map_err(E::custom)
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<TargetValue, E> {
                self.visit_str(&number.to_string())
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<TargetValue, E> {
                self.visit_str(&number.to_string())
            }

            fn visit_f64<E: de::Error>(self, number: f64) -> Result<TargetValue, E> {
                self.visit_str(&number.to_string())
            }
        }
        deserializer.deserialize_any(TargetVisitor)
    }
}

impl HorizontalPodAutoscaler {
    /// Converts to an Autoscaler. Metrics without an equivalent are errors.
    pub fn into_autoscaler(self) -> Result<Autoscaler, Vec<FieldError>> {
        let mut metrics = Vec::with_capacity(self.spec.metrics.len());
        let mut faults = Vec::new();
        for (i, metric) in self.spec.metrics.into_iter().enumerate() {
            match metric.into_metric(&format!("spec.metrics[{i}]")) {
                Ok(metric) => metrics.push(metric),
                Err(fault) => faults.push(fault),
            }
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        let aggregator = self.spec.replicas_aggregator;
        Ok(Autoscaler {
            kind: KIND.to_owned(),
            api_version: API_VERSION.to_owned(),
            metadata: self.metadata,
            spec: AutoscalerSpec {
                scale_target_ref: self.spec.scale_target_ref,
                min_replicas: self.spec.min_replicas,
                max_replicas: self.spec.max_replicas,
                metrics,
                replicas_aggregator: (!aggregator.is_empty()).then_some(aggregator),
                ..Default::default()
            },
            ..Default::default()
        })
    }
}

impl ProposedMetric {
    fn into_metric(self, path: &str) -> Result<MetricSpec, FieldError> {
        let from = self.origin(path)?;
        let on_pods = from.current.as_deref() == Some("pod");
        if self.name.is_empty() {
            return Err(FieldError::required(format_args!("{path}.name"), "must specify a metric name"));
        }
        let both = self.target_value.is_some() && self.target_request_percentage.is_some();
        if both {
            let detail = "may not set both a target value and a percentage of requests";
            return Err(FieldError::forbidden(format_args!("{path}.targetRequestPercentage"), detail));
        }
        if let Some(percent) = self.target_request_percentage {
            let path = format!("{path}.targetRequestPercentage");
            let resource = self.resource_prefix();
            if !on_pods {
                return Err(FieldError::forbidden(path, "only pods have requests"));
            }
            let Some(resource) = resource else {
                return Err(FieldError::forbidden(path, "only resources (cpu, memory) have requests"));
            };
            let target = ResourceTarget {
                type_: v2::UTILIZATION.to_owned(),
                average_utilization: Some(percent),
                ..Default::default()
            };
            return Ok(resource_metric(resource, target));
        }
        let Some(TargetValue(value)) = self.target_value else {
            let detail = "must set either a target value or a percentage of requests";
            return Err(FieldError::required(format_args!("{path}.targetValue"), detail));
        };
        let usage = match self.name.as_str() {
            "cpu" | "cpu/usage_rate" => Some("cpu"),
            "memory" | "memory/usage" | "memory/working_set" => Some("memory"),
            _ => None,
        };
        if let Some(resource) = usage.filter(|_| on_pods) {
            let target = ResourceTarget {
                type_: v2::AVERAGE_VALUE.to_owned(),
                average_value: Some(value),
                ..Default::default()
            };
            return Ok(resource_metric(resource, target));
        }
        let target = if on_pods {
            MetricTarget {
                type_: v2::AVERAGE_VALUE.to_owned(),
                average_value: Some(value),
                ..Default::default()
            }
        } else {
            MetricTarget { type_: v2::VALUE.to_owned(), value: Some(value), ..Default::default() }
        };
        let name = self.name.strip_prefix("custom/").unwrap_or(&self.name).replace('/', "_");
        Ok(MetricSpec {
            type_: METRIC.to_owned(),
            metric: Some(MetricSource {
                metric: MetricIdentifier { name, selector: None },
                from: Some(from),
                target,
            }),
            ..Default::default()
        })
    }

    fn resource_prefix(&self) -> Option<&str> {
        let prefix = self.name.split('/').next()?;
        matches!(prefix, "cpu" | "memory").then_some(prefix)
    }

    /// The origin of the metric in the form of an Autoscaler.
    fn origin(&self, path: &str) -> Result<MetricOrigin, FieldError> {
        let from = self.from.clone().unwrap_or_default();
        let current = match (from.current.as_deref(), &from.object) {
            (None | Some(""), Some(_)) => return Ok(MetricOrigin { current: None, object: from.object }),
            (Some(_), Some(_)) => {
                let detail = "may not set both current and object";
                return Err(FieldError::forbidden(format_args!("{path}.from.object"), detail));
            }
            (None | Some("" | "pod"), None) => "pod",
            (Some("namespace"), None) => "namespace",
            (Some("controller"), None) => "target",
            (Some(other), None) => {
                let known = ["controller", "namespace", "pod"];
                return Err(FieldError::not_supported(
                    format_args!("{path}.from.current"),
                    AsJson(other),
                    &known,
                ));
            }
        };
        Ok(MetricOrigin { current: Some(current.to_owned()), object: None })
    }
}

fn resource_metric(name: &str, target: ResourceTarget) -> MetricSpec {
    MetricSpec {
        type_: v2::RESOURCE.to_owned(),
        resource: Some(ResourceMetricSource { name: name.to_owned(), target }),
        ..Default::default()
    }
}
