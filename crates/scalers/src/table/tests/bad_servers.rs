//! Every scaler type against servers that refuse, hang, close, send garbage or endless data: it must fail in time, use little memory, and
//! never yield a number.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::samples::{Protocol, contains_secret, samples};
use crate::table;
use crate::test_support::{FakeCluster, backends, backends_through_proxy};

/// Upper limit for the duration of a read; the slowest scaler gives up after a third of it.
const READ_LIMIT: Duration = Duration::from_mins(1);
/// Maximum number of bytes read from an endless response, including buffers.
const MAX_TAKEN_BYTES: u64 = 32 << 20;

/// How a server behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BadServerMode {
    /// Does not listen.
    Refuse,
    /// Accepts connections and never responds.
    Hang,
    /// Closes the connection at once.
    CloseAtOnce,
    /// Closes in the middle of a response.
    CloseMidway,
    /// Sends random bytes.
    Garbage,
    /// Sends bytes that look like a TLS handshake.
    TlsGarbage,
    /// Sends an endless body.
    Endless,
    /// Sends endless headers.
    EndlessHeaders,
    /// Sends endless zeros.
    EndlessZeros,
    /// Sends one byte at a time.
    Drip,
    /// Redirects to itself.
    Redirect,
    /// Sends an HTTP response with this status and body.
    Answer(u16, &'static str),
}

const SLOW_MODES: [BadServerMode; 6] = [
    BadServerMode::Refuse,
    BadServerMode::Hang,
    BadServerMode::Drip,
    BadServerMode::Endless,
    BadServerMode::EndlessHeaders,
    BadServerMode::EndlessZeros,
];
const BROKEN_MODES: [BadServerMode; 5] = [
    BadServerMode::CloseAtOnce,
    BadServerMode::CloseMidway,
    BadServerMode::Garbage,
    BadServerMode::TlsGarbage,
    BadServerMode::Redirect,
];

/// Bodies that a proxy or another kind of server might send.
const BODIES: [&str; 12] = [
    "",
    "{}",
    "[]",
    "null",
    "0",
    "\"\"",
    "<html><body>Sign in</body></html>",
    "{\"a\": {\"b\": null}, \"value\": null, \"data\": null, \"items\": null, \"status\": \"success\"}",
    "{\"a\": {\"b\": \"NaN\"}, \"value\": \"x\", \"data\": {}, \"hits\": {\"total\": {\"value\": \"x\"}}}",
    "{\"data\": {\"result\": {}, \"resultType\": \"vector\"}, \"items\": {}, \"result\": 7, \"rows\": 7}",
    "[[[[[[[[[[[[[[[[[[[[",
    "a_metric 5\n\u{0}\u{1}",
];

/// Responses that legitimately yield a number, and why.
const EXPECTED_NUMBERS: &[(&str, u16, &str, &str)] = &[
    ("forgejo-runner", 200, "[]", "no job waits"),
    ("forgejo-runner", 200, "null", "so it is written where no job waits"),
    ("graphite", 200, "[]", "no series: KEDA takes that for 0"),
];

/// Starts a server; returns its port and the counter of bytes sent.
async fn server(mode: BadServerMode) -> (u16, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let taken = Arc::new(AtomicU64::new(0));
    if mode == BadServerMode::Refuse {
        return (port, taken);
    }
    let counter = Arc::clone(&taken);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, mode, port, Arc::clone(&counter)));
        }
    });
    (port, taken)
}

