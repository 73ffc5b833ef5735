//! AdmissionReviews without credentials, from several addresses of this machine: hostile ones, and those of an API server.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsConnector;

use super::WAIT_TIMEOUT;
use super::process::Process;
use super::triggers;

/// The pause between two bytes of a slow body.
const DRIP_PAUSE: Duration = Duration::from_millis(200);
/// The pause between two reviews of a connection.
const REVIEW_PAUSE: Duration = Duration::from_millis(200);
/// A review of the API server that takes longer has failed.
const REVIEW_TIMEOUT: Duration = Duration::from_secs(30);
/// The limit of a body.
const MAX_BODY_BYTES: usize = 3 << 20;
/// Objects with one value, each with three of the 100,000 values that are allowed: as many as fit, and more.
const FITTING_OBJECTS: usize = 33_000;
const TOO_MANY_OBJECTS: usize = 33_400;
/// The last number of the address of the API server.
const API_SERVER: u8 = 2;

/// The number of answers with each status code, and of connections that ended without an answer.
type CodeCounts = BTreeMap<Option<u16>, usize>;

/// How a body is sent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ReviewFlow {
    /// At once.
    Once,
    /// Byte by byte.
    Drip,
    /// The connection is opened, and nothing is sent.
    Idle,
}

/// What one address sends again and again.
struct Attack {
    name: &'static str,
    /// The last number of its address.
    address: u8,
    body: Vec<u8>,
    flow: ReviewFlow,
    /// The status code that shows that the attack takes place; none if the connection ends without an answer.
    expected: Option<u16>,
}

/// An attack under way, on several connections. It ends when this is dropped.
pub(crate) struct Attacker {
    pub(crate) name: &'static str,
    expected: Option<u16>,
    codes: watch::Receiver<CodeCounts>,
    _connections: JoinSet<()>,
}

/// Reviews of the API server, until they are stopped.
pub(crate) struct ApiServer {
    stop: Arc<AtomicBool>,
    task: JoinHandle<Reviews>,
}

/// Results of reviews of the API server.
#[derive(Default)]
pub(crate) struct Reviews {
    pub(crate) count: usize,
    pub(crate) slowest: Duration,
    pub(crate) failures: Vec<String>,
}

/// Sends reviews from one address.
#[derive(Clone)]
struct ReviewClient {
    config: Arc<ClientConfig>,
    server: SocketAddr,
    address: Ipv4Addr,
}

/// A review of a ScaledObject with this annotation, and this JSON as a field.
fn review(annotation: &str, field: &str) -> Vec<u8> {
    let trigger = triggers::json_value("127.0.0.1:1");
    let review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "u-1", "kind": {"group": "keda.sh", "version": "v1alpha1", "kind": "ScaledObject"},
            "name": "reviewed", "namespace": "default", "operation": "CREATE", "oldObject": null, "dryRun": true,
            "object": {
                "apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject",
                "metadata": {"name": "reviewed", "namespace": "default", "annotations": {"note": annotation}},
                "spec": {"scaleTargetRef": {"name": "reviewed"}, "triggers": [trigger]},
                "status": {"x": "FIELD"},
            },
        },
    });
    review.to_string().replace("\"FIELD\"", field).into_bytes()
}

fn attacks() -> Vec<Attack> {
    let objects = |count: usize| format!("[{}1]", "{\"\":1},".repeat(count));
    let items = format!("[{}1]", "1,".repeat(3 * FITTING_OBJECTS));
    let large = review(&"x".repeat(MAX_BODY_BYTES - 4096), "1");
    assert!(large.len() <= MAX_BODY_BYTES, "{}", large.len());
    let attack = |name, address, body, flow, expected| Attack { name, address, body, flow, expected };
    vec![
        attack("slow-large", 11, large.clone(), ReviewFlow::Drip, Some(504)),
        attack("slow-small", 12, review(&"x".repeat(16 << 10), "1"), ReviewFlow::Drip, Some(504)),
        attack("large", 13, large, ReviewFlow::Once, Some(200)),
        attack("many-objects", 14, review("", &objects(FITTING_OBJECTS)), ReviewFlow::Once, Some(200)),
        attack("many-items", 15, review("", &items), ReviewFlow::Once, Some(200)),
        attack("too-many-objects", 16, review("", &objects(TOO_MANY_OBJECTS)), ReviewFlow::Once, Some(413)),
        attack("connections", 17, Vec::new(), ReviewFlow::Idle, None),
    ]
}

impl Attack {
    /// The number of its connections, if those without a pause have this many: slow ones cost the attacker little.
    fn connections(&self, fast: usize) -> usize {
        match self.flow {
            ReviewFlow::Once => fast,
            ReviewFlow::Drip => 4 * fast,
            ReviewFlow::Idle => 20 * fast,
        }
    }
}

/// Starts all attacks, each on this many connections.
pub(crate) fn attackers(process: &Process, connections: usize) -> Vec<Attacker> {
    let start = |attack: Attack| {
        let client = ReviewClient::new(process, attack.address);
        let (sender, codes) = watch::channel(BTreeMap::new());
        let (sender, attack) = (Arc::new(sender), Arc::new(attack));
        let mut tasks = JoinSet::new();
        for _ in 0..attack.connections(connections) {
            tasks.spawn(repeat(client.clone(), Arc::clone(&attack), Arc::clone(&sender)));
        }
        Attacker { name: attack.name, expected: attack.expected, codes, _connections: tasks }
    };
    attacks().into_iter().map(start).collect()
}

