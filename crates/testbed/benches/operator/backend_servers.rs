//! Simulated servers of several protocols, which count connections and queries and can hang.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use localkube::listen;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::POLLING_INTERVAL;

/// The protocol of a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BackendProtocol {
    Prometheus,
    MetricsApi,
    Rabbitmq,
    Elasticsearch,
    Redis,
    Beanstalkd,
}

/// How long a connection is open before it is counted. A connection that replaces another one may be accepted before the end of the
/// other one is read.
const CLOSE_DELAY: Duration = Duration::from_millis(100);

/// A simulated server, which runs until the process ends.
pub(crate) struct Backend {
    pub(crate) protocol: BackendProtocol,
    address: String,
    state: Arc<BackendState>,
}

#[derive(Default)]
struct BackendState {
    hangs: AtomicBool,
    counts: Mutex<BackendCounts>,
}

/// The connections and queries of a backend.
#[derive(Clone, Default)]
pub(crate) struct BackendCounts {
    connections: usize,
    /// The maximum number of open connections, each counted after [`CLOSE_DELAY`].
    pub(crate) max_connections: usize,
    pub(crate) requests: u64,
    /// By how much the time between two equal queries exceeded the polling interval, at most.
    late: Duration,
    /// When each query was last received.
    last_queried: HashMap<String, Instant>,
}

impl BackendProtocol {
    /// Whether equal queries of several objects are sent once. They are not for beanstalkd, which has neither HTTP nor a connection pool.
    pub(crate) fn shares_queries(self) -> bool {
        self != Self::Beanstalkd
    }

    /// The maximum number of connections to one server: the limit of concurrent HTTP requests, or the size of a connection pool.
    pub(crate) fn connection_limit(self) -> usize {
        if self == Self::Redis { 4 } else { 64 }
    }

    fn is_http(self) -> bool {
        !matches!(self, Self::Redis | Self::Beanstalkd)
    }
}

impl Backend {
    pub(crate) async fn start(protocol: BackendProtocol) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let state = Arc::new(BackendState::default());
        let shared = Arc::clone(&state);
        tokio::spawn(listen::accept(listener, move |stream| {
            let state = Arc::clone(&shared);
            async move {
                state.counts.lock().unwrap().connections += 1;
                let settled = async {
                    tokio::time::sleep(CLOSE_DELAY).await;
                    state.count_connections();
                    std::future::pending::<()>().await;
                };
                tokio::select! {
                    // The client may close its connection at any time.
                    _ = serve(protocol, stream, &state) => {}
                    () = settled => {}
                }
                state.counts.lock().unwrap().connections -= 1;
            }
        }));
        Self { protocol, address, state }
    }

    /// A trigger with this query.
    pub(crate) fn trigger(&self, query: &str) -> Value {
        let url = format!("http://{}", self.address);
        let (type_, metadata) = match self.protocol {
            BackendProtocol::Prometheus => {
                ("prometheus", json!({"serverAddress": url, "query": query, "threshold": "5"}))
            }
            BackendProtocol::MetricsApi => (
                "metrics-api",
                json!({"url": format!("{url}/{query}"), "valueLocation": "value", "targetValue": "5"}),
            ),
            BackendProtocol::Rabbitmq => (
                "rabbitmq",
                json!({
                    "host": format!("http://guest:guest@{}/", self.address), "protocol": "http",
                    "queueName": query, "mode": "QueueLength", "value": "5",
                }),
            ),
            BackendProtocol::Elasticsearch => (
                "elasticsearch",
                json!({
                    "addresses": url, "username": "elastic", "password": "elastic", "index": query,
                    "query": r#"{"query": {"match_all": {}}}"#, "valueLocation": "hits.total.value", "targetValue": "5",
                }),
            ),
            BackendProtocol::Redis => {
                ("redis", json!({"address": self.address, "listName": query, "listLength": "5"}))
            }
            BackendProtocol::Beanstalkd => {
                ("beanstalkd", json!({"server": self.address, "tube": query, "value": "5"}))
            }
        };
        json!({"type": type_, "metadata": metadata})
    }

    /// Sets whether the server leaves all requests without a response from now on.
    pub(crate) fn hang(&self, hangs: bool) {
        self.state.hangs.store(hangs, Ordering::SeqCst);
    }

    pub(crate) fn counts(&self) -> BackendCounts {
        self.state.counts.lock().unwrap().clone()
    }

    /// Resets the counts of queries and delays.
    pub(crate) fn clear(&self) {
        let mut counts = self.state.counts.lock().unwrap();
        (counts.requests, counts.late) = (0, Duration::ZERO);
    }
}

impl BackendCounts {
    /// The number of distinct queries.
    pub(crate) fn distinct(&self) -> usize {
        self.last_queried.len()
    }

    /// The number of distinct queries since a time.
    pub(crate) fn distinct_since(&self, time: Instant) -> usize {
        self.last_queried.values().filter(|last_queried| **last_queried >= time).count()
    }

