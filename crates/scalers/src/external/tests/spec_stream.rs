//! Streamed metric specs, with servers that have them and servers that do not.

use api::keda::KedaProfile;
use external_scaler::MetricSpecStream;
use tokio::sync::watch;
use tokio::time::timeout;

use super::*;
use crate::external::spec_stream::MIN_UPDATE_INTERVAL;

const WAIT_TIMEOUT: Duration = Duration::from_mins(1);

/// A scaler whose target a test changes; an update is sent for each, an empty one for zero.
struct Changing {
    target: watch::Receiver<f64>,
    requested: Arc<AtomicUsize>,
}

fn specs(target: f64) -> Vec<MetricSpec> {
    if target > 0.0 { vec![MetricSpec::new("letters", target)] } else { Vec::new() }
}

impl ExternalScaler for Changing {
    async fn metric_specs(&self, _: &ScaledObjectRef) -> Result<Vec<MetricSpec>, Status> {
        self.requested.fetch_add(1, Ordering::SeqCst);
        Ok(specs(7.0))
    }

    async fn metrics(&self, _: &ScaledObjectRef, metric: &str) -> Result<Vec<MetricValue>, Status> {
        Ok(vec![MetricValue::new(metric, 1.0)])
    }

    async fn metric_spec_changes(&self, _: &ScaledObjectRef) -> Result<MetricSpecStream, Status> {
        let mut target = self.target.clone();
        target.mark_changed();
        let changes = futures::stream::unfold(target, |mut target| async move {
            target.changed().await.ok()?;
            let value = *target.borrow_and_update();
            Some((Ok(specs(value)), target))
        });
        Ok(Box::pin(changes))
    }
}

fn push_trigger(address: &str, profile: KedaProfile) -> Trigger {
    Trigger { type_: "external-push".into(), profile, ..trigger(address, &[]) }
}

async fn target(scaler: &Arc<dyn Scaler>) -> String {
    let specs = scaler.specs().await.unwrap();
    specs[0].external.as_ref().unwrap().target.average_value.as_ref().unwrap().to_string()
}

#[tokio::test]
async fn streamed_specs_replace_requests() {
    let (listener, address) = listener().await;
    let (change, seen) = watch::channel(3.0);
    let requested = Arc::<AtomicUsize>::default();
    let server = Server::new(Changing { target: seen, requested: Arc::clone(&requested) });
    let serving = tokio::spawn(server.serve_until(listener, std::future::pending()));
    let scaler = built(Compat::Strict, &push_trigger(&address, KedaProfile::V2_21));
    assert_eq!(target(&scaler).await, "7", "until the first update, specs are requested");
    let (changes_sender, mut changes) = mpsc::channel(1);
    let streaming = tokio::spawn(Arc::clone(&scaler).push_specs(changes_sender).unwrap());
    for expected in ["3", "4"] {
        timeout(WAIT_TIMEOUT, changes.recv()).await.unwrap().unwrap();
        assert_eq!(target(&scaler).await, expected);
        change.send_replace(4.0);
    }
    assert_eq!(requested.load(Ordering::SeqCst), 1);
    // Empty and repeated updates change nothing; the next report is that of 5.
    for value in [0.0, 4.0, 5.0] {
        change.send_replace(value);
    }
    timeout(WAIT_TIMEOUT, changes.recv()).await.unwrap().unwrap();
    assert_eq!(target(&scaler).await, "5");
    streaming.abort();
    serving.abort();
}

/// A scaler that streams updates as fast as they are read.
struct Endless;

impl ExternalScaler for Endless {
    async fn metric_specs(&self, _: &ScaledObjectRef) -> Result<Vec<MetricSpec>, Status> {
        Ok(specs(1.0))
    }

    async fn metrics(&self, _: &ScaledObjectRef, metric: &str) -> Result<Vec<MetricValue>, Status> {
        Ok(vec![MetricValue::new(metric, 1.0)])
    }

    async fn metric_spec_changes(&self, _: &ScaledObjectRef) -> Result<MetricSpecStream, Status> {
        Ok(Box::pin(futures::stream::repeat_with(|| Ok(specs(1.0)))))
    }
}

#[tokio::test]
async fn endless_updates_are_read_slowly() {
    let (listener, address) = listener().await;
    let serving = tokio::spawn(Server::new(Endless).serve_until(listener, std::future::pending()));
    let backends = Backends::without_cluster(HttpSettings::allowing_loopback(), Compat::Strict);
    let scaler = (PUSH.build)(&push_trigger(&address, KedaProfile::V2_21), &backends).unwrap();
    let (changes_sender, mut changes) = mpsc::channel(1);
    let streaming = tokio::spawn(Arc::clone(&scaler).push_specs(changes_sender).unwrap());
    let begun = Instant::now();
    timeout(WAIT_TIMEOUT, changes.recv()).await.unwrap().unwrap();
    tokio::time::sleep(3 * MIN_UPDATE_INTERVAL).await;
    let counts = calls(&backends).counts();
    let streamed = counts.iter().filter(|(key, _)| key.method == "StreamMetricSpec");
    let received: u64 = streamed.map(|(_, counts)| counts.received).sum();
    let allowed = 1 + begun.elapsed().as_millis() / MIN_UPDATE_INTERVAL.as_millis();
    assert!(u128::from(received) <= allowed, "{received} updates, not {allowed} at most");
    streaming.abort();
    serving.abort();
}

#[tokio::test]
async fn specs_of_old_servers_are_requested() {
    let (address, play, _end) = served().await;
    let scaler = built(Compat::Strict, &push_trigger(&address, KedaProfile::V2_21));
    let (changes_sender, mut changes) = mpsc::channel(1);
    let streaming = Arc::clone(&scaler).push_specs(changes_sender).unwrap();
    let ended = timeout(WAIT_TIMEOUT, streaming).await;
    assert!(ended.is_ok(), "a server that does not know the method ends the stream for good");
    assert_eq!(changes.recv().await, None);
    assert_eq!(target(&scaler).await, "5");
    assert_eq!(play.requested.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn only_push_triggers_of_new_releases_stream_specs() {
    let (changes_sender, _changes) = mpsc::channel(1);
    let streams =
        |trigger: &Trigger| built(Compat::Strict, trigger).push_specs(changes_sender.clone()).is_some();
    assert!(streams(&push_trigger("a:1", KedaProfile::V2_21)));
    assert!(!streams(&push_trigger("a:1", KedaProfile::V2_20)));
    assert!(!streams(&Trigger { profile: KedaProfile::V2_21, ..trigger("a:1", &[]) }));
}
