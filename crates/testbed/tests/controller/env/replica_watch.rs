//! Records every `spec.replicas` of a deployment.

use std::sync::{Arc, Mutex, PoisonError};

use futures::TryStreamExt as _;
use kube::Client;
use kube::core::WatchEvent;
use serde_json::Value;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::ControllerEnv;

/// An observed `spec.replicas`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sight {
    pub(crate) at: Instant,
    pub(crate) replicas: i64,
    /// `metadata.generation` at that time.
    pub(crate) generation: i64,
}

/// The observations of a watch, in their order.
#[derive(Clone, Default)]
pub(super) struct Sights(Arc<Mutex<Vec<Sight>>>);

impl Sights {
    fn all(&self) -> Vec<Sight> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn last(&self) -> Option<Sight> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).last().copied()
    }

    fn push(&self, sight: Sight) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(sight);
    }
}

/// A watch of a deployment without a proxy.
pub(crate) struct ReplicaWatch {
    seen: Sights,
    task: JoinHandle<()>,
}

impl ControllerEnv {
    /// Watches a deployment from now on.
    pub(crate) async fn witness(&self, name: &str) -> ReplicaWatch {
        let seen = Sights::default();
        let path = format!(
            "/apis/apps/v1/namespaces/{}/deployments?watch=true&timeoutSeconds=3600&fieldSelector=metadata.name%3D{name}",
            self.namespace
        );
        let task = tokio::spawn(watch(self.client.clone(), path, seen.clone()));
        let witness = ReplicaWatch { seen, task };
        self.until("a first look", async || if witness.seen().is_empty() { Err(()) } else { Ok(()) }).await;
        witness
    }
}

async fn watch(client: Client, path: String, seen: Sights) {
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
            seen.push(Sight { at: Instant::now(), replicas, generation });
        }
    }
}

impl ReplicaWatch {
    /// All observations, including the initial state.
    pub(crate) fn seen(&self) -> Vec<Sight> {
        self.seen.all()
    }

    pub(super) fn sights(&self) -> Sights {
        self.seen.clone()
    }

    /// The observed counts.
    pub(crate) fn counts(&self) -> Vec<i64> {
        self.seen().iter().map(|sight| sight.replicas).collect()
    }

    /// Waits until this count was seen last: the watch may be a little late.
    pub(crate) async fn caught_up(&self, env: &ControllerEnv, count: i64) {
        env.until(
            "the witness",
            async || if self.last().replicas == count { Ok(()) } else { Err(self.counts()) },
        )
        .await;
    }

    /// The last observation.
    pub(crate) fn last(&self) -> Sight {
        self.seen.last().unwrap()
    }
}

impl Drop for ReplicaWatch {
    fn drop(&mut self) {
        self.task.abort();
    }
}
