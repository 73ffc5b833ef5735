//! The time of the embedded cluster: that of this machine, or a faster one.

use std::sync::atomic::{AtomicI64, Ordering};

use jiff::Timestamp;
use localkube::pace::Pacer;
use tokio::runtime::{Builder, Runtime};

/// The time of a faster cluster, in nanoseconds since 1970: for threads that do not share the cluster's runtime.
static SIMULATED_NANOSECONDS: AtomicI64 = AtomicI64::new(0);

/// The clocks of one cluster, which all show the same time.
pub(super) struct ClusterTime {
    pub(super) localkube: localkube::clock::Clock,
    pub(super) roles: cluster::Clock,
    #[allow(dead_code, reason = "held for its end")]
    pacer: Option<Pacer>,
}

/// The runtime of a cluster. The clock of a faster one is paused, and `ClusterTime::start` advances it.
pub(super) fn runtime(speed: u32) -> std::io::Result<Runtime> {
    if speed == 1 {
        // The cluster, its nodes and its clients run in one process, so it uses all cores.
        return Builder::new_multi_thread().enable_all().build();
    }
    Builder::new_current_thread().enable_all().start_paused(true).build()
}

impl ClusterTime {
    /// Starts the time, as the first thing in its runtime.
    pub(super) fn start(speed: u32) -> Self {
        let localkube = localkube::clock::Clock::system();
        if speed == 1 {
            return Self { localkube, roles: cluster::Clock::system(), pacer: None };
        }
        let publish = |now: Timestamp| {
            // This fits until the year 2262.
            let nanoseconds = i64::try_from(now.as_nanosecond()).unwrap_or(i64::MAX);
            SIMULATED_NANOSECONDS.store(nanoseconds, Ordering::Relaxed);
        };
        let pacer = Some(Pacer::start(speed, localkube, publish));
        Self { localkube, roles: cluster::Clock::new(simulated_now), pacer }
    }
}

fn simulated_now() -> Timestamp {
    let nanoseconds = SIMULATED_NANOSECONDS.load(Ordering::Relaxed);
    Timestamp::from_nanosecond(i128::from(nanoseconds)).unwrap_or(Timestamp::UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::time::Duration;

    use super::*;

    /// The only test that uses the simulated clock of the process.
    #[test]
    fn all_clocks_of_a_faster_cluster_show_the_same_time() {
        runtime(60).unwrap().block_on(async {
            let time = ClusterTime::start(60);
            let began = time.localkube.now();
            tokio::time::sleep(Duration::from_mins(1)).await;
            let now = time.localkube.now();
            assert!(now.duration_since(began) >= jiff::SignedDuration::from_mins(1));
            assert_eq!(time.roles.now(), now);
        });
    }
}
