//! What an HPA controller asks: every metric once per period, spread over it, through the API server.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::Request;
use kube::Client;
use tokio::task::JoinHandle;

use crate::workloads::{OperatorWorkloads, name};

/// The period of Kubernetes' own HPA controller.
pub(crate) const PERIOD: Duration = Duration::from_secs(15);

/// Asks until it is dropped.
pub(crate) struct Questions {
    task: JoinHandle<()>,
    answered: Arc<AtomicU64>,
    failed: Arc<AtomicU64>,
}

impl Questions {
    pub(crate) fn start(client: &Client, workloads: &OperatorWorkloads) -> Self {
        let (answered, failed) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let counts = (Arc::clone(&answered), Arc::clone(&failed));
        let (client, namespace, objects) = (client.clone(), workloads.namespace, workloads.objects);
        let task = tokio::spawn(async move {
            let mut ticks = tokio::time::interval(PERIOD / u32::try_from(objects).unwrap());
            for number in (0..objects).cycle() {
                ticks.tick().await;
                let (client, (answered, failed)) = (client.clone(), counts.clone());
                tokio::spawn(async move {
                    let path = format!(
                        "/apis/external.metrics.k8s.io/v1beta1/namespaces/{namespace}/s0-prometheus?labelSelector=scaledobject.keda.sh%2Fname%3D{}",
                        name(number)
                    );
                    let request = Request::get(path).body(Vec::new()).unwrap();
                    let reported = client.request_text(request).await;
                    let is_good =
                        reported.as_ref().is_ok_and(|text| text.contains(r#""metricName":"s0-prometheus""#));
                    if is_good { &answered } else { &failed }.fetch_add(1, Ordering::Relaxed);
                    if let (Err(error), 0) = (reported, failed.load(Ordering::Relaxed) % 1000) {
                        eprintln!("a question failed: {error}");
                    }
                });
            }
        });
        Self { task, answered, failed }
    }

    /// How many were answered since this was last asked, and how many were not.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.answered.swap(0, Ordering::Relaxed), self.failed.swap(0, Ordering::Relaxed))
    }
}

impl Drop for Questions {
    fn drop(&mut self) {
        self.task.abort();
    }
}
