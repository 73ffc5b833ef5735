//! cpu and memory: numbers that the HPA has from metrics-server.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use api::autoscaling::v2::{ContainerResourceMetricSource, MetricSpec, MetricTarget, ResourceMetricSource};
use quantity::Quantity;

use crate::backends::Backends;
use crate::parameters::Removed;
use crate::table::Type;
use crate::{Answer, Error, Reading, Scaler, Trigger};

/// cpu.
pub const CPU: Type = Type {
    name: "cpu",
    about: "The CPU that the pods of the target use; the HPA has it from metrics-server.",
    display: "cpuMemoryScaler",
    parameters: Parameters::PARAMETERS,
    push: false,
    build,
};

/// memory.
pub const MEMORY: Type = Type {
    name: "memory",
    about: "The memory that the pods of the target use; the HPA has it from metrics-server.",
    ..CPU
};

crate::parameters! {
    /// What cpu and memory accept. The trigger's `metricType` says what `value` is: `Utilization` (percent of what the pods
    /// request) or `AverageValue` (a quantity).
    pub struct Parameters {
        /// What to aim for: a percentage if `metricType` is `Utilization`, a quantity such as `500m` if it is `AverageValue`.
        value: String = "value" in [Metadata], required;
        /// The container that counts, if not all do.
        container: Option<String> = "containerName" in [Metadata];
        /// `metricType` of the trigger replaced it.
        type_: Removed = "type" in [Metadata],
            removed "The 'type' setting is DEPRECATED and is removed in v2.18 - Use 'metricType' instead.";
    }
}

/// Has no numbers of its own: it only tells the HPA which it wants.
struct Resource(MetricSpec);

fn build(trigger: &Trigger, _: &Backends) -> Result<Arc<dyn Scaler>, Error> {
    match spec(trigger) {
        Ok(spec) => Ok(Arc::new(Resource(spec))),
        Err(error) => Err(error.inside(format!("error parsing {} metadata", trigger.type_))),
    }
}

fn spec(trigger: &Trigger) -> Result<MetricSpec, Error> {
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

fn target(metric_type: &str, value: &str) -> Result<MetricTarget, Error> {
    let type_ = metric_type.to_owned();
    match metric_type {
        "Utilization" => {
            let percent = value.parse().map_err(|_| {
                Error::new(format!(
                    "value {value:?} must be a whole percentage, such as 60, for metricType Utilization"
                ))
            })?;
            Ok(MetricTarget { type_, average_utilization: Some(percent), ..MetricTarget::default() })
        }
        "AverageValue" => {
            let average = Quantity::parse(value).map_err(|_| {
                Error::new(format!(
                    "value {value:?} must be a quantity, such as 500m, for metricType AverageValue"
                ))
            })?;
            Ok(MetricTarget { type_, average_value: Some(average), ..MetricTarget::default() })
        }
        other => Err(Error::new(format!(
            "unknown metric type: {other}, allowed values are 'Utilization' or 'AverageValue'"
        ))),
    }
}

impl Scaler for Resource {
    fn specs(&self) -> Answer<'_, Vec<MetricSpec>> {
        Box::pin(async { Ok(vec![self.0.clone()]) })
    }

    fn read<'a>(&'a self, _: &'a str) -> Answer<'a, Reading> {
        Box::pin(async { Ok(Reading { values: Vec::new(), active: true }) })
    }
}
