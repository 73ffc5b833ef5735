//! The loop that connects the state with a cluster: it watches, lets things happen when they are due, and writes.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use kube::{Api, Client};
use serde::de::IgnoredAny;
use sim::Millis;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::life::Moment;
use super::meter::NodeReading;
use super::plan::Workload;
use super::requests;
use super::state::{Outcome, State, What, Write};
use super::view::{NodeView, PodView};
use crate::clock::Clock;
use crate::list_watch::{ListWatchEvent, list_watch};

/// Writes under way at the same time.
const AT_ONCE: usize = 64;
/// How long to sleep where nothing is due.
const LONG: Duration = Duration::from_hours(24);

/// The state, shared with whoever asks for metrics or changes loads.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    state: Arc<Mutex<State>>,
    changed: Arc<Notify>,
    start: Instant,
    clock: Clock,
}

impl Shared {
    pub(crate) fn new(state: State, clock: Clock) -> Self {
        Self { state: Arc::new(Mutex::new(state)), changed: Arc::default(), start: Instant::now(), clock }
    }

    fn now(&self) -> Moment {
        let millis = i64::try_from(self.start.elapsed().as_millis()).unwrap_or(i64::MAX);
        Moment { at: Millis(millis), wall: self.clock.now() }
    }

    /// Nobody panics while holding it.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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

    pub(crate) fn trouble(&self) -> Option<String> {
        self.lock().trouble().map(str::to_owned)
    }
}

/// Runs until it is dropped.
pub(crate) async fn run(client: Client, shared: Shared, namespace: Option<String>) {
    let api = match &namespace {
        Some(namespace) => Api::<PodView>::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    };
    let mut pods = pin!(list_watch(api));
    let mut nodes = pin!(list_watch(Api::<NodeView>::all(client.clone())));
    let mut backlog: VecDeque<Write> = VecDeque::new();
    let mut writing: JoinSet<(Write, Outcome)> = JoinSet::new();
    loop {
        let now = shared.now();
        let next = {
            let mut state = shared.lock();
            backlog.extend(state.advance(now));
            state.next()
        };
        while writing.len() < AT_ONCE
            && let Some(write) = backlog.pop_front()
        {
            writing.spawn(perform(client.clone(), write, now));
        }
        let pause = next.map_or(LONG, |at| Duration::from_millis((at - now.at).0.max(0) as u64).min(LONG));
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

impl Shared {
    fn pod_event(&self, event: ListWatchEvent<PodView>) {
        let now = self.now();
        let mut state = self.lock();
        match event {
            ListWatchEvent::ListStarted => state.listing(),
            ListWatchEvent::Listed(pod) | ListWatchEvent::Applied(pod) => state.pod_seen(pod, now),
            ListWatchEvent::ListDone => state.listed(now),
            ListWatchEvent::Deleted(pod) => {
                state.pod_gone(pod.metadata.uid.as_deref().unwrap_or_default(), now)
            }
        }
    }

    fn node_event(&self, event: ListWatchEvent<NodeView>) {
        let mut state = self.lock();
        match event {
            // A node that went while nobody looked is still taken for one; its pods are removed by others.
            ListWatchEvent::ListStarted | ListWatchEvent::ListDone => {}
            ListWatchEvent::Listed(node) | ListWatchEvent::Applied(node) => state.node_seen(node),
            ListWatchEvent::Deleted(node) => {
                state.node_gone(node.metadata.name.as_deref().unwrap_or_default())
            }
        }
    }
}

async fn perform(client: Client, write: Write, now: Moment) -> (Write, Outcome) {
    let key = &write.key;
    let request = match &write.what {
        What::Bind(node) => requests::bind(key, node),
        What::Complain { patch, .. } => requests::patch_pod_status(key, patch, true),
        What::Status(patch) => requests::patch_pod_status(key, patch, false),
        What::Remove => requests::remove_pod(key),
    };
    let Some(request) = request else {
        let outcome = Outcome::Failed(format!("cannot write about pod {}/{}", key.namespace, key.name));
        return (write, outcome);
    };
    let outcome = match client.request::<IgnoredAny>(request).await {
        Ok(IgnoredAny) => Outcome::Done,
        Err(kube::Error::Api(status)) if status.code == 404 => Outcome::Gone,
        Err(kube::Error::Api(status)) if status.code == 409 => Outcome::Conflict,
        Err(error) => Outcome::Failed(format!("pod {}/{}: {error}", key.namespace, key.name)),
    };
    if let (Outcome::Done, What::Complain { message, .. }) = (&outcome, &write.what)
        && let Some(event) = requests::failed_scheduling(key, message, now.wall)
    {
        // Events are told for convenience; nothing depends on them.
        let _ = client.request::<IgnoredAny>(event).await;
    }
    (write, outcome)
}
