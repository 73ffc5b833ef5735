//! Reflectors: list-and-watch into a store, each in a task that is supervised.
//!
//! A task that ends or panics is restarted with backoff and lists again. Until that list is complete the store holds old data,
//! so the watch counts as not current: `/readyz` names it and `plimsoll_watch_current` is 0.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::{FutureExt as _, Stream, StreamExt as _};
use locks::MutexExt as _;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::backoff::delay_after;
use crate::exported_metrics::MetricsWriter;
use crate::fault::FaultInjector;
use crate::health::{CheckFailure, WatchHealth};
use crate::store::WatchEvent;

/// A task yields after this many events, so that one long list does not delay other tasks.
const EVENTS_PER_YIELD: usize = 256;
/// A task that ran for this long before it ended restarts after the shortest delay.
const STABLE_RUN: Duration = Duration::from_mins(10);

/// Supervised reflectors, which end when this is dropped.
#[derive(Debug, Default)]
pub struct Reflectors {
    tasks: JoinSet<()>,
    watches: WatchSet,
    faults: FaultInjector,
}

/// The health of all watches of a process. Cheap to clone; all clones are the same.
#[derive(Clone, Debug, Default)]
pub struct WatchSet(Arc<Mutex<Vec<(String, WatchHealth)>>>);

impl Reflectors {
    /// None yet; `faults` are those that tests inject.
    pub fn new(faults: FaultInjector) -> Self {
        Self { tasks: JoinSet::new(), watches: WatchSet::default(), faults }
    }

    /// None yet; their health is reported together with that of `watches`.
    pub fn reporting_to(watches: &WatchSet) -> Self {
        Self { watches: watches.clone(), ..Self::default() }
    }

    /// The health of all watches that were and will be started here.
    pub fn watches(&self) -> WatchSet {
        self.watches.clone()
    }

    /// Starts a reflector of `resource`, the name by which health and metrics call it. `list_and_watch` makes the stream of
    /// events, once at the start and once after each restart; the stream reports its own condition to the given health.
    pub fn spawn<T, S>(
        &mut self,
        resource: impl Into<String>,
        list_and_watch: impl FnMut(WatchHealth) -> S + Send + 'static,
        apply: impl FnMut(WatchEvent<T>) + Send + 'static,
    ) -> WatchHealth
    where
        T: Send + 'static,
        S: Stream<Item = WatchEvent<T>> + Send + 'static,
    {
        let health = WatchHealth::default();
        self.spawn_with_health(resource, health.clone(), list_and_watch, apply);
        health
    }

    /// As [`Reflectors::spawn`], with a health that others know already.
    pub fn spawn_with_health<T, S>(
        &mut self,
        resource: impl Into<String>,
        health: WatchHealth,
        list_and_watch: impl FnMut(WatchHealth) -> S + Send + 'static,
        apply: impl FnMut(WatchEvent<T>) + Send + 'static,
    ) where
        T: Send + 'static,
        S: Stream<Item = WatchEvent<T>> + Send + 'static,
    {
        let resource = resource.into();
        self.watches.add(&resource, &health);
        let faults = self.faults.clone();
        self.tasks.spawn(supervise(resource, health, faults, list_and_watch, apply));
    }
}

/// Runs a reflector forever: restarts its task with backoff when that ends or panics.
async fn supervise<T, S>(
    resource: String,
    health: WatchHealth,
    faults: FaultInjector,
    mut list_and_watch: impl FnMut(WatchHealth) -> S + Send + 'static,
    mut apply: impl FnMut(WatchEvent<T>) + Send + 'static,
) where
    T: Send + 'static,
    S: Stream<Item = WatchEvent<T>> + Send + 'static,
{
    let mut failures = 0;
    loop {
        let started = Instant::now();
        let run = reflect(&resource, &health, &faults, &mut list_and_watch, &mut apply);
        let cause = match AssertUnwindSafe(run).catch_unwind().await {
            Ok(()) => "the watch task ended".to_owned(),
            Err(payload) => format!("the watch task panicked: {}", crate::panic_text(&*payload)),
        };
        failures = if started.elapsed() >= STABLE_RUN { 1 } else { failures + 1 };
        let delay = delay_after(failures);
        tracing::error!(resource, error = cause, delay = ?delay, "watch task ended or panicked; its data is not current until it is listed again");
        health.update(|condition| {
            condition.task_restarts += 1;
            condition.is_stale = true;
            condition.disconnected_since.get_or_insert_with(Instant::now);
            condition.last_error = Some(cause);
            condition.last_error_code = None;
        });
        tokio::time::sleep(delay).await;
    }
}

