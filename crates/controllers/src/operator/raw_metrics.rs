//! Raw metrics (docs/spec/keda.md 4.2): every value as it is read from a source, for subscribers.

use std::sync::{Arc, OnceLock};

use jiff::Timestamp;

use super::id::ResourceId;
use super::scalers_cache::{ScalersCache, TriggerSamples, display_name};

/// What caused a query of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricRequester {
    /// A poll.
    Poll,
    /// An HPA, or another client of the metrics API.
    Hpa,
}

/// The values of one metric of a ScaledObject.
#[derive(Clone, Copy, Debug)]
pub struct RawMetric<'a> {
    /// What caused the query.
    pub by: MetricRequester,
    /// When the values were read.
    pub at: Timestamp,
    /// Namespace of the ScaledObject.
    pub namespace: &'a str,
    /// Name of the ScaledObject.
    pub object: &'a str,
    /// Name of the trigger, or of its type if it has none.
    pub trigger: &'a str,
    /// All values.
    pub values: &'a [keda::activity::MetricValue],
    /// Whether the trigger is active.
    pub active: bool,
}

/// Receives every value as it is read. It must return fast, because a poll or an HPA waits for the value.
pub trait RawMetricsSubscriber: Send + Sync {
    /// Whether there is any subscriber; usually there is none.
    fn is_subscribed(&self) -> bool;

    /// Receives the values of one metric.
    fn publish(&self, metric: &RawMetric<'_>);
}

/// The subscriber, if there is one.
#[derive(Default)]
pub(crate) struct RawMetricsSubscribers(OnceLock<Arc<dyn RawMetricsSubscriber>>);

impl RawMetricsSubscribers {
    /// Sets the subscriber; only the first call has an effect.
    pub(crate) fn subscribe(&self, subscriber: Arc<dyn RawMetricsSubscriber>) {
        let _ = self.0.set(subscriber);
    }

    /// Publishes the samples of all triggers. Failures have no values and are not published.
    pub(crate) fn publish(
        &self,
        by: MetricRequester,
        at: Timestamp,
        id: &ResourceId,
        scalers: &ScalersCache,
        samples: &[TriggerSamples],
    ) {
        let Some(subscriber) = self.0.get().filter(|subscriber| subscriber.is_subscribed()) else { return };
        for (scaler, samples) in scalers.scalers().iter().zip(samples) {
            let trigger = scaler.trigger();
            let name = if trigger.name.is_empty() { display_name(&trigger.type_) } else { &trigger.name };
            for reading in samples.samples.iter().filter_map(|sample| sample.reading.as_ref().ok()) {
                subscriber.publish(&RawMetric {
                    by,
                    at,
                    namespace: &id.namespace,
                    object: &id.name,
                    trigger: name,
                    values: &reading.values,
                    active: reading.active,
                });
            }
        }
    }
}
