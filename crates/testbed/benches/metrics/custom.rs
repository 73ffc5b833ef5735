//! The metric requests of 200 autoscalers, five times a second each: first to prometheus-adapter, then to ours.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use testbed::kubelets::fleet::Fleet;
use testbed::prometheus::Server;
use testbed::sample::SampleApp;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use crate::env::MetricsBenchEnv;
use crate::server_process::{MeasuredServer, MetricsServerProcess};
use crate::shared::table::{ComparisonTable, millis};
use crate::shared::usage::percentile;
use crate::shared::versions::Version;

/// The pods: 200 workloads of ten pods each.
const FLEET: Fleet = Fleet { nodes: 100, pods: 20, namespaces: 20 };
const AUTOSCALERS: usize = 200;
const REPLICAS: usize = 10;
/// The time between two requests of one autoscaler.
const REQUEST_INTERVAL: Duration = Duration::from_millis(200);
const WINDOW: Duration = Duration::from_secs(30);
const WARM_UP_TIME: Duration = Duration::from_secs(10);
/// The scrape interval of Prometheus.
const SCRAPE_INTERVAL: Duration = Duration::from_secs(5);
const READY_TIMEOUT: Duration = Duration::from_mins(2);

const RULES: &str = r#"rules:
- seriesQuery: 'http_requests_total{namespace!="",pod!=""}'
  resources:
    overrides:
      namespace: {resource: namespace}
      pod: {resource: pod}
  name: {matches: "^(.*)_total$"}
  metricsQuery: 'sum(rate(<<.Series>>{<<.LabelMatchers>>}[1m])) by (<<.GroupBy>>)'
- seriesQuery: 'service_requests_total{namespace!="",service!=""}'
  resources:
    overrides:
      namespace: {resource: namespace}
      service: {resource: service}
  name: {matches: "^(.*)_total$"}
  metricsQuery: 'sum(rate(<<.Series>>{<<.LabelMatchers>>}[1m])) by (<<.GroupBy>>)'
"#;

struct QueryMeasurement {
    succeeded: u64,
    failed: u64,
    took: Duration,
    median: Duration,
    percentile_99: Duration,
    /// The number of queries that Prometheus answered meanwhile.
    prometheus_queries: u64,
    cpu: Duration,
}

