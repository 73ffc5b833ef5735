//! Measures how long a window holds a replica count, independently of the speed of the machine.
//!
//! A busy machine delays reconciles but does not skip them. So the shortest time is measured from before a reconcile that
//! certainly belongs to the window, and the longest in reconciles that ran after the window had certainly ended.

use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until};

use super::{ControllerEnv, ReplicaWatch};

/// Windows count whole seconds, and persisted state rounds them up.
const ROUNDING: Duration = Duration::from_secs(2);
/// How often the replica count is compared.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(20);

/// How long a window held a count.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WindowMeasurement {
    /// Time from before the window began until the count changed.
    pub(crate) at_most: Duration,
    /// Reconciles that ended after the window was certainly over, until the count changed.
    pub(crate) late_reconciles: u64,
}

impl ControllerEnv {
    /// A moment after which a reconcile began that used the present value of the metric: of two reads that follow it, the
    /// second belongs to such a reconcile.
    pub(crate) async fn before_a_reconcile(&self, workload: &str) -> Instant {
        let before = Instant::now();
        self.until_metric_reads(workload, 2).await;
        before
    }

    /// Measures a window that began after `begun` and before now, until `observer` sees `count`.
    pub(crate) fn measure_window(
        &self,
        workload: &str,
        begun: Instant,
        length: Duration,
        observer: &ReplicaWatch,
        count: i64,
    ) -> JoinHandle<WindowMeasurement> {
        let certain_end = Instant::now() + length + ROUNDING;
        let (env, workload, sights) = (self.metric_counter(), workload.to_owned(), observer.sights());
        tokio::spawn(async move {
            let changed = || sights.last().filter(|sight| sight.replicas == count);
            let reads = || env.reads(&workload);
            let mut reads_at_end = None;
            loop {
                if let Some(sight) = changed() {
                    let reads = reads();
                    let late_reconciles = reads - reads_at_end.unwrap_or(reads);
                    return WindowMeasurement { at_most: sight.at - begun, late_reconciles };
                }
                if reads_at_end.is_none() && Instant::now() >= certain_end {
                    reads_at_end = Some(reads());
                }
                match reads_at_end {
                    None => sleep_until(certain_end.min(Instant::now() + SAMPLE_INTERVAL)).await,
                    Some(_) => sleep(SAMPLE_INTERVAL).await,
                }
            }
        })
    }
}
