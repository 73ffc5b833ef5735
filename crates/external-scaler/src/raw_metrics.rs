//! Publishes raw metrics to subscribers (docs/spec/keda.md 4.2).
//!
//! A subscriber subscribes to triggers and reads one stream with the values of all of them. Publishing does not wait: a
//! subscriber that does not read misses values, and is removed after a while.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::{BoxStream, poll_fn};
use prost_types::Timestamp;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tonic::{Request, Response, Status};

use crate::metrics_service::raw_metrics_service_server::{RawMetricsService, RawMetricsServiceServer};
use crate::metrics_service::{
    RawMetric, RawMetricsRequest, RawMetricsResponse, ScaledObjectRef, SubscriptionAck, SubscriptionRequest,
};

/// How many responses wait for one subscriber.
const SUBSCRIBER_BUFFER_RESPONSES: usize = 4;
/// A subscriber that reads nothing for this time is removed.
const STALLED_SUBSCRIBER_TIMEOUT: Duration = Duration::from_mins(1);
/// Limits on subscribers and their subscriptions.
const MAX_SUBSCRIBERS: usize = 64;
const MAX_SUBSCRIPTIONS_PER_SUBSCRIBER: usize = 10_000;
/// The maximum length of a name.
const MAX_NAME_BYTES: usize = 512;
/// The maximum size of a request: four names.
const MAX_REQUEST_BYTES: usize = 4 << 10;

/// A sample of one trigger of a ScaledObject.
#[derive(Clone, Copy, Debug)]
pub struct TriggerSample<'a> {
    /// Namespace of the ScaledObject.
    pub namespace: &'a str,
    /// Its name.
    pub object: &'a str,
    /// The trigger's name, or its type.
    pub trigger: &'a str,
    /// The time, in seconds and nanoseconds since 1970.
    pub at: (i64, i32),
    /// Whether the trigger is active.
    pub active: bool,
}

/// All subscriptions. Cheap to clone; all clones share one state.
#[derive(Clone, Default)]
pub struct RawMetricsBroker(Arc<BrokerState>);

#[derive(Default)]
struct BrokerState {
    subscribers: Mutex<HashMap<String, Subscriber>>,
    /// Whether there are subscriptions: usually there are none.
    has_subscribers: AtomicBool,
}

struct Subscriber {
    to: HashSet<ScaledObjectRef>,
    line: mpsc::Sender<RawMetricsResponse>,
    /// The receiver, until the stream is opened.
    waiting: Option<mpsc::Receiver<RawMetricsResponse>>,
    /// Since when the subscriber has not read.
    stuck: Option<Instant>,
}

impl Default for Subscriber {
    fn default() -> Self {
        let (line, waiting) = mpsc::channel(SUBSCRIBER_BUFFER_RESPONSES);
        Self { to: HashSet::new(), line, waiting: Some(waiting), stuck: None }
    }
}

impl RawMetricsBroker {
    /// Whether there are subscriptions.
    pub fn has_subscribers(&self) -> bool {
        self.0.has_subscribers.load(Ordering::Relaxed)
    }

    /// Sends values to the subscribers of a trigger.
    pub fn publish(&self, sample: &TriggerSample<'_>, values: impl IntoIterator<Item = f64>) {
        if !self.has_subscribers() {
            return;
        }
        let of = ScaledObjectRef {
            name: sample.object.to_owned(),
            namespace: sample.namespace.to_owned(),
            metric_name: sample.trigger.to_owned(),
        };
        let mut subscribers = self.subscribers();
        if !subscribers.values().any(|one| one.to.contains(&of)) {
            return;
        }
        let one = |value| RawMetric {
            value,
            timestamp: Some(Timestamp { seconds: sample.at.0, nanos: sample.at.1 }),
            metadata: Some(of.clone()),
            is_active: sample.active,
        };
        let metrics: Vec<RawMetric> = values.into_iter().map(one).collect();
        if metrics.is_empty() {
            return;
        }
        let now = Instant::now();
        subscribers.retain(|_, one| {
            if !one.to.contains(&of) {
                return true;
            }
            let answer = RawMetricsResponse { metrics: metrics.clone() };
            one.stuck = one.line.try_send(answer).is_err().then(|| one.stuck.unwrap_or(now));
            one.stuck.is_none_or(|since| now.duration_since(since) < STALLED_SUBSCRIBER_TIMEOUT)
        });
        self.update_has_subscribers(&subscribers);
    }

    /// The gRPC service.
    pub fn service(&self) -> RawMetricsServiceServer<Self> {
        RawMetricsServiceServer::new(self.clone()).max_decoding_message_size(MAX_REQUEST_BYTES)
    }

