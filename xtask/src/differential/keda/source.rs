//! The scripted sources: one external scaler and one HTTP API for all operators, so that all get the same values.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::Context;
use external_scaler::{
    ActivityStream, ExternalScaler, MetricSpec, MetricValue, ScaledObjectRef, Server, Status,
};
use futures::StreamExt as _;
use locks::MutexExt as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::broadcast;
use tokio::task::JoinHandle;

/// The response of a source.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SourceResponse {
    pub(crate) value: i64,
    pub(crate) active: bool,
    pub(crate) fault: SourceFault,
}

/// The fault of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SourceFault {
    None,
    /// `GetMetrics` is an error.
    Metrics,
    /// `IsActive` is an error.
    Active,
    /// `GetMetricSpec` is an error.
    Specs,
    /// `GetMetricSpec` is an empty list.
    Empty,
}

/// The responses of all sources. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Script(Arc<Mutex<ScriptState>>);

#[derive(Default)]
struct ScriptState {
    states: BTreeMap<String, SourceResponse>,
    /// The number of value requests of each operator (namespace and key).
    value_requests: BTreeMap<(String, String), usize>,
    /// The number of requests of each operator (namespace and scenario), and the time of the last one.
    requests: BTreeMap<(String, String), (usize, Instant)>,
    pushes: BTreeMap<String, broadcast::Sender<()>>,
}

/// The running sources; they end when this is dropped.
pub(crate) struct Sources {
    pub(crate) script: Script,
    /// The address of the external scaler.
    pub(crate) scaler: SocketAddr,
    /// The address of the HTTP API.
    pub(crate) http: SocketAddr,
    tasks: Vec<JoinHandle<()>>,
}

/// The maximum size of a request in bytes.
const MAX_REQUEST_BYTES: usize = 16 * 1024;
/// The time after the last request of a poll when the poll counts as ended: the operator has scaled and written the status.
const POLL_QUIET_TIME: Duration = Duration::from_millis(250);
/// Maximum delay of a poll.
const MAX_POLL_DELAY: Duration = Duration::from_secs(1);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

impl SourceResponse {
    pub(crate) fn new(value: i64, active: bool) -> Self {
        Self { value, active, fault: SourceFault::None }
    }
}

impl std::fmt::Display for SourceResponse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { value, active, fault } = self;
        write!(f, "{value}, {}", if *active { "active" } else { "not active" })?;
        if *fault == SourceFault::None { Ok(()) } else { write!(f, ", fails: {fault:?}") }
    }
}

