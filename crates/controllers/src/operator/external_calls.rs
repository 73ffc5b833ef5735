//! Calls to external scalers as exported metrics, with the names of KEDA 2.21.

use scalers::external::{CALL_BUCKETS_SECONDS, CallCounts, CallKey};

use crate::metrics::exported_metrics::MetricsWriter;

/// The service of the protocol.
const SERVICE: &str = "externalscaler.ExternalScaler";

/// Reads one number of a kind of call.
type ReadCount = fn(&CallCounts) -> u64;

/// Families with one counter each.
const COUNTERS: [(&str, &str, ReadCount); 3] = [
    ("keda_grpc_client_started_total", "Total number of RPCs started on the client.", |counts| {
        counts.started
    }),
    (
        "keda_grpc_client_msg_received_total",
        "Total number of RPC stream messages received by the client.",
        |counts| counts.received,
    ),
    (
        "keda_grpc_client_msg_sent_total",
        "Total number of gRPC stream messages sent by the client.",
        |counts| counts.sent,
    ),
];

/// Writes all families; none before the first call.
pub(crate) fn write(page: &mut MetricsWriter, calls: &[(CallKey, CallCounts)]) {
    if calls.is_empty() {
        return;
    }
    for (name, help, count) in COUNTERS {
        page.family("counter", name, help);
        for (key, counts) in calls {
            page.value(&labels(key), count(counts));
        }
    }
    page.family(
        "counter",
        "keda_grpc_client_handled_total",
        "Total number of RPCs completed by the client, regardless of success or failure.",
    );
    for (key, counts) in calls {
        let [type_, service, method, scaler] = labels(key);
        for (code, count) in &counts.handled {
            page.value(&[type_, service, method, ("grpc_code", *code), scaler], count);
        }
    }
    page.family(
        "histogram",
        "keda_grpc_client_handling_seconds",
        "Histogram of response latency (seconds) of the gRPC until it is finished by the application.",
    );
    for (key, counts) in calls {
        let count = counts.handled.values().sum();
        let within = CALL_BUCKETS_SECONDS.into_iter().zip(counts.within).chain([(f64::INFINITY, count)]);
        page.histogram(&labels(key), within, counts.seconds);
    }
}

fn labels(key: &CallKey) -> [(&'static str, &'static str); 4] {
    [
        ("grpc_type", key.grpc_type),
        ("grpc_service", SERVICE),
        ("grpc_method", key.method),
        ("scaler", key.scaler),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_have_the_names_and_labels_of_keda() {
        let key = CallKey { scaler: "external", method: "GetMetrics", grpc_type: "unary" };
        let counts = CallCounts { started: 3, handled: [("OK", 2)].into(), ..CallCounts::default() };
        let mut page = MetricsWriter::default();
        write(&mut page, &[(key, counts)]);
        let page = page.finish();
        let labels =
            "grpc_type=\"unary\",grpc_service=\"externalscaler.ExternalScaler\",grpc_method=\"GetMetrics\"";
        for line in [
            format!("keda_grpc_client_started_total{{{labels},scaler=\"external\"}} 3"),
            format!("keda_grpc_client_handled_total{{{labels},grpc_code=\"OK\",scaler=\"external\"}} 2"),
            format!("keda_grpc_client_handling_seconds_count{{{labels},scaler=\"external\"}} 2"),
        ] {
            assert!(page.contains(&line), "{line}\n{page}");
        }
    }
}
