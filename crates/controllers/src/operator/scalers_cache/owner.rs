//! Whose triggers they are.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use api::keda::{ConditionStatus, ScaledJob, ScaledObject, Trigger, types};
use api::meta::ObjectMeta;
use api::provider::Compat;
use keda::modifiers::{CompiledFormula, ModifiersError};

use crate::operator::id::Id;

/// Which part of the interval at rest is left for acting on what a poll finds.
const EARLY: u32 = 30;

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

    pub(crate) fn id(&self) -> Id {
        let ObjectMeta { namespace, name, .. } = self.metadata();
        match self {
            Self::Object(_) => Id::object(namespace, name),
            Self::Job(_) => Id::job(namespace, name),
        }
    }

    pub(crate) fn triggers(&self) -> &[Trigger] {
        match self {
            Self::Object(object) => &object.spec.triggers,
            Self::Job(job) => &job.spec.triggers,
        }
    }

    /// The container whose environment counts; empty for the first.
    pub(crate) fn container(&self) -> &str {
        match self {
            Self::Object(object) => &object.spec.scale_target_ref.env_source_container_name,
            Self::Job(job) => &job.spec.env_source_container_name,
        }
    }

    /// Whether its triggers feed a formula.
    pub(crate) fn has_formula(&self) -> bool {
        matches!(self, Self::Object(object) if object.modifiers().is_some())
    }

    /// Its formula, or why it cannot be used.
    pub(crate) fn formula(&self, compat: Compat) -> Option<Result<CompiledFormula, ModifiersError>> {
        let Self::Object(object) = self else { return None };
        object.modifiers().map(|_| CompiledFormula::new(object, compat))
    }

    /// Seconds from poll to poll.
    pub(crate) fn interval(&self) -> Duration {
        let seconds = match self {
            Self::Object(object) => object.spec.polling_interval,
            Self::Job(job) => job.spec.polling_interval,
        };
        interval(seconds)
    }

    /// SampleQuery long we wait from poll to poll: at rest a little less than the interval, so that within it work is not only noticed
    /// but has somebody to do it.
    pub(crate) fn period(&self) -> Duration {
        let interval = self.interval();
        match self {
            Self::Object(object)
                if object.status.conditions.state(types::ACTIVE) != ConditionStatus::True =>
            {
                interval.saturating_sub(interval / EARLY)
            }
            _ => interval,
        }
    }
}

/// What those who ask the same have in common: their first trigger that asks somebody.
pub(crate) fn group(triggers: &[Trigger]) -> u64 {
    let mut hasher = DefaultHasher::new();
    if let Some(first) = triggers.iter().find(|trigger| !trigger.is_resource()) {
        (&first.type_, &first.metadata).hash(&mut hasher);
    }
    hasher.finish()
}

/// From poll to poll; what makes no sense is the shortest that does.
pub(crate) fn interval(seconds: Option<i32>) -> Duration {
    let seconds = u64::try_from(seconds.unwrap_or(30)).unwrap_or(1).max(1);
    Duration::from_secs(seconds)
}
