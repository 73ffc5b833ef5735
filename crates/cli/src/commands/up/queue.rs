//! A simulated queue: orders arrive in bursts, the ready pods of one workload take them, and an HTTP endpoint returns how many
//! wait.

use std::f64::consts::PI;
use std::io;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use api::keda::Trigger;
use http::Request;
use kube::Client;
use locks::MutexExt as _;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

/// The port in manifests, used if it is free.
const EXAMPLE_PORT: u16 = 7438;
/// The address in manifests, with that port.
const EXAMPLE_URL: &str = "http://127.0.0.1:7438/queues/orders";
/// The period of bursts.
const BURST_PERIOD_SECONDS: f64 = 240.0;
/// The begin and the length of a burst.
const BURST_START_AND_LENGTH_SECONDS: (f64, f64) = (15.0, 100.0);
/// Orders per second at the peak of a burst.
const PEAK_ORDERS_PER_SECOND: f64 = 24.0;
/// Orders per second that one worker takes.
const ORDERS_PER_WORKER_SECOND: f64 = 2.0;
/// The step of the simulation.
const STEP_INTERVAL: Duration = Duration::from_millis(500);
/// The timeout and the maximum size of a request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
const MAX_REQUEST_BYTES: usize = 8 * 1024;

/// A running queue; dropping it ends it.
pub(super) struct Queue {
    pub(super) port: u16,
    load: QueueLoad,
    tasks: [JoinHandle<()>; 2],
}

/// The scale target whose ready pods take the orders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct QueueWorkers {
    pub(super) namespace: String,
    /// Its resource in `apps/v1`.
    pub(super) resource: &'static str,
    pub(super) name: String,
}

/// The orders that arrive, which a user can change; clones share it.
#[derive(Clone)]
pub(super) struct QueueLoad {
    began: Instant,
    /// The scale target that takes them.
    workers: Arc<QueueWorkers>,
    /// Orders per second that the user has set.
    level: Arc<Mutex<Option<f64>>>,
}

/// Waiting orders.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Orders(f64);

impl Orders {
    /// One step: `arriving` orders per second, `seconds` after the last step.
    fn step(self, arriving: f64, seconds: f64, workers: f64) -> Self {
        Self((self.0 + arriving * seconds - workers * ORDERS_PER_WORKER_SECOND * seconds).max(0.0))
    }

    /// The number of whole orders.
    fn waiting(self) -> u64 {
        // The value is not negative and far below the maximum.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let whole = self.0.floor() as u64;
        whole
    }
}

/// Orders per second at a time after the start.
fn arrivals(at: f64) -> f64 {
    let (begin, length) = BURST_START_AND_LENGTH_SECONDS;
    let since = at.rem_euclid(BURST_PERIOD_SECONDS) - begin;
    if (0.0..length).contains(&since) {
        PEAK_ORDERS_PER_SECOND * (PI * since / length).sin().powi(2)
    } else {
        0.0
    }
}

impl Queue {
    /// Whether a trigger reads the queue.
    pub(super) fn is_read_by(trigger: &Trigger) -> bool {
        trigger.metadata.get("url").is_some_and(|url| url.as_str() == EXAMPLE_URL)
    }

    /// Starts the queue.
    pub(super) async fn open(client: Client, workers: QueueWorkers) -> io::Result<Self> {
        let listener = match TcpListener::bind((Ipv4Addr::LOCALHOST, EXAMPLE_PORT)).await {
            Ok(listener) => listener,
            Err(_) => TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?,
        };
        let port = listener.local_addr()?.port();
        let orders = Arc::new(Mutex::new(Orders::default()));
        let load = QueueLoad { began: Instant::now(), workers: Arc::new(workers), level: Arc::default() };
        let answering = tokio::spawn(answer(listener, orders.clone()));
        let moving = tokio::spawn(work(client, orders, load.clone()));
        Ok(Self { port, load, tasks: [answering, moving] })
    }

    /// Sets the address of this queue in the triggers of an object that read it.
    pub(super) fn place(&self, object: &mut Value) {
        let triggers = object.pointer_mut("/spec/triggers").and_then(Value::as_array_mut);
        for trigger in triggers.into_iter().flatten() {
            if let Some(Value::String(url)) = trigger.pointer_mut("/metadata/url")
                && url.as_str() == EXAMPLE_URL
            {
                *url = url.replace(&EXAMPLE_PORT.to_string(), &self.port.to_string());
            }
        }
    }

    /// The orders that arrive.
    pub(super) fn load(&self) -> QueueLoad {
        self.load.clone()
    }
}

impl QueueWorkers {
    fn uri(&self) -> String {
        let Self { namespace, resource, name } = self;
        format!("/apis/apps/v1/namespaces/{namespace}/{resource}/{name}")
    }
}

impl QueueLoad {
    /// The highest load that a user can set.
    pub(super) const MAX_PER_SECOND: f64 = 2.0 * PEAK_ORDERS_PER_SECOND;

    /// The scale target that takes the orders.
    pub(super) fn workers(&self) -> &QueueWorkers {
        &self.workers
    }

