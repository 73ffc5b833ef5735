//! The operator's loop: store events come in, due objects are processed.

use std::sync::Arc;
use std::time::Duration;

use api::keda::{ConditionStatus, ScaledObject, types};
use keda::event::Event;
use runtime::leader::{TermEnd, stopped};
use runtime::{ReconcileResult, Reconciles};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::background::BackgroundTasks;
use super::context::{OperatorContext, named};
use super::health::OperatorHealth;
use super::id::{NamespacedName, ResourceId, ResourceKind};
use super::object_state::ObjectEntry;
use super::poll_scheduler::{ConcurrencyLimits, PollScheduler};
use super::process::{ProcessOutcome, process};
use super::queue_metrics::ProcessEnd;
use super::scalers_cache::{MIN_WAKE_INTERVAL, PushNotification, PushReport};
use super::settings::ScalingMode;
use super::store::{AuthenticationChange, StoreEvent, authentication_name};
use super::watches::OperatorReflectors;

/// Interval of the checks for new target kinds, for the clock and for the loop's health.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(1);
/// Time that running reconciles and polls have to end when the operator stops.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);
/// Scalers that were not queried for this long are dropped on replicas that do not lead.
const UNUSED_SCALERS_TIMEOUT: Duration = Duration::from_mins(10);
/// Delay between the reconciles of two objects that use the same changed TriggerAuthentication.
const AUTHENTICATION_USER_DELAY: Duration = Duration::from_millis(2);

/// The operator, before it runs.
pub struct Operator {
    pub(super) context: Arc<OperatorContext>,
    pub(super) store_events: mpsc::UnboundedReceiver<StoreEvent>,
    pub(super) pushes: mpsc::UnboundedReceiver<PushNotification>,
    pub(super) reflectors: OperatorReflectors,
    pub(super) health: OperatorHealth,
    pub(super) jobs_listed: bool,
}

impl Operator {
    /// Runs until `stop` becomes true. Reconciles and polls that have begun may end.
    pub async fn run(mut self, mut stop: watch::Receiver<bool>) {
        self.health.liveness.start();
        tokio::select! {
            () = self.reflectors.start() => {}
            () = stopped(&mut stop) => return,
        }
        self.health.liveness.mark_synced();
        let leadership = self.context.client.leadership.clone();
        loop {
            tokio::select! {
                () = leadership.acquired() => {}
                () = stopped(&mut stop) => return,
                () = self.stand_by() => {}
            }
            tracing::info!("leading");
            if self.lead(&mut stop).await == TermEnd::Stopped {
                return;
            }
            tracing::warn!("no longer leading; another instance may take over");
            self.context.forget_all();
        }
    }

    /// Keeps caches current while another replica leads.
    async fn stand_by(&mut self) {
        let mut heartbeat = tokio::time::interval(HEARTBEAT_INTERVAL);
        loop {
            tokio::select! {
                event = self.store_events.recv() => match event {
                    None => std::future::pending().await,
                    Some(StoreEvent::Authentication(name, _)) => self.rebuild_users(&name),
                    Some(_) => {}
                },
                Some(_) = self.pushes.recv() => {}
                _ = heartbeat.tick() => {
                    self.heartbeat();
                    self.drop_unused_scalers();
                }
            }
        }
    }

    /// Processes due objects until the operator is stopped or leadership is lost.
    async fn lead(&mut self, stop: &mut watch::Receiver<bool>) -> TermEnd {
        let context = self.context.clone();
        // State of an earlier term may be out of date.
        context.forget_all();
        while self.store_events.try_recv().is_ok() {}
        while self.pushes.try_recv().is_ok() {}
        let settings = &context.settings;
        let limits = ConcurrencyLimits { fast: settings.concurrency, slow: settings.slow_concurrency };
        let mut scheduler = PollScheduler::new(limits);
        let now = Instant::now();
        let (ids, names): (Vec<_>, Vec<NamespacedName>) = {
            let store = context.store();
            (store.ids(), store.authentication_names().cloned().collect())
        };
        for (id, schedule) in &ids {
            scheduler.add_spread(id, now, *schedule);
        }
        context.events.cloud_events.update(&context.store());
        let mut running: Reconciles<ResourceId, ProcessOutcome> = Reconciles::new(self.health.panics.clone());
        let mut tasks = BackgroundTasks::new(context.clone(), self.health.panics.clone());
        for name in names {
            tasks.start_authentication(name, AuthenticationChange::Other, Duration::ZERO);
        }
        let mut heartbeat = tokio::time::interval(HEARTBEAT_INTERVAL);
        let check_interval = settings.secrets_check_interval();
        let mut next_check = Instant::now() + check_interval;
        loop {
            let now = Instant::now();
            while let Some(due) = scheduler.next_due(now) {
                context.queue_metrics.started(&due.id, now, due.queue_delay);
                let (context, faults) = (context.clone(), self.health.faults.clone());
                let (id, jobs_listed) = (due.id.clone(), self.jobs_listed);
                running.start(id, async move {
                    faults.check_reconcile(&due.id);
                    process(&context, due, jobs_listed).await
                });
            }
            let next = scheduler.next_due_at();
            tokio::select! {
                () = stopped(stop) => {
                    running.drain(SHUTDOWN_TIMEOUT).await;
                    return TermEnd::Stopped;
                }
                () = context.client.leadership.lost() => return TermEnd::LeadershipLost,
                Some(event) = self.store_events.recv() => {
                    self.handle_store_event(&mut scheduler, &mut tasks, event);
                }
                Some(push) = self.pushes.recv() => self.handle_push(&mut scheduler, &mut tasks, push),
                Some((id, result)) = running.next() => self.finish(&mut scheduler, &id, result),
                Some((task, result)) = tasks.next() => tasks.finish(&mut scheduler, task, result),
                () = tokio::time::sleep_until(next.unwrap_or(now)), if next.is_some() => {}
                _ = heartbeat.tick() => {
                    self.heartbeat();
                    for kind in [ResourceKind::Object, ResourceKind::Job] {
                        context.queue_metrics.set_depth(kind, scheduler.overdue(kind, now));
                    }
                    let is_due = !check_interval.is_zero() && Instant::now() >= next_check;
                    if is_due && tasks.start_credential_check() {
                        next_check = Instant::now() + check_interval;
                    }
                }
            }
        }
    }

