//! Requests and responses in a form that is the same in every run.

use std::sync::{Arc, Mutex, MutexGuard};

use locks::MutexExt as _;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One request and its answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Exchange {
    /// Method and path as the case wrote them.
    pub request: String,
    /// HTTP code; 0 when there was no answer at all.
    pub code: u16,
    /// Content type of the answer.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub content: String,
    /// `Warning` headers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The answer: JSON, or text as a string, or the events of a watch.
    pub body: Value,
}

/// All exchanges of a case on one cluster, normalised.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Transcript {
    /// `topic/case`.
    pub case: String,
    /// In the order in which they were begun.
    pub exchanges: Vec<Exchange>,
}

/// The exchanges of a case so far, in the order in which they were begun; clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct ExchangeLog(Arc<Mutex<Vec<Exchange>>>);

impl ExchangeLog {
    pub(crate) fn exchanges(&self) -> MutexGuard<'_, Vec<Exchange>> {
        self.0.locked()
    }

    /// Appends an exchange and returns its place.
    pub(crate) fn record(&self, exchange: Exchange) -> usize {
        let mut exchanges = self.exchanges();
        exchanges.push(exchange);
        exchanges.len() - 1
    }

    /// Appends an event to the exchange of a watch.
    pub(crate) fn record_event(&self, exchange: usize, event: Value) {
        if let Some(Value::Array(events)) = self.exchanges().get_mut(exchange).map(|e| &mut e.body) {
            events.push(event);
        }
    }
}

/// The same JSON with the fields of every object in alphabetical order.
pub(crate) fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut names: Vec<&String> = fields.keys().collect();
            names.sort_unstable();
            let pairs = names.into_iter().filter_map(|name| Some((name.clone(), sorted(fields.get(name)?))));
            Value::Object(pairs.collect::<Map<_, _>>())
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}
