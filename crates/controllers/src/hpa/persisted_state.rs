//! What survives a restart or a change of leader: windows and scale events, in an annotation that rides on status writes.
//!
//! A status write carries it for nothing. Where decisions change what must be remembered without changing the status, one
//! write of its own is made, at most once per object and window. Upstream forgets all of it (docs/spec/hpa.md 7.5).

use std::collections::HashMap;
use std::time::Duration;

use cluster::AutoscalerKey;
use engine::memory::StateSnapshot;
use engine::{ControllerConfig, Spec, State};
use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use super::autoscaler::{AutoscalerEntry, MEMORY};

/// Time between two writes that are made for memory alone, where no window is longer.
const AT_LEAST: Duration = Duration::from_mins(1);

/// What is remembered of one autoscaler.
#[derive(Clone, Debug, Default)]
pub(crate) struct PersistedState {
    pub(crate) state: State,
    /// What is kept on the object, as far as we know.
    kept: Option<StateSnapshot>,
    /// When a write was last made for memory alone.
    own_write: Option<Instant>,
    /// The count at the last pass, to notice others who scale.
    pub(crate) current: Option<i32>,
    /// What was last said to be wrong with its annotations: it is said once.
    pub(crate) complaint: Option<String>,
    /// By how much the clock had jumped in all when this was taken out: its times are of then.
    jumped: SignedDuration,
}

/// What is remembered of all of them.
#[derive(Debug, Default)]
pub(crate) struct PersistedStates {
    by_key: HashMap<AutoscalerKey, PersistedState>,
    /// By how much the clock has jumped in all.
    jumped: SignedDuration,
}

/// What to keep on the object after a decision.
pub(crate) enum PersistAction {
    /// What is there still says it all.
    Nothing,
    /// Let it ride on a status write, but make none for it.
    Piggyback(StateSnapshot),
    /// Make a write for it.
    Write(StateSnapshot),
}

impl PersistedStates {
    /// What is remembered; after a restart, what the object says.
    pub(crate) fn of(&self, entry: &AutoscalerEntry, now: Timestamp, remember: bool) -> PersistedState {
        if let Some(known) = self.by_key.get(&entry.key) {
            return PersistedState { jumped: self.jumped, ..known.clone() };
        }
        let text = entry.object.metadata().annotations.get(MEMORY).filter(|_| remember);
        let kept = text.and_then(|text| match StateSnapshot::parse(text) {
            Ok(memory) => Some(memory),
            Err(error) => {
                tracing::warn!(
                    autoscaler = %entry.key, %error,
                    "the annotation {MEMORY} cannot be read; windows begin anew, as after a restart of Kubernetes' own controller"
                );
                None
            }
        });
        let state = kept.as_ref().map(|memory| memory.recall(now)).unwrap_or_default();
        PersistedState { state, kept, jumped: self.jumped, ..PersistedState::default() }
    }

    /// Takes back what was taken out; if the clock has jumped meanwhile, it moves too.
    pub(crate) fn put(&mut self, key: &AutoscalerKey, mut state: PersistedState) {
        state.state.shift(self.jumped_since(&state));
        self.by_key.insert(key.clone(), state);
    }

    /// By how much the clock has jumped since this was taken out.
    pub(crate) fn jumped_since(&self, state: &PersistedState) -> SignedDuration {
        self.jumped.saturating_sub(state.jumped)
    }

    pub(crate) fn forget(&mut self, key: &AutoscalerKey) {
        self.by_key.remove(key);
    }

    /// Another leader may have decided meanwhile: what objects say counts.
    pub(crate) fn clear(&mut self) {
        self.by_key.clear();
    }

    /// The clock of the world has jumped: what is remembered moves with it, so that windows keep their length.
    pub(crate) fn shift(&mut self, by: SignedDuration) {
        self.jumped = self.jumped.saturating_add(by);
        self.by_key.values_mut().for_each(|state| state.state.shift(by));
    }
}

impl PersistedState {
    /// What to keep on the object, given that the state is that of the decision just made. What is there may cover it and
    /// still hold longer than we do, so that a write which is made anyway (`rides`) carries what we know now.
    pub(crate) fn keep(
        &self,
        at: Timestamp,
        now: Instant,
        spec: &Spec,
        config: &ControllerConfig,
        rides: bool,
    ) -> PersistAction {
        let covered = self.kept.as_ref().is_some_and(|kept| kept.covers(&self.state, at, spec, config));
        if covered && !rides {
            return PersistAction::Nothing;
        }
        let memory = self.state.memory(at, spec, config);
        if covered {
            return PersistAction::Piggyback(memory);
        }
        let window = longest_window(spec, config).max(AT_LEAST);
        match self.own_write {
            Some(last) if now.saturating_duration_since(last) < window => PersistAction::Piggyback(memory),
            _ => PersistAction::Write(memory),
        }
    }

    /// The object now says this.
    pub(crate) fn kept(&mut self, memory: StateSnapshot, alone: bool, now: Instant) {
        self.kept = Some(memory);
        if alone {
            self.own_write = Some(now);
        }
    }
}

/// The longest time for which something is remembered.
fn longest_window(spec: &Spec, config: &ControllerConfig) -> Duration {
    let down = config.downscale_stabilization;
    let rules = spec.behavior.iter().flat_map(|b| [&b.up, &b.down]);
    let own = rules.flat_map(|rules| rules.window.into_iter().chain(rules.policies.iter().map(|p| p.period)));
    own.chain([down]).max().and_then(|window| Duration::try_from(window).ok()).unwrap_or_default()
}