    /// The maximum delay of a query, including queries that are overdue now.
    pub(crate) fn late(&self) -> Duration {
        let waiting = self
            .last_queried
            .values()
            .map(|last_queried| last_queried.elapsed().saturating_sub(POLLING_INTERVAL));
        waiting.fold(self.late, Duration::max)
    }
}

impl BackendState {
    fn count_connections(&self) {
        let mut counts = self.counts.lock().unwrap();
        counts.max_connections = counts.max_connections.max(counts.connections);
    }

    fn hangs(&self) -> bool {
        self.hangs.load(Ordering::SeqCst)
    }

    fn count(&self, query: &str) {
        let now = Instant::now();
        let mut counts = self.counts.lock().unwrap();
        counts.requests += 1;
        if let Some(before) = counts.last_queried.insert(query.to_owned(), now) {
            counts.late = counts.late.max(now.duration_since(before).saturating_sub(POLLING_INTERVAL));
        }
    }
}

async fn serve(protocol: BackendProtocol, stream: TcpStream, state: &Arc<BackendState>) -> io::Result<()> {
    if protocol.is_http() {
        let state = Arc::clone(state);
        listen::serve_http(stream, move |request| respond(protocol, request, Arc::clone(&state))).await;
        return Ok(());
    }
    let mut stream = BufReader::new(stream);
    if protocol == BackendProtocol::Redis {
        serve_redis(&mut stream, state).await
    } else {
        serve_beanstalkd(&mut stream, state).await
    }
}

async fn respond(
    protocol: BackendProtocol,
    request: Request<Incoming>,
    state: Arc<BackendState>,
) -> Response<Full<Bytes>> {
    // Requests to Prometheus also have the current time as a parameter, so only the parameter `query` identifies a query.
    let query = request.uri().query().unwrap_or_default();
    let query = query.split('&').find(|pair| pair.starts_with("query=")).unwrap_or_default();
    state.count(&format!("{} {query}", request.uri().path()));
    let _ = request.into_body().collect().await;
    if state.hangs() {
        // The request stays without a response until the client closes the connection.
        std::future::pending::<()>().await;
    }
    let body = match protocol {
        BackendProtocol::Prometheus => {
            r#"{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1779883200.781,"7"]}]}}"#
        }
        BackendProtocol::MetricsApi => r#"{"value":7}"#,
        BackendProtocol::Rabbitmq => {
            r#"{"name":"q","messages":7,"messages_unacknowledged":0,"message_stats":{"publish_details":{"rate":0.0},"deliver_get_details":{"rate":0.0}}}"#
        }
        _ => r#"{"hits":{"total":{"value":7}}}"#,
    };
    let response = Response::builder().header("content-type", "application/json");
    response.body(Full::new(Bytes::from_static(body.as_bytes()))).unwrap()
}

/// Serves the commands `TYPE` and `LLEN` of Redis, and responds `OK` to all others.
async fn serve_redis(stream: &mut BufReader<TcpStream>, state: &BackendState) -> io::Result<()> {
    loop {
        let count = redis_number(stream, '*').await?;
        let mut words = Vec::new();
        for _ in 0..count {
            let length = redis_number(stream, '$').await?;
            let mut word = vec![0; length + 2];
            stream.read_exact(&mut word).await?;
            words.push(String::from_utf8_lossy(&word[..length]).into_owned());
        }
        if state.hangs() {
            return until_closed(stream).await;
        }
        let reply = match words.first().map(String::as_str) {
            Some("TYPE") => "+list\r\n",
            Some("LLEN") => {
                state.count(words.get(1).map_or("", String::as_str));
                ":7\r\n"
            }
            _ => "+OK\r\n",
        };
        stream.write_all(reply.as_bytes()).await?;
    }
}

/// Reads until the client closes the connection.
async fn until_closed(stream: &mut BufReader<TcpStream>) -> io::Result<()> {
    let mut piece = [0; 1024];
    while stream.read(&mut piece).await? > 0 {}
    Ok(())
}

/// The number in a line that begins with this character.
async fn redis_number(stream: &mut BufReader<TcpStream>, prefix: char) -> io::Result<usize> {
    let mut line = String::new();
    stream.read_line(&mut line).await?;
    let number = line.trim().strip_prefix(prefix).and_then(|number| number.parse().ok());
    number.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Serves the command `stats-tube` of beanstalkd.
async fn serve_beanstalkd(stream: &mut BufReader<TcpStream>, state: &BackendState) -> io::Result<()> {
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await? == 0 {
            return Ok(());
        }
        state.count(line.trim());
        if state.hangs() {
            return until_closed(stream).await;
        }
        let statistics = "---\ncurrent-jobs-ready: 7\ncurrent-jobs-reserved: 0\ncurrent-jobs-delayed: 0\n";
        let reply = format!("OK {}\r\n{statistics}\r\n", statistics.len());
        stream.write_all(reply.as_bytes()).await?;
    }
}