pub(crate) async fn run() -> bool {
    let env = MetricsBenchEnv::new(FLEET).await;
    let app = SampleApp::start().unwrap();
    for number in 0..FLEET.size() {
        let (namespace, name) = FLEET.pod(number);
        app.set_load(&namespace, &name, 1.0 + (number % 17) as f64);
    }
    for number in 0..AUTOSCALERS {
        let (namespace, name) = workload(number);
        app.set_counter(
            &format!("service_requests_total{{namespace=\"{namespace}\",service=\"{name}\"}}"),
            50.0,
        );
    }
    let prometheus = Server::start(SCRAPE_INTERVAL).await.unwrap();
    prometheus.scrape(&app.one_target()).unwrap();
    let known = || prometheus.value("count(rate(http_requests_total[1m]))");
    let begun = Instant::now();
    while known().await.unwrap() != Some(FLEET.size() as f64) {
        assert!(begun.elapsed() < READY_TIMEOUT, "Prometheus does not know the application");
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    eprintln!("prometheus-adapter");
    let theirs = measure(MeasuredServer::Upstream, &env, &prometheus).await;
    eprintln!("ours");
    let ours = measure(MeasuredServer::Plimsoll(Version::New), &env, &prometheus).await;

    let title = format!(
        "metric requests of {AUTOSCALERS} autoscalers, {} a second for {} s",
        AUTOSCALERS as u128 * 1000 / REQUEST_INTERVAL.as_millis(),
        WINDOW.as_secs()
    );
    let mut table = ComparisonTable::new(&title);
    let rate = |measurement: &QueryMeasurement| measurement.succeeded as f64 / measurement.took.as_secs_f64();
    let per_thousand = |measurement: &QueryMeasurement| {
        measurement.prometheus_queries as f64 * 1000.0 / measurement.succeeded.max(1) as f64
    };
    table.row("responses per second", rate(&theirs), rate(&ours), 0, None);
    table.row("failed requests", theirs.failed as f64, ours.failed as f64, 0, None);
    table.row(
        "queries of Prometheus",
        theirs.prometheus_queries as f64,
        ours.prometheus_queries as f64,
        0,
        Some(0.1),
    );
    // A server that answers fewer requests also sends fewer queries, so queries per response are compared too.
    table.row("… per 1,000 responses", per_thousand(&theirs), per_thousand(&ours), 1, Some(0.1));
    table.row("latency, median, ms", millis(theirs.median), millis(ours.median), 2, None);
    table.row(
        "latency, 99th percentile, ms",
        millis(theirs.percentile_99),
        millis(ours.percentile_99),
        2,
        Some(1.0 / 3.0),
    );
    table.row("CPU of the server, m", millicores(&theirs), millicores(&ours), 0, None);
    table.good() && ours.failed == 0
}

fn millicores(measurement: &QueryMeasurement) -> f64 {
    measurement.cpu.as_secs_f64() * 1000.0 / measurement.took.as_secs_f64()
}

/// The namespace and name of a workload.
fn workload(number: usize) -> (String, String) {
    let (namespace, pod) = FLEET.pod(number * REPLICAS);
    (namespace, pod.rsplitn(3, '-').last().unwrap_or_default().to_owned())
}

/// The path that an autoscaler requests. Four of five autoscalers request a metric of their pods, the fifth one of a service.
fn metric_path(number: usize) -> String {
    let (namespace, name) = workload(number);
    let root = format!("/apis/custom.metrics.k8s.io/v1beta1/namespaces/{namespace}");
    if number % 5 == 4 {
        format!("{root}/services/{name}/service_requests")
    } else {
        format!("{root}/pods/%2A/http_requests?labelSelector=app%3D{name}")
    }
}

async fn measure(who: MeasuredServer, env: &MetricsBenchEnv, prometheus: &Server) -> QueryMeasurement {
    let mut server = who.of_prometheus(env, &prometheus.url(), RULES).await;
    let begun = Instant::now();
    for number in [0, 4, AUTOSCALERS - 1] {
        while server.client.get(&metric_path(number)).await.map_or(0, |response| response.code) != 200 {
            assert!(
                begun.elapsed() < READY_TIMEOUT,
                "{} does not return a value: {}",
                metric_path(number),
                server.program.log()
            );
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }
    send_requests(&server, WARM_UP_TIME).await;
    let (prometheus_queries, cpu) =
        (prometheus.query_count().await.unwrap(), server.program.usage().unwrap().cpu);
    let mut measurement = send_requests(&server, WINDOW).await;
    measurement.prometheus_queries = prometheus.query_count().await.unwrap() - prometheus_queries;
    measurement.cpu = server.program.usage().unwrap().cpu.saturating_sub(cpu);
    server.check();
    measurement
}

/// Sends the requests of all autoscalers during `window`; each autoscaler sends one request at a time.
async fn send_requests(server: &MetricsServerProcess, window: Duration) -> QueryMeasurement {
    let failed = Arc::new(AtomicU64::new(0));
    let begun = Instant::now();
    let mut tasks = JoinSet::new();
    for number in 0..AUTOSCALERS {
        let (client, failed, metric_path) = (server.client.clone(), Arc::clone(&failed), metric_path(number));
        let first = tokio::time::Instant::now() + REQUEST_INTERVAL * number as u32 / AUTOSCALERS as u32;
        tasks.spawn(async move {
            let mut ticks = tokio::time::interval_at(first, REQUEST_INTERVAL);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            let mut took = Vec::new();
            while begun.elapsed() < window {
                ticks.tick().await;
                let sent = Instant::now();
                match client.get(&metric_path).await {
                    Ok(response) if response.code == 200 => took.push(sent.elapsed()),
                    _ => drop(failed.fetch_add(1, Ordering::Relaxed)),
                }
            }
            took
        });
    }
    let mut took: Vec<Duration> = tasks.join_all().await.into_iter().flatten().collect();
    QueryMeasurement {
        succeeded: took.len() as u64,
        failed: failed.load(Ordering::Relaxed),
        took: begun.elapsed(),
        median: percentile(&mut took, 50),
        percentile_99: percentile(&mut took, 99),
        prometheus_queries: 0,
        cpu: Duration::ZERO,
    }
}
