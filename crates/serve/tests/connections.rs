//! Floods of connections, frames and credentials: probes and connections that exist stay alive.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod common;

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use common::frames::{CONTINUATION, END_STREAM_AND_HEADERS, GET, HEADERS, RST_STREAM, frame, send_preface};
use common::{DECISIONS, FakeDecisionSource, tls};
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http2::SendRequest;
use hyper_util::rt::{TokioExecutor, TokioIo};
use kube::Client;
use localkube::access::{Authority, Identity};
use rustls::pki_types::ServerName;
use serde_json::{Value, json};
use serve::{App, ExtraListener, HealthChecks, Server, ServerLimits, ServerOptions};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;
use tokio_rustls::{TlsConnector, client::TlsStream};

/// The timeout of a wait.
const TEST_TIMEOUT: Duration = Duration::from_mins(2);
/// A limit that a test waits for.
const SHORT_TIMEOUT: Duration = Duration::from_millis(300);
/// The only token that is valid.
const GOOD_TOKEN: &str = "Bearer good";

/// A server with its own listener for probes, and the API server that reviews its clients.
struct TestServer {
    server: Server,
    probes: ExtraListener,
    proxies: Authority,
    token_reviews: Arc<AtomicU32>,
    access_reviews: Arc<AtomicU32>,
}

/// Limits that no test reaches, except for a low limit of connections.
fn limits() -> ServerLimits {
    let long = Duration::from_hours(1);
    ServerLimits {
        connections: 48,
        connections_per_peer: 16,
        handshake: long,
        first: long,
        head: long,
        idle: long,
        grace: SHORT_TIMEOUT,
        ..ServerLimits::default()
    }
}

impl TestServer {
    async fn start(limits: ServerLimits) -> Self {
        let proxies = Authority::new("proxies").unwrap();
        let (token_reviews, access_reviews) = (Arc::<AtomicU32>::default(), Arc::<AtomicU32>::default());
        let counts = (Arc::clone(&token_reviews), Arc::clone(&access_reviews));
        let published = json!({
            "requestheader-client-ca-file": proxies.certificate(),
            "requestheader-allowed-names": "[]",
            "requestheader-username-headers": "[\"X-Remote-User\"]",
        });
        let api = tower::service_fn(move |request: Request<kube::client::Body>| {
            let (published, counts) = (published.clone(), counts.clone());
            async move {
                let path = request.uri().path().to_owned();
                let body = request.into_body().collect().await.unwrap().to_bytes();
                let review: Value = serde_json::from_slice(&body).unwrap_or_default();
                let answer = answer(&path, &review, &published, &counts);
                let body = Full::new(Bytes::from(answer.to_string()));
                Ok::<_, Infallible>(Response::builder().status(200).body(body).unwrap())
            }
        });
        let here = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let options = ServerOptions { address: here, limits, ..ServerOptions::default() };
        let app = App { decisions: Some(Arc::new(FakeDecisionSource)), ..App::default() };
        let server = Server::start(options, Client::new(api, "default"), app).await.unwrap();
        let probes = ExtraListener::health(here, HealthChecks::new()).await.unwrap();
        Self { server, probes, proxies, token_reviews, access_reviews }
    }

