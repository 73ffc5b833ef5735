//! A full cluster measured against its limits: 10,000 pods, 1,000 autoscalers, 50 watchers, and then many writes.
//!
//! All requests go through the API as a tower service in this process: they are decoded, defaulted, validated and
//! stored, and responses and events are encoded. Only the sockets are left out.

#![allow(clippy::disallowed_methods, reason = "tests and benches measure with the clock of the machine")]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)]

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use localkube::access::User;
use localkube::{Api, Cluster, Options};
use serde_json::{Value, json};
use tower::ServiceExt as _;

/// The allocator of the binary.
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const PODS: usize = 10_000;
const AUTOSCALERS: usize = 1_000;
const WATCHERS: usize = 50;
const WRITES: usize = 30_000;
const WRITERS: usize = 8;

const MEMORY_LIMIT_MIB: u64 = 300;
const WRITES_PER_SECOND: f64 = 5_000.0;
const READY_LIMIT: Duration = Duration::from_millis(200);

fn main() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(run())
}

async fn run() -> ExitCode {
    let start = Instant::now();
    let running = Cluster::start(Options::default()).await.unwrap();
    let server = running.serve().await.unwrap();
    let ready = start.elapsed();
    drop(server);
    let api = running.api();

    let start = Instant::now();
    spread(PODS, &api, |api, index| async move { create_pod(&api, index).await }).await;
    spread(AUTOSCALERS, &api, |api, index| async move { create_autoscaler(&api, index).await }).await;
    let filled = start.elapsed();

    let seen = watch(&api).await;
    let start = Instant::now();
    spread(WRITES, &api, |api, index| async move { patch_status(&api, index).await }).await;
    let written = start.elapsed();
    seen.all(WRITES).await;
    let elapsed = start.elapsed();
    let (now, most) = memory();

    let rate = WRITES as f64 / elapsed.as_secs_f64();
    println!(
        "ready                {:>9.1} ms      limit {} ms",
        ready.as_secs_f64() * 1e3,
        READY_LIMIT.as_millis()
    );
    println!("creates              {:>9.0} /s", (PODS + AUTOSCALERS) as f64 / filled.as_secs_f64());
    println!("writes               {:>9.0} /s", WRITES as f64 / written.as_secs_f64());
    println!("writes, told to all  {rate:>9.0} /s      limit {WRITES_PER_SECOND} /s ({WATCHERS} watchers)");
    println!("memory now           {now:>9} MiB");
    println!(
        "memory at most       {most:>9} MiB     limit {MEMORY_LIMIT_MIB} MiB ({PODS} pods, {AUTOSCALERS} autoscalers)"
    );
    let good = ready <= READY_LIMIT && rate >= WRITES_PER_SECOND && most <= MEMORY_LIMIT_MIB;
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs an action `count` times, spread over several tasks.
async fn spread<F, T>(count: usize, api: &Api, what: F)
where
    F: Fn(Api, usize) -> T + Clone + Send + 'static,
    T: Future<Output = ()> + Send,
{
    let next = Arc::new(AtomicUsize::new(0));
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..WRITERS {
        let (next, api, what) = (Arc::clone(&next), api.clone(), what.clone());
        tasks.spawn(async move {
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                if index >= count {
                    return;
                }
                what(api.clone(), index).await;
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
}

/// Sends a request that must succeed.
async fn write(api: &Api, method: Method, path: &str, body: &Value) {
    let answer = send(api, method, path, body).await;
    let code = answer.status();
    let text =
        answer.into_body().collect().await.ok().map(http_body_util::Collected::to_bytes).unwrap_or_default();
    assert!(code.is_success(), "{path}: {}", String::from_utf8_lossy(&text));
}

async fn send(
    api: &Api,
    method: Method,
    path: &str,
    body: &Value,
) -> Response<impl http_body::Body<Data = Bytes> + use<>> {
    let kind = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
    let request = Request::builder().method(method).uri(path).header("content-type", kind);
    let request = request.header("user-agent", "bench/1").extension(User::admin());
    let request = request.body(Full::new(Bytes::from(body.to_string()))).unwrap();
    api.clone().oneshot(request).await.unwrap()
}

async fn create_pod(api: &Api, index: usize) {
    let pod = json!({
        "metadata": {"name": format!("web-7d4b9c6f5-{index:05}"), "labels": {"app": "web", "pod-template-hash": "7d4b9c6f5"}},
        "spec": {"containers": [{
            "name": "web",
            "image": "registry.example/web:1.2.3",
            "ports": [{"containerPort": 8080}],
            "resources": {"requests": {"cpu": "200m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
            "readinessProbe": {"httpGet": {"path": "/ready", "port": 8080}},
        }]},
    });
    write(api, Method::POST, "/api/v1/namespaces/default/pods", &pod).await;
}

async fn create_autoscaler(api: &Api, index: usize) {
    let resource = json!({"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}});
    let hpa = json!({
        "metadata": {"name": format!("web-{index:04}")},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "minReplicas": 2,
            "maxReplicas": 40,
            "metrics": [{"type": "Resource", "resource": resource}],
        },
    });
    let path = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers";
    write(api, Method::POST, path, &hpa).await;
}

async fn patch_status(api: &Api, index: usize) {
    let path = format!("/api/v1/namespaces/default/pods/web-7d4b9c6f5-{:05}/status", index * 7 % PODS);
    let status = json!({"status": {"phase": "Running", "podIP": format!("10.0.{}.{}", index / 250 % 250, index % 250)}});
    write(api, Method::PATCH, &path, &status).await;
}

/// The number of events that each watcher received.
struct Seen(Vec<Arc<AtomicUsize>>);

impl Seen {
    /// Waits until every watcher has received `count` events.
    async fn all(&self, count: usize) {
        while self.0.iter().any(|seen| seen.load(Ordering::Relaxed) < count) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert!(self.0.iter().all(|seen| seen.load(Ordering::Relaxed) == count), "an event was told twice");
    }
}

/// Starts watchers that check that revisions only increase.
async fn watch(api: &Api) -> Seen {
    let list = send(api, Method::GET, "/api/v1/pods?limit=1", &Value::Null).await;
    let list: Value =
        serde_json::from_slice(&list.into_body().collect().await.ok().unwrap().to_bytes()).unwrap();
    let revision = list.pointer("/metadata/resourceVersion").and_then(Value::as_str).unwrap().to_owned();
    let mut all = Vec::new();
    for _ in 0..WATCHERS {
        let seen = Arc::new(AtomicUsize::new(0));
        all.push(Arc::clone(&seen));
        let path = format!("/api/v1/pods?watch=1&resourceVersion={revision}");
        let mut body = Box::pin(send(api, Method::GET, &path, &Value::Null).await.into_body());
        tokio::spawn(async move {
            let mut last = 0;
            while let Some(Ok(frame)) = body.frame().await {
                let data = frame.into_data().unwrap_or_default();
                for line in std::str::from_utf8(&data).unwrap().lines() {
                    assert!(!line.starts_with("{\"type\":\"ERROR"), "a watcher was too slow");
                    let revision = revision_of(line);
                    assert!(revision > last, "revision {revision} after {last}");
                    last = revision;
                    seen.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
    }
    Seen(all)
}

/// The revision in an event, found without parsing the whole event.
fn revision_of(line: &str) -> u64 {
    let (_, rest) = line.split_once("\"resourceVersion\":\"").unwrap();
    rest.split('"').next().unwrap().parse().unwrap()
}

/// Resident memory in MiB: now, and the peak.
fn memory() -> (u64, u64) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name))?;
        line.split_whitespace().nth(1)?.parse::<u64>().ok()
    };
    (field("VmRSS:").unwrap_or(0) / 1024, field("VmHWM:").unwrap_or(0) / 1024)
}
