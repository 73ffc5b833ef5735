//! The in-memory state of each ScaledObject and ScaledJob.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use api::keda::ScaledObject;
use api::meta::ObjectMeta;
use engine::trigger_poll::ReconcileFailure;
use jiff::{SignedDuration, Timestamp};
use keda::activity::{CachedReading, HpaObservation, HpaObservations};
use locks::MutexExt as _;
use tokio::time::Instant;

use super::scaled_resource::ScaledResource;
use super::scalers_cache::{ScalersCache, WokenTriggers};
use super::unsettled_jobs::UnsettledJobs;

/// The state, the scalers and the lock of one object.
#[derive(Default)]
pub(crate) struct ObjectEntry {
    /// Held while a decision about the object is made and applied.
    pub(crate) decision_lock: tokio::sync::Mutex<()>,
    scalers: Mutex<Option<Arc<ScalersCache>>>,
    state: Mutex<ObjectState>,
}

/// Whether the sources of an object are queried because a push trigger reported activity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum PushState {
    /// No query runs.
    #[default]
    Idle,
    /// A query runs.
    Querying,
    /// A query runs, and another must follow, because the trigger has reported activity again since.
    QueryingAgain,
}

/// The HPA that a reconcile last wrote or found correct. Equal fingerprints mean that there is nothing to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CheckedHpa {
    /// Fingerprint of the HPA that the object requires.
    pub(crate) wanted: u64,
    /// Fingerprint of the HPA in the cluster.
    pub(crate) found: u64,
}

/// What is remembered of one object between reconciles and polls.
#[derive(Default)]
pub(crate) struct ObjectState {
    /// Whether the object was reconciled since this replica leads.
    pub(crate) reconciled: bool,
    /// Whether the object was reconciled and has not changed since.
    pub(crate) settled: bool,
    /// Number of reconciles that failed in a row.
    pub(crate) failures: u32,
    /// Whether the object is polled.
    pub(crate) polled: bool,
    /// Whether the last reconcile did not find the scale target.
    pub(crate) target_missing: bool,
    /// Why the last reconcile failed, for the records of polls.
    pub(crate) reconcile_failure: Option<Box<ReconcileFailure>>,
    /// The HPA that was last written or found correct.
    pub(crate) hpa: Option<CheckedHpa>,
    /// Samples of the last poll, for triggers with `useCachedMetrics`.
    pub(crate) records: PolledMetrics,
    /// What requests of the HPA found out, for polls.
    pub(crate) observed: ObservedMetrics,
    /// When the object was last active, exactly; the status may hold an older time.
    pub(crate) last_active: Option<Timestamp>,
    /// The creation of the object, after jumps of the machine's clock.
    shifted_creation: Option<ShiftedCreation>,
    /// Whether sources are queried because of a push trigger.
    pub(crate) push: PushState,
    /// When sources were last queried because of a push trigger.
    pub(crate) push_queried_at: Option<Instant>,
    /// When a source last woke the object.
    pub(crate) woken_at: Option<Instant>,
    /// The triggers that have woken the object since its last poll, so that older samples of them do not count.
    pub(crate) woken: WokenTriggers,
    /// When a poll last queried the triggers.
    pub(crate) poll_queried_at: Option<Instant>,
    /// When failures of a poll last counted for the fallback.
    pub(crate) failures_counted_at: Option<Instant>,
    /// When the last poll began.
    pub(crate) poll_began: Option<Timestamp>,
    /// `metadata.generation` at the last poll.
    pub(crate) polled_generation: Option<i64>,
    /// How late the last poll began.
    pub(crate) poll_delay: Option<Duration>,
    /// Number of errors; none before the first poll.
    pub(crate) errors: Option<u64>,
    /// Whether the formula was active in the last poll, if there is one.
    pub(crate) formula_active: Option<bool>,
    /// The value of the formula in the last poll.
    pub(crate) formula_value: Option<f64>,
    /// Jobs whose creation had no clear response.
    pub(crate) unsettled_jobs: UnsettledJobs,
    /// The engine's state, in scaling mode `direct`.
    pub(crate) direct: Option<Box<DirectState>>,
}

