//! The event loop: watches the cluster, advances the state and performs writes.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures::StreamExt;
use jiff::Timestamp;
use kube::{Api, Client};
use locks::MutexExt as _;
use serde::de::IgnoredAny;
use sim::Millis;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::lifecycle::SimulationTime;
use super::meter::NodeReading;
use super::plan::Workload;
use super::requests;
use super::state::{NodesState, PodRef, PodWrite, PodWriteKind, WriteOutcome};
use super::view::{NodeView, PodView};
use crate::clock::Clock;
use crate::list_watch::{ListWatchEvent, list_watch};

/// How many writes are performed concurrently.
const MAX_CONCURRENT_WRITES: usize = 64;
/// The longest sleep when nothing is due.
const MAX_SLEEP: Duration = Duration::from_hours(24);

/// The state, shared with the metrics endpoint and load changes.
#[derive(Clone, Debug)]
pub(crate) struct SharedState {
    state: Arc<Mutex<NodesState>>,
    changed: Arc<Notify>,
    start: Instant,
    clock: Clock,
}

impl SharedState {
    pub(crate) fn new(state: NodesState, clock: Clock) -> Self {
        Self { state: Arc::new(Mutex::new(state)), changed: Arc::default(), start: Instant::now(), clock }
    }

    fn now(&self) -> SimulationTime {
        let millis = i64::try_from(self.start.elapsed().as_millis()).unwrap_or(i64::MAX);
        SimulationTime { at: Millis(millis), wall: self.clock.now() }
    }

    /// No code panics while holding this lock.
    fn lock(&self) -> MutexGuard<'_, NodesState> {
        self.state.locked()
    }

    pub(crate) fn metrics(&self, node: usize) -> Option<String> {
        let now = self.now();
        self.lock().metrics(node, now)
    }

    pub(crate) fn readings(&self) -> Vec<NodeReading> {
        let now = self.now();
        self.lock().readings(now)
    }

    pub(crate) fn set_load(&self, workload: Workload) {
        let now = self.now();
        self.lock().set_load(workload, now);
        self.changed.notify_one();
    }

    /// Marks a node as lost; returns its pods.
    pub(crate) fn lose(&self, node: usize) -> Vec<Arc<PodRef>> {
        self.lock().lose(node)
    }

    pub(crate) fn restore(&self, node: usize) {
        self.lock().restore(node);
        self.changed.notify_one();
    }

    pub(crate) fn is_lost(&self, node: usize) -> bool {
        self.lock().is_lost(node)
    }

    pub(crate) fn busiest(&self) -> Option<usize> {
        self.lock().busiest()
    }

    pub(crate) fn wall_time(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) fn last_error(&self) -> Option<String> {
        self.lock().last_error().map(str::to_owned)
    }
}

/// Reads the counters of all nodes. Clones share them and do not keep the nodes alive.
#[derive(Clone, Debug)]
pub struct Meter {
    pub(super) shared: SharedState,
}

impl Meter {
    /// Reads all nodes.
    pub fn read(&self) -> Vec<NodeReading> {
        self.shared.readings()
    }
}

/// Runs until the future is dropped.
pub(crate) async fn run(client: Client, shared: SharedState, namespace: Option<String>) {
    let api = match &namespace {
        Some(namespace) => Api::<PodView>::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    };
    let mut pods = pin!(list_watch(api));
    let mut nodes = pin!(list_watch(Api::<NodeView>::all(client.clone())));
    let mut backlog: VecDeque<PodWrite> = VecDeque::new();
    let mut writing: JoinSet<(PodWrite, WriteOutcome)> = JoinSet::new();
    loop {
        let now = shared.now();
        let next = {
            let mut state = shared.lock();
            backlog.extend(state.advance(now));
            state.next()
        };
        while writing.len() < MAX_CONCURRENT_WRITES
            && let Some(write) = backlog.pop_front()
        {
            writing.spawn(perform(client.clone(), write, now));
        }
        let pause =
            next.map_or(MAX_SLEEP, |at| Duration::from_millis((at - now.at).0.max(0) as u64).min(MAX_SLEEP));
        tokio::select! {
            Some(event) = pods.next() => shared.pod_event(event),
            Some(event) = nodes.next() => shared.node_event(event),
            Some(Ok((write, outcome))) = writing.join_next(), if !writing.is_empty() => {
                let now = shared.now();
                shared.lock().written(&write, outcome, now);
            }
            () = tokio::time::sleep(pause) => {}
            () = shared.changed.notified() => {}
        }
    }
}

impl SharedState {
    fn pod_event(&self, event: ListWatchEvent<PodView>) {
        let now = self.now();
        let mut state = self.lock();
        match event {
            ListWatchEvent::ListStarted => state.listing(),
            ListWatchEvent::Listed(pod) | ListWatchEvent::Applied(pod) => state.pod_seen(pod, now),
            ListWatchEvent::ListDone => state.listed(now),
            ListWatchEvent::Deleted(pod) => {
                state.pod_gone(pod.metadata.uid.as_deref().unwrap_or_default(), now);
            }
        }
    }

    fn node_event(&self, event: ListWatchEvent<NodeView>) {
        let mut state = self.lock();
        match event {
            // A node that was deleted between two lists counts as existing; the server removes its pods.
            ListWatchEvent::ListStarted | ListWatchEvent::ListDone => {}
            ListWatchEvent::Listed(node) | ListWatchEvent::Applied(node) => state.node_seen(node),
            ListWatchEvent::Deleted(node) => {
                state.node_gone(node.metadata.name.as_deref().unwrap_or_default());
            }
        }
    }
}

async fn perform(client: Client, write: PodWrite, now: SimulationTime) -> (PodWrite, WriteOutcome) {
    let key = &write.key;
    let request = match &write.what {
        PodWriteKind::Bind(node) => requests::bind(key, node),
        PodWriteKind::Complain { patch, .. } => requests::patch_pod_status(key, patch, true),
        PodWriteKind::Status(patch) => requests::patch_pod_status(key, patch, false),
        PodWriteKind::Remove => requests::remove_pod(key),
    };
    let Some(request) = request else {
        let outcome = WriteOutcome::Failed(format!("cannot write about pod {}/{}", key.namespace, key.name));
        return (write, outcome);
    };
    let outcome = match client.request::<IgnoredAny>(request).await {
        Ok(IgnoredAny) => WriteOutcome::Done,
        Err(kube::Error::Api(status)) if status.code == 404 => WriteOutcome::Gone,
        Err(kube::Error::Api(status)) if status.code == 409 => WriteOutcome::Conflict,
        Err(error) => WriteOutcome::Failed(format!("pod {}/{}: {error}", key.namespace, key.name)),
    };
    if let (WriteOutcome::Done, PodWriteKind::Complain { message, .. }) = (&outcome, &write.what)
        && let Some(event) = requests::failed_scheduling(key, message, now.wall)
    {
        // Events are informative only.
        let _ = client.request::<IgnoredAny>(event).await;
    }
    (write, outcome)
}
