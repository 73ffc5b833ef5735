#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use api::provider::Compat;

use super::fake::{Fake, FakeAction, TestCa, answer, chunked};
use super::*;
use crate::http::Secret;
use crate::kubelet::trust;

const METRICS: &[u8] = b"node_cpu_usage_seconds_total 1\n";

fn trusting(authority: trust::TrustedAuthority, compat: Compat) -> trust::TrustSettings {
    let token = Some(trust::BearerToken::Inline(Secret::new("opensesame")));
    trust::TrustSettings { authority, certificate: None, token, compat }
}

fn known(authority: &TestCa) -> trust::TrustedAuthority {
    trust::TrustedAuthority::Ca(trust::Pem::Inline(authority.pem.clone().into_bytes()))
}

fn client_with(trust: trust::TrustSettings, settings: KubeletClientSettings) -> KubeletClient {
    KubeletClient::new(settings, KubeletTrust::new(trust).unwrap(), crate::Clock::system())
}

fn client(authority: &TestCa) -> KubeletClient {
    waiting(authority, Duration::from_secs(10))
}

fn waiting(authority: &TestCa, timeout: Duration) -> KubeletClient {
    let settings = KubeletClientSettings { timeout, body_limit: 1 << 20, ..KubeletClientSettings::default() };
    client_with(trusting(known(authority), Compat::Better), settings)
}

fn at(port: u16) -> KubeletAddress {
    KubeletAddress { host: "127.0.0.1".into(), port, path: "/metrics/resource".into(), plain: false }
}