impl Script {
    fn script_state(&self) -> std::sync::MutexGuard<'_, ScriptState> {
        self.0.locked()
    }

    pub(crate) fn set_response(&self, key: &str, state: SourceResponse) {
        self.script_state().states.insert(key.to_owned(), state);
    }

    pub(crate) fn push(&self, key: &str) {
        if let Some(sender) = self.script_state().pushes.get(key) {
            // Without an open stream, the push is lost.
            let _ = sender.send(());
        }
    }

    /// The number of requests of an operator to sources whose key has this prefix.
    pub(crate) fn value_request_count(&self, namespace: &str, scenario: &str) -> usize {
        let script_state = self.script_state();
        let mine = |key: &str| key.strip_prefix(scenario).is_some_and(|rest| rest.starts_with('-'));
        script_state
            .value_requests
            .iter()
            .filter(|((operator, key), _)| operator == namespace && mine(key))
            .map(|(_, count)| count)
            .sum()
    }

    /// Waits until an operator has just polled a scenario. An edit during a poll aborts the poll in KEDA, which then may
    /// see nothing active and scale to zero.
    pub(crate) async fn between_rounds(&self, namespace: &str, scenario: &str, interval: Duration) {
        let key = (namespace.to_owned(), scenario.to_owned());
        let last = || self.script_state().requests.get(&key).copied();
        let polls = |(_, at): &(usize, Instant)| at.elapsed() < interval + MAX_POLL_DELAY;
        let Some((before, _)) = last().filter(polls) else { return };
        let until = Instant::now() + interval + MAX_POLL_DELAY;
        while Instant::now() < until {
            if last().is_some_and(|(count, at)| count > before && at.elapsed() >= POLL_QUIET_TIME) {
                return;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Counts a request of an operator.
    fn count_request(&self, namespace: &str, key: &str) {
        let scenario = key.split('-').next().unwrap_or_default();
        let mut script_state = self.script_state();
        let now = Instant::now();
        let requests = script_state
            .requests
            .entry((namespace.to_owned(), scenario.to_owned()))
            .or_insert_with(|| (0, now));
        *requests = (requests.0 + 1, now);
    }

    fn state(&self, key: &str) -> Result<SourceResponse, Status> {
        let state = self.script_state().states.get(key).cloned();
        state.ok_or_else(|| Status::not_found("no such source"))
    }
}

impl Sources {
    /// Starts the sources. `delay` is the response time of the external scaler for each value.
    pub(crate) async fn start(pause: Duration) -> anyhow::Result<Self> {
        let script = Script::default();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("failed to listen")?;
        let scaler = listener.local_addr()?;
        let server = Server::new(Scripted(script.clone(), pause));
        let serving = tokio::spawn(async move {
            // The task ends when the run ends.
            let _ = server.serve_until(listener, std::future::pending()).await;
        });
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("failed to listen")?;
        let http = listener.local_addr()?;
        let answering = tokio::spawn(accept(listener, script.clone()));
        Ok(Self { script, scaler, http, tasks: vec![serving, answering] })
    }
}

impl Drop for Sources {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// The external scaler with its response time.
struct Scripted(Script, Duration);

impl Scripted {
    fn state(&self, object: &ScaledObjectRef) -> Result<SourceResponse, Status> {
        let key = object.text("key")?;
        self.0.count_request(&object.namespace, key);
        self.0.state(key)
    }
}

impl ExternalScaler for Scripted {
    async fn metric_specs(&self, object: &ScaledObjectRef) -> Result<Vec<MetricSpec>, Status> {
        match self.state(object)?.fault {
            SourceFault::Specs => Err(Status::internal("no specs today")),
            SourceFault::Empty => Ok(Vec::new()),
            _ => Ok(vec![MetricSpec::new(object.text("metric")?, object.number_or("target", 5.0)?)]),
        }
    }

    async fn metrics(&self, object: &ScaledObjectRef, metric: &str) -> Result<Vec<MetricValue>, Status> {
        let key = object.text("key")?;
        *self
            .0
            .script_state()
            .value_requests
            .entry((object.namespace.clone(), key.to_owned()))
            .or_default() += 1;
        let state = self.state(object)?;
        tokio::time::sleep(self.1).await;
        match state.fault {
            SourceFault::Metrics => Err(Status::internal("no values today")),
            _ => Ok(vec![MetricValue::new(metric, state.value as f64)]),
        }
    }

    async fn is_active(&self, object: &ScaledObjectRef) -> Result<bool, Status> {
        let state = self.state(object)?;
        match state.fault {
            SourceFault::Active => Err(Status::unavailable("the activity is not known")),
            _ => Ok(state.active),
        }
    }

    async fn activity(&self, object: &ScaledObjectRef) -> Result<ActivityStream, Status> {
        let key = object.text("key")?;
        let receiver = {
            let mut script_state = self.0.script_state();
            script_state.pushes.entry(key.to_owned()).or_insert_with(|| broadcast::channel(4).0).subscribe()
        };
        let reported = futures::stream::unfold(receiver, |mut receiver| async move {
            receiver.recv().await.ok().map(|()| (Ok(true), receiver))
        });
        Ok(reported.boxed())
    }
}

/// The HTTP API, which returns `{"value": …}` for `/NAMESPACE/KEY`.
async fn accept(listener: TcpListener, script: Script) {
    while let Ok((stream, _)) = listener.accept().await {
        let script = script.clone();
        tokio::spawn(async move {
            // Malformed requests get no response.
            let _ = serve_request(stream, &script).await;
        });
    }
}

async fn serve_request(mut stream: TcpStream, script: &Script) -> std::io::Result<()> {
    let (mut text, mut part) = (Vec::new(), [0; 1024]);
    while !text.windows(4).any(|end| end == b"\r\n\r\n") && text.len() < MAX_REQUEST_BYTES {
        match stream.read(&mut part).await? {
            0 => return Ok(()),
            count => text.extend_from_slice(part.get(..count).unwrap_or_default()),
        }
    }
    let text = String::from_utf8_lossy(&text);
    let path = text.split(' ').nth(1).unwrap_or_default().trim_start_matches('/');
    let (namespace, key) = path.split_once('/').unwrap_or_default();
    script.count_request(namespace, key);
    *script.script_state().value_requests.entry((namespace.to_owned(), key.to_owned())).or_default() += 1;
    let (code, body) = match script.state(key) {
        Ok(state) if state.fault == SourceFault::None => {
            let value = if state.active { state.value.max(1) } else { 0 };
            ("200 OK", format!("{{\"value\": {value}}}"))
        }
        _ => ("500 Internal Server Error", "{}".to_owned()),
    };
    let head = format!(
        "HTTP/1.1 {code}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes()).await?;
    stream.shutdown().await
}
