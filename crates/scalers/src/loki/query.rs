//! The question, and the answer: a vector of one sample.

use serde_json::Value;

use crate::Error;
use crate::answers::{excerpt, json, kind, parsed};
use crate::web::escaped;

/// Where queries are answered.
const API: &str = "/loki/api/v1/query";

/// The address of a query. Of [`API`], only what `server` does not end with is added.
pub(super) fn url(server: &str, query: &str) -> String {
    let server = server.trim_end_matches('/');
    let ends: Vec<usize> = API.match_indices('/').map(|(at, _)| at).skip(1).chain([API.len()]).collect();
    let have = ends.into_iter().rev().filter_map(|end| API.get(..end)).find(|head| server.ends_with(head));
    let missing = API.get(have.map_or(0, str::len)..).unwrap_or_default();
    format!("{server}{missing}?query={}", escaped(query))
}

/// What the answer says; `None` if the query has no result now.
pub(super) fn value(status: u16, body: &[u8], query: &str) -> Result<Option<f64>, Error> {
    if !(200..300).contains(&status) {
        return Err(Error::new(format!(
            "loki query api returned error. status: {status} response: {}",
            excerpt(body)
        )));
    }
    let answer = json(body)?;
    let result = answer.pointer("/data/result");
    let Some(elements) = result.and_then(Value::as_array) else {
        return Err(Error::new(format!("the answer has {} at data.result instead of a list", kind(result))));
    };
    let sample = match elements.as_slice() {
        [] => return Ok(None),
        [one] => one.get("value"),
        _ => return Err(Error::new(format!("loki query {query} returned multiple elements"))),
    };
    let Some(sample) = sample.and_then(Value::as_array) else {
        return Err(Error::new(format!("loki query {query} returned {} instead of a sample", kind(sample))));
    };
    match sample.as_slice() {
        [] | [_, Value::Null, ..] => Ok(None),
        [_] => Err(Error::new(format!("loki query {query} didn't return enough values"))),
        // `NaN` and infinities are results that say nothing.
        [_, Value::String(text), ..] => match text.parse::<f64>() {
            Ok(_) => Ok(parsed(text)),
            Err(_) => Err(Error::new(format!("loki query {query} returned {text:?}, which is not a number"))),
        },
        [_, other, ..] => {
            Err(Error::new(format!("loki query {query} returned {} instead of a text", kind(Some(other)))))
        }
    }
}