/// Applies events until the stream ends.
async fn reflect<T, S: Stream<Item = WatchEvent<T>>>(
    resource: &str,
    health: &WatchHealth,
    faults: &FaultInjector,
    list_and_watch: &mut impl FnMut(WatchHealth) -> S,
    apply: &mut impl FnMut(WatchEvent<T>),
) {
    let mut events = std::pin::pin!(list_and_watch(health.clone()));
    let mut fault = std::pin::pin!(faults.watch_fault(resource));
    let mut applied = 0_usize;
    loop {
        let event = tokio::select! {
            event = events.next() => event,
            () = &mut fault => return,
        };
        let Some(event) = event else { return };
        let is_complete = matches!(event, WatchEvent::Listed);
        apply(event);
        if is_complete && health.condition().is_stale {
            tracing::info!(resource, "watch is current again");
            health.update(|condition| condition.is_stale = false);
        }
        applied = applied.wrapping_add(1);
        if applied.is_multiple_of(EVENTS_PER_YIELD) {
            tokio::task::yield_now().await;
        }
    }
}

impl WatchSet {
    fn add(&self, resource: &str, health: &WatchHealth) {
        let mut watches = self.0.locked();
        watches.push((resource.to_owned(), health.clone()));
    }

    /// Resource and health of every watch.
    pub fn all(&self) -> Vec<(String, WatchHealth)> {
        self.0.locked().clone()
    }

    /// Whether every watch is current, as far as it was synced once; else which watches are not, and why.
    pub fn check(&self) -> Result<(), CheckFailure> {
        let stale = |(resource, health): (String, WatchHealth)| {
            let condition = health.condition();
            let error = condition.last_error.unwrap_or_default();
            condition.is_stale.then(|| format!("watch of {resource} is not current: {error}"))
        };
        let stale: Vec<String> = self.all().into_iter().filter_map(stale).collect();
        if stale.is_empty() { Ok(()) } else { Err(CheckFailure(stale.join("; "))) }
    }

    /// Whether the store of each resource is current, and how many restarts its watch tasks had. Watches of one resource in
    /// several namespaces count together.
    fn by_resource(&self) -> BTreeMap<String, (bool, u64)> {
        let mut by_resource: BTreeMap<String, (bool, u64)> = BTreeMap::new();
        for (resource, health) in self.all() {
            let condition = health.condition();
            let (is_current, restarts) = by_resource.entry(resource).or_insert((true, 0));
            *is_current &= condition.is_current();
            *restarts += condition.task_restarts;
        }
        by_resource
    }

    /// Exports `plimsoll_watch_current` and `plimsoll_watch_restarts_total`.
    pub fn export(&self, writer: &mut MetricsWriter) {
        let by_resource = self.by_resource();
        let help = "1 if the store of a watched resource is current, 0 after its watch task ended or panicked and until it is listed again.";
        writer.family("gauge", WATCH_CURRENT, help);
        for (resource, (is_current, _)) in &by_resource {
            writer.value(&[("resource", resource)], u8::from(*is_current));
        }
        writer.family("counter", WATCH_RESTARTS, "Restarts of watch tasks that ended or panicked.");
        for (resource, (_, restarts)) in &by_resource {
            writer.value(&[("resource", resource)], restarts);
        }
    }
}

/// Whether the store of a watched resource is current.
const WATCH_CURRENT: &str = "plimsoll_watch_current";
/// Restarts of watch tasks.
const WATCH_RESTARTS: &str = "plimsoll_watch_restarts_total";

#[cfg(test)]
mod tests;
