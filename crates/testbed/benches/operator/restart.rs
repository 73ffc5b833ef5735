//! Prometheus is killed and started again under load: nothing is scaled down, and there is no storm of queries.
//!
//! The real Prometheus scrapes a page of ours that has a series for every object, which are polled every 5 s. What is active
//! rests 5 s after it ended, so that a single wrong "nothing to do" would show.

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
use crate::shared::table;
use crate::subject;
use crate::workloads::{OperatorWorkloads, Queries, name};

const OBJECTS: usize = 1_000;
const INTERVAL: u64 = 5;
/// How long Prometheus is gone.
const GONE: Duration = Duration::from_secs(30);
/// How long is looked at before and after.
const AROUND: Duration = Duration::from_secs(40);
/// After it, no second sees more than this many times what a second sees otherwise.
const STORM: f64 = 3.0;

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
        interval: INTERVAL,
        cooldown: INTERVAL,
        replicas: 2,
        trigger: Arc::new(move |number| {
            let query = format!("sum(load{{object=\"{}\"}})", name(number));
            let metadata = json!({"serverAddress": url, "query": query, "threshold": "100"});
            json!({"type": "prometheus", "metadata": metadata})
        }),
        ..OperatorWorkloads::new("restart", OBJECTS, "", Queries::Distinct)
    };
    workloads.make(&env.client).await;
    let settings = ProxyOptions { remember_lists: false, ..ProxyOptions::default() };
    let proxy = Proxy::start_with(&env.kubeconfig, settings).await.unwrap();
    let mut operator = subject::start(&proxy.kubeconfig(), workloads.namespace).await;
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
    let before = observe(Some(&server), &proxy.rules(), AROUND).await;
    server.stop();
    let gone = observe(None, &proxy.rules(), GONE).await;
    server.resume().await.unwrap();
    let after = observe(Some(&server), &proxy.rules(), AROUND).await;
    watched.abort();
    operator.check();

    println!(
        "\nPrometheus killed for {} s and started again; {OBJECTS} ScaledObjects, every {INTERVAL} s",
        GONE.as_secs()
    );
    let show = |what: &str, seen: &Seen| {
        table::row(&format!("{what}: queries per second"), mean(&seen.queries), 1);
        table::row(&format!("{what}: queries, busiest second"), most(&seen.queries), 0);
        table::row(&format!("{what}: API requests per second"), mean(&seen.requests), 1);
        table::row(&format!("{what}: API requests, busiest second"), most(&seen.requests), 0);
    };
    show("before", &before);
    show("gone", &gone);
    show("after", &after);
    let wrong = scaled.lock().unwrap().clone();
    let polls = OBJECTS as f64 / INTERVAL as f64;
    let mut good = table::at_most("targets that were scaled", wrong.len() as f64, 0, 0.0);
    good &=
        table::at_most("busiest second after, in polls of a second", most(&after.queries) / polls, 2, STORM);
    // Every object says once that its source fails, and once that it works again.
    let writes = gone.requests.iter().chain(&after.requests).sum::<f64>();
    good &= table::at_most("API requests per object, gone and after", writes / OBJECTS as f64, 2, 8.0);
    good &= table::at_most(
        "API requests, busiest second, in polls of a second",
        most(&after.requests) / polls,
        2,
        STORM,
    );
    for (name, count) in wrong.iter().take(5) {
        println!("  {name} was scaled to {count}");
    }
    good
}

/// What happened in each second.
struct Seen {
    queries: Vec<f64>,
    requests: Vec<f64>,
}

async fn observe(server: Option<&Server>, rules: &Rules, time: Duration) -> Seen {
    let mut seen = Seen { queries: Vec::new(), requests: Vec::new() };
    let asked = async || match server {
        Some(server) => server.asked().await.unwrap_or(0),
        None => 0,
    };
    rules.clear_log();
    let (begun, mut last) = (Instant::now(), asked().await);
    let mut ticks = tokio::time::interval(Duration::from_secs(1));
    ticks.tick().await;
    while begun.elapsed() < time {
        ticks.tick().await;
        let now = asked().await;
        seen.queries.push(now.saturating_sub(last) as f64);
        last = now;
        let requests: u64 = rules.counts().values().sum();
        rules.clear_log();
        seen.requests.push(requests as f64);
    }
    seen
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

fn most(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

/// A page with a series for every object; `host:port`.
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
                let answer = Response::builder().header("content-type", "text/plain; version=0.0.4");
                let answer = answer.body(Full::new(text.clone())).unwrap();
                async move { Ok::<_, Infallible>(answer) }
            });
            tokio::spawn(async move {
                let connection = hyper::server::conn::http1::Builder::new();
                let _ = connection.serve_connection(TokioIo::new(stream), service).await;
            });
        }
    });
    address
}
