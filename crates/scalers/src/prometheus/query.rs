//! Asks for a query, and reads what comes back; without IO.

use std::fmt::Write as _;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::Parameters;
use crate::Error;
use crate::web::escaped;

/// Where to ask for a query.
pub struct Address {
    /// Without the time.
    whenever: Box<str>,
    /// Where the time stands.
    time: usize,
}

impl Address {
    /// What parameters say.
    pub fn of(parameters: &Parameters) -> Self {
        let Parameters { server_address, query, namespace, query_parameters, .. } = parameters;
        let server = server_address.trim_end_matches('/');
        let mut url = format!("{server}/api/v1/query?query={}", escaped(query));
        let time = url.len();
        // Writing to a string cannot fail.
        if let Some(namespace) = namespace {
            let _ = write!(url, "&namespace={namespace}");
        }
        for (key, value) in query_parameters.iter().flat_map(|pairs| &pairs.0) {
            let _ = write!(url, "&{}={}", escaped(key), escaped(value));
        }
        Self { whenever: url.into(), time }
    }

    /// To ask at a time.
    pub fn at(&self, now: Timestamp) -> String {
        let (before, after) = self.whenever.split_at_checked(self.time).unwrap_or((&self.whenever, ""));
        [before, "&time=", &api::instant::format(now), after].concat()
    }

    /// What is the same whenever it is asked.
    pub fn whenever(&self) -> &str {
        &self.whenever
    }
}

#[derive(Deserialize)]
struct Body {
    data: Data,
}

#[derive(Deserialize)]
struct Data {
    /// Must be there: an answer without it is none of Prometheus, and not nothing.
    #[serde(deserialize_with = "Option::deserialize")]
    result: Option<Vec<Element>>,
}

#[derive(Deserialize)]
struct Element {
    #[serde(default)]
    value: Vec<Value>,
}

/// The number in an answer.
pub fn read(status: u16, body: &[u8], query: &str, ignore_null_values: bool) -> Result<f64, Error> {
    find(status, body, query, ignore_null_values, &mut || ())
}

/// The number in an answer; `is_empty` is told if there is nothing in it.
pub fn find(
    status: u16,
    body: &[u8],
    query: &str,
    ignore_null_values: bool,
    is_empty: &mut dyn FnMut(),
) -> Result<f64, Error> {
    if !(200..300).contains(&status) {
        return Err(Error::new(format!("prometheus query api returned error. status: {status}")));
    }
    let body: Body = serde_json::from_slice(body)
        .map_err(|error| Error::new(format!("prometheus query {query} returned no vector: {error}")))?;
    let mut none = |what: &str| {
        is_empty();
        if ignore_null_values {
            return Ok(0.0);
        }
        Err(Error::new(format!("prometheus metrics 'prometheus' target may be lost, the {what} is empty")))
    };
    let result = body.data.result.unwrap_or_default();
    let value = match &*result {
        [] => return none("result"),
        [one] => &one.value,
        _ => return Err(Error::new(format!("prometheus query {query} returned multiple elements"))),
    };
    let number = match &**value {
        [] => return none("value list"),
        [_] => return Err(Error::new(format!("prometheus query {query} didn't return enough values"))),
        // As KEDA has it: below every activation, and served as 0.
        [_, Value::Null, ..] => return Ok(-1.0),
        [_, Value::String(number), ..] => number,
        [_, other, ..] => {
            return Err(Error::new(format!("prometheus query {query} returned {other}, which is no sample")));
        }
    };
    let value: f64 = number.parse().map_err(|_| {
        Error::new(format!("prometheus query {query} returned {number:?}, which is no number"))
    })?;
    if value.is_finite() {
        return Ok(value);
    }
    if ignore_null_values {
        return Ok(0.0);
    }
    Err(Error::new(format!("prometheus query returns {number}")))
}
