//! Push triggers: they report activity themselves, or that they are to be queried. Of several reports of one trigger only one waits
//! to be acted on, since the others have the same meaning.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use runtime::reconcile_loop::PanicCounter;
use runtime::{ReconcileResult, Reconciles};
use scalers::Scaler;
use sources::tenant::in_namespace;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use crate::operator::id::{ResourceId, ResourceKind};

/// Reports of one trigger that are buffered before the trigger has to wait.
const MAX_BUFFERED_REPORTS: usize = 4;

/// Minimum time between two reports of one trigger, so that a source that reports without end does not keep the operator busy.
const MIN_REPORT_INTERVAL: Duration = Duration::from_millis(50);

/// The same after a report that a trigger is inactive, which has no effect. It is shorter, so that activity is not noticed late behind
/// many of them.
const MIN_INACTIVE_REPORT_INTERVAL: Duration = Duration::from_millis(10);

/// Minimum time between two changes of the metrics of one trigger, because each of them may rewrite an HPA.
const MIN_SPECS_INTERVAL: Duration = Duration::from_secs(1);

/// Minimum time between two polls of one object because of wake-ups, so that a source cannot cause more.
pub(crate) const MIN_WAKE_INTERVAL: Duration = Duration::from_secs(1);

/// What the stream of a push trigger reports.
#[derive(Debug)]
pub(crate) struct PushNotification {
    pub(crate) id: ResourceId,
    /// The index of the trigger.
    pub(crate) trigger: usize,
    pub(crate) report: PushReport,
}

/// A report of a push trigger.
#[derive(Debug)]
pub(crate) enum PushReport {
    /// There is load. To be dropped when the report is acted on: a later report is a new one.
    Active(PendingPush),
    /// The trigger is to be queried. To be dropped like the former.
    QueryNow(PendingPush),
    /// The metrics of the trigger have changed. To be dropped like the former.
    SpecsChanged(#[expect(dead_code, reason = "it is only dropped")] PendingPush),
    /// The stream panicked; it is opened again after a delay.
    Panicked { message: String, retry_after: Duration },
}

/// Marks, while it exists, that a report of a trigger waits.
#[derive(Debug)]
pub(crate) struct PendingPush(Arc<AtomicBool>);

impl PendingPush {
    /// None while another report waits.
    fn new(waits: &Arc<AtomicBool>) -> Option<Self> {
        (!waits.swap(true, Ordering::Relaxed)).then(|| Self(Arc::clone(waits)))
    }
}

impl Drop for PendingPush {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// Sends the reports of all push triggers to the operator's loop.
#[derive(Clone, Debug)]
pub(crate) struct PushSender {
    notifications: mpsc::UnboundedSender<PushNotification>,
    panics: PanicCounter,
}

impl PushSender {
    /// Sends to `notifications`; `panics` counts streams that panic.
    pub(crate) fn new(notifications: mpsc::UnboundedSender<PushNotification>, panics: PanicCounter) -> Self {
        Self { notifications, panics }
    }

    /// The channel of one trigger.
    pub(crate) fn channel(&self, id: &ResourceId, trigger: usize, wakes: bool) -> PushChannel {
        PushChannel {
            sender: self.clone(),
            id: id.clone(),
            trigger,
            wakes,
            waits: Arc::default(),
            specs_wait: Arc::default(),
        }
    }
}

/// Sends the reports of one trigger.
#[derive(Clone, Debug)]
pub(crate) struct PushChannel {
    sender: PushSender,
    id: ResourceId,
    trigger: usize,
    /// Whether the trigger may wake its object.
    wakes: bool,
    /// Whether a report of activity or a wake-up waits.
    waits: Arc<AtomicBool>,
    /// Whether a change of the metrics waits.
    specs_wait: Arc<AtomicBool>,
}

/// The stream of a push trigger, which ends when this is dropped.
#[derive(Debug)]
pub(crate) struct PushStream(AbortHandle);

impl Drop for PushStream {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl PushChannel {
    fn send(&self, report: PushReport) {
        let notification = PushNotification { id: self.id.clone(), trigger: self.trigger, report };
        // Sending fails only when the operator has ended.
        let _ = self.sender.notifications.send(notification);
    }

