//! Whoever wants to hear every value as it is read, before anything follows from it (docs/spec/keda.md 4.2, raw metrics).

use std::sync::{Arc, OnceLock};

use jiff::Timestamp;

use super::id::Id;
use super::triggers::{Heard, Triggers, display};

/// Who has asked the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asker {
    /// The operator, once per interval.
    Poll,
    /// An HPA, or whoever else asks for the metric.
    Hpa,
}

/// What was read of one metric of a ScaledObject.
#[derive(Clone, Copy, Debug)]
pub struct Overheard<'a> {
    /// Who has asked.
    pub by: Asker,
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
pub trait Listener: Send + Sync {
    /// Whether anybody would hear: mostly nobody does.
    fn is_heard(&self) -> bool;

    /// One metric was read.
    fn heard(&self, told: &Overheard<'_>);
}

/// The one who listens, if anybody does.
#[derive(Default)]
pub(crate) struct Ears(OnceLock<Arc<dyn Listener>>);

impl Ears {
    /// From now on this one listens; the first stays.
    pub(crate) fn open(&self, listener: Arc<dyn Listener>) {
        // An error says that somebody listens already.
        let _ = self.0.set(listener);
    }

    /// Passes on what triggers said; what cannot be read is not a value.
    pub(crate) fn hear(&self, by: Asker, at: Timestamp, id: &Id, triggers: &Triggers, heard: &[Heard]) {
        let Some(listener) = self.0.get().filter(|listener| listener.is_heard()) else { return };
        for (slot, heard) in triggers.slots().iter().zip(heard) {
            let trigger = slot.trigger();
            let name = if trigger.name.is_empty() { display(&trigger.type_) } else { &trigger.name };
            for reading in heard.samples.iter().filter_map(|sample| sample.reading.as_ref().ok()) {
                listener.heard(&Overheard {
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