/// Requests a fake kubelet once; returns the error.
async fn failure(
    script: impl Fn(fake::ReceivedRequest<'_>) -> FakeAction + Send + Sync + 'static,
) -> ScrapeError {
    failure_after(Duration::from_secs(10), script).await
}

async fn failure_after(
    timeout: Duration,
    script: impl Fn(fake::ReceivedRequest<'_>) -> FakeAction + Send + Sync + 'static,
) -> ScrapeError {
    let authority = TestCa::new();
    let fake = Fake::new(authority.certificate(&["127.0.0.1"], "a"), script).await;
    waiting(&authority, timeout)
        .get("a", &at(fake.port), &mut KubeletConnection::default())
        .await
        .unwrap_err()
}

fn other(failure: &ScrapeError) -> &str {
    match &failure.cause {
        ScrapeErrorCause::Other(words) => words,
        cause => panic!("{cause:?}"),
    }
}

#[tokio::test]
async fn requests_reuse_one_connection() {
    let authority = TestCa::new();
    let long = METRICS.repeat(3000);
    let response = chunked(&long);
    let fake = Fake::new(authority.certificate(&["127.0.0.1"], "a"), move |requested| {
        assert!(requested.head.starts_with("get /metrics/resource http/1.1\r\n"), "{}", requested.head);
        assert!(requested.head.contains("\r\nauthorization: bearer opensesame\r\n"), "{}", requested.head);
        assert!(requested.head.contains("\r\nhost: 127.0.0.1:"), "{}", requested.head);
        assert!(!requested.head.contains("accept-encoding"), "{}", requested.head);
        FakeAction::Respond(if requested.number == 1 { answer("200 OK", METRICS) } else { response.clone() })
    })
    .await;
    let (client, mut peer) = (client(&authority), KubeletConnection::default());
    let before = Timestamp::now();
    let answer = client.get("a", &at(fake.port), &mut peer).await.unwrap();
    assert_eq!(answer.body.bytes(), METRICS);
    assert!(before <= answer.sent && answer.sent <= Timestamp::now());
    for _ in 0..5 {
        let answer = client.get("a", &at(fake.port), &mut peer).await.unwrap();
        assert_eq!(answer.body.bytes(), long);
    }
    assert_eq!((fake.connections(), fake.requests()), (1, 6));
}

#[tokio::test]
async fn plain_http_sends_no_credentials() {
    let authority = TestCa::new();
    let fake = Fake::start(0, None, Arc::default(), |requested| {
        assert!(!requested.head.contains("authorization"), "{}", requested.head);
        FakeAction::Respond(answer("200 OK", METRICS))
    })
    .await;
    let target = KubeletAddress { plain: true, ..at(fake.port) };
    let answer = client(&authority).get("a", &target, &mut KubeletConnection::default()).await.unwrap();
    assert_eq!(answer.body.bytes(), METRICS);
}

#[tokio::test]
async fn closed_idle_connections_are_replaced() {
    let authority = TestCa::new();
    let tls = authority.certificate(&["127.0.0.1"], "a");
    let (client, mut peer) = (client(&authority), KubeletConnection::default());
    let begun = Instant::now();
    // The server closes the connection after each request.
    let fake = Fake::new(Arc::clone(&tls), |_| FakeAction::RespondAndClose(answer("200 OK", METRICS))).await;
    for _ in 0..5 {
        client.get("a", &at(fake.port), &mut peer).await.unwrap();
    }
    assert_eq!((fake.connections(), fake.requests()), (5, 5));
    // The kubelet restarts, so connections are reset.
    let port = fake.port;
    drop(fake);
    let fake =
        Fake::start(port, Some(tls), Arc::default(), |_| FakeAction::Respond(answer("200 OK", METRICS)))
            .await;
    client.get("a", &at(port), &mut peer).await.unwrap();
    client.get("a", &at(port), &mut peer).await.unwrap();
    assert_eq!(fake.connections(), 1);
    // The server closes the connection while the next request is sent.
    drop(fake);
    let hangs_up = Arc::new(AtomicBool::new(false));
    let own = Arc::clone(&hangs_up);
    let fake = Fake::new(authority.certificate(&["127.0.0.1"], "a"), move |_| {
        if own.swap(false, Ordering::SeqCst) {
            FakeAction::HangUp
        } else {
            FakeAction::Respond(answer("200 OK", METRICS))
        }
    })
    .await;
    client.get("a", &at(fake.port), &mut peer).await.unwrap();
    hangs_up.store(true, Ordering::SeqCst);
    client.get("a", &at(fake.port), &mut peer).await.unwrap();
    assert_eq!((fake.connections(), fake.requests()), (2, 3));
    assert!(begun.elapsed() < Duration::from_secs(8), "closed connections are not waited for");
}

#[tokio::test]
async fn closing_server_gets_one_retry() {
    let authority = TestCa::new();
    let fake = Fake::new(authority.certificate(&["127.0.0.1"], "a"), |_| FakeAction::HangUp).await;
    let failed =
        client(&authority).get("a", &at(fake.port), &mut KubeletConnection::default()).await.unwrap_err();
    assert!(other(&failed).contains("before its response was complete"), "{failed}");
    assert_eq!(fake.requests(), 1);
}

#[tokio::test]
async fn error_status_includes_the_body() {
    let cases = [
        ("401 Unauthorized", ScrapeErrorCause::NotAuthenticated),
        ("403 Forbidden", ScrapeErrorCause::NotAuthorized),
        ("500 Internal Server Error", ScrapeErrorCause::Status(500)),
        ("301 Moved Permanently", ScrapeErrorCause::Status(301)),
        ("204 No Content", ScrapeErrorCause::Status(204)),
    ];
    for (status, cause) in cases {
        let response = answer(status, b"");
        let failed = failure(move |_| FakeAction::Respond(response.clone())).await;
        assert_eq!(failed, ScrapeError { cause, error: format!("request failed, status: \"{status}\"") });
    }
    let words = "Forbidden (user=metrics, verb=get, resource=nodes, subresource(s)=[metrics])\n<html>";
    let failed = failure(move |_| FakeAction::Respond(answer("403 Forbidden", words.as_bytes()))).await;
    assert_eq!(
        failed.error,
        "request failed, status: \"403 Forbidden\": \
         Forbidden (user=metrics, verb=get, resource=nodes, subresource(s)=[metrics])"
    );
    let endless = |_: fake::ReceivedRequest<'_>| {
        FakeAction::Endless(b"HTTP/1.1 500 Oh\r\n\r\n".to_vec(), vec![b'x'; 4096])
    };
    assert_eq!(failure(endless).await.cause, ScrapeErrorCause::Status(500));
}

#[tokio::test]
async fn refused_and_unresolved_addresses_are_classified() {
    let authority = TestCa::new();
    let fake = Fake::new(authority.certificate(&["127.0.0.1"], "a"), |_| FakeAction::Silence).await;
    let port = fake.port;
    drop(fake);
    let client = waiting(&authority, Duration::from_millis(400));
    while tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_ok() {
        tokio::task::yield_now().await;
    }
    let failed = client.get("a", &at(port), &mut KubeletConnection::default()).await.unwrap_err();
    assert_eq!(failed.cause, ScrapeErrorCause::Refused);
    let target = KubeletAddress { host: "no-such-node.invalid".into(), ..at(port) };
    let failed = client.get("a", &target, &mut KubeletConnection::default()).await.unwrap_err();
    // Without a name server the lookup may exceed the timeout.
    let slow =
        ScrapeErrorCause::TimedOut { stage: RequestStage::Connecting, after: Duration::from_millis(400) };
    let unknown = ScrapeErrorCause::UnknownName { name: "no-such-node.invalid".into() };
    assert!(failed.cause == unknown || failed.cause == slow, "{failed:?}");
}

#[tokio::test]
async fn slow_responses_time_out_with_their_stage() {
    let after = Duration::from_millis(800);
    let silent = failure_after(after, |_| FakeAction::Silence).await;
    assert_eq!(silent.cause, ScrapeErrorCause::TimedOut { stage: RequestStage::Waiting, after });
    let slow = Duration::from_millis(200);
    let head = failure_after(after, move |_| FakeAction::Dribble(answer("200 OK", METRICS), slow)).await;
    assert_eq!(head.cause, ScrapeErrorCause::TimedOut { stage: RequestStage::Waiting, after });
    let body = failure_after(after, |_| {
        let mut bytes = answer("200 OK", &METRICS.repeat(100));
        bytes.truncate(200);
        FakeAction::Respond(bytes)
    })
    .await;
    assert_eq!(body.cause, ScrapeErrorCause::TimedOut { stage: RequestStage::Reading, after });
    // The server accepts and never starts the handshake.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let mute = tokio::spawn(async move {
        let _open = listener.accept().await;
        std::future::pending::<()>().await;
    });
    let failed = waiting(&TestCa::new(), after)
        .get("a", &at(port), &mut KubeletConnection::default())
        .await
        .unwrap_err();
    assert_eq!(failed.cause, ScrapeErrorCause::TimedOut { stage: RequestStage::Handshake, after });
    mute.abort();
}

