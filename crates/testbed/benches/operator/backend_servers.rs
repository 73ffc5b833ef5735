//! Small servers of several protocols, which count connections and questions and can hang.

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

use crate::INTERVAL;

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

/// How long a connection is open before connections are counted: one that replaces another may be accepted before the end of the
/// closed one is read.
const CLOSE_DELAY: Duration = Duration::from_millis(100);

/// A server; it answers until the process ends.
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

/// What a backend has seen.
#[derive(Clone, Default)]
pub(crate) struct BackendCounts {
    connections: usize,
    /// The most connections at a time, after [`CLOSE_DELAY`].
    pub(crate) max_connections: usize,
    pub(crate) questions: u64,
    /// How much more than an interval passed between two equal questions, at most.
    late: Duration,
    /// When each question was last asked.
    asked: HashMap<String, Instant>,
}

impl BackendProtocol {
    /// Whether equal questions of several objects are sent once. beanstalkd has neither HTTP nor a connection pool.
    pub(crate) fn shares_questions(self) -> bool {
        self != Self::Beanstalkd
    }

    /// How many connections to one server there may be: requests under way of HTTP, or the size of a pool.
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

    /// A trigger with this question.
    pub(crate) fn trigger(&self, question: &str) -> Value {
        let url = format!("http://{}", self.address);
        let (type_, metadata) = match self.protocol {
            BackendProtocol::Prometheus => {
                ("prometheus", json!({"serverAddress": url, "query": question, "threshold": "5"}))
            }
            BackendProtocol::MetricsApi => (
                "metrics-api",
                json!({"url": format!("{url}/{question}"), "valueLocation": "value", "targetValue": "5"}),
            ),
            BackendProtocol::Rabbitmq => (
                "rabbitmq",
                json!({
                    "host": format!("http://guest:guest@{}/", self.address), "protocol": "http",
                    "queueName": question, "mode": "QueueLength", "value": "5",
                }),
            ),
            BackendProtocol::Elasticsearch => (
                "elasticsearch",
                json!({
                    "addresses": url, "username": "elastic", "password": "elastic", "index": question,
                    "query": r#"{"query": {"match_all": {}}}"#, "valueLocation": "hits.total.value", "targetValue": "5",
                }),
            ),
            BackendProtocol::Redis => {
                ("redis", json!({"address": self.address, "listName": question, "listLength": "5"}))
            }
            BackendProtocol::Beanstalkd => {
                ("beanstalkd", json!({"server": self.address, "tube": question, "value": "5"}))
            }
        };
        json!({"type": type_, "metadata": metadata})
    }

    /// From now on it answers nothing, or everything again.
    pub(crate) fn hang(&self, hangs: bool) {
        self.state.hangs.store(hangs, Ordering::SeqCst);
    }

    pub(crate) fn counts(&self) -> BackendCounts {
        self.state.counts.lock().unwrap().clone()
    }

    /// Begins to count questions and delays anew.
    pub(crate) fn clear(&self) {
        let mut counts = self.state.counts.lock().unwrap();
        (counts.questions, counts.late) = (0, Duration::ZERO);
    }
}

impl BackendCounts {
    /// How many different questions there were.
    pub(crate) fn distinct(&self) -> usize {
        self.asked.len()
    }

    /// How many different questions there were since this time.
    pub(crate) fn distinct_since(&self, time: Instant) -> usize {
        self.asked.values().filter(|asked| **asked >= time).count()
    }

    /// How late a question came at most, or is by now.
    pub(crate) fn late(&self) -> Duration {
        let waiting = self.asked.values().map(|asked| asked.elapsed().saturating_sub(INTERVAL));
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

    fn count(&self, question: &str) {
        let now = Instant::now();
        let mut counts = self.counts.lock().unwrap();
        counts.questions += 1;
        if let Some(before) = counts.asked.insert(question.to_owned(), now) {
            counts.late = counts.late.max(now.duration_since(before).saturating_sub(INTERVAL));
        }
    }
}

async fn serve(protocol: BackendProtocol, stream: TcpStream, state: &Arc<BackendState>) -> io::Result<()> {
    if protocol.is_http() {
        let state = Arc::clone(state);
        listen::serve_http(stream, move |request| answer(protocol, request, Arc::clone(&state))).await;
        return Ok(());
    }
    let mut stream = BufReader::new(stream);
    if protocol == BackendProtocol::Redis {
        serve_redis(&mut stream, state).await
    } else {
        serve_beanstalkd(&mut stream, state).await
    }
}

async fn answer(
    protocol: BackendProtocol,
    request: Request<Incoming>,
    state: Arc<BackendState>,
) -> Response<Full<Bytes>> {
    // Queries of Prometheus also have the current time.
    let query = request.uri().query().unwrap_or_default();
    let query = query.split('&').find(|pair| pair.starts_with("query=")).unwrap_or_default();
    state.count(&format!("{} {query}", request.uri().path()));
    let _ = request.into_body().collect().await;
    if state.hangs() {
        // Until the client closes the connection.
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
    let answer = Response::builder().header("content-type", "application/json");
    answer.body(Full::new(Bytes::from_static(body.as_bytes()))).unwrap()
}

/// Serves the commands `TYPE` and `LLEN` of Redis; all others are successful.
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
