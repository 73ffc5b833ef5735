//! What is told about an object, with the aggregation and limits of client-go (spec D).

use engine::Event;
use kube::Client;

use crate::clock::Clock;

/// The object an event is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// `autoscaling/v2`.
    pub api_version: &'static str,
    /// `HorizontalPodAutoscaler`.
    pub kind: &'static str,
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Unique id.
    pub uid: String,
    /// Version when the event happened.
    pub resource_version: String,
}

/// Tells events in the background; never waits, never fails.
#[derive(Clone)]
pub struct Recorder {}

impl Recorder {
    /// `component` is the source of the events, `host` stays empty as in Kubernetes.
    pub fn start(client: Client, component: &'static str, clock: Clock) -> Self {
        let _ = (client, component, clock);
        todo!()
    }

    /// Tells an event.
    pub fn record(&self, about: &About, event: &Event) {
        let _ = (about, event);
        todo!()
    }

    /// Waits until everything told so far has been delivered or given up, but no longer than `limit`.
    pub async fn flush(&self, limit: std::time::Duration) {
        let _ = limit;
        todo!()
    }
}