    fn subscribers(&self) -> MutexGuard<'_, HashMap<String, Subscriber>> {
        self.0.subscribers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn update_has_subscribers(&self, subscribers: &HashMap<String, Subscriber>) {
        let has_subscribers = subscribers.values().any(|one| !one.to.is_empty());
        self.0.has_subscribers.store(has_subscribers, Ordering::Relaxed);
    }
}

/// Ensures that one more subscriber fits, or refuses it.
fn room(subscribers: &mut HashMap<String, Subscriber>, name: &str) -> Result<(), Status> {
    if subscribers.contains_key(name) {
        return Ok(());
    }
    // Subscribers without a stream and subscriptions are gone.
    subscribers.retain(|_, one| !one.to.is_empty() || one.waiting.is_none() && !one.line.is_closed());
    if subscribers.len() < MAX_SUBSCRIBERS {
        return Ok(());
    }
    Err(Status::resource_exhausted(format!("there are {MAX_SUBSCRIBERS} subscribers already")))
}

/// Validates a name of a request.
fn named<'a>(what: &str, name: &'a str) -> Result<&'a str, Status> {
    match name.len() {
        0 => Err(Status::invalid_argument(format!("{what} is missing"))),
        1..=MAX_NAME_BYTES => Ok(name),
        _ => Err(Status::invalid_argument(format!("{what} is longer than {MAX_NAME_BYTES} bytes"))),
    }
}

/// The subscriber and the trigger of a request.
fn subscription(request: SubscriptionRequest) -> Result<(String, ScaledObjectRef), Status> {
    let of = request.metric_metadata.unwrap_or_default();
    named("subscriber", &request.subscriber)?;
    named("metricMetadata.name", &of.name)?;
    named("metricMetadata.namespace", &of.namespace)?;
    named("metricMetadata.metricName", &of.metric_name)?;
    Ok((request.subscriber, of))
}

fn acknowledged(was_subscribed: bool) -> Response<SubscriptionAck> {
    Response::new(SubscriptionAck { was_subscribed, message: None })
}

#[tonic::async_trait]
impl RawMetricsService for RawMetricsBroker {
    type GetRawMetricsStreamStream = BoxStream<'static, Result<RawMetricsResponse, Status>>;

    /// Values that were buffered since the last stream come first. A new stream ends the previous one.
    async fn get_raw_metrics_stream(
        &self,
        request: Request<RawMetricsRequest>,
    ) -> Result<Response<Self::GetRawMetricsStreamStream>, Status> {
        let name = named("subscriber", &request.get_ref().subscriber)?;
        let mut subscribers = self.subscribers();
        room(&mut subscribers, name)?;
        let subscriber = subscribers.entry(name.to_owned()).or_default();
        let mut line = match subscriber.waiting.take() {
            Some(waiting) => waiting,
            None => {
                let (sender, receiver) = mpsc::channel(SUBSCRIBER_BUFFER_RESPONSES);
                subscriber.line = sender;
                receiver
            }
        };
        subscriber.stuck = None;
        Ok(Response::new(poll_fn(move |context| line.poll_recv(context)).map(Ok).boxed()))
    }

    async fn subscribe_metric(
        &self,
        request: Request<SubscriptionRequest>,
    ) -> Result<Response<SubscriptionAck>, Status> {
        let (name, of) = subscription(request.into_inner())?;
        let mut subscribers = self.subscribers();
        room(&mut subscribers, &name)?;
        let subscriber = subscribers.entry(name).or_default();
        if subscriber.to.len() >= MAX_SUBSCRIPTIONS_PER_SUBSCRIBER && !subscriber.to.contains(&of) {
            return Err(Status::resource_exhausted(format!(
                "there are {MAX_SUBSCRIPTIONS_PER_SUBSCRIBER} already"
            )));
        }
        let was_subscribed = !subscriber.to.insert(of);
        self.update_has_subscribers(&subscribers);
        Ok(acknowledged(was_subscribed))
    }

    async fn unsubscribe_metric(
        &self,
        request: Request<SubscriptionRequest>,
    ) -> Result<Response<SubscriptionAck>, Status> {
        let (name, of) = subscription(request.into_inner())?;
        let mut subscribers = self.subscribers();
        let was_subscribed = subscribers.get_mut(&name).is_some_and(|one| one.to.remove(&of));
        self.update_has_subscribers(&subscribers);
        Ok(acknowledged(was_subscribed))
    }
}

#[cfg(test)]
mod tests;