    /// Opens the stream of a scaler, if it is a push scaler. A stream that panics is reported and opened again.
    pub(crate) fn open(&self, scaler: &Arc<dyn Scaler>) -> Option<PushStream> {
        let mut stream = self.follow(scaler)?;
        let (channel, scaler) = (self.clone(), Arc::clone(scaler));
        let following = async move {
            let mut streams = Reconciles::new(channel.sender.panics.clone());
            loop {
                streams.start((), stream);
                let Some(((), ReconcileResult::Panicked { message, retry_after })) = streams.next().await
                else {
                    return;
                };
                channel.send(PushReport::Panicked { message, retry_after });
                tokio::time::sleep(retry_after).await;
                let Some(next) = channel.follow(&scaler) else { return };
                stream = next;
            }
        };
        let task = tokio::spawn(in_namespace(Arc::clone(&self.id.namespace), following));
        Some(PushStream(task.abort_handle()))
    }

    /// The stream of a scaler, whose reports are forwarded.
    fn follow(&self, scaler: &Arc<dyn Scaler>) -> Option<BoxFuture<'static, ()>> {
        let (sender, mut reports) = mpsc::channel(MAX_BUFFERED_REPORTS);
        let Some(stream) = Arc::clone(scaler).push(sender) else { return self.follow_wakes(scaler) };
        let channel = self.clone();
        let forward = async move {
            while let Some(active) = reports.recv().await {
                // Polls find out that a trigger is inactive (docs/spec/keda.md 3.8).
                if !active {
                    tokio::time::sleep(MIN_INACTIVE_REPORT_INTERVAL).await;
                    continue;
                }
                if let Some(pending) = PendingPush::new(&channel.waits) {
                    channel.send(PushReport::Active(pending));
                }
                tokio::time::sleep(MIN_REPORT_INTERVAL).await;
            }
        };
        let specs = self.follow_specs(scaler);
        Some(Box::pin(async move {
            tokio::select! {
                () = stream => {}
                () = forward => {}
                () = specs => {}
            }
        }))
    }

    /// The wake-ups of a scaler, if its object allows them and the scaler has them.
    fn follow_wakes(&self, scaler: &Arc<dyn Scaler>) -> Option<BoxFuture<'static, ()>> {
        let (sender, mut wakes) = mpsc::channel(1);
        let stream = self.wakes.then(|| Arc::clone(scaler).wake(sender)).flatten()?;
        let channel = self.clone();
        let forward = async move {
            while wakes.recv().await.is_some() {
                if let Some(pending) = PendingPush::new(&channel.waits) {
                    channel.send(PushReport::QueryNow(pending));
                }
                tokio::time::sleep(MIN_WAKE_INTERVAL).await;
            }
        };
        Some(Box::pin(async move {
            tokio::select! {
                () = stream => {}
                () = forward => {}
            }
        }))
    }

    /// Forwards changes of the metrics of a scaler, if it reports them. The future never ends.
    fn follow_specs(&self, scaler: &Arc<dyn Scaler>) -> BoxFuture<'static, ()> {
        // The operator reconciles ScaledObjects only: a ScaledJob has no HPA whose metrics would follow.
        let (sender, mut changes) = mpsc::channel(1);
        let is_object = self.id.kind == ResourceKind::Object;
        let Some(stream) = is_object.then(|| Arc::clone(scaler).push_specs(sender)).flatten() else {
            return Box::pin(std::future::pending());
        };
        let channel = self.clone();
        let forward = async move {
            while changes.recv().await.is_some() {
                if let Some(pending) = PendingPush::new(&channel.specs_wait) {
                    channel.send(PushReport::SpecsChanged(pending));
                }
                tokio::time::sleep(MIN_SPECS_INTERVAL).await;
            }
        };
        Box::pin(async move {
            // The stream ends first if the server cannot stream; then reports that are under way are still forwarded.
            tokio::join!(stream, forward);
            std::future::pending::<()>().await;
        })
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::Pin;

