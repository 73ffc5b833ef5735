//! Requests and responses in a form that is the same in every run.

use std::sync::{Arc, Mutex, MutexGuard};

use locks::MutexExt as _;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One request and its response.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Exchange {
    /// The method and path as the case wrote them.
    pub request: String,
    /// The HTTP status code; 0 when there was no response.
    pub code: u16,
    /// The content type of the response.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub content: String,
    /// The `Warning` headers of the response.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The response: JSON, or text as a string, or the events of a watch.
    pub body: Value,
}

/// All exchanges of a case on one cluster, with placeholders for volatile values.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Transcript {
    /// `topic/case`.
    pub case: String,
    /// The exchanges in the order in which they began.
    pub exchanges: Vec<Exchange>,
}

/// The exchanges of a case so far, in the order in which they began; clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct ExchangeLog(Arc<Mutex<Vec<Exchange>>>);

impl ExchangeLog {
    pub(crate) fn exchanges(&self) -> MutexGuard<'_, Vec<Exchange>> {
        self.0.locked()
    }

    /// Appends an exchange and returns its index.
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
