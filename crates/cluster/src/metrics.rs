//! The three metrics APIs.

use std::sync::Arc;
use std::time::Duration;

use api::metrics::PodMetricsList;
use engine::Samples;
use engine::spec::Metric;
use kube::Client;

use crate::discovery::Discovery;

/// Resource metrics of pods from the same process, instead of over the API.
pub trait Store: Send + Sync {
    /// All pods of a namespace.
    fn pods(&self, namespace: &str) -> Arc<PodMetricsList>;
}

/// Asks for samples; lists are shared by all who need them at about the same time. Cheap to clone.
#[derive(Clone)]
pub struct Metrics {
    client: Client,
    discovery: Discovery,
}

/// For whom a metric is asked.
#[derive(Clone, Copy, Debug)]
pub struct Asker<'a> {
    /// Namespace of the autoscaler.
    pub namespace: &'a str,
    /// The target's pod selector as text.
    pub selector: &'a str,
    /// The pods it selects.
    pub pods: &'a [engine::Pod],
    /// Whether others in the namespace need resource metrics too, so that one list for all is cheaper.
    pub shared: bool,
}

impl Metrics {
    /// `freshness` is how long a shared list may be used: less than the shortest period.
    pub fn new(client: Client, discovery: Discovery, freshness: Duration) -> Self {
        let _ = freshness;
        Self { client, discovery }
    }

    /// Takes resource metrics from `store` instead of the API.
    pub fn with_store(self, store: Arc<dyn Store>) -> Self {
        let _ = store;
        self
    }

    /// What `metric` is for these pods, or why nobody knows, in the words of Kubernetes (spec 4.7 `fetchErr`).
    pub async fn samples(&self, asker: Asker<'_>, metric: &Metric) -> Result<Samples, String> {
        let _ = (&self.client, &self.discovery, asker, metric);
        todo!()
    }
}
