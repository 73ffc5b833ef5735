//! Whoever wants to hear every value as it is read, before anything follows from it (docs/spec/keda.md 4.2, raw metrics).

use std::sync::{Arc, OnceLock};

use jiff::Timestamp;

use super::id::Id;
use super::scalers_cache::{ScalersCache, TriggerSamples, display};

/// Who has asked the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricRequester {
    /// The operator, once per interval.
    Poll,
    /// An HPA, or whoever else asks for the metric.
    Hpa,
}

/// What was read of one metric of a ScaledObject.
#[derive(Clone, Copy, Debug)]
pub struct RawMetric<'a> {
    /// Who has asked.
    pub by: MetricRequester,
    /// When.
    pub at: Timestamp,
    /// Namespace of the ScaledObject.
    pub namespace: &'a str,
    /// Its name.
    pub object: &'a str,
    /// The trigger: its name, or what its type is called.
    pub trigger: &'a str,
    /// All its values.
    pub values: &'a [keda::activity::MetricValue],
    /// Whether there is something to do.
    pub active: bool,
}

/// Hears every value as it is read. It must not take long: somebody waits for the value.
pub trait RawMetricsSubscriber: Send + Sync {
    /// Whether anybody would hear: mostly nobody does.
    fn is_subscribed(&self) -> bool;

    /// One metric was read.
    fn publish(&self, told: &RawMetric<'_>);
}

/// The one who listens, if anybody does.
#[derive(Default)]
pub(crate) struct RawMetricsSubscribers(OnceLock<Arc<dyn RawMetricsSubscriber>>);

impl RawMetricsSubscribers {
    /// From now on this one listens; the first stays.
    pub(crate) fn subscribe(&self, subscriber: Arc<dyn RawMetricsSubscriber>) {
        // An error says that somebody listens already.
        let _ = self.0.set(subscriber);
    }

    /// Passes on what triggers said; what cannot be read is not a value.
    pub(crate) fn publish(
        &self,
        by: MetricRequester,
        at: Timestamp,
        id: &Id,
        triggers: &ScalersCache,
        heard: &[TriggerSamples],
    ) {
        let Some(subscriber) = self.0.get().filter(|subscriber| subscriber.is_subscribed()) else { return };
        for (slot, heard) in triggers.slots().iter().zip(heard) {
            let trigger = slot.trigger();
            let name = if trigger.name.is_empty() { display(&trigger.type_) } else { &trigger.name };
            for reading in heard.samples.iter().filter_map(|sample| sample.reading.as_ref().ok()) {
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
