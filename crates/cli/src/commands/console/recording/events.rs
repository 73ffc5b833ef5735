//! Events of recorded passes.

use std::collections::BTreeMap;

use cluster::AutoscalerKey;
use engine::Decision;
use engine::report::EventKind;
use jiff::Timestamp;
use serde_json::{Value, json};

/// Different events that are kept of one autoscaler; of more, the first.
const MAX_EVENTS: usize = 200;

/// Events by autoscaler. Equal ones are counted, as the API server does.
#[derive(Debug, Default)]
pub(super) struct RecordedEvents(BTreeMap<AutoscalerKey, BTreeMap<EventText, EventSpan>>);

/// Type, reason and message.
type EventText = (&'static str, String, String);

#[derive(Debug)]
struct EventSpan {
    first: Timestamp,
    last: Timestamp,
    count: u64,
}

impl RecordedEvents {
    /// Adds the events of a pass.
    pub(super) fn add(&mut self, key: &AutoscalerKey, decision: &Decision) {
        if decision.events.is_empty() {
            return;
        }
        let known = self.0.entry(key.clone()).or_default();
        for event in &decision.events {
            let kind = match event.kind {
                EventKind::Normal => "Normal",
                EventKind::Warning => "Warning",
            };
            let text = (kind, event.reason.to_string(), event.message.clone());
            if let Some(span) = known.get_mut(&text) {
                (span.last, span.count) = (decision.at, span.count + 1);
            } else if known.len() < MAX_EVENTS {
                known.insert(text, EventSpan { first: decision.at, last: decision.at, count: 1 });
            }
        }
    }

    /// The events about the autoscalers that `wanted` selects, as the API server lists them.
    pub(super) fn of(&self, wanted: impl Fn(&AutoscalerKey) -> bool) -> Vec<Value> {
        let all = self.0.iter().filter(|(key, _)| wanted(key)).flat_map(|(_, events)| events);
        all.map(|((kind, reason, message), span)| {
            json!({"type": kind, "reason": reason, "message": message, "count": span.count, "firstTimestamp": span.first,
                "lastTimestamp": span.last, "source": {"component": "horizontal-pod-autoscaler"}})
        })
        .collect()
    }
}