    use api::autoscaling::v2::MetricSpec;
    use scalers::{Reading, ScalerError, ScalerFuture, WakeFuture};
    use tokio::time::Instant;

    use super::*;

    /// Reports activity, or wake-ups, as fast as it can.
    struct EndlessPushes {
        wakes: bool,
    }

    impl Scaler for EndlessPushes {
        fn specs(&self) -> ScalerFuture<'_, Vec<MetricSpec>> {
            Box::pin(async { Err(ScalerError::new("it only pushes")) })
        }

        fn read<'a>(&'a self, _: &'a str) -> ScalerFuture<'a, Reading> {
            Box::pin(async { Err(ScalerError::new("it only pushes")) })
        }

        fn push(
            self: Arc<Self>,
            reports: mpsc::Sender<bool>,
        ) -> Option<Pin<Box<dyn Future<Output = ()> + Send>>> {
            if self.wakes {
                return None;
            }
            Some(Box::pin(async move { while reports.send(true).await.is_ok() {} }))
        }

        fn wake(self: Arc<Self>, wakes: mpsc::Sender<()>) -> Option<WakeFuture> {
            Some(Box::pin(async move { while wakes.send(()).await.is_ok() {} }))
        }
    }

    async fn check_one_report_waits(wakes: bool) {
        let (sender, mut pushes) = mpsc::unbounded_channel();
        let channel = PushSender::new(sender, PanicCounter::default()).channel(
            &ResourceId::object("shop", "worker"),
            3,
            wakes,
        );
        let scaler: Arc<dyn Scaler> = Arc::new(EndlessPushes { wakes });
        let stream = channel.open(&scaler);
        assert!(stream.is_some());
        tokio::time::sleep(Duration::from_mins(1)).await;
        assert_eq!(pushes.len(), 1, "nothing acts on the reports, and all say the same");
        for _ in 0..3 {
            let pushed = pushes.recv().await;
            assert_eq!(pushed.as_ref().map(|pushed| pushed.trigger), Some(3));
            assert!(pushes.is_empty());
            // The report is acted on.
            drop(pushed);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_report_waits_and_the_next_is_not_lost() {
        check_one_report_waits(false).await;
    }

    #[tokio::test(start_paused = true)]
    async fn one_wake_up_waits_and_the_next_is_not_lost() {
        check_one_report_waits(true).await;
    }

    /// Reports inactivity a thousand times, as fast as it can, and then how long that took.
    struct InactivePushes(mpsc::UnboundedSender<Duration>);

    impl Scaler for InactivePushes {
        fn specs(&self) -> ScalerFuture<'_, Vec<MetricSpec>> {
            Box::pin(async { Err(ScalerError::new("it only pushes")) })
        }

        fn read<'a>(&'a self, _: &'a str) -> ScalerFuture<'a, Reading> {
            Box::pin(async { Err(ScalerError::new("it only pushes")) })
        }

        fn push(
            self: Arc<Self>,
            reports: mpsc::Sender<bool>,
        ) -> Option<Pin<Box<dyn Future<Output = ()> + Send>>> {
            Some(Box::pin(async move {
                let began = Instant::now();
                for _ in 0..1000 {
                    reports.send(false).await.unwrap();
                }
                self.0.send(began.elapsed()).unwrap();
                std::future::pending::<()>().await;
            }))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn reports_without_effect_are_read_slowly() {
        let (sender, mut pushes) = mpsc::unbounded_channel();
        let id = ResourceId::object("shop", "worker");
        let channel = PushSender::new(sender, PanicCounter::default()).channel(&id, 0, false);
        let (took_sender, mut took) = mpsc::unbounded_channel();
        let scaler: Arc<dyn Scaler> = Arc::new(InactivePushes(took_sender));
        let stream = channel.open(&scaler);
        let took = took.recv().await.unwrap();
        assert!(took > MIN_INACTIVE_REPORT_INTERVAL * 900, "{took:?}");
        assert!(pushes.try_recv().is_err(), "polls find out that a trigger is inactive");
        drop(stream);
    }
}
