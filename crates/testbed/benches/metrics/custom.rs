//! The questions of 200 autoscalers, five times a second each: prometheus-adapter, then ours.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use testbed::kubelets::fleet::Fleet;
use testbed::prometheus::Server;
use testbed::sample::SampleApp;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use crate::env::MetricsBenchEnv;
use crate::shared::table::{ComparisonTable, millis};
use crate::shared::usage::percentile;
use crate::subject::{Measured, Subject};

/// 200 workloads of ten pods.
const FLEET: Fleet = Fleet { nodes: 100, pods: 20, namespaces: 20 };
const AUTOSCALERS: usize = 200;
const REPLICAS: usize = 10;
/// Between two questions of one autoscaler.
const PERIOD: Duration = Duration::from_millis(200);
const WINDOW: Duration = Duration::from_secs(30);
const WARM: Duration = Duration::from_secs(10);
/// Scrape interval of Prometheus.
const INTERVAL: Duration = Duration::from_secs(5);
const PATIENCE: Duration = Duration::from_mins(2);

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
    answered: u64,
    failed: u64,
    took: Duration,
    half: Duration,
    most: Duration,
    /// What Prometheus was asked meanwhile.
    asked: u64,
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
    let prometheus = Server::start(INTERVAL).await.unwrap();
    prometheus.scrape(&app.one_target()).unwrap();
    let known = || prometheus.value("count(rate(http_requests_total[1m]))");
    let begun = Instant::now();
    while known().await.unwrap() != Some(FLEET.size() as f64) {
        assert!(begun.elapsed() < PATIENCE, "Prometheus does not know the application");
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    eprintln!("prometheus-adapter");
    let theirs = figures(Measured::Upstream, &env, &prometheus).await;
    eprintln!("ours");
    let ours = figures(Measured::Plimsoll, &env, &prometheus).await;

    let title = format!(
        "{AUTOSCALERS} autoscalers' questions, {} a second for {} s",
        AUTOSCALERS as u128 * 1000 / PERIOD.as_millis(),
        WINDOW.as_secs()
    );
    let mut table = ComparisonTable::new(&title);
    let rate = |figures: &QueryMeasurement| figures.answered as f64 / figures.took.as_secs_f64();
    let per_thousand =
        |figures: &QueryMeasurement| figures.asked as f64 * 1000.0 / figures.answered.max(1) as f64;
    table.row("answers per second", rate(&theirs), rate(&ours), 0, None);
    table.row("answers that failed", theirs.failed as f64, ours.failed as f64, 0, None);
    table.row("queries of Prometheus", theirs.asked as f64, ours.asked as f64, 0, Some(0.1));
    // A server that answers fewer requests also sends fewer queries, so queries per answer are compared.
    table.row("… per 1,000 answers", per_thousand(&theirs), per_thousand(&ours), 1, Some(0.1));
    table.row("latency, half below, ms", millis(theirs.half), millis(ours.half), 2, None);
    table.row("latency, 99 of 100 below, ms", millis(theirs.most), millis(ours.most), 2, Some(1.0 / 3.0));
    table.row("CPU of the server, m", cores(&theirs), cores(&ours), 0, None);
    table.good() && ours.failed == 0
}

fn cores(figures: &QueryMeasurement) -> f64 {
    figures.cpu.as_secs_f64() * 1000.0 / figures.took.as_secs_f64()
}

/// The namespace and name of a workload.
fn workload(number: usize) -> (String, String) {
    let (namespace, pod) = FLEET.pod(number * REPLICAS);
    (namespace, pod.rsplitn(3, '-').last().unwrap_or_default().to_owned())
}

/// What an autoscaler asks: four of five about their pods, the fifth about a service.
fn question(number: usize) -> String {
    let (namespace, name) = workload(number);
    let root = format!("/apis/custom.metrics.k8s.io/v1beta1/namespaces/{namespace}");
    if number % 5 == 4 {
        format!("{root}/services/{name}/service_requests")
    } else {
        format!("{root}/pods/%2A/http_requests?labelSelector=app%3D{name}")
    }
}

async fn figures(who: Measured, env: &MetricsBenchEnv, prometheus: &Server) -> QueryMeasurement {
    let mut subject = who.of_prometheus(env, &prometheus.url(), RULES).await;
    let begun = Instant::now();
    for number in [0, 4, AUTOSCALERS - 1] {
        while subject.client.get(&question(number)).await.map_or(0, |answer| answer.code) != 200 {
            assert!(
                begun.elapsed() < PATIENCE,
                "{} is not answered: {}",
                question(number),
                subject.program.log()
            );
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }
    ask(&subject, WARM).await;
    let (asked, cpu) = (prometheus.asked().await.unwrap(), subject.program.usage().unwrap().cpu);
    let mut figures = ask(&subject, WINDOW).await;
    figures.asked = prometheus.asked().await.unwrap() - asked;
    figures.cpu = subject.program.usage().unwrap().cpu.saturating_sub(cpu);
    subject.check();
    figures
}

/// All autoscalers ask for some time, each one question at a time.
async fn ask(subject: &Subject, window: Duration) -> QueryMeasurement {
    let failed = Arc::new(AtomicU64::new(0));
    let begun = Instant::now();
    let mut tasks = JoinSet::new();
    for number in 0..AUTOSCALERS {
        let (client, failed, question) = (subject.client.clone(), Arc::clone(&failed), question(number));
        let first = tokio::time::Instant::now() + PERIOD * number as u32 / AUTOSCALERS as u32;
        tasks.spawn(async move {
            let mut ticks = tokio::time::interval_at(first, PERIOD);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            let mut took = Vec::new();
            while begun.elapsed() < window {
                ticks.tick().await;
                let sent = Instant::now();
                match client.get(&question).await {
                    Ok(answer) if answer.code == 200 => took.push(sent.elapsed()),
                    _ => drop(failed.fetch_add(1, Ordering::Relaxed)),
                }
            }
            took
        });
    }
    let mut took: Vec<Duration> = tasks.join_all().await.into_iter().flatten().collect();
    QueryMeasurement {
        answered: took.len() as u64,
        failed: failed.load(Ordering::Relaxed),
        took: begun.elapsed(),
        half: percentile(&mut took, 50),
        most: percentile(&mut took, 99),
        asked: 0,
        cpu: Duration::ZERO,
    }
}
