//! Every scaler type that uses the network, rebuilt again and again, as after changes of its object or its Secret: neither scalers nor
//! connections are left behind, and a scaler that failed sends requests to its server again.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::samples::{Protocol, SECRET, samples};
use crate::Trigger;
use crate::table::build;
use crate::test_support::{FakeCluster, backends, read_first};

/// How often each scaler is built.
const REBUILDS: usize = 1_000;
/// One of so many is also read, because a connection takes longer than all else.
const READ_EVERY: usize = 10;
/// Connections that may stay open for the next scaler: those of the shared HTTP client.
const MAX_IDLE_CONNECTIONS: usize = 4;
/// Upper limit of each wait.
const STEP_TIMEOUT: Duration = Duration::from_mins(1);

/// Connections to a server.
#[derive(Clone, Copy, Debug, Default)]
struct ConnectionCounts {
    accepted: usize,
    open: usize,
}

/// What a server does with a connection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ServerMode {
    /// Reads and never responds.
    Silent,
    /// Closes it.
    Close,
}

/// Starts a server; returns its port and the counts of its connections.
async fn server(mode: ServerMode) -> (u16, watch::Receiver<ConnectionCounts>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (counts, seen) = watch::channel(ConnectionCounts::default());
    let counts = Arc::new(counts);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            counts.send_modify(|counts| {
                counts.accepted += 1;
                counts.open += 1;
            });
            let counts = Arc::clone(&counts);
            tokio::spawn(async move {
                let mut piece = [0; 4096];
                while mode == ServerMode::Silent && matches!(stream.read(&mut piece).await, Ok(1..)) {}
                counts.send_modify(|counts| counts.open -= 1);
            });
        }
    });
    (port, seen)
}

/// The same trigger after its password has changed.
fn with_password(trigger: &Trigger, number: usize) -> Trigger {
    let mut trigger = trigger.clone();
    for text in trigger.metadata.values_mut().chain(trigger.auth.values_mut()) {
        *text = text.replace(SECRET, &format!("{SECRET}{number}"));
    }
    trigger
}

/// Builds a scaler many times and drops it while it waits for its server, each time with another password if it has one; returns
/// what is left behind.
async fn rebuild(which: usize) -> Option<String> {
    let (port, mut seen) = server(ServerMode::Silent).await;
    let (_, trigger) = samples(port).into_iter().nth(which)?;
    let name = trigger.type_.clone();
    let backends = backends(FakeCluster::default());
    let mut dropped = Vec::new();
    for number in 0..REBUILDS {
        let scaler = match build(&with_password(&trigger, number / READ_EVERY), &backends) {
            Ok(scaler) => scaler,
            Err(error) => return Some(format!("{name}: {error}")),
        };
        dropped.push(Arc::downgrade(&scaler));
        if number % READ_EVERY == 0 {
            let before = seen.borrow().accepted;
            let connected = seen.wait_for(|counts| counts.accepted > before);
            tokio::select! {
                reading = timeout(STEP_TIMEOUT, read_first(&*scaler)) => {
                    if !matches!(reading, Ok(Err(_))) {
                        return Some(format!("{name}: {reading:?} from a server that never responds"));
                    }
                }
                _ = connected => {}
            }
        }
    }
    let alive = dropped.iter().filter(|scaler| scaler.strong_count() > 0).count();
    if alive > 0 {
        return Some(format!("{name}: {alive} scalers are left behind"));
    }
    if seen.borrow().accepted == 0 {
        return Some(format!("{name}: never connected"));
    }
    let few =
        timeout(STEP_TIMEOUT, seen.wait_for(|counts| counts.open <= MAX_IDLE_CONNECTIONS)).await.is_ok();
    drop(backends);
    let none = timeout(STEP_TIMEOUT, seen.wait_for(|counts| counts.open == 0)).await.is_ok();
    let counts = *seen.borrow();
    (!few || !none).then(|| format!("{name}: {counts:?}"))
}

/// Reads a scaler whose server closes every connection until it connects once more; returns what is wrong.
async fn check_reconnect(which: usize) -> Option<String> {
    let (port, seen) = server(ServerMode::Close).await;
    let (_, trigger) = samples(port).into_iter().nth(which)?;
    let name = trigger.type_.clone();
    let scaler = match build(&trigger, &backends(FakeCluster::default())) {
        Ok(scaler) => scaler,
        Err(error) => return Some(format!("{name}: {error}")),
    };
    if let Ok(reading) = read_first(&*scaler).await {
        return Some(format!("{name}: {:?} from a server that closes connections", reading.values));
    }
    let before = seen.borrow().accepted;
    let again = async {
        while seen.borrow().accepted <= before {
            // Backoff is shorter than a polling interval.
            tokio::time::sleep(Duration::from_millis(100)).await;
            let _ = read_first(&*scaler).await;
        }
    };
    timeout(STEP_TIMEOUT, again).await.is_err().then(|| format!("{name}: does not connect after a failure"))
}

/// Runs a check for all samples that use the network.
async fn check_all<F: Future<Output = Option<String>> + Send + 'static>(check: impl Fn(usize) -> F) {
    let mut checks = JoinSet::new();
    for (which, (protocol, _)) in samples(1).into_iter().enumerate() {
        if !matches!(protocol, Protocol::Offline | Protocol::Fixed) {
            checks.spawn(check(which));
        }
    }
    assert!(checks.len() > 30, "{} samples", checks.len());
    let mut wrong = Vec::new();
    while let Some(found) = checks.join_next().await {
        // Fails the test if the task panicked.
        wrong.extend(found.unwrap());
    }
    wrong.sort();
    assert_eq!(wrong, [] as [String; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rebuilds_leave_neither_scalers_nor_connections_behind() {
    check_all(rebuild).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scalers_connect_again_after_a_failure() {
    check_all(check_reconnect).await;
}
