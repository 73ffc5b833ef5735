//! Requests to Dynatrace and their responses: metric selectors respond at once, DQL is polled.

use serde_json::{Value, json};

use crate::ScalerError;
use crate::responses::{error_field, excerpt, json as read, kind};
use crate::web::escaped;

/// The URL of a metric selector.
pub(super) fn selector_url(host: &str, selector: &str, from: &str) -> String {
    let host = host.trim_end_matches('/');
    format!("{host}/api/v2/metrics/query?metricSelector={}&from={}", escaped(selector), escaped(from))
}

/// The first value of the first series.
pub(super) fn selected(status: u16, body: &[u8]) -> Result<f64, ScalerError> {
    let answer = successful(status, body)?;
    let found = answer.pointer("/result/0/data/0/values/0");
    found
        .and_then(Value::as_f64)
        .ok_or_else(|| scaler_error!("the metric selector returned {} instead of a value", kind(found)))
}

/// The URL that executes DQL.
pub(super) fn execute_url(host: &str) -> String {
    format!("{}/platform/storage/query/v1/query:execute", host.trim_end_matches('/'))
}

/// The URL that polls for the result of DQL.
pub(super) fn poll_url(host: &str, token: &str) -> String {
    let host = host.trim_end_matches('/');
    format!("{host}/platform/storage/query/v1/query:poll?request-token={}", escaped(token))
}

/// The request body that executes a query.
pub(super) fn body(query: &str, seconds: u64) -> String {
    json!({"query": query, "fetchTimeoutSeconds": seconds}).to_string()
}

/// State of a query.
#[derive(Debug, PartialEq)]
pub(super) enum QueryProgress {
    /// Still running; poll again, with the new token if there is one.
    Running(Option<String>),
    /// Done.
    Done(f64),
}

/// Decodes the state of a query. Its value is `r` of its first record, or the only number in it.
pub(super) fn progress(status: u16, body: &[u8]) -> Result<QueryProgress, ScalerError> {
    let answer = successful(status, body)?;
    match answer.get("state").and_then(Value::as_str) {
        Some("SUCCEEDED") => record(&answer).map(QueryProgress::Done),
        Some("RUNNING" | "NOT_STARTED") => {
            Ok(QueryProgress::Running(answer.get("requestToken").and_then(Value::as_str).map(str::to_owned)))
        }
        Some(state) => Err(scaler_error!("the query is {}", excerpt(state))),
        None => Err(scaler_error!("the answer has {} at state", kind(answer.get("state")))),
    }
}

fn record(answer: &Value) -> Result<f64, ScalerError> {
    let found = answer.pointer("/result/records");
    let record = match found.and_then(Value::as_array).map(Vec::as_slice) {
        Some([first, ..]) => first,
        Some([]) => bail!("the query returned no record"),
        None => {
            bail!("the answer has {} at result.records instead of a list", kind(found));
        }
    };
    // Counts have the type long, which JSON encodes as a string.
    let number = |value: &Value| match value {
        Value::String(text) => crate::responses::parsed(text),
        other => other.as_f64(),
    };
    if let Some(value) = record.get("r") {
        return number(value).ok_or_else(|| {
            scaler_error!("the query returned {} as r instead of a number", kind(Some(value)))
        });
    }
    let mut numbers = record.as_object().into_iter().flatten().filter_map(|(_, value)| value.as_f64());
    match (numbers.next(), numbers.next()) {
        (Some(one), None) => Ok(one),
        _ => Err(scaler_error!("the query returned no field r; name the number that way")),
    }
}

fn successful(status: u16, body: &[u8]) -> Result<Value, ScalerError> {
    if (200..300).contains(&status) {
        return read(body);
    }
    Err(scaler_error!("Dynatrace API returned {status}: {}", error_field(body, "/error/message")))
}
