//! What containers use while they work.

/// What sums of fractions may be off by without being rounded to the next number.
const HAIR: f64 = 1e-6;

/// Use of one resource by one container, in thousandths (of a core, of a byte).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UsageModel {
    /// While there is nothing to do.
    pub idle: f64,
    /// More for each unit of work per second.
    pub per_unit: f64,
    /// From running to ready, instead of `idle`.
    pub starting: f64,
    /// Never more than this.
    pub limit: f64,
}

/// Use of cpu and memory by one container.
#[derive(Clone, Debug, PartialEq)]
pub struct ContainerUsageModel {
    /// Name of the container.
    pub name: String,
    /// Use of cpu.
    pub cpu: UsageModel,
    /// Use of memory.
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

/// What a metric adds up in one pod.
#[derive(Clone, Debug, PartialEq)]
pub struct UsageMeter {
    parts: Vec<UsageModel>,
    resource: ModelResource,
}

/// What one pod did in one window of measurement.
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
    /// Mean use over a window.
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

    /// What a pod's sample says, in thousandths; absent if it has no such container.
    pub fn read(&self, activity: PodActivity) -> Option<i64> {
        if self.parts.is_empty() {
            return None;
        }
        // Each container is rounded by itself: cpu up to a thousandth, memory down to a byte (docs/spec/hpa.md 5.1).
        let each = |part: &UsageModel| match self.resource {
            ModelResource::Cpu => (part.over(activity) - HAIR).ceil() as i64,
            ModelResource::Memory => {
                (((part.over(activity) + HAIR) / 1000.0).floor() as i64).saturating_mul(1000)
            }
        };
        Some(self.parts.iter().map(each).fold(0, i64::saturating_add))
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
            UsageMeter::new(&containers, ModelResource::Cpu, container).read(PodActivity { starting, work })
        };
        assert_eq!(read(Some("app"), 0.0, 0.0), Some(2));
        assert_eq!(read(Some("app"), 0.0, 10.0), Some(252));
        assert_eq!(read(Some("app"), 0.0, 1000.0), Some(500));
        assert_eq!(read(Some("app"), 1.0, 0.0), Some(300));
        assert_eq!(read(Some("app"), 0.5, 0.0), Some(151));
        assert_eq!(read(None, 0.0, 10.0), Some(252 + 11));
        assert_eq!(read(Some("other"), 0.0, 10.0), None);
        let memory = UsageMeter::new(&containers, ModelResource::Memory, Some("app"));
        assert_eq!(memory.read(PodActivity { starting: 0.0, work: 0.0 }), Some(1_048_576_000));
    }
}