/// Attacks on one connection after another.
async fn repeat(client: ReviewClient, attack: Arc<Attack>, codes: Arc<watch::Sender<CodeCounts>>) {
    loop {
        let code = match attack.flow {
            ReviewFlow::Idle => {
                let _ = client.idle().await;
                None
            }
            flow => client.send(&attack.body, flow).await.ok().map(|(code, _)| code),
        };
        codes.send_modify(|codes| *codes.entry(code).or_default() += 1);
        tokio::time::sleep(REVIEW_PAUSE).await;
    }
}

impl Attacker {
    /// Waits until it has got the expected answer that often; all answers, by code.
    pub(crate) async fn answered(&self, times: usize) -> CodeCounts {
        let mut codes = self.codes.clone();
        let enough = codes.wait_for(|codes| codes.get(&self.expected).is_some_and(|count| *count >= times));
        match tokio::time::timeout(WAIT_TIMEOUT, enough).await {
            Ok(found) => found.unwrap().clone(),
            Err(late) => panic!("{}: {late}: {:?}", self.name, *self.codes.borrow()),
        }
    }
}

impl ApiServer {
    /// Sends small and large reviews from now on, one after the other.
    pub(crate) fn start(process: &Process) -> Self {
        let client = ReviewClient::new(process, API_SERVER);
        let stop = Arc::<AtomicBool>::default();
        let is_stopped = Arc::clone(&stop);
        let task = tokio::spawn(async move {
            let bodies = [review("small", "1"), review(&"x".repeat(100 << 10), "1")];
            let mut reviews = Reviews::default();
            while !is_stopped.load(Ordering::SeqCst) {
                for body in &bodies {
                    let begun = Instant::now();
                    let sent =
                        tokio::time::timeout(REVIEW_TIMEOUT, client.send(body, ReviewFlow::Once)).await;
                    match sent {
                        Ok(Ok((200, answer))) if is_allowed(&answer) => {}
                        other => reviews.failures.push(format!("{} bytes: {other:?}", body.len())),
                    }
                    reviews.count += 1;
                    reviews.slowest = reviews.slowest.max(begun.elapsed());
                    tokio::time::sleep(REVIEW_PAUSE).await;
                }
            }
            reviews
        });
        Self { stop, task }
    }

    /// Stops the reviews; their results.
    pub(crate) async fn stop(self) -> Reviews {
        self.stop.store(true, Ordering::SeqCst);
        self.task.await.unwrap()
    }
}

fn is_allowed(answer: &str) -> bool {
    let answer: Value = serde_json::from_str(answer).unwrap_or_default();
    answer.pointer("/response/allowed") == Some(&Value::Bool(true))
}

impl ReviewClient {
    fn new(process: &Process, last: u8) -> Self {
        let address = Ipv4Addr::new(127, 0, 0, last);
        Self { config: process.client_config(), server: process.secure_address(), address }
    }

    async fn connect(&self) -> io::Result<TcpStream> {
        let socket = TcpSocket::new_v4()?;
        socket.bind(SocketAddr::from((self.address, 0)))?;
        socket.set_nodelay(true)?;
        socket.connect(self.server).await
    }

    /// Opens a connection, and waits for its end.
    async fn idle(&self) -> io::Result<()> {
        let mut stream = self.connect().await?;
        stream.read_to_end(&mut Vec::new()).await?;
        Ok(())
    }

    /// Sends a review; status code and body of the answer.
    async fn send(&self, body: &[u8], flow: ReviewFlow) -> io::Result<(u16, String)> {
        let name = ServerName::try_from("localhost").unwrap();
        let stream =
            TlsConnector::from(Arc::clone(&self.config)).connect(name, self.connect().await?).await?;
        let (mut reader, mut writer) = tokio::io::split(stream);
        let head = format!(
            "POST /validate-keda-sh-v1alpha1-scaledobject?timeout=10s HTTP/1.1\r\nhost: localhost\r\n\
             content-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            body.len()
        );
        let writing = async {
            writer.write_all(head.as_bytes()).await?;
            if flow == ReviewFlow::Drip {
                for byte in body {
                    writer.write_all(&[*byte]).await?;
                    writer.flush().await?;
                    tokio::time::sleep(DRIP_PAUSE).await;
                }
            } else {
                writer.write_all(body).await?;
            }
            writer.flush().await
        };
        let reading = async {
            let mut answer = Vec::new();
            // An answer is complete without the end of TLS.
            match reader.read_to_end(&mut answer).await {
                Err(error) if answer.is_empty() => Err(error),
                _ => Ok(answer),
            }
        };
        tokio::pin!(reading);
        // An answer may come before the whole body was sent; the rest is not read then.
        let answer = tokio::select! {
            answer = &mut reading => answer?,
            _ = writing => reading.await?,
        };
        let answer = String::from_utf8_lossy(&answer);
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&*answer, ""));
        let code = head.split(' ').nth(1).and_then(|code| code.parse().ok());
        Ok((code.ok_or(io::ErrorKind::UnexpectedEof)?, body.to_owned()))
    }
}
