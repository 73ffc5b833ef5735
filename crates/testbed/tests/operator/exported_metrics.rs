//! Health and exported metrics without TLS, as KEDA's own Deployment expects them, and every metric that dashboards for KEDA use.

use serde_json::{Value, json};
use testbed::harness::Failure;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::env::{Operator, SourceResponse, deployment, free_port, metrics_api, on_both, scripted};

/// Every family of docs/spec/keda.md 9.2 and 8.3, with its type.
const FAMILIES: [(&str, &str); 37] = [
    ("keda_build_info", "gauge"),
    ("keda_scaler_metrics_value", "gauge"),
    ("keda_scaler_metrics_latency_seconds", "gauge"),
    ("keda_scaler_active", "gauge"),
    ("keda_scaler_detail_errors_total", "counter"),
    ("keda_scaled_object_errors_total", "counter"),
    ("keda_scaled_job_errors_total", "counter"),
    ("keda_scaled_object_paused", "gauge"),
    ("keda_internal_scale_loop_latency_seconds", "gauge"),
    ("keda_scaler_empty_upstream_responses_total", "counter"),
    ("keda_scaler_http_requests_total", "counter"),
    ("keda_scaler_http_request_duration_seconds", "histogram"),
    ("keda_trigger_registered_total", "gauge"),
    ("keda_resource_registered_total", "gauge"),
    ("keda_cloudeventsource_events_emitted_total", "counter"),
    ("keda_cloudeventsource_events_queued", "gauge"),
    ("keda_internal_metricsservice_grpc_server_started_total", "counter"),
    ("keda_internal_metricsservice_grpc_server_handled_total", "counter"),
    ("keda_internal_metricsservice_grpc_server_msg_received_total", "counter"),
    ("keda_internal_metricsservice_grpc_server_msg_sent_total", "counter"),
    ("keda_internal_metricsservice_grpc_server_handling_seconds", "histogram"),
    ("keda_webhook_scaled_object_validations_total", "counter"),
    ("keda_webhook_scaled_object_validation_errors_total", "counter"),
    ("leader_election_master_status", "gauge"),
    ("controller_runtime_reconcile_total", "counter"),
    ("controller_runtime_reconcile_errors_total", "counter"),
    ("controller_runtime_reconcile_panics_total", "counter"),
    ("controller_runtime_reconcile_time_seconds", "histogram"),
    ("controller_runtime_max_concurrent_reconciles", "gauge"),
    ("controller_runtime_active_workers", "gauge"),
    ("workqueue_depth", "gauge"),
    ("workqueue_adds_total", "counter"),
    ("workqueue_queue_duration_seconds", "histogram"),
    ("workqueue_work_duration_seconds", "histogram"),
    ("workqueue_unfinished_work_seconds", "gauge"),
    ("workqueue_longest_running_processor_seconds", "gauge"),
    ("workqueue_retries_total", "counter"),
];

/// Status code and body of a response without TLS.
pub(crate) async fn plain(port: u16, path: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).await.ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    let code = head.split(' ').nth(1)?.parse().ok()?;
    Some((code, body.to_owned()))
}

/// A Prometheus without data.
async fn empty_prometheus() -> String {
    const BODY: &str = r#"{"status":"success","data":{"resultType":"vector","result":[]}}"#;
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut head = [0; 4096];
                let _ = stream.read(&mut head).await;
                let length = BODY.len();
                let response =
                    format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{BODY}");
                let _ = stream.write_all(response.as_bytes()).await;
            });
        }
    });
    format!("http://{address}")
}

#[test]
fn health_and_exported_metrics_are_served_where_keda_serves_them() -> Result<(), Failure> {
    on_both(async |ns| {
        let [metrics_port, health] = [free_port(), free_port()];
        let flags = [
            format!("--metrics-bind-address=127.0.0.1:{metrics_port}"),
            format!("--health-probe-bind-address=:{health}"),
        ];
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let operator = Operator::start(&ns, &flags).await;
        for path in ["/healthz", "/readyz"] {
            assert_eq!(plain(health, path).await, Some((200, "ok".to_owned())), "{path}");
        }
        assert_eq!(plain(health, "/metrics").await.unwrap().0, 404, "exported metrics on the health port");
        assert_eq!(plain(metrics_port, "/apis").await.unwrap().0, 404, "an API in the open");

        let kubectl = ns.kubectl();
        kubectl.apply(&deployment("web", 0));
        ns.set_response("page", SourceResponse::Value(5));
        ns.set_response("web", SourceResponse::Value(7));
        let named = |mut trigger: Value, name: &str| {
            trigger["name"] = json!(name);
            trigger
        };
        let prometheus = json!({"type": "prometheus", "metadata": {
            "serverAddress": empty_prometheus().await, "query": "up", "threshold": "1"
        }});
        let triggers = json!([
            named(metrics_api(&ns, "page", "10"), "page"),
            named(prometheus, "nothing"),
            named(scripted(&ns, "web"), "script")
        ]);
        let modifiers = json!({"formula": "page + script + nothing", "target": "10"});
        let object = json!({"triggers": triggers, "advanced": {"scalingModifiers": modifiers}});
        kubectl.apply(&ns.scaled_object("web", &object));
        ns.until_replicas("web", 1).await;

        let object = format!("namespace=\"{}\"", ns.namespace);
        let series = |name: &str, labels: &str, value: &str| format!("{name}{{{object},{labels}}} {value}");
        let of = |metric: &str, scaler: &str, index: u8| {
            format!(
                "metric=\"{metric}\",scaledObject=\"web\",scaler=\"{scaler}\",triggerIndex=\"{index}\",type=\"scaledobject\""
            )
        };
        let exact = [
            series("keda_scaler_metrics_value", &of("composite-metric", "composite-metric", 0), "12"),
            series("keda_scaler_active", &of("composite-metric", "composite-metric", 0), "1"),
            series("keda_scaler_metrics_value", &of("s2-web", "script", 2), "7"),
            series("keda_scaled_object_paused", "scaledObject=\"web\"", "0"),
        ];
        let counted = [
            format!(
                "keda_scaler_http_requests_total{{{object},scaled_resource=\"web\",scaler=\"metrics-api\",\
                 trigger_name=\"page\",metric_name=\"s0-metric-api-value\",status_code=\"200\"}} "
            ),
            format!(
                "keda_scaler_empty_upstream_responses_total{{{object},scaledResource=\"web\",triggerName=\"nothing\",\
                 metricName=\"s1-prometheus\",resourceType=\"scaledobject\",ignoreNullValues=\"true\"}} "
            ),
            "keda_scaler_http_request_duration_seconds_count{scaler=\"prometheus\",status_code=\"200\"} "
                .to_owned(),
        ];
        ns.until("all exported metrics", async || {
            let (code, page) = plain(metrics_port, "/metrics").await.ok_or_else(String::new)?;
            assert_eq!(code, 200);
            for (name, kind) in FAMILIES {
                let line = format!("# TYPE {name} {kind}");
                assert_eq!(page.lines().filter(|own| *own == line).count(), 1, "{line}\n{page}");
            }
            let missing = exact.iter().find(|line| !page.lines().any(|own| own == **line));
            let above_zero = |line: &str, start: &str| {
                line.strip_prefix(start).is_some_and(|count| count.parse().is_ok_and(|count: u64| count > 0))
            };
            let missing = missing
                .or_else(|| counted.iter().find(|start| !page.lines().any(|line| above_zero(line, start))));
            missing.map_or(Ok(()), |line| Err(format!("{line}\nis not in\n{page}")))
        })
        .await;
        operator.check();
    })
}
