//! Clients that are slow, disconnected or invalid, or that send too much: they get a response or are disconnected, and all other clients are served.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod common;

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use common::usage::NODES;
use common::{DECISIONS, FakeDecisionSource, Visitor, tls};
use http::{Request, Response};
use http_body_util::BodyExt as _;
use kube::Client;
use rustls::pki_types::ServerName;
use serve::{Access, App, Body, HealthChecks, Server, ServerLimits, ServerOptions};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tower::util::BoxCloneSyncService;

const TEST_TIMEOUT: Duration = Duration::from_mins(1);

fn app() -> App {
    let mut checks = HealthChecks::new();
    checks.add_live("mad", || panic!("as it happens"));
    // Reads all it is sent.
    let echo = tower::service_fn(|request: Request<Body>| async {
        let answer = match request.into_body().collect().await {
            Ok(body) => serve::response::text(200, body.to_bytes().len().to_string()),
            Err(error) => serve::response::text(413, error.to_string()),
        };
        Ok::<_, Infallible>(answer)
    });
    let routes = vec![("/echo".to_owned(), BoxCloneSyncService::new(echo))];
    App {
        decisions: Some(Arc::new(FakeDecisionSource)),
        checks,
        routes,
        groups: common::usage::groups(),
        ..App::default()
    }
}

async fn start(limits: ServerLimits) -> Server {
    let nobody = tower::service_fn(|_: Request<kube::client::Body>| async {
        Err::<Response<kube::client::Body>, _>(std::io::Error::other("no API server"))
    });
    let options = ServerOptions {
        address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        access: Access::Anyone,
        limits,
        ..ServerOptions::default()
    };
    Server::start(options, Client::new(nobody, "default"), app()).await.unwrap()
}

async fn connect(server: &Server, protocol: &[u8]) -> TlsStream<TcpStream> {
    let mut config = tls(server.ca_pem().unwrap(), None);
    config.alpn_protocols = vec![protocol.to_vec()];
    let stream = TcpStream::connect(("127.0.0.1", server.port())).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap()
}

/// Reads until the connection ends, which it must do.
async fn rest(stream: &mut (impl tokio::io::AsyncRead + Unpin)) -> String {
    let mut bytes = Vec::new();
    let _ = tokio::time::timeout(TEST_TIMEOUT, stream.read_to_end(&mut bytes))
        .await
        .expect("the connection has no end");
    String::from_utf8_lossy(&bytes).into_owned()
}

const SHORT_TIMEOUT: Duration = Duration::from_millis(300);

/// Limits that no client reaches, so that each test sets the one that it reaches.
fn patient() -> ServerLimits {
    let long = Duration::from_hours(1);
    ServerLimits {
        handshake: long,
        first: long,
        head: long,
        idle: long,
        answer: long,
        grace: SHORT_TIMEOUT,
        ..ServerLimits::default()
    }
}