    /// Schedules the objects that an event concerns, and starts background tasks.
    fn handle_store_event(
        &self,
        scheduler: &mut PollScheduler,
        tasks: &mut BackgroundTasks,
        event: StoreEvent,
    ) {
        let now = Instant::now();
        match event {
            StoreEvent::New(id) | StoreEvent::Changed(id) | StoreEvent::Gone(id) => {
                self.reconcile_at(scheduler, &id, now);
            }
            StoreEvent::Undecodable(id, error) => {
                tracing::warn!(
                    namespace = &*id.namespace,
                    name = id.record_name(),
                    error,
                    "an object cannot be decoded and is ignored"
                );
                self.record_undecodable(&id, &error);
                self.context.forget(&id);
                scheduler.remove(&id);
            }
            StoreEvent::Hpa(id, fingerprint) => {
                let known = self.context.known_entry(&id).and_then(|entry| entry.state().hpa);
                if known.is_some_and(|known| Some(known.found) != fingerprint) {
                    self.reconcile_at(scheduler, &id, now);
                }
            }
            StoreEvent::Target(id) => {
                let is_failing = |entry: &Arc<ObjectEntry>| entry.state().failures > 0;
                if self.context.known_entry(&id).as_ref().is_some_and(is_failing) {
                    self.reconcile_at(scheduler, &id, now);
                }
            }
            StoreEvent::Authentication(name, change) => {
                self.rebuild_users(&name);
                // Many objects may use the same TriggerAuthentication.
                for (position, id) in (0..).zip(&self.affected_users(&name)) {
                    self.reconcile_at(scheduler, id, now + AUTHENTICATION_USER_DELAY * position);
                }
                tasks.start_authentication(name, change, Duration::ZERO);
            }
            StoreEvent::Destination => self.context.events.cloud_events.update(&self.context.store()),
        }
    }

    /// Acts on a push trigger that reported activity or other metrics, or reports that its stream panicked.
    fn handle_push(
        &self,
        scheduler: &mut PollScheduler,
        tasks: &mut BackgroundTasks,
        push: PushNotification,
    ) {
        let PushNotification { id, trigger, report } = push;
        match report {
            PushReport::Active(pending) => tasks.start_activation(id, trigger, pending),
            PushReport::QueryNow(pending) => {
                // First, because an event that comes after the time of this wake-up is another one.
                drop(pending);
                self.wake(scheduler, &id, trigger);
            }
            // The reconcile reads the metrics from the scaler and writes the HPA.
            PushReport::SpecsChanged(_) if self.context.known_entry(&id).is_some() => {
                self.reconcile_at(scheduler, &id, Instant::now());
            }
            PushReport::SpecsChanged(_) => {}
            PushReport::Panicked { message, retry_after } => {
                let what = format!("the stream of trigger {trigger}");
                self.context.report_panic(&id, &what, &message, retry_after);
            }
        }
    }

    /// Polls an object at once because one of its sources says so, at most once per [`MIN_WAKE_INTERVAL`]. The HPA of an active
    /// object requests its metrics anyway.
    fn wake(&self, scheduler: &mut PollScheduler, id: &ResourceId, trigger: usize) {
        let is_active =
            |object: &ScaledObject| object.status.conditions.state(types::ACTIVE) == ConditionStatus::True;
        let object = self.context.store().object(id);
        let has_hpa = |object: &ScaledObject| self.context.scaling_mode(object) == ScalingMode::Hpa;
        if object.is_some_and(|object| is_active(&object) && has_hpa(&object)) {
            return;
        }
        let Some(entry) = self.context.known_entry(id) else { return };
        let now = Instant::now();
        let at = {
            let mut state = entry.state();
            state.woken.insert(trigger, now);
            let at = match state.woken_at {
                // The poll for an earlier wake-up is still to come. It is scheduled again, because an earlier poll may have
                // taken its place before this wake-up.
                Some(next) if next > now => next,
                Some(last) => now.max(last + MIN_WAKE_INTERVAL),
                None => now,
            };
            state.woken_at = Some(at);
            at
        };
        scheduler.poll_by(id, at);
    }

