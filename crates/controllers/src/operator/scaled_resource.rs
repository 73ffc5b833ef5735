//! A ScaledObject or a ScaledJob: what both have in common.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use api::keda::{ConditionStatus, ScaledJob, ScaledObject, Trigger, annotations, types};
use api::meta::ObjectMeta;
use api::provider::Compat;
use keda::modifiers::{CompiledFormula, ModifiersError};

use super::id::ResourceId;

/// An inactive object is polled earlier by this fraction of its interval (1/30), so that the target is scaled, not only the
/// load noticed, within the interval.
const INACTIVE_POLL_LEAD_DIVISOR: u32 = 30;

/// `pollingInterval` if the object does not set it, in seconds.
const DEFAULT_POLLING_INTERVAL_SECONDS: i32 = 30;

/// A ScaledObject or a ScaledJob.
#[derive(Clone, Debug)]
pub(crate) enum ScaledResource {
    Object(Arc<ScaledObject>),
    Job(Arc<ScaledJob>),
}

impl ScaledResource {
    pub(crate) fn metadata(&self) -> &ObjectMeta {
        match self {
            Self::Object(object) => &object.metadata,
            Self::Job(job) => &job.metadata,
        }
    }

    pub(crate) fn id(&self) -> ResourceId {
        let ObjectMeta { namespace, name, .. } = self.metadata();
        match self {
            Self::Object(_) => ResourceId::object(namespace, name),
            Self::Job(_) => ResourceId::job(namespace, name),
        }
    }

    /// Whether sources that can wake the object may do so.
    pub(crate) fn wakes(&self) -> bool {
        annotations::is_set(&self.metadata().annotations, annotations::WAKE)
    }

    pub(crate) fn triggers(&self) -> &[Trigger] {
        match self {
            Self::Object(object) => &object.spec.triggers,
            Self::Job(job) => &job.spec.triggers,
        }
    }

    /// The container whose environment variables triggers may name; empty for the first container.
    pub(crate) fn container(&self) -> &str {
        match self {
            Self::Object(object) => &object.spec.scale_target_ref.env_source_container_name,
            Self::Job(job) => &job.spec.env_source_container_name,
        }
    }

    /// Whether the object has a `scalingModifiers` formula.
    pub(crate) fn has_formula(&self) -> bool {
        matches!(self, Self::Object(object) if object.modifiers().is_some())
    }

    /// The compiled formula, or why it does not compile.
    pub(crate) fn formula(&self, compat: Compat) -> Option<Result<CompiledFormula, ModifiersError>> {
        let Self::Object(object) = self else { return None };
        object.modifiers().map(|_| CompiledFormula::new(object, compat))
    }

    /// The polling interval of the spec.
    pub(crate) fn interval(&self) -> Duration {
        let seconds = match self {
            Self::Object(object) => object.spec.polling_interval,
            Self::Job(job) => job.spec.polling_interval,
        };
        poll_interval(seconds)
    }

    /// The time between two polls: the interval of the spec, and a little less while a ScaledObject is inactive.
    pub(crate) fn period(&self) -> Duration {
        let interval = self.interval();
        match self {
            Self::Object(object)
                if object.status.conditions.state(types::ACTIVE) != ConditionStatus::True =>
            {
                interval.saturating_sub(interval / INACTIVE_POLL_LEAD_DIVISOR)
            }
            _ => interval,
        }
    }
}

/// A hash of the first trigger that queries an event source. Objects with the same hash send the same query.
pub(crate) fn query_group(triggers: &[Trigger]) -> u64 {
    let mut hasher = DefaultHasher::new();
    if let Some(first) = triggers.iter().find(|trigger| !trigger.is_resource()) {
        (&first.type_, &first.metadata).hash(&mut hasher);
    }
    hasher.finish()
}

/// The polling interval of a spec: 30 s by default, at least 1 s.
pub(crate) fn poll_interval(seconds: Option<i32>) -> Duration {
    let seconds = u64::try_from(seconds.unwrap_or(DEFAULT_POLLING_INTERVAL_SECONDS)).unwrap_or(1).max(1);
    Duration::from_secs(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polling_interval_has_default_and_minimum() {
        for (written, expected) in [(None, 30), (Some(5), 5), (Some(0), 1), (Some(-3), 1)] {
            assert_eq!(poll_interval(written), Duration::from_secs(expected));
        }
    }
}