async fn serve(mut stream: TcpStream, mode: BadServerMode, port: u16, taken: Arc<AtomicU64>) -> Option<()> {
    if mode == BadServerMode::CloseAtOnce {
        return None;
    }
    loop {
        let mut request = vec![0; 64 << 10];
        if stream.read(&mut request).await.ok()? == 0 {
            return None;
        }
        match mode {
            BadServerMode::Refuse | BadServerMode::CloseAtOnce => return None,
            BadServerMode::Hang => std::future::pending().await,
            BadServerMode::CloseMidway => {
                let text = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{\"data\": 5";
                stream.write_all(text.as_bytes()).await.ok()?;
                return None;
            }
            BadServerMode::Garbage => {
                let bytes: Vec<u8> =
                    (0..4096_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
                stream.write_all(&bytes).await.ok()?;
                return None;
            }
            BadServerMode::TlsGarbage => {
                stream.write_all(&[0x16, 3, 3, 0x40, 0, 2, 0, 0, 9, 9, 9, 9, 0xff, 0xff]).await.ok()?;
                std::future::pending::<()>().await;
            }
            BadServerMode::Endless => {
                stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n[").await.ok()?;
                flood(&mut stream, &b"1, ".repeat(20_000), &taken).await?;
            }
            BadServerMode::EndlessHeaders => {
                stream.write_all(b"HTTP/1.1 200 OK\r\n").await.ok()?;
                flood(&mut stream, &b"x-more: of the same\r\n".repeat(3_000), &taken).await?;
            }
            BadServerMode::EndlessZeros => flood(&mut stream, &vec![0; 60_000], &taken).await?,
            BadServerMode::Drip => {
                for byte in b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\nx-slow: "
                    .iter()
                    .chain(b"z".repeat(10_000).iter())
                {
                    stream.write_all(&[*byte]).await.ok()?;
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
            BadServerMode::Redirect => {
                let text = format!(
                    "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:{port}/again\r\ncontent-length: 2\r\n\r\n[]"
                );
                stream.write_all(text.as_bytes()).await.ok()?;
            }
            BadServerMode::Answer(status, body) => {
                let text = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n\r\n{body}", body.len());
                stream.write_all(text.as_bytes()).await.ok()?;
            }
        }
    }
}

/// Repeats the bytes until the client closes the connection.
async fn flood(stream: &mut TcpStream, piece: &[u8], taken: &AtomicU64) -> Option<()> {
    loop {
        stream.write_all(piece).await.ok()?;
        taken.fetch_add(piece.len() as u64, Ordering::Relaxed);
    }
}

/// Reads one scaler; returns a description if it misbehaves.
async fn judge(mode: BadServerMode, which: usize) -> Option<String> {
    let (port, taken) = server(mode).await;
    let (protocol, trigger) = samples(port).into_iter().nth(which)?;
    let what = format!("{} {mode:?}", trigger.type_);
    let is_fixed = protocol == Protocol::Fixed;
    let backends = if is_fixed { backends_through_proxy(port) } else { backends(FakeCluster::default()) };
    let scaler = match table::build(&trigger, &backends) {
        Ok(scaler) => scaler,
        Err(error) => return Some(format!("{what}: {error}")),
    };
    let begun = Instant::now();
    let name = match tokio::time::timeout(READ_LIMIT, scaler.specs()).await {
        Ok(Ok(specs)) => {
            specs.iter().find_map(|spec| spec.external.as_ref()).map(|one| one.metric.name.clone())
        }
        // Some scalers request specs from their server.
        Ok(Err(_)) => None,
        Err(_) => return Some(format!("{what}: hangs")),
    };
    let answer = tokio::time::timeout(READ_LIMIT, scaler.read(&name.unwrap_or_default())).await;
    let excused = match mode {
        BadServerMode::Answer(status, body) => EXPECTED_NUMBERS
            .iter()
            .any(|(type_, of, text, _)| (*type_, *of, *text) == (&*trigger.type_, status, body)),
        _ => false,
    };
    let taken = taken.load(Ordering::Relaxed);
    match answer {
        Err(_) => Some(format!("{what}: hangs")),
        Ok(Ok(reading)) if !excused => Some(format!("{what}: {:?}", reading.values)),
        Ok(Err(_)) if excused => Some(format!("{what} is excused, but is an error")),
        Ok(Err(error)) if error.message.len() > 2_000 => {
            Some(format!("{what}: an error of {} bytes", error.message.len()))
        }
        Ok(Err(error)) if contains_secret(&error.message) => Some(format!("{what}: a password in {error}")),
        Ok(Err(error)) if error.message.trim().is_empty() => Some(format!("{what}: an empty error")),
        Ok(Err(_)) if begun.elapsed() > READ_LIMIT => Some(format!("{what}: took {:?}", begun.elapsed())),
        Ok(Err(_)) if taken > MAX_TAKEN_BYTES => Some(format!("{what}: took {taken} bytes")),
        Ok(_) => None,
    }
}

/// Runs all matching samples in all these modes.
async fn judge_all(modes: &[BadServerMode], fits: impl Fn(Protocol) -> bool) {
    let mut wrong = Vec::new();
    for mode in modes.chunks(6) {
        let mut requested = JoinSet::new();
        for (which, (protocol, _)) in samples(1).into_iter().enumerate() {
            if fits(protocol) {
                for mode in mode {
                    requested.spawn(judge(*mode, which));
                }
            }
        }
        while let Some(reported) = requested.join_next().await {
            // Fails the test if the task panicked.
            wrong.extend(reported.unwrap());
        }
    }
    wrong.sort();
    assert_eq!(wrong, [] as [String; 0]);
}

fn over_a_network(protocol: Protocol) -> bool {
    !matches!(protocol, Protocol::Offline | Protocol::Fixed)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_and_endless_servers_time_out() {
    judge_all(&SLOW_MODES, over_a_network).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn disconnects_and_garbage_are_errors() {
    judge_all(&BROKEN_MODES, over_a_network).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_at_fixed_addresses_fail_behind_a_broken_proxy() {
    let modes = [
        BadServerMode::Refuse,
        BadServerMode::Hang,
        BadServerMode::CloseAtOnce,
        BadServerMode::CloseMidway,
        BadServerMode::Garbage,
    ];
    judge_all(&modes, |protocol| protocol == Protocol::Fixed).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn responses_without_number_are_errors_and_never_zero() {
    let modes: Vec<BadServerMode> = BODIES.iter().map(|body| BadServerMode::Answer(200, body)).collect();
    judge_all(&modes, |protocol| protocol == Protocol::Http).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn error_statuses_are_errors_with_any_body() {
    let mut modes = Vec::new();
    for status in [204, 302, 401, 403, 404, 429, 500, 503] {
        for body in [
            "",
            "{}",
            "[]",
            "0",
            "{\"a\": {\"b\": 7}, \"value\": 7, \"data\": {\"result\": [{\"value\": [1, \"7\"]}]}}",
        ] {
            modes.push(BadServerMode::Answer(status, body));
        }
    }
    judge_all(&modes, |protocol| protocol == Protocol::Http).await;
}
