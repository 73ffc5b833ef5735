//! One reconcile of one autoscaler: observe, decide, act, report.

use std::sync::{Arc, Mutex, MutexGuard, RwLock};
use std::time::Duration;

use api::convert::{current_values, same_status};
use api::decisions::DecisionMode;
use api::diagnosis::{DiagnosisFacts, diagnose, event_annotations};
use cluster::events::EventRecorder;
use cluster::lease::Leadership;
use cluster::scale::ScaleObject;
use cluster::{AutoscalerKey, Clock};
use engine::act::ScaleWriteError;
use engine::report::EventKind;
use engine::{Course, Decision, DecisionDetail, Event, Observation, ScaleOutcome, ScaleWriteResult, State};
use jiff::{SignedDuration, Timestamp};
use locks::{MutexExt as _, RwLockExt as _};
use tokio::time::Instant;

use super::act::{ScaleWriteOutcome, ScaleWriter};
use super::autoscaler::AutoscalerEntry;
use super::consistency::WrittenStatuses;
use super::exported_metrics::HpaMetrics;
use super::observe::{Observed, Observer, ScaleOrigin};
use super::persisted_state::{PersistAction, PersistedState, PersistedStates};
use super::records::{PassTimes, Records};
use super::report::StatusWriter;
use super::settings::HpaSettings;
use super::shadow::{FIELDS, Shadow};

/// Reconciles autoscalers.
pub(crate) struct Reconciler {
    pub(crate) observer: Observer,
    pub(crate) scale_writer: ScaleWriter,
    pub(crate) status_writer: StatusWriter,
    pub(crate) recorder: EventRecorder,
    pub(crate) leadership: Leadership,
    pub(crate) clock: Clock,
    pub(crate) settings: RwLock<Arc<HpaSettings>>,
    pub(crate) states: Mutex<PersistedStates>,
    /// The `resourceVersion` that our last scale write gave each target: an older watched scale is out of date.
    pub(crate) versions: Mutex<std::collections::HashMap<AutoscalerKey, u64>>,
    pub(crate) written_statuses: WrittenStatuses,
    pub(crate) records: Records,
    pub(crate) shadow: Mutex<Shadow>,
    pub(crate) metrics: Arc<HpaMetrics>,
}

/// How a reconcile ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HpaReconcileOutcome {
    /// The autoscaler was reconciled, or its mode is `off`.
    Reconciled,
    /// The autoscaler is deleted, and its state was forgotten.
    Deleted,
    /// The watched autoscaler is older than our last status write; nothing was read or written.
    Stale,
    /// Another process is the leader.
    LeadershipLost,
}

/// A decision and the observation that it is based on.
struct Decided {
    seen: Observed,
    decision: Decision,
    state: State,
    /// How long each metric of the spec took to fetch and evaluate, by its index.
    computed: Vec<Duration>,
}

/// How acting on a decision ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ActOutcome {
    /// The decision holds the result of the scale write, if there was one to make.
    Settled,
    /// Another process is the leader; nothing was written.
    LeadershipLost,
}

impl Reconciler {
    pub(crate) fn settings(&self) -> Arc<HpaSettings> {
        self.settings.read_locked().clone()
    }

