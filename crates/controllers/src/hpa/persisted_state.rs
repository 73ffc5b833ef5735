//! State that survives a restart or a change of leader: windows and scale events, in an annotation on the object.
//!
//! A status write carries the annotation without another request. If the state changes but the status does not, a separate
//! write is made, at most once per object and window. Kubernetes loses this state (docs/spec/hpa.md 7.5).

use std::collections::HashMap;
use std::time::Duration;

use cluster::AutoscalerKey;
use engine::snapshot::StateSnapshot;
use engine::{ControllerConfig, Observation, Replicas, Spec, State};
use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use super::autoscaler::{AutoscalerEntry, PERSISTED_STATE_ANNOTATION};

/// The minimum time between two separate writes of persisted state, if no window is longer.
const MIN_WRITE_INTERVAL: Duration = Duration::from_mins(1);

/// The state of one autoscaler.
#[derive(Clone, Debug, Default)]
pub(crate) struct PersistedState {
    pub(crate) state: State,
    /// The annotation on the object, as last read or written.
    kept: Option<StateSnapshot>,
    /// Whether the state is not restored from the annotation yet, which needs the replica count of the target.
    pub(crate) awaits_scale: bool,
    /// When the last separate write was made.
    separate_write: Option<Instant>,
    /// The replica count at the last reconcile, to detect changes by others.
    pub(crate) current: Option<Replicas>,
    /// The last reported error in its annotations, which is reported once.
    pub(crate) annotation_error: Option<String>,
    /// The total jump of the clock when this state was taken out; its times refer to that clock.
    jumped: SignedDuration,
}

/// The states of all autoscalers.
#[derive(Debug, Default)]
pub(crate) struct PersistedStates {
    by_key: HashMap<AutoscalerKey, PersistedState>,
    /// The total jump of the clock.
    jumped: SignedDuration,
}

/// How to persist the state after a decision.
pub(crate) enum PersistAction {
    /// The annotation still covers the state.
    Nothing,
    /// Add the annotation to a status write, if there is one.
    WithStatusWrite(StateSnapshot),
    /// Write the annotation, also without a status write.
    SeparateWrite(StateSnapshot),
}

impl PersistedStates {
    /// The state of an autoscaler; after a restart, that of its annotation once its scale is read.
    pub(crate) fn of(&self, entry: &AutoscalerEntry, is_persisted: bool) -> PersistedState {
        if let Some(known) = self.by_key.get(&entry.key) {
            return PersistedState { jumped: self.jumped, ..known.clone() };
        }
        let text =
            entry.object.metadata().annotations.get(PERSISTED_STATE_ANNOTATION).filter(|_| is_persisted);
        let kept = text.and_then(|text| match StateSnapshot::parse(text) {
            Ok(snapshot) => Some(snapshot),
            Err(error) => {
                tracing::warn!(
                    namespace = &*entry.key.namespace, name = entry.key.record_name(), %error,
                    "the annotation {PERSISTED_STATE_ANNOTATION} cannot be read; windows begin anew, as after a restart of Kubernetes' own controller"
                );
                None
            }
        });
        let awaits_scale = kept.is_some();
        PersistedState { kept, awaits_scale, jumped: self.jumped, ..PersistedState::default() }
    }

    /// Puts a state back; its times are shifted by jumps of the clock since it was taken out.
    pub(crate) fn put(&mut self, key: &AutoscalerKey, mut state: PersistedState) {
        state.state.shift(self.jumped_since(&state));
        self.by_key.insert(key.clone(), state);
    }

    /// The jump of the clock since the state was taken out.
    pub(crate) fn jumped_since(&self, state: &PersistedState) -> SignedDuration {
        self.jumped.saturating_sub(state.jumped)
    }

    /// Forgets the state of an autoscaler. Returns whether there was one.
    pub(crate) fn forget(&mut self, key: &AutoscalerKey) -> bool {
        self.by_key.remove(key).is_some()
    }

    /// Forgets all states: another leader may have decided since, so annotations count.
    pub(crate) fn clear(&mut self) {
        self.by_key.clear();
    }

    /// Shifts all times after a jump of the wall clock, so that windows keep their length.
    pub(crate) fn shift(&mut self, by: SignedDuration) {
        self.jumped = self.jumped.saturating_add(by);
        self.by_key.values_mut().for_each(|state| state.state.shift(by));
    }
}

impl PersistedState {
    /// The state for a decision about this observation.
    pub(crate) fn state_for(&self, now: Timestamp, seen: &Observation) -> State {
        match (&self.kept, &seen.scale) {
            (Some(kept), Ok(scale)) if self.awaits_scale => {
                kept.restore_for(now, &seen.spec, &seen.config, scale.spec_replicas)
            }
            _ => self.state.clone(),
        }
    }

    /// How to persist the state after a decision at `at`. The annotation may cover the state and still contain more, so that a
    /// status write that is made anyway (`has_status_write`) carries the current state.
    pub(crate) fn keep(
        &self,
        at: Timestamp,
        now: Instant,
        spec: &Spec,
        config: &ControllerConfig,
        has_status_write: bool,
    ) -> PersistAction {
        let covered = self.kept.as_ref().is_some_and(|kept| kept.covers(&self.state, at, spec, config));
        if covered && !has_status_write {
            return PersistAction::Nothing;
        }
        let snapshot = self.state.snapshot(at, spec, config);
        if covered {
            return PersistAction::WithStatusWrite(snapshot);
        }
        let window = longest_window(spec, config).max(MIN_WRITE_INTERVAL);
        match self.separate_write {
            Some(last) if now.saturating_duration_since(last) < window => {
                PersistAction::WithStatusWrite(snapshot)
            }
            _ => PersistAction::SeparateWrite(snapshot),
        }
    }

    /// Records the annotation that was written.
    pub(crate) fn kept(&mut self, snapshot: StateSnapshot, alone: bool, now: Instant) {
        self.kept = Some(snapshot);
        if alone {
            self.separate_write = Some(now);
        }
    }
}

/// The longest window or policy period.
fn longest_window(spec: &Spec, config: &ControllerConfig) -> Duration {
    let down = config.downscale_stabilization;
    let rules = spec.behavior.iter().flat_map(|b| [&b.up, &b.down]);
    let own = rules.flat_map(|rules| rules.window.into_iter().chain(rules.policies.iter().map(|p| p.period)));
    own.chain([down]).max().and_then(|window| Duration::try_from(window).ok()).unwrap_or_default()
}
