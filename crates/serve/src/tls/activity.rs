//! Whether a connection does anything.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

/// Counts what a connection is busy with.
#[derive(Clone, Debug)]
pub(crate) struct Activity(Arc<watch::Sender<usize>>);

/// A connection is busy while this lives.
#[derive(Debug)]
pub(crate) struct Busy(Activity);

impl Activity {
    pub(crate) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(0)))
    }

    /// Busy until the answer is dropped.
    pub(crate) fn begin(&self) -> Busy {
        self.0.send_modify(|count| *count += 1);
        Busy(self.clone())
    }

    /// Ends when nothing was done for so long.
    pub(super) fn idle(&self, limit: Duration) -> impl Future<Output = ()> + use<> {
        let mut count = self.0.subscribe();
        async move {
            while count.wait_for(|count| *count == 0).await.is_ok() {
                if tokio::time::timeout(limit, count.changed()).await.is_err() {
                    return;
                }
            }
        }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.0.send_modify(|count| *count = count.saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn whoever_is_busy_is_not_idle() {
        let activity = Activity::new();
        let limit = Duration::from_secs(90);
        let start = tokio::time::Instant::now();
        let busy = activity.begin();
        let end = async {
            tokio::time::sleep(Duration::from_secs(500)).await;
            drop(busy);
            tokio::time::sleep(Duration::from_mins(1)).await;
            drop(activity.begin());
        };
        futures::join!(activity.idle(limit), end);
        assert_eq!(start.elapsed(), Duration::from_secs(500 + 60 + 90));
    }
}
