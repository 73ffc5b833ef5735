//! ScalersCache that tell of activity themselves. However much one tells, no more than one of its tells waits to be acted on: the
//! others say the same.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use scalers::Scaler;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use crate::operator::id::Id;

/// SampleQuery many tells of one trigger are taken in before it has to wait.
const WAITING: usize = 4;

/// Tells of one trigger are this far apart at least: what tells without end must not keep us from everything else.
const APART: Duration = Duration::from_millis(50);

/// A trigger has told that there is something to do.
#[derive(Debug)]
pub(crate) struct PushNotification {
    /// Whose.
    pub(crate) id: Id,
    /// Which.
    pub(crate) trigger: usize,
    /// To be dropped when it is acted on: what is told from then on is news.
    pub(crate) ticket: PendingPush,
}

/// Says, for as long as it lives, that a tell of a trigger waits.
#[derive(Debug)]
pub(crate) struct PendingPush(Arc<AtomicBool>);

impl PendingPush {
    /// None while another one lives.
    fn take(waits: &Arc<AtomicBool>) -> Option<Self> {
        (!waits.swap(true, Ordering::Relaxed)).then(|| Self(Arc::clone(waits)))
    }
}

impl Drop for PendingPush {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// Where tells go.
#[derive(Clone, Debug)]
pub(crate) struct Sender(pub(crate) mpsc::UnboundedSender<PushNotification>);

impl Sender {
    /// For one trigger.
    pub(crate) fn of(&self, id: &Id, trigger: usize) -> Line {
        Line { sender: self.clone(), id: id.clone(), trigger, waits: Arc::default() }
    }
}

/// Where the tells of one trigger go.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    sender: Sender,
    id: Id,
    trigger: usize,
    waits: Arc<AtomicBool>,
}

/// A stream that ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Stream(AbortHandle);

impl Drop for Stream {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Line {
    fn tell(&self) {
        if let Some(ticket) = PendingPush::take(&self.waits) {
            // Nobody is left to act only when everything ends.
            let _ =
                self.sender.0.send(PushNotification { id: self.id.clone(), trigger: self.trigger, ticket });
        }
    }

    /// Listens to a scaler, if it tells anything by itself.
    pub(crate) fn listen(&self, scaler: &Arc<dyn Scaler>) -> Option<Stream> {
        let (tell, mut told) = mpsc::channel(WAITING);
        let stream = Arc::clone(scaler).push(tell)?;
        let line = self.clone();
        let task = tokio::spawn(async move {
            let forward = async {
                while let Some(active) = told.recv().await {
                    // That there is nothing to do is for polls to find out (docs/spec/keda.md 3.8).
                    if active {
                        line.tell();
                        tokio::time::sleep(APART).await;
                    }
                }
            };
            tokio::select! {
                () = stream => {}
                () = forward => {}
            }
        });
        Some(Stream(task.abort_handle()))
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::Pin;

    use api::autoscaling::v2::MetricSpec;
    use scalers::{Reading, ScalerError, ScalerFuture};

    use super::*;

    /// Tells of activity as fast as it can.
    struct Torrent;

    impl Scaler for Torrent {
        fn specs(&self) -> ScalerFuture<'_, Vec<MetricSpec>> {
            Box::pin(async { Err(ScalerError::new("it only tells")) })
        }

        fn read<'a>(&'a self, _: &'a str) -> ScalerFuture<'a, Reading> {
            Box::pin(async { Err(ScalerError::new("it only tells")) })
        }

        fn push(
            self: Arc<Self>,
            tell: mpsc::Sender<bool>,
        ) -> Option<Pin<Box<dyn Future<Output = ()> + Send>>> {
            Some(Box::pin(async move { while tell.send(true).await.is_ok() {} }))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn however_much_is_told_one_tell_waits_and_the_next_is_not_lost() {
        let (sender, mut pushes) = mpsc::unbounded_channel();
        let line = Sender(sender).of(&Id::object("shop", "worker"), 3);
        let scaler: Arc<dyn Scaler> = Arc::new(Torrent);
        let stream = line.listen(&scaler);
        assert!(stream.is_some());
        tokio::time::sleep(Duration::from_mins(1)).await;
        assert_eq!(pushes.len(), 1, "nobody acts, and what is told says the same");
        for _ in 0..3 {
            let pushed = pushes.recv().await;
            assert_eq!(pushed.as_ref().map(|pushed| pushed.trigger), Some(3));
            assert!(pushes.is_empty());
            // It is acted on from here on.
            drop(pushed);
        }
    }
}