    pub(crate) fn states(&self) -> MutexGuard<'_, PersistedStates> {
        self.states.locked()
    }

    /// Reconciles one autoscaler, `delay` after it was due.
    pub(crate) async fn reconcile(&self, key: &AutoscalerKey, delay: Duration) -> HpaReconcileOutcome {
        let began = Instant::now();
        let Some(entry) = self.observer.store().get(key).cloned() else {
            self.forget(key);
            return HpaReconcileOutcome::Deleted;
        };
        let settings = self.settings();
        if settings.config.gates.stale_consistency
            && let Err(error) = self.written_statuses.check(&entry)
        {
            tracing::warn!(
                namespace = &*key.namespace, name = key.record_name(), %error,
                "skipped until the watch has our last status write"
            );
            self.metrics.count_stale_skip(entry.group_resource());
            return HpaReconcileOutcome::Stale;
        }
        let mode = entry.mode(&settings);
        if mode != DecisionMode::Shadow {
            self.end_comparison(key);
        }
        if mode == DecisionMode::Off {
            // Others may change the count until the mode changes. As after a takeover, the annotation counts then.
            let was_decided = self.states().forget(key);
            // Once: an object of the other kind with the same name has the same series.
            if was_decided {
                self.metrics.forget(&key.namespace, &key.name);
            }
            self.metrics.count_off();
            return HpaReconcileOutcome::Reconciled;
        }
        if !self.leadership.is_leader() {
            return HpaReconcileOutcome::LeadershipLost;
        }
        let mut persisted = self.states().of(&entry, settings.persist_state && mode == DecisionMode::Active);
        if persisted.annotation_error != entry.annotation_error {
            persisted.annotation_error.clone_from(&entry.annotation_error);
            if let Some(annotation_error) = &entry.annotation_error {
                self.recorder
                    .record(&entry.about(), &Event::warning("InvalidAnnotation", annotation_error.clone()));
            }
        }
        let mut decided = self.decide(&entry, &settings, mode, &mut persisted).await;
        let observed = began.elapsed();
        let at = decided.decision.at;
        let before = decided.seen.observation.status.clone();
        if self.act(&entry, mode, &persisted, &mut decided).await == ActOutcome::LeadershipLost {
            return HpaReconcileOutcome::LeadershipLost;
        }
        let written = began.elapsed();
        persisted.state = decided.state;
        persisted.awaits_scale &= decided.seen.observation.scale.is_err();
        persisted.current = decided.seen.observation.scale.as_ref().ok().map(|scale| scale.spec_replicas);
        if decided.decision.outcome == ScaleOutcome::Scaled {
            persisted.current = Some(decided.decision.desired);
        }
        if mode == DecisionMode::Active {
            self.report(&entry, &settings, at, &mut decided.decision, &mut persisted).await;
        } else {
            decided.decision.status_written(&key.name, Ok(()));
        }
        if mode == DecisionMode::Shadow {
            self.compare(&entry, &settings, &decided.decision, &decided.seen.observation);
        }
        if !matches!(decided.decision.outcome, ScaleOutcome::Failed | ScaleOutcome::WriteFailed(_)) {
            self.metrics.set_desired(&key.namespace, &key.name, decided.decision.desired.get());
        }
        self.metrics.reconciled(&decided.decision, &before, began.elapsed(), delay, &decided.computed);
        let (spec, decision) = (&*entry.spec, &decided.decision);
        let facts = DiagnosisFacts { spec, decision, poll: None, mode, since: None, cluster: None };
        self.metrics.count_causes(&facts);
        log(key, &decided.decision);
        let period = SignedDuration::try_from(entry.period(&settings)).unwrap_or(SignedDuration::ZERO);
        self.records.add(key, mode, period, &entry.spec, &decided.decision);
        self.records.trace(key, || PassTimes::around(at, observed, written, began.elapsed()));
        self.states().put(key, persisted);
        HpaReconcileOutcome::Reconciled
    }

    /// The current time on the clock as it was when `persisted` was taken out: a clock that jumps during a reconcile would
    /// otherwise end its windows. In milliseconds: more digits would be kept with every pass and mean nothing.
    fn now(&self, persisted: &PersistedState) -> Timestamp {
        let now = self.clock.now();
        let now = now.checked_sub(self.states().jumped_since(persisted)).unwrap_or(now);
        Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now)
    }

    /// Observes and decides. A decision that leads to a scale write is based on a scale read from the API server, not on a
    /// watched one.
    async fn decide(
        &self,
        entry: &AutoscalerEntry,
        settings: &HpaSettings,
        mode: DecisionMode,
        persisted: &mut PersistedState,
    ) -> Decided {
        let version = self.versions.locked().get(&entry.key).copied();
        let seen = self.observer.observe(entry, settings, version).await;
        self.follow(entry, mode, &seen, persisted);
        let first = self.step(seen, persisted);
        let writes = mode == DecisionMode::Active && !entry.is_dry_run && first.decision.write().is_some();
        if !writes || !matches!(first.seen.origin, ScaleOrigin::Watched) {
            return first;
        }
        let fetched = self.observer.fetch_scale(entry).await;
        let same = fetched.as_ref().is_ok_and(|now| Ok(&now.scale) == first.seen.observation.scale.as_ref());
        if same {
            return Decided {
                seen: Observed { origin: ScaleOrigin::Fetched(Box::new(fetched)), ..first.seen },
                ..first
            };
        }
        let seen = self.observer.observe_with(entry, settings, fetched).await;
        self.step(seen, persisted)
    }

    fn step(&self, mut seen: Observed, persisted: &PersistedState) -> Decided {
        let now = self.now(persisted);
        let mut state = persisted.state_for(now, &seen.observation);
        let Observation { spec, samples, .. } = &mut seen.observation;
        for ((metric, samples), fetch) in spec.metrics.iter().zip(samples).zip(&seen.fetches) {
            metric.check_age(now, samples, fetch.from.oldest);
        }
        let mut computed: Vec<Duration> = seen.fetches.iter().map(|fetch| fetch.took).collect();
        computed.resize(seen.observation.spec.metrics.len(), Duration::ZERO);
        let mut since = Instant::now();
        let mut evaluated = |index: usize| {
            let now = Instant::now();
            if let Some(duration) = computed.get_mut(index) {
                *duration += now.saturating_duration_since(since);
            }
            since = now;
        };
        let mut decision =
            state.step_measured(now, &seen.observation, DecisionDetail::Uncounted, &mut evaluated);
        decision.provenance = std::mem::take(&mut seen.fetches).into_iter().map(|fetch| fetch.from).collect();
        for (from, took) in decision.provenance.iter_mut().zip(&computed) {
            from.decided(now, SignedDuration::try_from(*took).unwrap_or(SignedDuration::MAX));
        }
        Decided { seen, decision, state, computed }
    }

    /// In shadow mode, records a change of scale that the acting controller made, so that scaling policies count it.
    fn follow(
        &self,
        entry: &AutoscalerEntry,
        mode: DecisionMode,
        seen: &Observed,
        persisted: &mut PersistedState,
    ) {
        if let (DecisionMode::Shadow, Some(before), Ok(scale)) =
            (mode, persisted.current, &seen.observation.scale)
            && before != scale.spec_replicas
        {
            let now = self.now(persisted);
            persisted.state.observed_change(now, &entry.spec, before, scale.spec_replicas);
        }
    }

    /// Writes the scale if the decision changes it.
    async fn act(
        &self,
        entry: &AutoscalerEntry,
        mode: DecisionMode,
        persisted: &PersistedState,
        decided: &mut Decided,
    ) -> ActOutcome {
        let Some(replicas) = decided.decision.write() else { return ActOutcome::Settled };
        let seen = &decided.seen.observation;
        let written = if mode != DecisionMode::Active || entry.is_dry_run {
            ScaleWriteResult::DryRun
        } else {
            let Some(held) = fetched_scale(&decided.seen.origin) else {
                // Unreachable: `decide` fetches the scale before a write. Without a fetched scale nothing is written.
                let text = "the scale was not read from the server".to_owned();
                let written = ScaleWriteResult::Failed(ScaleWriteError { text, conflict: false });
                decided.state.settle(self.now(persisted), seen, &mut decided.decision, written);
                return ActOutcome::Settled;
            };
            let namespace = &entry.object.metadata().namespace;
            match self.scale_writer.write(namespace, &entry.object.target().name, held, replicas.get()).await
            {
                ScaleWriteOutcome::LeadershipLost => return ActOutcome::LeadershipLost,
                ScaleWriteOutcome::Written(written, held) => {
                    self.metrics.count_write("scale", written == ScaleWriteResult::Done);
                    if let (ScaleWriteResult::Done, Ok(version)) = (&written, held.resource_version.parse()) {
                        self.versions.locked().insert(entry.key.clone(), version);
                    }
                    written
                }
            }
        };
        decided.state.settle(self.now(persisted), seen, &mut decided.decision, written);
        ActOutcome::Settled
    }

    /// Writes the status and records events.
    async fn report(
        &self,
        entry: &AutoscalerEntry,
        settings: &HpaSettings,
        at: Timestamp,
        decision: &mut Decision,
        persisted: &mut PersistedState,
    ) {
        let status = entry.stored_status(settings.config.gates, decision);
        let changed = !same_status(entry.object.status(), &status);
        let keep = if settings.persist_state && !persisted.awaits_scale {
            persisted.keep(at, Instant::now(), &entry.spec, &settings.config, changed)
        } else {
            PersistAction::Nothing
        };
        let from = entry.object.metadata().resource_version.clone();
        let reported = self.status_writer.store(entry, changed.then_some(status), keep).await;
        if reported.sent {
            self.metrics.count_write("status", reported.result.is_ok());
        }
        if let Some((snapshot, alone)) = reported.kept {
            persisted.kept(snapshot, alone, Instant::now());
        }
        if let Some(object) = reported.object {
            self.written_statuses.wrote(entry, &object.metadata().resource_version);
            self.observer.store().wrote(&entry.key, &from, object);
        }
        let written = reported.result.map_err(|error| error.to_string().into());
        decision.status_written(&entry.key.name, written);
        if self.leadership.is_leader() {
            self.record_events(entry, decision);
        }
    }

    /// Records the events of a decision, warnings with its causes.
    fn record_events(&self, entry: &AutoscalerEntry, decision: &Decision) {
        let about = entry.about();
        let is_warning = |event: &Event| event.kind == EventKind::Warning;
        let annotated = decision.events.iter().any(is_warning).then(|| {
            let (spec, mode) = (&*entry.spec, DecisionMode::Active);
            let facts = DiagnosisFacts { spec, decision, poll: None, mode, since: None, cluster: None };
            self.recorder.with_annotations(event_annotations(&diagnose(&facts)))
        });
        for event in &decision.events {
            let annotated = annotated.as_ref().filter(|_| is_warning(event));
            annotated.unwrap_or(&self.recorder).record(&about, event);
        }
    }

    /// Compares the decision with the status that the acting controller has written.
    fn compare(
        &self,
        entry: &AutoscalerEntry,
        settings: &HpaSettings,
        decision: &Decision,
        seen: &Observation,
    ) {
        let theirs = entry.status();
        let period = SignedDuration::try_from(entry.period(settings)).unwrap_or(SignedDuration::ZERO);
        let readings = current_values(entry.object.status());
        let mut shadow = self.shadow.locked();
        let replayed = shadow.replay(decision.at, &entry.key, seen, &readings);
        let before = shadow.counts().timing;
        let found =
            shadow.compare(decision.at, &entry.key, &theirs, &entry.spec, decision, &replayed, period);
        for ((field, before), after) in FIELDS.into_iter().zip(before).zip(shadow.counts().timing) {
            if after > before {
                self.metrics.count_timing(field);
            }
        }
        for difference in found {
            self.metrics.count_difference(&difference.field);
            tracing::info!(
                namespace = &*entry.key.namespace,
                name = entry.key.record_name(),
                field = difference.field,
                ours = difference.ours,
                theirs = difference.theirs,
                why = difference.why,
                "the controller that acts decides otherwise"
            );
            let message = format!(
                "{}: we would say {}, the controller that acts says {}: {}",
                difference.field, difference.ours, difference.theirs, difference.why
            );
            let recorder = self.recorder.with_component("plimsoll-shadow");
            recorder.record(&entry.about(), &Event::normal("ShadowDifference", message));
        }
        self.metrics.set_differing(shadow.differing());
    }

    /// Ends the comparison of an autoscaler that was deleted, or that is not in shadow mode any more.
    fn end_comparison(&self, key: &AutoscalerKey) {
        let mut shadow = self.shadow.locked();
        if shadow.forget(key) {
            self.metrics.set_differing(shadow.differing());
        }
    }

    /// Forgets a deleted autoscaler (docs/spec/hpa.md 7.3).
    fn forget(&self, key: &AutoscalerKey) {
        self.states().forget(key);
        self.versions.locked().remove(key);
        self.written_statuses.forget(key);
        self.end_comparison(key);
        self.records.forget(key);
        self.metrics.forget(&key.namespace, &key.name);
    }
}

