//! Sends the metric requests of an HPA controller through the API server: every metric once per period, evenly over time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::Request;
use kube::Client;
use tokio::task::JoinHandle;

use crate::workloads::{OperatorWorkloads, name};

/// The sync period of Kubernetes' own HPA controller.
pub(crate) const SYNC_PERIOD: Duration = Duration::from_secs(15);

/// Sends metric requests until it is dropped.
pub(crate) struct MetricRequests {
    task: JoinHandle<()>,
    succeeded: Arc<AtomicU64>,
    failed: Arc<AtomicU64>,
}

impl MetricRequests {
    pub(crate) fn start(client: &Client, workloads: &OperatorWorkloads) -> Self {
        let (succeeded, failed) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let counts = (Arc::clone(&succeeded), Arc::clone(&failed));
        let (client, namespace, objects) = (client.clone(), workloads.namespace, workloads.objects);
        let task = tokio::spawn(async move {
            let mut ticks = tokio::time::interval(SYNC_PERIOD / u32::try_from(objects).unwrap());
            for number in (0..objects).cycle() {
                ticks.tick().await;
                let (client, (succeeded, failed)) = (client.clone(), counts.clone());
                tokio::spawn(async move {
                    let path = format!(
                        "/apis/external.metrics.k8s.io/v1beta1/namespaces/{namespace}/s0-prometheus?labelSelector=scaledobject.keda.sh%2Fname%3D{}",
                        name(number)
                    );
                    let request = Request::get(path).body(Vec::new()).unwrap();
                    let response = client.request_text(request).await;
                    let is_good =
                        response.as_ref().is_ok_and(|text| text.contains(r#""metricName":"s0-prometheus""#));
                    if is_good { &succeeded } else { &failed }.fetch_add(1, Ordering::Relaxed);
                    if let (Err(error), 0) = (response, failed.load(Ordering::Relaxed) % 1000) {
                        eprintln!("a metric request failed: {error}");
                    }
                });
            }
        });
        Self { task, succeeded, failed }
    }

    /// The numbers of successful and of failed requests since this was last called.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.succeeded.swap(0, Ordering::Relaxed), self.failed.swap(0, Ordering::Relaxed))
    }
}

impl Drop for MetricRequests {
    fn drop(&mut self) {
        self.task.abort();
    }
}