    /// Schedules an object whose processing has ended.
    fn finish(
        &self,
        scheduler: &mut PollScheduler,
        id: &ResourceId,
        result: ReconcileResult<ProcessOutcome>,
    ) {
        let end = match &result {
            ReconcileResult::Panicked { .. } => ProcessEnd::Panicked,
            ReconcileResult::Finished(outcome) if outcome.retry_after.is_some() => ProcessEnd::Retried,
            ReconcileResult::Finished(_) => ProcessEnd::Finished,
        };
        self.context.queue_metrics.finished(id, Instant::now(), end);
        match result {
            ReconcileResult::Finished(outcome) => reschedule(&self.context, scheduler, id, outcome),
            ReconcileResult::Panicked { message, retry_after } => {
                self.context.report_panic(id, "reconcile", &message, retry_after);
                if let Some(entry) = self.context.known_entry(id) {
                    // The reconcile did not end, so the retry repeats it.
                    entry.state().settled = false;
                }
                scheduler.finish_with_delay(id, Instant::now(), retry_after);
            }
        }
    }

    /// Records an event on an object that cannot be decoded: its status cannot be written.
    fn record_undecodable(&self, id: &ResourceId, error: &str) {
        let reason = match id.kind {
            ResourceKind::Object => "ScaledObjectCheckFailed",
            ResourceKind::Job => "ScaledJobCheckFailed",
        };
        let metadata = named(&id.namespace, &id.name);
        let event = Event::warning(reason, format!("it cannot be read: {error}"));
        self.context.events.record_reconcile(id.kind.into(), &metadata, &event);
    }

    /// Schedules a reconcile.
    fn reconcile_at(&self, scheduler: &mut PollScheduler, id: &ResourceId, at: Instant) {
        if let Some(entry) = self.context.known_entry(id) {
            let mut state = entry.state();
            state.settled = false;
            state.failures = 0;
        }
        scheduler.add(id, at);
        scheduler.wake_by(id, at);
    }

    /// The objects that a change of a TriggerAuthentication affects: all its users. In KEDA a change matters only when scalers are
    /// built (docs/spec/keda.md 2.9), so it affects only objects whose reconcile fails.
    fn affected_users(&self, name: &NamespacedName) -> Vec<ResourceId> {
        let mut users = self.context.store().users(name);
        if self.context.settings.compat.is_strict() {
            users.retain(|id| self.context.known_entry(id).is_some_and(|entry| entry.state().failures > 0));
        }
        users
    }

    /// Rebuilds the scalers that use a TriggerAuthentication.
    fn rebuild_users(&self, name: &NamespacedName) {
        for id in self.affected_users(name) {
            if let Some(scalers) = self.context.known_entry(&id).and_then(|entry| entry.scalers()) {
                scalers.rebuild_users(|reference| authentication_name(&id.namespace, reference) == *name);
            }
        }
    }

    /// Watches new kinds of targets and jobs, follows the machine's clock, and reports that the loop is alive.
    fn heartbeat(&mut self) {
        let (wanted, has_jobs) = {
            let mut store = self.context.store();
            (store.target_kinds(), !store.scaled_jobs.is_empty())
        };
        self.context.reader.set_watched_kinds(self.reflectors.targets(&wanted));
        if has_jobs {
            self.jobs_listed = self.reflectors.jobs();
        }
        self.context.resync_clock();
        self.health.liveness.mark_alive();
    }

    fn drop_unused_scalers(&self) {
        for (id, entry) in self.context.all_entries() {
            let used = entry.scalers().and_then(|scalers| scalers.last_used());
            if used.is_none_or(|used| used.elapsed() > UNUSED_SCALERS_TIMEOUT) {
                self.context.forget(&id);
            }
        }
    }
}

/// Applies the outcome of a processed object to the scheduler.
fn reschedule(
    context: &OperatorContext,
    scheduler: &mut PollScheduler,
    id: &ResourceId,
    outcome: ProcessOutcome,
) {
    let now = Instant::now();
    if outcome.is_gone && context.owner(id).is_none() {
        scheduler.remove(id);
        scheduler.finish(id, now);
        return;
    }
    scheduler.set_schedule(id, outcome.schedule, now);
    if outcome.activated {
        scheduler.poll_group_now(id, now);
    }
    if let Some(after) = outcome.retry_after {
        scheduler.wake_by(id, now + after);
    }
    scheduler.finish(id, now);
}
