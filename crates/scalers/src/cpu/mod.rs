//! cpu and memory: resource metrics, which the HPA reads from metrics-server.

#[cfg(test)]
mod tests;

use api::autoscaling::v2::{ContainerResourceMetricSource, MetricTarget, ResourceMetricSource};
use quantity::Quantity;

use crate::parameters::Removed;
use crate::prelude::*;

/// The scaler type `cpu`.
pub const CPU: ScalerType = ScalerType {
    name: "cpu",
    about: "The CPU that the pods of the target use; the HPA has it from metrics-server.",
    display: "cpuMemoryScaler",
    parameters: Parameters::PARAMETERS,
    build,
    samples: &[Sample::offline(&[("value", "50")], &[])],
    ..ScalerType::DEFAULT
};

/// The scaler type `memory`.
pub const MEMORY: ScalerType = ScalerType {
    name: "memory",
    about: "The memory that the pods of the target use; the HPA has it from metrics-server.",
    samples: &[Sample::offline(&[("value", "50")], &[])],
    ..CPU
};

crate::parameters! {
    /// Parameters of cpu and memory. The trigger's `metricType` decides what `value` is: `Utilization` (percent of what the pods
    /// request) or `AverageValue` (a quantity).
    pub struct Parameters {
        /// Replaced by `metricType` of the trigger.
        type_: Removed = "type" in [Metadata],
            removed "The 'type' setting is DEPRECATED and is removed in v2.18 - Use 'metricType' instead.";
        /// The target: a percentage if `metricType` is `Utilization`, a quantity such as `500m` if it is `AverageValue`.
        value: String = "value" in [Metadata], required;
        /// The container to measure; by default all containers.
        container: Option<String> = "containerName" in [Metadata];
    }
}

/// A resource metric: it only yields a spec for the HPA and has no values of its own.
struct ResourceScaler(MetricSpec);

fn build(trigger: &Trigger, _: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    match spec(trigger) {
        Ok(spec) => Ok(Arc::new(ResourceScaler(spec))),
        Err(error) => Err(error.inside(format!("error parsing {} metadata", trigger.type_))),
    }
}

fn spec(trigger: &Trigger) -> Result<MetricSpec, ScalerError> {
    let Parameters { value, container, .. } = Parameters::read(trigger)?;
    let target = target(&trigger.metric_type, &value)?;
    let name = trigger.type_.clone();
    Ok(match container {
        None => MetricSpec {
            type_: "Resource".to_owned(),
            resource: Some(ResourceMetricSource { name, target }),
            ..MetricSpec::default()
        },
        Some(container) => MetricSpec {
            type_: "ContainerResource".to_owned(),
            container_resource: Some(ContainerResourceMetricSource { name, target, container }),
            ..MetricSpec::default()
        },
    })
}

fn target(metric_type: &str, value: &str) -> Result<MetricTarget, ScalerError> {
    let type_ = metric_type.to_owned();
    match metric_type {
        "Utilization" => {
            let percent = value.parse().map_err(|_| {
                scaler_error!(
                    "value {value:?} must be a whole percentage, such as 60, for metricType Utilization"
                )
            })?;
            Ok(MetricTarget { type_, average_utilization: Some(percent), ..MetricTarget::default() })
        }
        "AverageValue" => {
            let average = Quantity::parse(value).map_err(|_| {
                scaler_error!("value {value:?} must be a quantity, such as 500m, for metricType AverageValue")
            })?;
            Ok(MetricTarget { type_, average_value: Some(average), ..MetricTarget::default() })
        }
        other => Err(scaler_error!(
            "unknown metric type: {other}, allowed values are 'Utilization' or 'AverageValue'"
        )),
    }
}

impl Scaler for ResourceScaler {
    fn specs(&self) -> ScalerFuture<'_, Vec<MetricSpec>> {
        Box::pin(async { Ok(vec![self.0.clone()]) })
    }

    fn read<'a>(&'a self, _: &'a str) -> ScalerFuture<'a, Reading> {
        Box::pin(async { Ok(Reading { values: Vec::new(), active: true }) })
    }
}