    /// A TCP connection from an address of this machine, `127.0.0.LAST`.
    async fn tcp(&self, last: u8) -> TcpStream {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::from((Ipv4Addr::new(127, 0, 0, last), 0))).unwrap();
        socket.connect(SocketAddr::from((Ipv4Addr::LOCALHOST, self.server.port()))).await.unwrap()
    }

    async fn tls_handshake(
        &self,
        stream: TcpStream,
        protocol: &[u8],
        identity: Option<&Identity>,
    ) -> std::io::Result<TlsStream<TcpStream>> {
        let mut config = tls(self.server.ca_pem().unwrap(), identity);
        config.alpn_protocols = vec![protocol.to_vec()];
        let name = ServerName::try_from("localhost").unwrap();
        TlsConnector::from(Arc::new(config)).connect(name, stream).await
    }

    /// A connection without credentials.
    async fn raw(&self, last: u8, protocol: &[u8]) -> TlsStream<TcpStream> {
        let stream = self.tcp(last).await;
        self.tls_handshake(stream, protocol, None).await.unwrap()
    }

    /// A connection that is used once. It is opened again if a short limit has closed it before.
    async fn peer(&self, last: u8, identity: Option<&Identity>, headers: &[(&'static str, &str)]) -> Peer {
        let made = async {
            loop {
                let stream = self.tcp(last).await;
                let Ok(stream) = self.tls_handshake(stream, b"h2", identity).await else { continue };
                let http = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
                let Ok((sender, connection)) = http.await else { continue };
                tokio::spawn(connection);
                let headers = headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
                let peer = Peer { sender, headers };
                if peer.get(DECISIONS_OF_A).await == Some(200) {
                    return peer;
                }
            }
        };
        timeout(TEST_TIMEOUT, made).await.expect("no connection can be made")
    }

    /// A connection of the API server.
    async fn proxy(&self) -> Peer {
        let identity = self.proxies.client("front-proxy-client", None).unwrap();
        self.peer(1, Some(&identity), &[("x-remote-user", "carol")]).await
    }

    /// A connection of a user with a token.
    async fn user(&self) -> Peer {
        self.peer(1, None, &[("authorization", GOOD_TOKEN)]).await
    }

    /// Asserts that both kinds of probes succeed on new connections.
    async fn is_probed(&self) {
        let plain = async {
            let mut stream = TcpStream::connect(self.probes.address()).await.unwrap();
            probe(&mut stream).await
        };
        assert!(timeout(TEST_TIMEOUT, plain).await.unwrap().starts_with("HTTP/1.1 200"));
        // The probe is repeated, as a kubelet does.
        let secure = async {
            loop {
                let stream = self.tcp(200).await;
                let Ok(mut stream) = self.tls_handshake(stream, b"http/1.1", None).await else { continue };
                if probe(&mut stream).await.starts_with("HTTP/1.1 200") {
                    return;
                }
            }
        };
        timeout(TEST_TIMEOUT, secure).await.expect("no probe is answered on the secure port");
    }

    async fn stop(self) {
        self.server.stop().await;
        self.probes.stop().await;
    }
}

const DECISIONS_OF_A: &str = "/apis/decisions.plimsoll.dev/v1alpha1/namespaces/a/decisions";

/// The API server: one token is valid, and its user has all permissions.
fn answer(
    path: &str,
    review: &Value,
    published: &Value,
    (tokens, accesses): &(Arc<AtomicU32>, Arc<AtomicU32>),
) -> Value {
    if path.ends_with("/tokenreviews") {
        tokens.fetch_add(1, Ordering::Relaxed);
        let is_good = review["spec"]["token"] == "good";
        let status = json!({"authenticated": is_good, "user": {"username": "bob", "groups": []}});
        return json!({"metadata": {}, "spec": review["spec"], "status": status});
    }
    if path.ends_with("/subjectaccessreviews") {
        accesses.fetch_add(1, Ordering::Relaxed);
        let allowed = review["spec"]["user"] == "bob" || review["spec"]["user"] == "carol";
        return json!({"metadata": {}, "spec": review["spec"], "status": {"allowed": allowed}});
    }
    json!({"metadata": {"name": "extension-apiserver-authentication"}, "data": published})
}

/// One connection, which is never opened again.
struct Peer {
    sender: SendRequest<Full<Bytes>>,
    headers: Vec<(&'static str, String)>,
}

impl Peer {
    /// The code of a response; none if the connection has ended.
    async fn get(&self, path: &str) -> Option<u16> {
        let mut request = Request::get(format!("https://localhost{path}"));
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        let request = request.body(Full::default()).unwrap();
        let answer = timeout(TEST_TIMEOUT, self.sender.clone().send_request(request)).await.unwrap();
        answer.ok().map(|answer| answer.status().as_u16())
    }

    async fn is_alive(&self) {
        assert_eq!(self.get(DECISIONS_OF_A).await, Some(200));
    }
}

/// Requests health with HTTP/1.1, and returns the whole response.
async fn probe(stream: &mut (impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin)) -> String {
    let _ = stream.write_all(b"GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await;
    ended(stream).await
}

/// Reads until the connection ends, which it must do.
async fn ended(stream: &mut (impl tokio::io::AsyncRead + Unpin)) -> String {
    let mut bytes = Vec::new();
    let _ = timeout(TEST_TIMEOUT, stream.read_to_end(&mut bytes)).await.expect("the connection has no end");
    String::from_utf8_lossy(&bytes).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_connections_do_not_exhaust_a_server() {
    let host = TestServer::start(limits()).await;
    let (proxy, user) = (host.proxy().await, host.user().await);
    // Four times as many connections as there may be, from ten addresses; some send nothing, some complete the handshake.
    let mut flood = Vec::new();
    for round in 0..20 {
        for last in 2..12 {
            let stream = host.tcp(last).await;
            if round % 10 == 0 {
                let stream = host.tls_handshake(stream, b"h2", None).await;
                flood.extend(stream.map(|stream| stream.into_inner().0));
            } else {
                flood.push(stream);
            }
        }
        proxy.is_alive().await;
    }
    proxy.is_alive().await;
    user.is_alive().await;
    host.is_probed().await;
    // The first connections were closed.
    ended(&mut flood[0]).await;
    ended(&mut flood[1]).await;
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_address_displaces_only_its_own_connections() {
    let host = TestServer::start(limits()).await;
    let mut quiet = host.raw(2, b"http/1.1").await;
    let mut flood = Vec::new();
    for _ in 0..100 {
        flood.push(host.tcp(3).await);
    }
    ended(&mut flood[0]).await;
    // The connection of the other address, which is idle longest, is still there.
    assert!(probe(&mut quiet).await.starts_with("HTTP/1.1 200"));
    host.is_probed().await;
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_handshakes_end() {
    let host = TestServer::start(ServerLimits { handshake: SHORT_TIMEOUT, ..limits() }).await;
    let proxy = host.proxy().await;
    let mut slow = Vec::new();
    for last in 2..10 {
        let mut stream = host.tcp(last).await;
        // The beginning of a ClientHello.
        let _ = stream.write_all(&[22, 3, 1, 2, 0]).await;
        slow.push(stream);
    }
    for stream in &mut slow {
        ended(stream).await;
    }
    proxy.is_alive().await;
    host.is_probed().await;
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn handshakes_of_one_address_are_limited() {
    let host = TestServer::start(ServerLimits { handshakes: 4, handshakes_per_second: 0, ..limits() }).await;
    for _ in 0..4 {
        drop(host.raw(2, b"h2").await);
    }
    let stream = host.tcp(2).await;
    assert!(host.tls_handshake(stream, b"h2", None).await.is_err());
    // Other addresses and connections that are already open are served.
    let proxy = host.proxy().await;
    proxy.is_alive().await;
    host.is_probed().await;
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_first_requests_end() {
    let host = TestServer::start(ServerLimits { first: SHORT_TIMEOUT, ..limits() }).await;
    let proxy = host.proxy().await;
    for protocol in [&b"http/1.1"[..], b"h2"] {
        // The client sends nothing.
        ended(&mut host.raw(2, protocol).await).await;
    }
    // The client sends half a head, or a head that never ends.
    let mut half = host.raw(2, b"http/1.1").await;
    let _ = half.write_all(b"GET /readyz HTTP/1.1\r\nHost: x\r\nX: ").await;
    ended(&mut half).await;
    let (mut reading, mut writing) = tokio::io::split(host.raw(2, b"http/1.1").await);
    let trickle = async {
        let _ = writing.write_all(b"GET /readyz HTTP/1.1\r\n").await;
        while writing.write_all(b"a: b\r\n").await.is_ok() && writing.flush().await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::select! {
        _ = ended(&mut reading) => {}
        () = trickle => {}
        () = tokio::time::sleep(TEST_TIMEOUT) => panic!("a head may take forever"),
    }
    proxy.is_alive().await;
    host.is_probed().await;
    host.stop().await;
}

/// A connection of HTTP/2 after its preface.
async fn frames(host: &TestServer) -> TlsStream<TcpStream> {
    let mut stream = host.raw(2, b"h2").await;
    send_preface(&mut stream).await;
    stream
}

/// Sends batches until the server ends the connection, which it must do.
async fn flood(stream: TlsStream<TcpStream>, mut batch: impl FnMut(u32) -> Vec<u8>) {
    let (mut reading, mut writing) = tokio::io::split(stream);
    let sent = async {
        for number in 0..2000 {
            let bytes = batch(number);
            if writing.write_all(&bytes).await.is_err() || writing.flush().await.is_err() {
                return;
            }
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        _ = ended(&mut reading) => {}
        () = sent => {}
        () = tokio::time::sleep(TEST_TIMEOUT) => panic!("the flood has no end"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rapid_resets_end_their_connection_only() {
    let host = TestServer::start(limits()).await;
    let proxy = host.proxy().await;
    let stream = frames(&host).await;
    flood(stream, |number| {
        let mut bytes = Vec::new();
        for index in 0..200 {
            let stream = 2 * (number * 200 + index) + 1;
            bytes.extend(frame(HEADERS, END_STREAM_AND_HEADERS, stream, &GET));
            bytes.extend(frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes()));
        }
        bytes
    })
    .await;
    proxy.is_alive().await;
    host.is_probed().await;
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn endless_continuations_end_their_connection_only() {
    let host = TestServer::start(limits()).await;
    let proxy = host.proxy().await;
    for payload in [&b""[..], &[0x00, 0x01, b'a', 0x01, b'b'].repeat(2000)] {
        let mut stream = frames(&host).await;
        stream.write_all(&frame(HEADERS, 1, 1, &GET)).await.unwrap();
        flood(stream, |_| frame(CONTINUATION, 0, 1, payload).repeat(8)).await;
    }
    proxy.is_alive().await;
    host.is_probed().await;
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn made_up_tokens_are_not_all_reviewed() {
    const TOKENS: usize = 1500;
    let host = TestServer::start(limits()).await;
    let (proxy, user) = (host.proxy().await, host.user().await);
    let (reviewed, begin) = (host.token_reviews.load(Ordering::Relaxed), tokio::time::Instant::now());
    // The request without credentials is refused, but the connection stays open.
    let stream = host.raw(2, b"h2").await;
    let http = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
    let (sender, connection) = http.await.unwrap();
    tokio::spawn(connection);
    let codes = futures::future::join_all((0..TOKENS).map(|number| {
        let headers = vec![("authorization", format!("Bearer made-up-{number}"))];
        let peer = Peer { sender: sender.clone(), headers };
        async move { peer.get(DECISIONS_OF_A).await.unwrap() }
    }))
    .await;
    let (requested, time) = (host.token_reviews.load(Ordering::Relaxed) - reviewed, begin.elapsed());
    assert!(codes.iter().all(|code| matches!(code, 401 | 429)), "{codes:?}");
    let most = 100.0 + 20.0 * (time.as_secs_f64() + 1.0);
    assert!(f64::from(requested) <= most, "{requested} reviews within {time:?}");
    if time < Duration::from_secs(30) {
        assert!(codes.contains(&429));
    }
    proxy.is_alive().await;
    user.is_alive().await;
    // So is the same user at the address of the flood: that token was valid before.
    host.peer(2, None, &[("authorization", GOOD_TOKEN)]).await.is_alive().await;
    host.is_probed().await;
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_paths_are_not_all_reviewed() {
    const PATHS: usize = 1500;
    let host = TestServer::start(limits()).await;
    let (proxy, user) = (host.proxy().await, host.user().await);
    let (reviewed, begin) = (host.access_reviews.load(Ordering::Relaxed), tokio::time::Instant::now());
    let stream = host.raw(2, b"h2").await;
    let http = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
    let (sender, connection) = http.await.unwrap();
    tokio::spawn(connection);
    let codes = futures::future::join_all((0..PATHS).map(|number| {
        let peer = Peer { sender: sender.clone(), headers: Vec::new() };
        async move { peer.get(&format!("{DECISIONS}/namespaces/n{number}/decisions")).await.unwrap() }
    }))
    .await;
    let (requested, time) = (host.access_reviews.load(Ordering::Relaxed) - reviewed, begin.elapsed());
    assert!(codes.iter().all(|code| matches!(code, 403 | 429)), "{codes:?}");
    let most = 100.0 + 20.0 * (time.as_secs_f64() + 1.0);
    assert!(f64::from(requested) <= most, "{requested} reviews within {time:?}");
    proxy.is_alive().await;
    user.is_alive().await;
    host.is_probed().await;
    host.stop().await;
}
