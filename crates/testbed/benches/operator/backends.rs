//! 5,000 ScaledObjects over 20 backends of six protocols on localkube: connections and queries of each backend, and the effect of a backend
//! that hangs on the objects of the others.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::backend_servers::{Backend, BackendProtocol};
use crate::env::OperatorBenchEnv;
use crate::operator_process;
use crate::shared::table;
use crate::shared::usage::{ProcessMeasurement, measure};
use crate::workloads::{OperatorWorkloads, Queries};
use crate::{MEASUREMENT_WINDOW, POLLING_INTERVAL};

const OBJECTS: usize = 5_000;
const OBJECTS_PER_BACKEND: usize = 250;
/// The number of distinct queries to a backend whose protocol shares equal queries. With other protocols every object has its own query.
const SHARED_QUERIES: usize = 50;
const MAX_MILLICORES: f64 = 200.0;
const MAX_MEMORY_MIB: f64 = 150.0;
/// The maximum number of requests per interval for each distinct query that is shared. It is above one because a window may begin just
/// before a request.
const MAX_REQUESTS_PER_QUERY: f64 = 1.1;
/// By how many seconds a poll may be late while another backend hangs.
const MAX_POLL_DELAY_SECONDS: f64 = 1.0;
/// How long a backend hangs.
const HANG_DURATION: Duration = Duration::from_secs(90);
/// How long it may take until every query was sent once.
const FIRST_QUERIES_TIMEOUT: Duration = Duration::from_mins(10);

/// The number of backends of each protocol.
const BACKENDS: [(BackendProtocol, usize); 6] = [
    (BackendProtocol::Prometheus, 6),
    (BackendProtocol::MetricsApi, 5),
    (BackendProtocol::Rabbitmq, 4),
    (BackendProtocol::Elasticsearch, 2),
    (BackendProtocol::Redis, 2),
    (BackendProtocol::Beanstalkd, 1),
];
/// The protocols whose first backend hangs for [`HANG_DURATION`].
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
    let shared = Arc::clone(&backends);
    let workloads = OperatorWorkloads {
        trigger: Arc::new(move |number: usize| {
            shared[number % shared.len()].trigger(&query_of(&shared, number))
        }),
        ..OperatorWorkloads::new("backends", OBJECTS, "", Queries::Distinct)
    };
    workloads.create(&env.client).await;
    let mut operator = operator_process::start(&env.kubeconfig, workloads.namespace).await;
    until_queried(&backends, None).await;
    tokio::time::sleep(POLLING_INTERVAL * 2).await;

    backends.iter().for_each(Backend::clear);
    let [used] = measure([operator.pid()], MEASUREMENT_WINDOW).await;
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

/// The number of distinct queries of a backend's objects.
fn distinct_queries(protocol: BackendProtocol) -> usize {
    if protocol.shares_queries() { SHARED_QUERIES } else { OBJECTS_PER_BACKEND }
}

/// The query of an object.
fn query_of(backends: &[Backend], number: usize) -> String {
    let (backend, rank) = (&backends[number % backends.len()], number / backends.len());
    format!("queue-{}", rank % distinct_queries(backend.protocol))
}

/// Waits until every query was sent, since a time if one is given.
async fn until_queried(backends: &[Backend], since: Option<Instant>) {
    let begun = Instant::now();
    for backend in backends {
        loop {
            let counts = backend.counts();
            let found = since.map_or_else(|| counts.distinct(), |since| counts.distinct_since(since));
            let expected = distinct_queries(backend.protocol);
            if found >= expected {
                break;
            }
            let protocol = backend.protocol;
            assert!(
                begun.elapsed() < FIRST_QUERIES_TIMEOUT,
                "{protocol:?}: {found} of {expected} queries were sent"
            );
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }
}

/// Prints the measurement, and returns whether all limits are kept.
fn show(backends: &[Backend], used: &ProcessMeasurement) -> bool {
    let mut good = table::at_most("thousandths of a core", used.millicores(), 1, MAX_MILLICORES);
    good &= table::at_most("resident memory, MiB", table::mebibytes(used.resident), 1, MAX_MEMORY_MIB);
    table::row("… at most since the start, MiB", table::mebibytes(used.peak), 1);
    let intervals = used.took.as_secs_f64() / POLLING_INTERVAL.as_secs_f64();
    for (protocol, count) in BACKENDS {
        let of_protocol = backends.iter().filter(|backend| backend.protocol == protocol);
        let requests: u64 = of_protocol.map(|backend| backend.counts().requests).sum();
        let distinct = count * distinct_queries(protocol);
        let ratio = requests as f64 / intervals / distinct as f64;
        let what = format!("{protocol:?}: requests per query and interval");
        if protocol.shares_queries() {
            good &= table::at_most(&what, ratio, 2, MAX_REQUESTS_PER_QUERY);
        } else {
            table::row(&what, ratio, 2);
        }
    }
    table::row("latest poll, seconds", latest(backends, None), 2);
    good
}

/// Lets one backend hang, and returns whether the objects of all others are polled in time.
async fn hang(backends: &[Backend], hanging: usize) -> bool {
    let backend = &backends[hanging];
    backends.iter().for_each(Backend::clear);
    backend.hang(true);
    tokio::time::sleep(HANG_DURATION).await;
    let what = format!("while {:?} hangs: latest poll of others, s", backend.protocol);
    let good = table::at_most(&what, latest(backends, Some(hanging)), 2, MAX_POLL_DELAY_SECONDS);
    backend.hang(false);
    let resumed = Instant::now();
    until_queried(&backends[hanging..=hanging], Some(resumed)).await;
    table::row("… all of its objects are polled again after, s", resumed.elapsed().as_secs_f64(), 1);
    // After one interval, all objects are polled at their usual times again.
    tokio::time::sleep(POLLING_INTERVAL).await;
    good
}

/// By how many seconds a poll was late at most; polls of the backend `without` do not count.
fn latest(backends: &[Backend], without: Option<usize>) -> f64 {
    let others = backends.iter().enumerate().filter(|(index, _)| Some(*index) != without);
    others.map(|(_, backend)| backend.counts().late()).max().unwrap_or_default().as_secs_f64()
}
