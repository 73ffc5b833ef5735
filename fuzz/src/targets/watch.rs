//! List and watch responses of the API server, whose objects tenants write.

use api::autoscaling::v2::HorizontalPodAutoscaler;
use api::keda::{ScaledJob, ScaledObject, TriggerAuthentication};
use api::pod::Pod;
use cluster::watch::WatchSource;
use cluster::watch::untrusted::{count_events, count_items};

/// The input is a list, or the lines of a watch.
pub fn run(data: &[u8]) {
    let whole = count_items(data, data.len());
    // The result of decoding a valid list does not depend on the size of the chunks in which it arrives.
    let is_json = data.len() < 4096 && serde_json::from_slice::<serde_json::Value>(data).is_ok();
    for chunk in [1, 7] {
        let chunked = count_items(data, chunk);
        assert!(!is_json || chunked == whole, "{chunked:?} {whole:?}");
    }
    let source = WatchSource::pods();
    let counts = [
        count_events::<Pod>(data, &source),
        count_events::<HorizontalPodAutoscaler>(data, &source),
        count_events::<ScaledObject>(data, &source),
        count_events::<ScaledJob>(data, &source),
        count_events::<TriggerAuthentication>(data, &source),
    ];
    let lines = data.iter().filter(|byte| **byte == b'\n').count();
    assert!(counts.iter().all(|count| *count <= lines));
}