fn fetched_scale(origin: &ScaleOrigin) -> Option<ScaleObject> {
    match origin {
        ScaleOrigin::Watched => None,
        ScaleOrigin::Fetched(fetched) => fetched.as_ref().as_ref().ok().cloned(),
    }
}

/// Logs the outcome: scaling at `info`, failures above it, unchanged replicas at `trace`. Fields have the names that they have in
/// records.
fn log(key: &AutoscalerKey, decision: &Decision) {
    let proposal = || decision.proposal_line().unwrap_or_default();
    match &decision.outcome {
        ScaleOutcome::Scaled => tracing::info!(
            namespace = &*key.namespace,
            name = key.record_name(),
            specReplicas = decision.current().get(),
            desired = decision.desired.get(),
            reason = decision.reason,
            proposal = proposal(),
            // The message of Kubernetes' controller, for which logs are searched.
            "Successfully rescaled"
        ),
        ScaleOutcome::WriteFailed(error) => {
            tracing::warn!(
                namespace = &*key.namespace,
                name = key.record_name(),
                desired = decision.desired.get(),
                error,
                "failed to scale"
            );
        }
        ScaleOutcome::Failed if !matches!(decision.course, Course::Disabled) => {
            let error = decision.error.as_ref().map(|error| error.text.as_str()).unwrap_or_default();
            tracing::debug!(
                namespace = &*key.namespace,
                name = key.record_name(),
                error,
                "nothing could be decided"
            );
        }
        _ => tracing::trace!(
            namespace = &*key.namespace,
            name = key.record_name(),
            specReplicas = decision.current().get(),
            proposal = proposal(),
            "kept"
        ),
    }
    for text in &decision.logged {
        tracing::warn!(namespace = &*key.namespace, name = key.record_name(), "{text}");
    }
}
