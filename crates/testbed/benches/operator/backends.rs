//! 5,000 ScaledObjects over 20 backends of six protocols on localkube: connections and questions of each backend, and what a backend
//! that hangs does to the objects of the others.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::backend_servers::{Backend, BackendProtocol};
use crate::env::OperatorBenchEnv;
use crate::shared::table;
use crate::shared::usage::{ProcessMeasurement, measure};
use crate::subject;
use crate::workloads::{OperatorWorkloads, Queries};
use crate::{INTERVAL, WINDOW};

const OBJECTS: usize = 5_000;
const OBJECTS_PER_BACKEND: usize = 250;
/// Different questions to a backend where objects with the same question share a request; elsewhere every object has its own.
const SHARED_QUESTIONS: usize = 50;
/// Thousandths of a core, and MiB.
const CPU: f64 = 200.0;
const MEMORY: f64 = 150.0;
/// Requests per interval for each different question, where they are shared. A window may begin just before a request.
const REQUESTS_PER_QUESTION: f64 = 1.1;
/// Seconds by which a poll may be late while another backend hangs.
const LATE: f64 = 1.0;
/// How long a backend hangs.
const HANGING: Duration = Duration::from_secs(90);
/// How long it may take until all questions are asked.
const ASKED_TIMEOUT: Duration = Duration::from_mins(10);

/// The backends, by protocol.
const BACKENDS: [(BackendProtocol, usize); 6] = [
    (BackendProtocol::Prometheus, 6),
    (BackendProtocol::MetricsApi, 5),
    (BackendProtocol::Rabbitmq, 4),
    (BackendProtocol::Elasticsearch, 2),
    (BackendProtocol::Redis, 2),
    (BackendProtocol::Beanstalkd, 1),
];
/// The first backend of each of these hangs for a while.
const HANGING_PROTOCOLS: [BackendProtocol; 2] = [BackendProtocol::Prometheus, BackendProtocol::Redis];

pub(crate) async fn run() -> bool {
    let mut backends = Vec::new();
    for (protocol, count) in BACKENDS {
        for _ in 0..count {
            backends.push(Backend::start(protocol).await);
        }
    }
    assert_eq!(OBJECTS, OBJECTS_PER_BACKEND * backends.len());
    let backends: Arc<[Backend]> = backends.into();
    let env = OperatorBenchEnv::start().await;
    let asked = Arc::clone(&backends);
    let workloads = OperatorWorkloads {
        trigger: Arc::new(move |number: usize| {
            asked[number % asked.len()].trigger(&question(&asked, number))
        }),
        ..OperatorWorkloads::new("backends", OBJECTS, "", Queries::Distinct)
    };
    workloads.make(&env.client).await;
    let mut operator = subject::start(&env.kubeconfig, workloads.namespace).await;
    until_asked(&backends, None).await;
    tokio::time::sleep(INTERVAL * 2).await;

    backends.iter().for_each(Backend::clear);
    let [used] = measure([operator.pid()], WINDOW).await;
    operator.check();
    println!(
        "\n{OBJECTS} ScaledObjects over {} backends on localkube, polled every 30 s, all active; our operator alone",
        backends.len()
    );
    let mut good = show(&backends, &used);
    for protocol in HANGING_PROTOCOLS {
        let hanging = backends.iter().position(|backend| backend.protocol == protocol).unwrap();
        good &= hang(&backends, hanging).await;
        operator.check();
    }
    for (protocol, _) in BACKENDS {
        let of_protocol = backends.iter().filter(|backend| backend.protocol == protocol);
        let most = of_protocol.map(|backend| backend.counts().max_connections).max().unwrap_or_default();
        let limit = protocol.connection_limit() as f64;
        good &= table::at_most(&format!("{protocol:?}: connections to one backend"), most as f64, 0, limit);
    }
    good
}

/// How many different questions the objects of a backend have.
fn questions(protocol: BackendProtocol) -> usize {
    if protocol.shares_questions() { SHARED_QUESTIONS } else { OBJECTS_PER_BACKEND }
}

/// The question of an object.
fn question(backends: &[Backend], number: usize) -> String {
    let (backend, rank) = (&backends[number % backends.len()], number / backends.len());
    format!("queue-{}", rank % questions(backend.protocol))
}

/// Waits until every question was asked, since a time if one is given.
async fn until_asked(backends: &[Backend], since: Option<Instant>) {
    let begun = Instant::now();
    for backend in backends {
        loop {
            let counts = backend.counts();
            let found = since.map_or_else(|| counts.distinct(), |since| counts.distinct_since(since));
            let expected = questions(backend.protocol);
            if found >= expected {
                break;
            }
            let protocol = backend.protocol;
            assert!(
                begun.elapsed() < ASKED_TIMEOUT,
                "{protocol:?}: {found} of {expected} questions were asked"
            );
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }
}

/// Whether limits are kept.
fn show(backends: &[Backend], used: &ProcessMeasurement) -> bool {
    let mut good = table::at_most("thousandths of a core", used.millicores(), 1, CPU);
    good &= table::at_most("resident memory, MiB", table::mebibytes(used.resident), 1, MEMORY);
    table::row("… at most since the start, MiB", table::mebibytes(used.peak), 1);
    let intervals = used.took.as_secs_f64() / INTERVAL.as_secs_f64();
    for (protocol, count) in BACKENDS {
        let of_protocol = backends.iter().filter(|backend| backend.protocol == protocol);
        let requests: u64 = of_protocol.map(|backend| backend.counts().questions).sum();
        let distinct = count * questions(protocol);
        let ratio = requests as f64 / intervals / distinct as f64;
        let what = format!("{protocol:?}: requests per question and interval");
        if protocol.shares_questions() {
            good &= table::at_most(&what, ratio, 2, REQUESTS_PER_QUESTION);
        } else {
            table::row(&what, ratio, 2);
        }
    }
    table::row("latest poll, seconds", latest(backends, None), 2);
    good
}

/// Lets one backend hang; whether the objects of all others are polled in time.
async fn hang(backends: &[Backend], hanging: usize) -> bool {
    let backend = &backends[hanging];
    backends.iter().for_each(Backend::clear);
    backend.hang(true);
    tokio::time::sleep(HANGING).await;
    let what = format!("while {:?} hangs: latest poll of others, s", backend.protocol);
    let good = table::at_most(&what, latest(backends, Some(hanging)), 2, LATE);
    backend.hang(false);
    let resumed = Instant::now();
    until_asked(&backends[hanging..=hanging], Some(resumed)).await;
    table::row("… all of its objects are polled again after, s", resumed.elapsed().as_secs_f64(), 1);
    // Until all others are polled as before.
    tokio::time::sleep(INTERVAL).await;
    good
}

/// By how many seconds a poll was late at most, without those of one backend.
fn latest(backends: &[Backend], without: Option<usize>) -> f64 {
    let others = backends.iter().enumerate().filter(|(place, _)| Some(*place) != without);
    others.map(|(_, backend)| backend.counts().late()).max().unwrap_or_default().as_secs_f64()
}
