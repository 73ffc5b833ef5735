//! Defaults that the API server sets when it reads an autoscaler (docs/spec/hpa.md 1.3, 1.6).

use super::v2::{
    self, HPAScalingPolicy, HPAScalingRules, HorizontalPodAutoscalerBehavior, HorizontalPodAutoscalerSpec,
    MetricSpec, MetricTarget, ResourceMetricSource,
};
use super::{v1, v2beta1, v2beta2};

/// Target CPU utilization if no metric is given.
pub const CPU_UTILIZATION: i32 = 80;

/// An object with defaults. Setting them twice changes nothing.
pub trait Defaults {
    /// Sets the defaults of unset fields.
    fn set_defaults(&mut self);
}

impl Defaults for v2::HorizontalPodAutoscaler {
    fn set_defaults(&mut self) {
        self.spec.set_defaults();
    }
}

impl Defaults for HorizontalPodAutoscalerSpec {
    fn set_defaults(&mut self) {
        self.min_replicas.get_or_insert(1);
        if self.metrics.is_empty() {
            self.metrics.push(cpu_utilization(CPU_UTILIZATION));
        }
        if let Some(behavior) = &mut self.behavior {
            behavior.set_defaults();
        }
    }
}

impl Defaults for HorizontalPodAutoscalerBehavior {
    fn set_defaults(&mut self) {
        let up = self.scale_up.get_or_insert_default();
        up.stabilization_window_seconds.get_or_insert(0);
        set_rule_defaults(up, || vec![policy("Pods", 4), policy("Percent", 100)]);
        // Scale-up has no window by default. The scale-down window stays unset, since its default is a controller flag.
        let down = self.scale_down.get_or_insert_default();
        set_rule_defaults(down, || vec![policy("Percent", 100)]);
    }
}

impl Defaults for v1::HorizontalPodAutoscaler {
    /// The CPU default of v1 is applied by conversion.
    fn set_defaults(&mut self) {
        self.spec.min_replicas.get_or_insert(1);
    }
}

impl Defaults for v2beta1::HorizontalPodAutoscaler {
    fn set_defaults(&mut self) {
        self.spec.min_replicas.get_or_insert(1);
        if self.spec.metrics.is_empty() {
            self.spec.metrics.push(v2beta1::MetricSpec {
                type_: v2::RESOURCE.to_owned(),
                resource: Some(v2beta1::ResourceMetricSource {
                    name: "cpu".to_owned(),
                    target_average_utilization: Some(CPU_UTILIZATION),
                    target_average_value: None,
                }),
                ..Default::default()
            });
        }
    }
}

impl Defaults for v2beta2::HorizontalPodAutoscaler {
    fn set_defaults(&mut self) {
        let behavior = self.spec.behavior.take();
        self.spec.min_replicas.get_or_insert(1);
        if self.spec.metrics.is_empty() {
            self.spec.metrics.push(cpu_utilization(CPU_UTILIZATION));
        }
        self.spec.behavior = behavior.map(|behavior| {
            let mut behavior = HorizontalPodAutoscalerBehavior::from(behavior);
            behavior.set_defaults();
            behavior.into()
        });
    }
}

/// The metric for a plain CPU percentage.
pub(crate) fn cpu_utilization(percent: i32) -> MetricSpec {
    MetricSpec {
        type_: v2::RESOURCE.to_owned(),
        resource: Some(ResourceMetricSource {
            name: "cpu".to_owned(),
            target: MetricTarget {
                type_: v2::UTILIZATION.to_owned(),
                average_utilization: Some(percent),
                ..Default::default()
            },
        }),
        ..Default::default()
    }
}

fn set_rule_defaults(rules: &mut HPAScalingRules, policies: impl FnOnce() -> Vec<HPAScalingPolicy>) {
    rules.select_policy.get_or_insert_with(|| "Max".to_owned());
    rules.policies.get_or_insert_with(policies);
}

fn policy(type_: &str, value: i32) -> HPAScalingPolicy {
    HPAScalingPolicy { type_: type_.to_owned(), value, period_seconds: 15 }
}
