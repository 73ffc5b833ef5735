//! Measures lists of all pods.

use std::time::{Duration, Instant};

use crate::server_process::MetricsServerProcess;
use crate::shared::usage::percentile;

pub(crate) const JSON: &str = "application/json";
pub(crate) const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

const ALL_PODS_PATH: &str = "/apis/metrics.k8s.io/v1beta1/pods";
/// How often all pods are listed. Between two lists some kubelets are scraped again, so that not only cached responses are measured.
const LIST_COUNT: usize = 12;
const LIST_PAUSE: Duration = Duration::from_millis(1_500);
const COMPLETE_LIST_TIMEOUT: Duration = Duration::from_mins(3);

/// The cost of a list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListMeasurement {
    pub(crate) median: Duration,
    pub(crate) worst: Duration,
    /// The CPU time of the server.
    pub(crate) cpu: Duration,
    pub(crate) bytes: usize,
}

/// Waits until all pods are listed.
pub(crate) async fn until_complete(server: &mut MetricsServerProcess, pods: usize) {
    let begun = Instant::now();
    loop {
        server.check();
        let response = server.client.get_as(ALL_PODS_PATH, Some(JSON)).await.unwrap();
        let found = response.json()["items"].as_array().map_or(0, Vec::len);
        if found == pods {
            eprintln!("all {pods} pods are listed after {:.0} s", begun.elapsed().as_secs_f64());
            return;
        }
        assert!(begun.elapsed() < COMPLETE_LIST_TIMEOUT, "{found} of {pods} pods are listed");
        tokio::time::sleep(Duration::from_secs(3)).await;
    }
}

/// Lists all pods several times in a media type.
pub(crate) async fn list(server: &MetricsServerProcess, accept: &str) -> ListMeasurement {
    let list_once = async || {
        let begun = Instant::now();
        let response = server.client.get_as(ALL_PODS_PATH, Some(accept)).await.unwrap();
        assert_eq!(response.code, 200, "{}", response.text());
        (begun.elapsed(), response.body.len())
    };
    list_once().await;
    let usage = || server.program.usage().unwrap().cpu;
    let (mut took, mut cpu, mut bytes) = (Vec::new(), Duration::ZERO, 0);
    for _ in 0..LIST_COUNT {
        tokio::time::sleep(LIST_PAUSE).await;
        let before = usage();
        let (time, size) = list_once().await;
        cpu += usage().saturating_sub(before);
        took.push(time);
        bytes = size;
    }
    ListMeasurement {
        median: percentile(&mut took, 50),
        worst: percentile(&mut took, 100),
        cpu: cpu / LIST_COUNT as u32,
        bytes,
    }
}
