//! Defaults of an Autoscaler.

use super::{Autoscaler, AutoscalerSpec, MetricOrigin, MetricSource, MetricSpec, ResourceTarget};
use crate::autoscaling::Defaults;
use crate::autoscaling::defaults::{CPU_UTILIZATION, cpu_utilization};
use crate::autoscaling::v2;

impl Defaults for Autoscaler {
    fn set_defaults(&mut self) {
        self.spec.set_defaults();
    }
}

impl Defaults for AutoscalerSpec {
    fn set_defaults(&mut self) {
        self.min_replicas.get_or_insert(1);
        if self.metrics.is_empty() {
            self.metrics.push(cpu_utilization(CPU_UTILIZATION).into());
        }
        for metric in &mut self.metrics {
            metric.set_defaults();
        }
        if let Some(behavior) = &mut self.behavior {
            behavior.set_defaults();
        }
        self.replicas_aggregator.get_or_insert_with(|| "max".to_owned());
    }
}

impl Defaults for MetricSpec {
    fn set_defaults(&mut self) {
        if let Some(source) = &mut self.resource {
            source.target.set_defaults();
        }
        if let Some(source) = &mut self.container_resource {
            source.target.set_defaults();
        }
        if let Some(source) = &mut self.metric {
            source.set_defaults();
        }
    }
}

impl Defaults for ResourceTarget {
    fn set_defaults(&mut self) {
        if self.average_utilization.is_some() {
            self.percentage_of.get_or_insert_with(|| "requests".to_owned());
        }
    }
}

impl Defaults for MetricSource {
    fn set_defaults(&mut self) {
        let pod = || MetricOrigin { current: Some("pod".to_owned()), object: None };
        self.from.get_or_insert_with(pod);
        // The type follows from the value only if exactly one value is set.
        if self.target.type_.is_empty() {
            match (&self.target.value, &self.target.average_value) {
                (Some(_), None) => v2::VALUE.clone_into(&mut self.target.type_),
                (None, Some(_)) => v2::AVERAGE_VALUE.clone_into(&mut self.target.type_),
                _ => {}
            }
        }
    }
}
