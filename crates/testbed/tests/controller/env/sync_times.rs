//! Measures how long an autoscaler goes without a sync while one controller hands over to another, whichever programs they are.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use locks::MutexExt as _;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::ControllerEnv;

/// How often the number of reads is compared.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(20);

/// The moments at which the external metric of a workload was read, which every sync does once.
pub(crate) struct SyncTimes {
    pub(crate) workload: &'static str,
    times: Arc<Mutex<Vec<Instant>>>,
    task: JoinHandle<()>,
}

/// The time from before one controller ended until another had started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Handover {
    pub(crate) from: Instant,
    pub(crate) until: Instant,
}

/// The longest times between two syncs.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SyncGaps {
    /// At each handover.
    pub(crate) handovers: Vec<Duration>,
    /// Between two syncs of one controller.
    pub(crate) usual: Duration,
}

impl ControllerEnv {
    /// Records the syncs of an autoscaler from now on.
    pub(crate) fn sync_times(&self, workload: &'static str) -> SyncTimes {
        let times = Arc::<Mutex<Vec<Instant>>>::default();
        let (counter, noted) = (self.metric_counter(), Arc::clone(&times));
        let task = tokio::spawn(async move {
            let mut before = counter.reads(workload);
            loop {
                let reads = counter.reads(workload);
                if reads > before {
                    noted.locked().push(Instant::now());
                    before = reads;
                }
                sleep(SAMPLE_INTERVAL).await;
            }
        });
        SyncTimes { workload, times, task }
    }
}

impl SyncTimes {
    pub(crate) fn gaps(&self, handovers: &[Handover]) -> SyncGaps {
        gaps(&self.times.locked(), handovers)
    }
}

impl Drop for SyncTimes {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn gaps(times: &[Instant], handovers: &[Handover]) -> SyncGaps {
    let mut found = SyncGaps { handovers: vec![Duration::ZERO; handovers.len()], usual: Duration::ZERO };
    for pair in times.windows(2) {
        let (gap, mut is_usual) = (pair[1] - pair[0], true);
        for (handover, longest) in handovers.iter().zip(&mut found.handovers) {
            if pair[0] <= handover.until && pair[1] >= handover.from {
                *longest = gap.max(*longest);
                is_usual = false;
            }
        }
        if is_usual {
            found.usual = gap.max(found.usual);
        }
    }
    found
}

/// How many syncs are missing in the time between two of them.
pub(crate) fn missed_syncs(gap: Duration, period: Duration) -> u128 {
    (gap.as_millis() / period.as_millis()).saturating_sub(1)
}

#[test]
fn gaps_at_a_handover_are_told_from_others() {
    let start = Instant::now();
    let after = |seconds: u64| start + Duration::from_secs(seconds);
    // The first controller syncs once more while it ends.
    let times = [0, 1, 2, 3, 7, 8, 10].map(after);
    let handover = Handover { from: after(2), until: after(5) };
    let found = gaps(&times, &[handover]);
    assert_eq!(found, SyncGaps { handovers: vec![Duration::from_secs(4)], usual: Duration::from_secs(2) });
    let period = Duration::from_secs(1);
    assert_eq!([1, 4].map(|seconds| missed_syncs(Duration::from_secs(seconds), period)), [0, 3]);
    assert_eq!(missed_syncs(Duration::from_millis(1900), period), 0);
}
