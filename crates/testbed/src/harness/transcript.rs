//! Requests and responses in a form that is the same in every run.

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