#[tokio::test]
async fn oversized_body_is_not_read_to_its_end() {
    let limit = 1 << 20;
    let endless = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    let chunk = [b"4000\r\n".to_vec(), vec![b'x'; 0x4000], b"\r\n".to_vec()].concat();
    let failed = failure(move |_| FakeAction::Endless(endless.clone(), chunk.clone())).await;
    assert_eq!(failed.cause, ScrapeErrorCause::TooLarge { limit });
    assert_eq!(failed.error, "response is longer than 1 MiB");
    let until_closed = b"HTTP/1.1 200 OK\r\n\r\n".to_vec();
    let failed = failure(move |_| FakeAction::Endless(until_closed.clone(), vec![b'x'; 8192])).await;
    assert_eq!(failed.cause, ScrapeErrorCause::TooLarge { limit });
    let reported = b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n".to_vec();
    let failed = failure(move |_| FakeAction::Respond(reported.clone())).await;
    assert_eq!(failed.cause, ScrapeErrorCause::TooLarge { limit });
    let heads = b"HTTP/1.1 200 OK\r\n".to_vec();
    let failed =
        failure(move |_| FakeAction::Endless(heads.clone(), b"x-more: and more\r\n".repeat(100))).await;
    assert!(other(&failed).starts_with("the response is not HTTP"), "{failed}");
}

#[tokio::test]
async fn mismatched_lengths_are_errors() {
    let short = failure(|_| FakeAction::RespondAndClose(answer("200 OK", METRICS)[..80].to_vec())).await;
    assert!(other(&short).contains("before its response was complete"), "{short}");
    let garbage = failure(|_| FakeAction::RespondAndClose(b"\x00\xff\x13garbage\r\n\r\n".to_vec())).await;
    assert!(other(&garbage).starts_with("the response is not HTTP"), "{garbage}");
    let chunks = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n".to_vec();
    let failed = failure(move |_| FakeAction::Respond(chunks.clone())).await;
    assert!(other(&failed).contains("chunk"), "{failed}");
    // Bytes beyond the announced length are not taken for the next response.
    let authority = TestCa::new();
    let fake = Fake::new(authority.certificate(&["127.0.0.1"], "a"), |_| {
        let bytes = [answer("200 OK", METRICS), answer("200 OK", b"somebody else's")].concat();
        FakeAction::Respond(bytes)
    })
    .await;
    let (client, mut peer) = (client(&authority), KubeletConnection::default());
    for _ in 0..3 {
        let answer = client.get("a", &at(fake.port), &mut peer).await.unwrap();
        assert_eq!(answer.body.bytes(), METRICS);
    }
}

