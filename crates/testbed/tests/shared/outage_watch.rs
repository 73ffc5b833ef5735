//! Measures for how long an HPA reports that its metrics cannot be read.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use kube::Client;
use locks::MutexExt as _;
use serde_json::Value;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

/// The sync period of Kubernetes, unless a flag changes it: a shorter outage contains at most one sync.
pub(crate) const DEFAULT_SYNC_PERIOD: Duration = Duration::from_secs(15);
/// How often the conditions of the HPA are read.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(100);

/// Follows the condition of an HPA until it is dropped.
pub(crate) struct OutageWatch {
    longest: Arc<Mutex<Duration>>,
    task: JoinHandle<()>,
}

impl OutageWatch {
    pub(crate) fn start(client: &Client, namespace: &str, hpa: &str) -> Self {
        let path = format!("/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers/{hpa}");
        let (client, longest) = (client.clone(), Arc::<Mutex<Duration>>::default());
        let noted = Arc::clone(&longest);
        let task = tokio::spawn(async move {
            let mut since: Option<Instant> = None;
            loop {
                let request = http::Request::get(&path).body(Vec::new()).unwrap();
                // Without a response the last known state is kept.
                if let Ok(hpa) = client.request::<Value>(request).await {
                    since = has_outage(&hpa).then(|| since.unwrap_or_else(Instant::now));
                }
                if let Some(since) = since {
                    let mut longest = noted.locked();
                    *longest = since.elapsed().max(*longest);
                }
                sleep(SAMPLE_INTERVAL).await;
            }
        });
        Self { longest, task }
    }

    /// The longest outage so far.
    pub(crate) fn longest(&self) -> Duration {
        *self.longest.locked()
    }
}

impl Drop for OutageWatch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Whether the last sync of an HPA could not read its metrics.
fn has_outage(hpa: &Value) -> bool {
    let conditions = hpa["status"]["conditions"].as_array().into_iter().flatten();
    conditions
        .filter(|condition| condition["type"] == "ScalingActive")
        .any(|active| active["status"] == "False")
}
