//! Prometheus is killed and started again under load: no target is scaled down, and there is no burst of queries.
//!
//! The real Prometheus scrapes a page with a series for every object. All objects are polled every 5 s, and their cooldown is 5 s, so that
//! a single wrong poll result without activity would scale a target to zero.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::StreamExt as _;
use http::Response;
use http_body_util::Full;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::json;
use testbed::prometheus::Server;
use testbed::proxy::{Proxy, ProxyOptions, Rules};
use tokio::net::TcpListener;

use crate::env::{OperatorBenchEnv, counts};
use crate::operator_process;
use crate::shared::table;
use crate::workloads::{OperatorWorkloads, Queries, name};

const OBJECTS: usize = 1_000;
const POLLING_INTERVAL_SECONDS: u64 = 5;
/// How long Prometheus is stopped.
const OUTAGE_DURATION: Duration = Duration::from_secs(30);
/// How long queries and requests are counted before and after the outage.
const OBSERVATION_TIME: Duration = Duration::from_secs(40);
/// The maximum number of queries, or of API requests, in one second after the outage, divided by the polls of a second.
const MAX_BUSIEST_SECOND_RATIO: f64 = 3.0;

pub(crate) async fn run() -> bool {
    let page = page().await;
    let mut server = Server::start(Duration::from_secs(2)).await.unwrap();
    server.scrape(&json!([{"targets": [page], "labels": {}}])).unwrap();
    while server.query("count(load)").await.unwrap().is_empty() {
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    let env = OperatorBenchEnv::start().await;
    let url = server.url();
    let workloads = OperatorWorkloads {
        interval: POLLING_INTERVAL_SECONDS,
        cooldown: POLLING_INTERVAL_SECONDS,
        replicas: 2,
        trigger: Arc::new(move |number| {
            let query = format!("sum(load{{object=\"{}\"}})", name(number));
            let metadata = json!({"serverAddress": url, "query": query, "threshold": "100"});
            json!({"type": "prometheus", "metadata": metadata})
        }),
        ..OperatorWorkloads::new("restart", OBJECTS, "", Queries::Distinct)
    };
    workloads.create(&env.client).await;
    let settings = ProxyOptions { store_lists: false, ..ProxyOptions::default() };
    let proxy = Proxy::start_with(&env.kubeconfig, settings).await.unwrap();
    let mut operator = operator_process::start(&proxy.kubeconfig(), workloads.namespace).await;
    tokio::time::sleep(Duration::from_secs(30)).await;

    let scaled = Arc::new(Mutex::new(Vec::new()));
    let watched = {
        let (scaled, client) = (Arc::clone(&scaled), env.client.clone());
        tokio::spawn(async move {
            let mut counts = pin!(counts(&client, "restart"));
            while let Some((name, count)) = counts.next().await {
                if count != 2 {
                    scaled.lock().unwrap().push((name, count));
                }
            }
        })
    };
    let before = observe(Some(&server), &proxy.rules(), OBSERVATION_TIME).await;
    server.stop();
    let during_outage = observe(None, &proxy.rules(), OUTAGE_DURATION).await;
    server.resume().await.unwrap();
    let after = observe(Some(&server), &proxy.rules(), OBSERVATION_TIME).await;
    watched.abort();
    operator.check();

    println!(
        "\nPrometheus killed for {} s and started again; {OBJECTS} ScaledObjects, every {POLLING_INTERVAL_SECONDS} s",
        OUTAGE_DURATION.as_secs()
    );
    let show = |what: &str, counts: &RequestsPerSecond| {
        table::row(&format!("{what}: queries per second"), mean(&counts.queries), 1);
        table::row(&format!("{what}: queries, busiest second"), most(&counts.queries), 0);
        table::row(&format!("{what}: API requests per second"), mean(&counts.requests), 1);
        table::row(&format!("{what}: API requests, busiest second"), most(&counts.requests), 0);
    };
    show("before", &before);
    show("during the outage", &during_outage);
    show("after", &after);
    let scaled_targets = scaled.lock().unwrap().clone();
    let polls = OBJECTS as f64 / POLLING_INTERVAL_SECONDS as f64;
    let mut good = table::at_most("targets that were scaled", scaled_targets.len() as f64, 0, 0.0);
    good &= table::at_most(
        "busiest second after, in polls of a second",
        most(&after.queries) / polls,
        2,
        MAX_BUSIEST_SECOND_RATIO,
    );
    // The status of every object is written once when its source fails, and once when it works again.
    let writes = during_outage.requests.iter().chain(&after.requests).sum::<f64>();
    good &= table::at_most(
        "API requests per object, during the outage and after",
        writes / OBJECTS as f64,
        2,
        8.0,
    );
    good &= table::at_most(
        "API requests, busiest second, in polls of a second",
        most(&after.requests) / polls,
        2,
        MAX_BUSIEST_SECOND_RATIO,
    );
    for (name, count) in scaled_targets.iter().take(5) {
        println!("  {name} was scaled to {count}");
    }
    good
}

/// The queries to Prometheus and the requests to the API server in each second.
struct RequestsPerSecond {
    queries: Vec<f64>,
    requests: Vec<f64>,
}

async fn observe(server: Option<&Server>, rules: &Rules, time: Duration) -> RequestsPerSecond {
    let mut counts = RequestsPerSecond { queries: Vec::new(), requests: Vec::new() };
    let query_count = async || match server {
        Some(server) => server.query_count().await.unwrap_or(0),
        None => 0,
    };
    rules.clear_log();
    let (begun, mut last) = (Instant::now(), query_count().await);
    let mut ticks = tokio::time::interval(Duration::from_secs(1));
    ticks.tick().await;
    while begun.elapsed() < time {
        ticks.tick().await;
        let now = query_count().await;
        counts.queries.push(now.saturating_sub(last) as f64);
        last = now;
        let requests: u64 = rules.counts().values().sum();
        rules.clear_log();
        counts.requests.push(requests as f64);
    }
    counts
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

fn most(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

/// Serves a page with a series for every object, and returns its `host:port`.
async fn page() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let mut text = String::from("# TYPE load gauge\n");
    for number in 0..OBJECTS {
        writeln!(text, "load{{object=\"{}\"}} 150", name(number)).unwrap();
    }
    let text = Bytes::from(text);
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let text = text.clone();
            let service = service_fn(move |_| {
                let response = Response::builder().header("content-type", "text/plain; version=0.0.4");
                let response = response.body(Full::new(text.clone())).unwrap();
                async move { Ok::<_, Infallible>(response) }
            });
            tokio::spawn(async move {
                let connection = hyper::server::conn::http1::Builder::new();
                let _ = connection.serve_connection(TokioIo::new(stream), service).await;
            });
        }
    });
    address
}