/// Samples of the last poll of one generation of an object, for triggers with `useCachedMetrics`. A metric of another generation
/// may have the same name and another query.
#[derive(Default)]
pub(crate) struct PolledMetrics {
    generation: i64,
    by_metric: BTreeMap<String, CachedReading>,
}

impl PolledMetrics {
    /// The samples of a poll of this generation.
    pub(crate) fn new(generation: i64, by_metric: BTreeMap<String, CachedReading>) -> Self {
        Self { generation, by_metric }
    }

    /// The samples, if they are of this generation.
    pub(crate) fn of(&self, generation: i64) -> BTreeMap<String, CachedReading> {
        if self.generation == generation { self.by_metric.clone() } else { BTreeMap::new() }
    }
}

/// What requests of the HPA found out about the metrics of one generation of an object.
#[derive(Default)]
pub(crate) struct ObservedMetrics {
    generation: i64,
    by_metric: BTreeMap<String, (Instant, HpaObservation)>,
}

impl ObservedMetrics {
    /// Adds newer observations; those of another generation are dropped.
    pub(crate) fn add(&mut self, generation: i64, observed: HpaObservations) {
        if self.generation != generation {
            *self = Self { generation, ..Self::default() };
        }
        let now = Instant::now();
        self.by_metric.extend(observed.into_iter().map(|(name, observation)| (name, (now, observation))));
    }

    /// The observations of this generation that are at most `max_age` old.
    pub(crate) fn of(&self, generation: i64, max_age: Duration) -> HpaObservations {
        let own = self.by_metric.iter().filter(|_| self.generation == generation);
        let recent = own.filter(|(_, (at, _))| at.elapsed() <= max_age);
        recent.map(|(name, (_, observation))| (name.clone(), observation.clone())).collect()
    }
}

/// The creation of an object by the machine's clock, which has jumped since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ShiftedCreation {
    /// `metadata.creationTimestamp`, which tells the object from an older one with the same name.
    written: Timestamp,
    /// The same time by the clock as it is now.
    shifted: Timestamp,
}

impl ObjectState {
    /// When the object was created, by the machine's clock as it is now.
    pub(crate) fn creation_time(&self, metadata: &ObjectMeta) -> Option<Timestamp> {
        let written = metadata.creation_timestamp?;
        let shifted = self.shifted_creation.filter(|creation| creation.written == written);
        Some(shifted.map_or(written, |creation| creation.shifted))
    }
}

/// What the engine remembers of an object that has no HPA.
#[derive(Debug, Default)]
pub(crate) struct DirectState {
    pub(crate) engine: engine::State,
    pub(crate) status: engine::Status,
}

impl ObjectEntry {
    pub(crate) fn state(&self) -> MutexGuard<'_, ObjectState> {
        self.state.locked()
    }

    /// The scalers, if they are there.
    pub(crate) fn scalers(&self) -> Option<Arc<ScalersCache>> {
        self.scalers.locked().clone()
    }

    /// The scalers of this generation of the object; those of another generation are replaced by `new`.
    pub(crate) fn scalers_of(
        &self,
        owner: &ScaledResource,
        new: impl FnOnce() -> Arc<ScalersCache>,
    ) -> Arc<ScalersCache> {
        let mut held = self.scalers.locked();
        if let Some(known) = held.as_ref().filter(|known| known.are_of(owner)) {
            return Arc::clone(known);
        }
        Arc::clone(held.insert(new()))
    }

    /// Drops the scalers, which ends the streams of push triggers.
    pub(crate) fn drop_scalers(&self) {
        self.scalers.locked().take();
    }

    /// Moves all remembered times by a jump of the machine's clock. The time of last activity in the status of `object` counts
    /// where this replica has not seen the object active.
    pub(crate) fn shift(&self, by: SignedDuration, object: Option<&ScaledObject>) {
        let moved = |time: Timestamp| time.checked_add(by).unwrap_or(time);
        let mut state = self.state();
        state.last_active =
            state.last_active.or(object.and_then(|object| object.status.last_active_time)).map(moved);
        if let Some(metadata) = object.map(|object| &object.metadata)
            && let (Some(written), Some(time)) = (metadata.creation_timestamp, state.creation_time(metadata))
        {
            state.shifted_creation = Some(ShiftedCreation { written, shifted: moved(time) });
        }
        if let Some(direct) = &mut state.direct {
            direct.engine.shift(by);
        }
    }
}
