//! Validation: pure checks of what KEDA would refuse in a reconcile. The webhook makes the same checks earlier.

use std::fmt;
use std::num::IntErrorKind;

use api::diagnosis::{Diagnosis, poll_causes};
use api::keda::{ScaledJob, ScaledObject, annotations};
use engine::TriggerPoll;
use engine::trigger_poll::{PolledTrigger, ReconcileFailure};
use keda::admission;

/// Characters of a failure in a record. Its text quotes the object, which can be large, and every poll repeats it.
const MAX_RECORDED_CHARS: usize = 300;

/// The step of a reconcile that failed. Its text begins the message of the condition `Ready`, as KEDA writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ReconcileStep {
    ScaleTarget,
    ReplicaBounds,
    Triggers,
    EnsureHpa,
    DeleteHpaForPause,
    ScaleToPausedReplicas,
    JobTemplate,
    JobTriggers,
    DeleteJob(String),
    BuildJobScalers,
    JobMetricType,
}

impl fmt::Display for ReconcileStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ScaleTarget => "ScaledObject doesn't have correct scaleTargetRef specification",
            Self::ReplicaBounds => {
                "ScaledObject doesn't have correct Idle/Min/Max Replica Counts specification"
            }
            Self::Triggers => "ScaledObject doesn't have correct triggers specification",
            Self::EnsureHpa => "failed to ensure HPA is correctly created for ScaledObject",
            Self::DeleteHpaForPause => "failed to delete HPA for paused ScaledObject",
            Self::ScaleToPausedReplicas => "failed to scale target to paused replica count",
            Self::JobTemplate => "ScaledJob.spec.jobTargetRef not found",
            Self::JobTriggers => "ScaledJob doesn't have correct triggers specification",
            Self::DeleteJob(name) => return write!(f, "Not able to delete job: {name}"),
            Self::BuildJobScalers => "Failed to ensure ScaledJob is correctly created",
            Self::JobMetricType => "Cannot set metricType in ScaledJob triggers",
        })
    }
}

/// Why a reconcile failed: the step, and its cause as the condition shows it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{step}: {cause}")]
pub(crate) struct StepFailure {
    pub(crate) step: ReconcileStep,
    pub(crate) cause: String,
    /// What is recorded of it.
    pub(crate) record: Option<Box<TriggerPoll>>,
    /// The causes of a failure that is recorded already.
    known_causes: Vec<Diagnosis>,
}

impl ReconcileStep {
    /// The failure of this step.
    pub(crate) fn failed(self, cause: impl fmt::Display) -> StepFailure {
        StepFailure { step: self, cause: cause.to_string(), record: None, known_causes: Vec::new() }
    }
}

impl StepFailure {
    /// Records the failure so.
    pub(crate) fn recorded_as(self, round: TriggerPoll) -> Self {
        Self { record: Some(Box::new(round)), ..self }
    }

    /// Records the failure as one of the spec.
    pub(crate) fn of_spec(self) -> Self {
        let text = self.to_string().chars().take(MAX_RECORDED_CHARS).collect();
        let failure = ReconcileFailure::InvalidSpec(text);
        self.of_reconcile(Some(failure))
    }

    /// Records the failure as one of these triggers; without any, as one of the spec.
    pub(crate) fn of_triggers(self, triggers: Vec<PolledTrigger>) -> Self {
        if triggers.is_empty() {
            return self.of_spec();
        }
        self.recorded_as(TriggerPoll { triggers, ..TriggerPoll::default() })
    }

    /// Records the failure so, if there is something to record.
    pub(crate) fn of_reconcile(self, failure: Option<ReconcileFailure>) -> Self {
        match failure {
            Some(failure) => {
                self.recorded_as(TriggerPoll { reconcile: Some(failure), ..TriggerPoll::default() })
            }
            None => self,
        }
    }

    /// The failure is recorded already, with these causes.
    pub(crate) fn recorded_with(self, causes: Vec<Diagnosis>) -> Self {
        Self { known_causes: causes, ..self }
    }

    /// Its causes, as far as they are recorded.
    pub(crate) fn causes(&self) -> Vec<Diagnosis> {
        self.record.as_deref().map_or_else(|| self.known_causes.clone(), poll_causes)
    }

    /// The part of the record that polls repeat until a reconcile succeeds.
    pub(crate) fn reconcile_failure(&self) -> Option<ReconcileFailure> {
        self.record.as_ref()?.reconcile.clone()
    }
}

/// Checks that the object names a target.
pub(crate) fn target_name(object: &ScaledObject) -> Result<(), StepFailure> {
    if object.spec.scale_target_ref.name.is_empty() {
        let cause = "ScaledObject.spec.scaleTargetRef.name is missing";
        return Err(ReconcileStep::ScaleTarget.failed(cause));
    }
    Ok(())
}

/// Checks replica counts and triggers of a ScaledObject.
pub(crate) fn object(object: &ScaledObject) -> Result<(), StepFailure> {
    admission::check_bounds(object).map_err(|cause| ReconcileStep::ReplicaBounds.failed(cause))?;
    admission::check_triggers(&object.spec.triggers).map_err(|cause| ReconcileStep::Triggers.failed(cause))
}

/// Checks that a ScaledJob has a job template.
pub(crate) fn job_template(job: &ScaledJob) -> Result<(), StepFailure> {
    match job.spec.job_target_ref {
        Some(_) => Ok(()),
        None => Err(ReconcileStep::JobTemplate.failed("it is missing")),
    }
}

/// Checks the triggers of a ScaledJob.
pub(crate) fn job_triggers(job: &ScaledJob) -> Result<(), StepFailure> {
    admission::check_triggers(&job.spec.triggers).map_err(|cause| ReconcileStep::JobTriggers.failed(cause))
}

/// Checks that no trigger of a ScaledJob has a `metricType`.
pub(crate) fn job_metric_types(job: &ScaledJob) -> Result<(), StepFailure> {
    if job.spec.triggers.iter().any(|trigger| !trigger.metric_type.is_empty()) {
        return Err(ReconcileStep::JobMetricType.failed("a ScaledJob has no HPA that would use it"));
    }
    Ok(())
}

/// The replica count that the annotation of a paused object sets, if there is one.
pub(crate) fn paused_replicas(object: &ScaledObject) -> Result<Option<i32>, StepFailure> {
    let Some(text) = object.metadata.annotations.get(annotations::PAUSED_REPLICAS) else { return Ok(None) };
    text.parse::<i32>().map(Some).map_err(|error| {
        // KEDA reports the error of Go's parser.
        let why = match error.kind() {
            IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
            _ => "invalid syntax",
        };
        ReconcileStep::ScaleToPausedReplicas.failed(format!(
            "failed to parse paused replica count: strconv.ParseInt: parsing {text:?}: {why}"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paused_replicas_are_parsed_as_go_does() {
        let with = |text: &str| {
            let mut object = ScaledObject::default();
            object.metadata.annotations.insert(annotations::PAUSED_REPLICAS.into(), text.into());
            paused_replicas(&object).map_err(|error| error.to_string())
        };
        assert_eq!(paused_replicas(&ScaledObject::default()), Ok(None));
        assert_eq!(with("4"), Ok(Some(4)));
        let failed = |cause: &str| {
            Err(format!(
                "failed to scale target to paused replica count: failed to parse paused replica count: \
                 strconv.ParseInt: parsing {cause}"
            ))
        };
        assert_eq!(with("four"), failed("\"four\": invalid syntax"));
        assert_eq!(with("99999999999"), failed("\"99999999999\": value out of range"));
    }
}