#[tokio::test]
async fn concurrent_long_bodies_respect_the_memory_budget() {
    let authority = TestCa::new();
    let fake = Fake::new(authority.certificate(&["127.0.0.1"], "a"), |_| {
        FakeAction::Respond(chunked(&vec![b'x'; 900_000]))
    })
    .await;
    // Memory for two bodies.
    let settings = KubeletClientSettings { memory: 2 << 20, ..KubeletClientSettings::default() };
    let client = Arc::new(client_with(trusting(known(&authority), Compat::Better), settings));
    let mut all = tokio::task::JoinSet::new();
    for _ in 0..16 {
        let (client, target) = (Arc::clone(&client), at(fake.port));
        all.spawn(async move {
            client
                .get("a", &target, &mut KubeletConnection::default())
                .await
                .map(|answer| answer.body.bytes().len())
        });
    }
    while let Some(done) = all.join_next().await {
        assert_eq!(done.unwrap().unwrap(), 900_000);
    }
}

#[tokio::test]
async fn replaced_token_is_reloaded_on_401() {
    let authority = TestCa::new();
    let fake = Fake::new(authority.certificate(&["127.0.0.1"], "a"), |requested| {
        let good = requested.head.contains("bearer new\r\n");
        FakeAction::Respond(if good {
            answer("200 OK", METRICS)
        } else {
            answer("401 Unauthorized", b"Unauthorized")
        })
    })
    .await;
    let folder = std::env::temp_dir().join(format!("plimsoll-token-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("token");
    std::fs::write(&file, "old\n").unwrap();
    let trust = trust::TrustSettings {
        token: Some(trust::BearerToken::File(file.clone())),
        ..trusting(known(&authority), Compat::Better)
    };
    let client = client_with(trust, KubeletClientSettings::default());
    let mut peer = KubeletConnection::default();
    let failed = client.get("a", &at(fake.port), &mut peer).await.unwrap_err();
    assert_eq!(failed.cause, ScrapeErrorCause::NotAuthenticated);
    let refused = fake.requests();
    std::fs::write(&file, "new\n").unwrap();
    // Files are read at most once per second.
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(2)).await;
    tokio::time::resume();
    client.get("a", &at(fake.port), &mut peer).await.unwrap();
    assert_eq!(fake.requests(), refused + 2, "refused once more, then with the new one");
    assert_eq!(fake.connections(), 1);
    assert!(!format!("{client:?}").contains("new\""));
    std::fs::remove_dir_all(folder).unwrap();
}

#[tokio::test]
async fn all_tls_versions_and_interim_responses_work() {
    let authority = TestCa::new();
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let fake = Fake::new(authority.with_tls_version(version, &["127.0.0.1"]), |_| {
            let interim = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n";
            FakeAction::Respond([&interim[..], &chunked(&METRICS.repeat(3000))].concat())
        })
        .await;
        let (client, mut peer) = (client(&authority), KubeletConnection::default());
        for _ in 0..3 {
            let answer = client.get("a", &at(fake.port), &mut peer).await.unwrap();
            assert_eq!(answer.body.bytes(), METRICS.repeat(3000));
        }
        assert_eq!(fake.connections(), 1);
    }
    let other_language = b"HTTP/1.1 101 Switching Protocols\r\n\r\n".to_vec();
    let failed = failure(move |_| FakeAction::Respond(other_language.clone())).await;
    assert!(other(&failed).starts_with("the response is not HTTP"), "{failed}");
}

#[tokio::test]
async fn connections_with_close_are_not_reused() {
    let authority = TestCa::new();
    let fake = Fake::new(authority.certificate(&["127.0.0.1"], "a"), |_| {
        FakeAction::Respond(
            b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\na 1\n".to_vec(),
        )
    })
    .await;
    let (client, mut peer) = (client(&authority), KubeletConnection::default());
    for _ in 0..3 {
        client.get("a", &at(fake.port), &mut peer).await.unwrap();
        assert!(!peer.is_connected());
    }
    assert_eq!((fake.connections(), fake.requests()), (3, 3));
}

#[tokio::test]
async fn missing_error_body_does_not_hide_the_status() {
    let failed = failure_after(Duration::from_millis(400), |_| {
        FakeAction::Respond(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 9\r\n\r\nno".to_vec())
    })
    .await;
    assert_eq!(failed.cause, ScrapeErrorCause::NotAuthorized);
}

#[tokio::test]
async fn data_before_a_request_closes_the_connection() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let ours = tokio::net::TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (theirs, _) = listener.accept().await.unwrap();
    let mut stream = KubeletStream::plain(ours);
    assert!(stream.is_idle());
    theirs.writable().await.unwrap();
    theirs.try_write(&answer("200 OK", b"somebody else's")).unwrap();
    let heard = async {
        while stream.is_idle() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), heard).await.unwrap();
}
