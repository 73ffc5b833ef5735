//! Records every `spec.replicas` of a deployment.

use std::sync::{Arc, Mutex};

use futures::TryStreamExt as _;
use kube::Client;
use kube::core::WatchEvent;
use locks::MutexExt as _;
use serde_json::Value;
use testbed::harness::until;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// An observed `spec.replicas`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReplicaObservation {
    pub(crate) at: Instant,
    pub(crate) replicas: i64,
    /// `metadata.generation` at that time.
    pub(crate) generation: i64,
}

/// The observations of a watch, in their order.
#[derive(Clone, Default)]
pub(crate) struct ReplicaObservations(Arc<Mutex<Vec<ReplicaObservation>>>);

impl ReplicaObservations {
    fn all(&self) -> Vec<ReplicaObservation> {
        self.0.locked().clone()
    }

    pub(crate) fn last(&self) -> Option<ReplicaObservation> {
        self.0.locked().last().copied()
    }

    fn push(&self, sight: ReplicaObservation) {
        self.0.locked().push(sight);
    }
}

/// A watch of a deployment without a proxy.
pub(crate) struct ReplicaWatch {
    seen: ReplicaObservations,
    task: JoinHandle<()>,
}

async fn watch(client: Client, path: String, seen: ReplicaObservations) {
    let request = http::Request::get(path).body(Vec::new()).unwrap();
    let events = client.request_events::<Value>(request).await.unwrap();
    let mut events = std::pin::pin!(events);
    while let Some(event) = events.try_next().await.unwrap() {
        let (WatchEvent::Added(object) | WatchEvent::Modified(object)) = event else { continue };
        let (Some(replicas), Some(generation)) =
            (object["spec"]["replicas"].as_i64(), object["metadata"]["generation"].as_i64())
        else {
            continue;
        };
        if seen.last().is_none_or(|last| last.generation != generation || last.replicas != replicas) {
            seen.push(ReplicaObservation { at: Instant::now(), replicas, generation });
        }
    }
}

impl ReplicaWatch {
    /// Watches a deployment from now on, and returns when it was seen.
    pub(crate) async fn start(client: &Client, namespace: &str, name: &str) -> Self {
        let seen = ReplicaObservations::default();
        let path = format!(
            "/apis/apps/v1/namespaces/{namespace}/deployments?watch=true&timeoutSeconds=3600&fieldSelector=metadata.name%3D{name}"
        );
        let task = tokio::spawn(watch(client.clone(), path, seen.clone()));
        let found = Self { seen, task };
        let what = format!("a first look at {name} in {namespace}");
        until(&what, async || if found.seen().is_empty() { Err(()) } else { Ok(()) }).await;
        found
    }

    /// All observations, including the initial state.
    pub(crate) fn seen(&self) -> Vec<ReplicaObservation> {
        self.seen.all()
    }

    pub(crate) fn sights(&self) -> ReplicaObservations {
        self.seen.clone()
    }

    /// The observed counts.
    pub(crate) fn counts(&self) -> Vec<i64> {
        self.seen().iter().map(|sight| sight.replicas).collect()
    }

    /// The last observation.
    pub(crate) fn last(&self) -> ReplicaObservation {
        self.seen.last().unwrap()
    }
}

impl Drop for ReplicaWatch {
    fn drop(&mut self) {
        self.task.abort();
    }
}
