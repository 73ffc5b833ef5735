//! What Dynatrace is asked, and what it answers: metric selectors at once, DQL after a while.

use serde_json::{Value, json};

use crate::Error;
use crate::answers::{excerpt, json as read, kind};
use crate::web::escaped;

/// The address of a metric selector.
pub(super) fn selector_url(host: &str, selector: &str, from: &str) -> String {
    let host = host.trim_end_matches('/');
    format!("{host}/api/v2/metrics/query?metricSelector={}&from={}", escaped(selector), escaped(from))
}

/// The first value of the first series.
pub(super) fn selected(status: u16, body: &[u8]) -> Result<f64, Error> {
    let answer = successful(status, body)?;
    let found = answer.pointer("/result/0/data/0/values/0");
    found
        .and_then(Value::as_f64)
        .ok_or_else(|| Error::new(format!("the metric selector returned {} instead of a value", kind(found))))
}

/// Where DQL is executed.
pub(super) fn execute_url(host: &str) -> String {
    format!("{}/platform/storage/query/v1/query:execute", host.trim_end_matches('/'))
}

/// Where the result of DQL is asked for.
pub(super) fn poll_url(host: &str, token: &str) -> String {
    let host = host.trim_end_matches('/');
    format!("{host}/platform/storage/query/v1/query:poll?request-token={}", escaped(token))
}

/// A query to execute.
pub(super) fn body(query: &str, seconds: u64) -> String {
    json!({"query": query, "fetchTimeoutSeconds": seconds}).to_string()
}

/// How far a query is.
#[derive(Debug, PartialEq)]
pub(super) enum Progress {
    /// Not done; ask again, with the token if one was given.
    Running(Option<String>),
    /// Done.
    Done(f64),
}

/// How far a query is: its value is `r` of its only record, or the only number there.
pub(super) fn progress(status: u16, body: &[u8]) -> Result<Progress, Error> {
    let answer = successful(status, body)?;
    match answer.get("state").and_then(Value::as_str) {
        Some("SUCCEEDED") => record(&answer).map(Progress::Done),
        Some("RUNNING" | "NOT_STARTED") => {
            Ok(Progress::Running(answer.get("requestToken").and_then(Value::as_str).map(str::to_owned)))
        }
        Some(state) => Err(Error::new(format!("the query is {state}: {}", excerpt(body)))),
        None => Err(Error::new(format!("the answer has {} at state", kind(answer.get("state"))))),
    }
}

fn record(answer: &Value) -> Result<f64, Error> {
    let found = answer.pointer("/result/records");
    let record = match found.and_then(Value::as_array).map(Vec::as_slice) {
        Some([one]) => one,
        Some(other) => {
            return Err(Error::new(format!(
                "the query returned {} records, it must return one",
                other.len()
            )));
        }
        None => {
            return Err(Error::new(format!(
                "the answer has {} at result.records instead of a list",
                kind(found)
            )));
        }
    };
    // Counts are long, and long is a text in JSON.
    let number = |value: &Value| match value {
        Value::String(text) => crate::answers::parsed(text),
        other => other.as_f64(),
    };
    if let Some(value) = record.get("r") {
        return number(value).ok_or_else(|| {
            Error::new(format!("the query returned {} as r instead of a number", kind(Some(value))))
        });
    }
    let mut numbers = record.as_object().into_iter().flatten().filter_map(|(_, value)| value.as_f64());
    match (numbers.next(), numbers.next()) {
        (Some(one), None) => Ok(one),
        _ => Err(Error::new("the query returned no field r; name the number that way")),
    }
}

fn successful(status: u16, body: &[u8]) -> Result<Value, Error> {
    if (200..300).contains(&status) {
        return read(body);
    }
    let said = read(body).ok();
    let said = said.as_ref().and_then(|answer| answer.pointer("/error/message")).and_then(Value::as_str);
    let said = said.map_or_else(|| excerpt(body), |text| excerpt(text.as_bytes()));
    Err(Error::new(format!("Dynatrace API returned {status}: {said}")))
}
