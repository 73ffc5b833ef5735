//! The operator's loop: store events come in, due objects are processed.

use std::sync::Arc;
use std::time::Duration;

use api::meta::ObjectMeta;
use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt};
use keda::event::Event;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::context::OperatorContext;
use super::handle::LoopHealth;
use super::id::{NamespacedName, ResourceId};
use super::object_state::ObjectEntry;
use super::poll::pushed;
use super::poll_scheduler::{ConcurrencyLimits, PollScheduler};
use super::process::{ProcessOutcome, process};
use super::rebuild::rebuild_after_changes;
use super::reconcile::reconcile_authentication;
use super::scalers_cache::PushNotification;
use super::store::{AuthenticationChange, StoreEvent, authentication_name};
use super::watches::Watches;

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
    pub(super) watches: Watches,
    pub(super) health: Arc<LoopHealth>,
    pub(super) jobs_listed: bool,
}

/// Why a term of leadership ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TermEnd {
    Stopped,
    LeadershipLost,
}

/// Work beside the scheduler.
type Task = BoxFuture<'static, ()>;

impl Operator {
    /// Runs until `stop` becomes true. Reconciles and polls that have begun may end.
    pub async fn run(mut self, mut stop: watch::Receiver<bool>) {
        self.health.start();
        tokio::select! {
            () = self.watches.start() => {}
            () = stopped(&mut stop) => return,
        }
        self.health.set_synced();
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
            (store.ids(), store.all_authentications().map(|(name, _)| name.clone()).collect())
        };
        for (id, schedule) in &ids {
            scheduler.add_spread(id, now, *schedule);
        }
        context.events.cloud_events.update(&context.store());
        let mut running: FuturesUnordered<BoxFuture<'static, (ResourceId, ProcessOutcome)>> =
            FuturesUnordered::new();
        let mut tasks: FuturesUnordered<Task> = FuturesUnordered::new();
        for name in names {
            tasks.push(authentication_task(context.clone(), name, AuthenticationChange::Other));
        }
        let mut heartbeat = tokio::time::interval(HEARTBEAT_INTERVAL);
        let check_interval = settings.secrets_check_interval();
        let mut next_check = Instant::now() + check_interval;
        // Held by the check of Secrets and ConfigMaps, so that only one runs at a time.
        let check_running = Arc::new(());
        loop {
            let now = Instant::now();
            while let Some(due) = scheduler.next_due(now) {
                running.push(Box::pin(process(context.clone(), due, self.jobs_listed)));
            }
            let next = scheduler.next_due_at();
            tokio::select! {
                () = stopped(stop) => {
                    let rest = async { while running.next().await.is_some() {} };
                    let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, rest).await;
                    return TermEnd::Stopped;
                }
                () = context.client.leadership.lost() => return TermEnd::LeadershipLost,
                Some(event) = self.store_events.recv() => {
                    tasks.extend(self.handle_store_event(&mut scheduler, event));
                }
                Some(push) = self.pushes.recv() => {
                    let context = context.clone();
                    tasks.push(Box::pin(async move { pushed(&context, push).await }));
                }
                Some((id, outcome)) = running.next() => reschedule(&context, &mut scheduler, &id, outcome),
                Some(()) = tasks.next() => {}
                () = tokio::time::sleep_until(next.unwrap_or(now)), if next.is_some() => {}
                _ = heartbeat.tick() => {
                    self.heartbeat();
                    let is_due = !check_interval.is_zero() && Instant::now() >= next_check;
                    if is_due && Arc::strong_count(&check_running) == 1 {
                        next_check = Instant::now() + check_interval;
                        let (context, held) = (context.clone(), Arc::clone(&check_running));
                        tasks.push(Box::pin(async move {
                            rebuild_after_changes(context).await;
                            drop(held);
                        }));
                    }
                }
            }
        }
    }

    /// Schedules the objects that an event concerns; returns work beside the scheduler.
    fn handle_store_event(&self, scheduler: &mut PollScheduler, event: StoreEvent) -> Option<Task> {
        let now = Instant::now();
        match event {
            StoreEvent::New(id) | StoreEvent::Changed(id) | StoreEvent::Gone(id) => {
                self.reconcile_at(scheduler, &id, now);
            }
            StoreEvent::Undecodable(id, error) => {
                tracing::warn!(object = %id, error, "an object cannot be decoded and is ignored");
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
                return Some(authentication_task(self.context.clone(), name, change));
            }
            StoreEvent::Destination => self.context.events.cloud_events.update(&self.context.store()),
        }
        None
    }

    /// Records an event on an object that cannot be decoded: its status cannot be written.
    fn record_undecodable(&self, id: &ResourceId, error: &str) {
        let reason = match id.kind {
            super::id::ResourceKind::Object => "ScaledObjectCheckFailed",
            super::id::ResourceKind::Job => "ScaledJobCheckFailed",
        };
        let metadata = ObjectMeta {
            namespace: id.namespace.to_string(),
            name: id.name.to_string(),
            ..ObjectMeta::default()
        };
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
            (store.target_kinds(), store.scaled_jobs.len() > 0)
        };
        self.context.reader.set_watched_kinds(self.watches.targets(&wanted));
        if has_jobs {
            self.jobs_listed = self.watches.jobs();
        }
        self.context.resync_clock();
        self.health.beat();
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

fn authentication_task(
    context: Arc<OperatorContext>,
    name: NamespacedName,
    change: AuthenticationChange,
) -> Task {
    Box::pin(async move { reconcile_authentication(&context, &name, change).await })
}

/// Waits until the operator is to stop, or the sender is gone.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}