    /// Orders per second now.
    pub(super) fn per_second(&self) -> f64 {
        self.level().unwrap_or_else(|| arrivals(self.began.elapsed().as_secs_f64()))
    }

    /// What the user has set.
    pub(super) fn level(&self) -> Option<f64> {
        *self.level.locked()
    }

    /// Sets the load; none lets orders arrive in bursts again.
    pub(super) fn set_level(&self, level: Option<f64>) {
        *self.level.locked() = level;
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// Runs the simulation.
async fn work(client: Client, orders: Arc<Mutex<Orders>>, load: QueueLoad) {
    let workers = load.workers.uri();
    let mut ticks = interval(STEP_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut last = load.began;
    loop {
        ticks.tick().await;
        let ready_workers = ready(&client, &workers).await.unwrap_or(0.0);
        let now = Instant::now();
        let seconds = (now - last).as_secs_f64();
        last = now;
        let mut orders = orders.locked();
        *orders = orders.step(load.per_second(), seconds, ready_workers);
    }
}

/// The number of ready workers. `workers` is the URI of the scale target.
async fn ready(client: &Client, workers: &str) -> Option<f64> {
    let request = Request::get(workers).body(Vec::new()).ok()?;
    let found: Value = client.request(request).await.ok()?;
    found.pointer("/status/readyReplicas").and_then(Value::as_f64)
}

async fn answer(listener: TcpListener, orders: Arc<Mutex<Orders>>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(STEP_INTERVAL).await;
            continue;
        };
        let waiting = orders.locked().waiting();
        tokio::spawn(timeout(REQUEST_TIMEOUT, serve_length(stream, waiting)));
    }
}

/// Answers every request with the number of waiting orders.
async fn serve_length(mut stream: TcpStream, waiting: u64) -> io::Result<()> {
    let mut request = Vec::new();
    let mut part = [0; 1024];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") && request.len() < MAX_REQUEST_BYTES {
        match stream.read(&mut part).await? {
            0 => return Ok(()),
            read => request.extend_from_slice(part.get(..read).unwrap_or_default()),
        }
    }
    let body = format!("{{\"messages\":{waiting}}}\n");
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).await?;
    stream.shutdown().await
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn queue_grows_in_a_burst_and_workers_drain_it() {
        let mut orders = Orders::default();
        let (mut woken, mut most) = (None, 0);
        for second in 0..240 {
            // As many workers as there is work for, a little late.
            let workers = (orders.0 / 20.0).ceil().min(30.0);
            orders =
                orders.step(arrivals(f64::from(second)), 1.0, if orders.0 > 5.0 { workers } else { 0.0 });
            most = most.max(orders.waiting());
            if orders.waiting() > 5 {
                woken.get_or_insert(second);
            }
        }
        assert!(woken.is_some_and(|second| (16..60).contains(&second)), "{woken:?}");
        assert!((100..600).contains(&most), "{most}: several workers, and no more than there may be");
        assert!(orders.waiting() <= 5, "{orders:?}: it sleeps before the next rush");
        assert_eq!(Orders(3.0).step(0.0, 1.0, 5.0), Orders(0.0), "nobody takes what is not there");
    }

    #[tokio::test(start_paused = true)]
    async fn user_can_set_the_orders_that_arrive() {
        let workers =
            QueueWorkers { namespace: "shop".into(), resource: "deployments", name: "worker".into() };
        let load = QueueLoad { began: Instant::now(), workers: Arc::new(workers), level: Arc::default() };
        assert_eq!(load.per_second(), 0.0);
        load.clone().set_level(Some(7.0));
        assert_eq!((load.per_second(), load.level()), (7.0, Some(7.0)));
        load.set_level(None);
        assert_eq!(load.per_second(), 0.0);
    }

    #[tokio::test]
    async fn triggers_that_read_the_queue_have_its_address() {
        let cluster = localkube::Cluster::start(localkube::Options::default()).await.unwrap();
        let workers =
            QueueWorkers { namespace: "shop".into(), resource: "deployments", name: "worker".into() };
        assert_eq!(workers.uri(), "/apis/apps/v1/namespaces/shop/deployments/worker");
        let mut queue = Queue::open(cluster.client(), workers).await.unwrap();
        assert_eq!(queue.load().workers().name, "worker");
        // The port of the example may be taken.
        queue.port = 4711;
        let other = "http://127.0.0.1:7438/other";
        let triggers =
            [EXAMPLE_URL, other].map(|url| json!({"type": "metrics-api", "metadata": {"url": url}}));
        let mut object = json!({"kind": "ScaledObject", "spec": {"triggers": triggers}});
        let parsed: Vec<Trigger> = serde_json::from_value(json!(triggers)).unwrap();
        assert_eq!(parsed.iter().map(Queue::is_read_by).collect::<Vec<_>>(), [true, false]);
        queue.place(&mut object);
        let url = |index: usize| object["spec"]["triggers"][index]["metadata"]["url"].clone();
        assert_eq!((url(0), url(1)), (json!("http://127.0.0.1:4711/queues/orders"), json!(other)));
        let mut object = json!({"kind": "ConfigMap"});
        queue.place(&mut object);
        assert_eq!(object, json!({"kind": "ConfigMap"}));
    }
}