/// Asserts that the server still serves valid clients, which may have to retry where limits are short, and that it ends.
async fn still_serves(server: Server) {
    let visitor = Visitor::new(&server, None);
    let served = async {
        loop {
            let answer = visitor.send("GET", "/readyz", &[], Vec::new()).await;
            if answer.is_ok_and(|answer| answer.status() == 200) {
                return;
            }
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, served).await.expect("it serves nobody any more");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connection_without_tls_handshake_is_closed() {
    let server = start(ServerLimits { handshake: SHORT_TIMEOUT, ..patient() }).await;
    let mut silent = TcpStream::connect(("127.0.0.1", server.port())).await.unwrap();
    rest(&mut silent).await;
    still_serves(server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connection_without_complete_request_is_closed() {
    let server = start(ServerLimits { head: SHORT_TIMEOUT, idle: SHORT_TIMEOUT, ..patient() }).await;
    for protocol in [&b"http/1.1"[..], b"h2"] {
        rest(&mut connect(&server, protocol).await).await;
    }
    let mut slow = connect(&server, b"http/1.1").await;
    // The client may have been disconnected before.
    let _ = slow.write_all(b"GET /readyz HTTP/1.1\r\nHost: x\r\nX: ").await;
    rest(&mut slow).await;
    still_serves(server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn incomplete_body_times_out_with_a_status() {
    let server = start(ServerLimits { answer: SHORT_TIMEOUT, ..patient() }).await;
    let mut slow = connect(&server, b"http/1.1").await;
    let half = b"POST /echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 100\r\n\r\nabc";
    slow.write_all(half).await.unwrap();
    let received = rest(&mut slow).await;
    assert!(received.starts_with("HTTP/1.1 504"), "{received}");
    still_serves(server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn follower_that_does_not_read_is_disconnected() {
    let server = start(ServerLimits { idle: SHORT_TIMEOUT, ..patient() }).await;
    let mut deaf = connect(&server, b"http/1.1").await;
    let head = format!(
        "GET {DECISIONS}/namespaces/a/decisions/hpa.web?watch=true&timeoutSeconds=1 HTTP/1.1\r\nHost: x\r\n\r\n"
    );
    let _ = deaf.write_all(head.as_bytes()).await;
    rest(&mut deaf).await;
    still_serves(server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn too_large_bodies_are_refused() {
    let server = start(ServerLimits { body_size: 1000, ..ServerLimits::default() }).await;
    let visitor = Visitor::new(&server, None);
    let answer = visitor.send("POST", "/echo", &[], vec![b'x'; 900]).await.unwrap();
    assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), "900");
    assert_eq!(visitor.send("POST", "/echo", &[], vec![b'x'; 100_000]).await.unwrap().status(), 413);
    // Without `Content-Length`.
    let mut stream = connect(&server, b"http/1.1").await;
    stream
        .write_all(
            b"POST /echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n",
        )
        .await
        .unwrap();
    stream.write_all(format!("7d0\r\n{}\r\n0\r\n\r\n", "x".repeat(2000)).as_bytes()).await.unwrap();
    let received = rest(&mut stream).await;
    assert!(received.starts_with("HTTP/1.1 413"), "{received}");
    // Heads.
    let large = "x".repeat(300_000);
    let mut stream = connect(&server, b"http/1.1").await;
    let _ =
        stream.write_all(format!("GET /readyz HTTP/1.1\r\nHost: x\r\nX: {large}\r\n\r\n").as_bytes()).await;
    let received = rest(&mut stream).await;
    assert!(received.is_empty() || received.starts_with("HTTP/1.1 431"), "{received}");
    if let Ok(answer) = visitor.send("GET", "/readyz", &[("x", large.as_str())], Vec::new()).await {
        assert_eq!(answer.status(), 431);
    }
    assert_eq!(visitor.get("/readyz", &[]).await.0, 200);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_http_has_no_effect() {
    let server = start(ServerLimits::default()).await;
    for bytes in [
        &b"\0\0\0\0"[..],
        b"GET / HTTP/9.9\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nnonsense and more of it",
        b"\r\n\r\n\r\n\xff\xff",
    ] {
        let mut stream = connect(&server, b"http/1.1").await;
        let _ = stream.write_all(bytes).await;
        let _ = stream.shutdown().await;
        rest(&mut stream).await;
    }
    let mut plain = TcpStream::connect(("127.0.0.1", server.port())).await.unwrap();
    let _ = plain.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await;
    rest(&mut plain).await;
    let visitor = Visitor::new(&server, None);
    for path in [
        "/%ff",
        "/%",
        "//",
        "///apis//",
        "/..",
        "/apis/%2e%2e/x",
        "/apis/%00/v/x",
        "/apis/a/b/c/d/e/f/g/h",
        "/readyz/%0a",
        "/readyz?exclude=%0a&verbose",
        "/openapi/v3/..",
        "/openapi",
        "/metrics/",
        "/metrics/x",
        "/apis/decisions.plimsoll.dev/v1alpha1/namespaces//decisions",
        "/apis/decisions.plimsoll.dev/v1alpha1/",
        "/api",
        "/api/v1/pods",
        "/version/",
    ] {
        let (code, text) = visitor.get(path, &[]).await;
        assert!((200..500).contains(&code), "{path}: {code} {text}");
    }
    let long = format!("/{}", "a/".repeat(30_000));
    assert!(visitor.get(&long, &[]).await.0 < 500);
    for method in ["POST", "OPTIONS", "TRACE", "BREW"] {
        assert_eq!(visitor.send(method, "/readyz", &[], Vec::new()).await.unwrap().status(), 405, "{method}");
    }
    // The connection of an in-process client may fail.
    let (code, text) = visitor.get("/livez", &[]).await;
    assert!(code == 500 && text.contains("InternalError"), "{code} {text}");
    assert_eq!(visitor.get("/readyz", &[]).await.0, 200);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_watches_release_their_places() {
    let server = start(ServerLimits { watches: 10, ..ServerLimits::default() }).await;
    let visitor = Visitor::new(&server, None);
    let watch = format!("{DECISIONS}/namespaces/a/decisions/hpa.web?watch=true");
    // Many more than there are places; each is dropped when it has begun, or before.
    for round in 0..200 {
        let sent = visitor.send("GET", &watch, &[], Vec::new());
        if round % 2 == 0 {
            let _ = tokio::time::timeout(Duration::from_micros(200), sent).await;
        } else {
            drop(sent.await.unwrap());
        }
    }
    let free = async {
        while visitor.send("GET", &watch, &[], Vec::new()).await.unwrap().status() != 200 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, free).await.unwrap();
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_beyond_the_limit_get_retry_after() {
    let server = start(ServerLimits { requests: 1, ..ServerLimits::default() }).await;
    let mut slow = connect(&server, b"http/1.1").await;
    slow.write_all(b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nabc").await.unwrap();
    let visitor = Visitor::new(&server, None);
    let reported = async {
        loop {
            let answer = visitor.send("GET", "/version", &[], Vec::new()).await.unwrap();
            if answer.status() == 429 {
                return answer.headers()["retry-after"].clone();
            }
        }
    };
    assert_eq!(tokio::time::timeout(TEST_TIMEOUT, reported).await.unwrap(), "1");
    assert_eq!(visitor.get("/readyz", &[]).await.0, 200, "probes are not limited");
    slow.write_all(b"d").await.unwrap();
    let mut head = [0; 12];
    slow.read_exact(&mut head).await.unwrap();
    assert_eq!(&head, b"HTTP/1.1 200");
    assert_eq!(visitor.get("/version", &[]).await.0, 200);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_connection_makes_room_at_the_limit() {
    let server = start(ServerLimits { connections: 1, ..patient() }).await;
    let mut first = connect(&server, b"http/1.1").await;
    assert_eq!(Visitor::new(&server, None).get("/readyz", &[]).await.0, 200);
    rest(&mut first).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn shutdown_closes_all_connections() {
    let server = start(ServerLimits { grace: Duration::from_millis(500), ..patient() }).await;
    let port = server.port();
    let visitor = Visitor::new(&server, None);
    let watch = format!("{DECISIONS}/namespaces/a/decisions/hpa.web?watch=true");
    let followed = visitor.send("GET", &watch, &[], Vec::new()).await.unwrap().into_body();
    // One that is within a request, and one that does nothing.
    let mut slow = connect(&server, b"http/1.1").await;
    slow.write_all(b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc").await.unwrap();
    let _idle = connect(&server, b"h2").await;
    tokio::time::timeout(TEST_TIMEOUT, server.stop()).await.unwrap();
    assert!(!followed.collect().await.unwrap().to_bytes().is_empty());
    rest(&mut slow).await;
    assert!(TcpStream::connect(("127.0.0.1", port)).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn heads_of_megabytes_end_one_connection_only() {
    let server = start(ServerLimits::default()).await;
    let visitor = Visitor::new(&server, None);
    let large = "x".repeat(1_200_000);
    for head in [
        format!("GET {NODES} HTTP/1.1\r\nHost: x\r\nX: {large}\r\n\r\n"),
        format!("GET {NODES}?labelSelector={large} HTTP/1.1\r\nHost: x\r\n\r\n"),
        format!("GET {NODES} HTTP/1.1\r\n{}", "a: b\r\n".repeat(200_000)),
        "a".repeat(1_200_000),
    ] {
        let mut stream = connect(&server, b"http/1.1").await;
        let _ = stream.write_all(head.as_bytes()).await;
        let received = rest(&mut stream).await;
        assert!(received.is_empty() || received.starts_with("HTTP/1.1 4"), "{received}");
    }
    // In HTTP/2 as well; the connection may end, others do not notice.
    for headers in [vec![("x", large.as_str())], vec![("a", "b"); 100_000]] {
        if let Ok(answer) = visitor.send("GET", NODES, &headers, Vec::new()).await {
            assert!(answer.status().is_client_error(), "{}", answer.status());
        }
    }
    assert_eq!(Visitor::new(&server, None).get(NODES, &[]).await.0, 200);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_queries_get_a_status() {
    let server = start(ServerLimits::default()).await;
    let visitor = Visitor::new(&server, None);
    let queries = [
        "labelSelector=%ff%fe",
        "labelSelector=%zz&fieldSelector=%",
        "labelSelector=(((((((((",
        "labelSelector=a%20in%20(((",
        "fieldSelector=%5C",
        "fieldSelector=metadata.name%3D%5Cx",
        "limit=99999999999999999999999",
        "limit=-0x1",
        "timeoutSeconds=1e9",
        "timeout=%00",
        "timeout=9999999999999999999h",
        "timeout=-9223372036854775808ns",
        "timeout=.",
        "pretty=%F0%9F%92%A9",
        "&&&===;;;",
        "=",
        "watch=%00&resourceVersionMatch=%00&sendInitialEvents",
        "metricLabelSelector=%0a%0d%00",
        "includeObject=%22",
    ];
    let paths = [
        NODES,
        "/apis/metrics.k8s.io/v1/namespaces/%2A/pods",
        "/apis/metrics.k8s.io/v1beta1/namespaces//pods",
        "/apis/custom.metrics.k8s.io/v1beta1/namespaces/default/pods/*/qps",
        "/apis/custom.metrics.k8s.io/v1beta2/nodes/%00/%0a",
        "/apis/custom.metrics.k8s.io/v1beta2/watch/a/b",
        "/apis/external.metrics.k8s.io/v1beta1/namespaces/default/%E2%80%A8",
    ];
    let accepts =
        ["*/*", "application/vnd.kubernetes.protobuf", "application/yaml", ";;;,,,", "a/b;q=NaN,*/*;q=inf"];
    for path in paths {
        for (index, query) in queries.iter().enumerate() {
            let accept = [("accept", accepts[index % accepts.len()])];
            let answer = visitor.send("GET", &format!("{path}?{query}"), &accept, Vec::new()).await.unwrap();
            assert!(answer.status().as_u16() < 500, "{path}?{query}: {}", answer.status());
        }
    }
    let long = format!("{NODES}?labelSelector={}", "a%20in%20(b),".repeat(4000));
    assert_eq!(visitor.get(&long, &[]).await.0, 400);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn draining_server_serves_and_is_not_ready() {
    let server = start(patient()).await;
    let (visitor, check) = (Visitor::new(&server, None), server.shutdown_check());
    assert_eq!(visitor.get("/readyz", &[]).await.0, 200);
    assert!(check().is_ok());
    server.drain();
    assert_eq!(visitor.get("/readyz", &[]).await.0, 500);
    assert_eq!(visitor.get("/readyz/shutdown", &[]).await.0, 500);
    assert!(check().is_err());
    assert_eq!(visitor.get("/healthz", &[]).await.0, 200);
    assert_eq!(visitor.get(NODES, &[]).await.0, 200);
    server.stop().await;
}
