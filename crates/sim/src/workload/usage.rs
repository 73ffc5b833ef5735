//! The resource usage of containers.

use engine::MilliValue;

/// Rounding error of sums of fractions that does not round to the next number.
const ROUNDING_SLACK: f64 = 1e-6;

/// Usage of one resource by one container, in thousandths (of a core, of a byte).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UsageModel {
    /// Usage without work.
    pub idle: f64,
    /// Additional usage for each unit of work per second.
    pub per_unit: f64,
    /// Usage from running to ready, instead of `idle`.
    pub starting: f64,
    /// Upper limit.
    pub limit: f64,
}

/// Usage of cpu and memory by one container.
#[derive(Clone, Debug, PartialEq)]
pub struct ContainerUsageModel {
    /// Name of the container.
    pub name: String,
    /// Usage of cpu.
    pub cpu: UsageModel,
    /// Usage of memory.
    pub memory: UsageModel,
}

/// A resource that containers use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelResource {
    /// Processor time.
    Cpu,
    /// Memory.
    Memory,
}

/// The containers whose usage a metric sums in one pod.
#[derive(Clone, Debug, PartialEq)]
pub struct UsageMeter {
    parts: Vec<UsageModel>,
    resource: ModelResource,
}

/// Activity of one pod in one scrape window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PodActivity {
    /// Share of the window in which it was not yet ready.
    pub starting: f64,
    /// Mean work, in units per second.
    pub work: f64,
}

impl ModelResource {
    /// The resource of this name, if it is modelled.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "cpu" => Some(Self::Cpu),
            "memory" => Some(Self::Memory),
            _ => None,
        }
    }
}

impl ContainerUsageModel {
    fn of(&self, resource: ModelResource) -> UsageModel {
        match resource {
            ModelResource::Cpu => self.cpu,
            ModelResource::Memory => self.memory,
        }
    }
}

impl UsageModel {
    /// Mean usage over a window.
    pub fn over(&self, activity: PodActivity) -> f64 {
        let base = self.idle + (self.starting - self.idle) * activity.starting;
        (base + self.per_unit * activity.work).min(self.limit)
    }
}

impl UsageMeter {
    /// Measures `resource` of all containers, or of the one named.
    pub fn new(containers: &[ContainerUsageModel], resource: ModelResource, container: Option<&str>) -> Self {
        let parts = containers.iter().filter(|c| container.is_none_or(|name| name == c.name));
        Self { parts: parts.map(|c| c.of(resource)).collect(), resource }
    }

    /// The sample of a pod; absent if it has no such container.
    pub fn read(&self, activity: PodActivity) -> Option<MilliValue> {
        if self.parts.is_empty() {
            return None;
        }
        // Each container is rounded by itself: cpu up to a thousandth, memory down to a byte (docs/spec/hpa.md 5.1).
        let each = |part: &UsageModel| match self.resource {
            ModelResource::Cpu => (part.over(activity) - ROUNDING_SLACK).ceil() as i64,
            ModelResource::Memory => {
                (((part.over(activity) + ROUNDING_SLACK) / 1000.0).floor() as i64).saturating_mul(1000)
            }
        };
        Some(MilliValue::new(self.parts.iter().map(each).fold(0, i64::saturating_add)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn container(name: &str, cpu: UsageModel) -> ContainerUsageModel {
        let memory =
            UsageModel { idle: 1_048_576_500.0, per_unit: 1000.0, starting: 0.0, limit: f64::INFINITY };
        ContainerUsageModel { name: name.into(), cpu, memory }
    }

    #[test]
    fn usage_follows_work_up_to_the_limit() {
        let app = UsageModel { idle: 2.0, per_unit: 25.0, starting: 300.0, limit: 500.0 };
        let proxy = UsageModel { idle: 10.0, per_unit: 0.1, starting: 10.0, limit: f64::INFINITY };
        let containers = [container("app", app), container("proxy", proxy)];
        let read = |container, starting, work| {
            let meter = UsageMeter::new(&containers, ModelResource::Cpu, container);
            meter.read(PodActivity { starting, work }).map(MilliValue::get)
        };
        assert_eq!(read(Some("app"), 0.0, 0.0), Some(2));
        assert_eq!(read(Some("app"), 0.0, 10.0), Some(252));
        assert_eq!(read(Some("app"), 0.0, 1000.0), Some(500));
        assert_eq!(read(Some("app"), 1.0, 0.0), Some(300));
        assert_eq!(read(Some("app"), 0.5, 0.0), Some(151));
        assert_eq!(read(None, 0.0, 10.0), Some(252 + 11));
        assert_eq!(read(Some("other"), 0.0, 10.0), None);
        let memory = UsageMeter::new(&containers, ModelResource::Memory, Some("app"));
        assert_eq!(memory.read(PodActivity { starting: 0.0, work: 0.0 }), Some(1_048_576_000.into()));
    }
}
