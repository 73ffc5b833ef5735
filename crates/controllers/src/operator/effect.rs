//! Effects: the writes and events that a decision requires, as data. [`super::decide`] returns effects, [`super::apply`] performs
//! them.

use api::autoscaling::v2::HorizontalPodAutoscaler;
use api::diagnosis::Diagnosis;
use api::keda::{Condition, GroupVersionKindResource};
use engine::report::EventKind;
use keda::event::Event;
use keda::executor::ScaleReason;
use keda::jobs::Propagation;
use keda::status::StatusChanges;
use serde_json::Value;

use super::id::DestinationId;

/// One change of a ScaledObject, a ScaledJob or what it owns, or one event. Effects are applied in order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Effect {
    /// Records an event of a poll.
    Event(Event),
    /// Records an event of a reconcile, which is delivered as a CloudEvent too.
    ReconcileEvent(Event),
    /// Records an event of the engine, in scaling mode `direct`, with what is known of its causes.
    EngineEvent(engine::Event, Vec<Diagnosis>),
    /// Writes the replica count of the target.
    Scale(ScaleEffect),
    /// Creates the HPA of a ScaledObject.
    CreateHpa(Box<HorizontalPodAutoscaler>),
    /// Replaces the HPA of a ScaledObject.
    UpdateHpa(Box<HorizontalPodAutoscaler>),
    /// Deletes the HPA with this name; an HPA that does not exist counts as deleted.
    DeleteHpa(String),
    /// Creates jobs from this manifest, with these names. A job of the ScaledJob that has such a name already counts as created.
    CreateJobs { manifest: Value, names: Vec<String> },
    /// Deletes the job with this name.
    DeleteJob { name: String, propagation: Propagation },
    /// Merges changes into the newest known status of a ScaledObject. A failure is logged: the next poll writes them again.
    MergeStatus(StatusChanges),
    /// Applies a merge patch to the status.
    PatchStatus(Value),
    /// Applies a merge patch to the object itself (finalizers, labels).
    PatchObject(Value),
    /// Applies a merge patch that removes the finalizer; an object that is gone needs none.
    RemoveFinalizer(Value),
}

/// A write of the replica count.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ScaleEffect {
    /// The kind of the target.
    pub(crate) target: GroupVersionKindResource,
    /// The name of the target.
    pub(crate) name: String,
    /// Write only if the count is still this one.
    pub(crate) expected: Option<i32>,
    /// The new count.
    pub(crate) to: i32,
    /// Why the count changes, for the log; none in scaling mode `direct`.
    pub(crate) why: Option<ScaleReason>,
}

impl Effect {
    /// With these causes, if it records a warning.
    pub(crate) fn because(mut self, causes: &[Diagnosis]) -> Self {
        if self.is_warning() {
            match &mut self {
                Self::Event(event) | Self::ReconcileEvent(event) => event.causes = causes.to_vec(),
                Self::EngineEvent(_, own) => *own = causes.to_vec(),
                _ => {}
            }
        }
        self
    }

    /// Whether this effect records a warning.
    pub(crate) fn is_warning(&self) -> bool {
        match self {
            Self::Event(event) | Self::ReconcileEvent(event) => event.kind == EventKind::Warning,
            Self::EngineEvent(event, _) => event.kind == EventKind::Warning,
            _ => false,
        }
    }

    /// Whether this effect records an event, and writes nothing else.
    #[cfg(test)]
    pub(crate) fn is_event(&self) -> bool {
        matches!(self, Self::Event(_) | Self::ReconcileEvent(_) | Self::EngineEvent(..))
    }
}

/// One change of a TriggerAuthentication or ClusterTriggerAuthentication, or one event about it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum AuthenticationEffect {
    /// Records an event, which is delivered as a CloudEvent too.
    Event(Event),
    /// Applies a merge patch to the status.
    PatchStatus(Value),
    /// Applies a merge patch to the object itself (finalizers).
    PatchObject(Value),
    /// Applies a merge patch that removes the finalizer; an object that is gone needs none.
    RemoveFinalizer(Value),
}

/// Writes the condition of a CloudEventSource or ClusterCloudEventSource.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DestinationEffect {
    pub(crate) destination: DestinationId,
    pub(crate) condition: Condition,
}
