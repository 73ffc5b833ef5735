//! The request and its response: a vector of one sample.

use serde_json::Value;

use crate::ScalerError;
use crate::responses::{error_field, json, kind, parsed};
use crate::web::escaped;

/// Path of the query QUERY_PATH.
const QUERY_PATH: &str = "/loki/api/v1/query";

/// The URL of a query. Only the part of [`QUERY_PATH`] that `server` does not end with is appended.
pub(super) fn url(server: &str, query: &str) -> String {
    let server = server.trim_end_matches('/');
    let ends: Vec<usize> =
        QUERY_PATH.match_indices('/').map(|(at, _)| at).skip(1).chain([QUERY_PATH.len()]).collect();
    let have =
        ends.into_iter().rev().filter_map(|end| QUERY_PATH.get(..end)).find(|head| server.ends_with(head));
    let missing = QUERY_PATH.get(have.map_or(0, str::len)..).unwrap_or_default();
    format!("{server}{missing}?query={}", escaped(query))
}

/// The value in the response; `None` if the query has no result.
pub(super) fn value(status: u16, body: &[u8], query: &str) -> Result<Option<f64>, ScalerError> {
    if !(200..300).contains(&status) {
        bail!("loki query api returned error. status: {status} response: {}", error_field(body, "/message"));
    }
    let answer = json(body)?;
    let result = answer.pointer("/data/result");
    let Some(elements) = result.and_then(Value::as_array) else {
        bail!("the answer has {} at data.result instead of a list", kind(result));
    };
    let sample = match elements.as_slice() {
        [] => return Ok(None),
        [one] => one.get("value"),
        _ => bail!("loki query {query} returned multiple elements"),
    };
    let Some(sample) = sample.and_then(Value::as_array) else {
        bail!("loki query {query} returned {} instead of a sample", kind(sample));
    };
    match sample.as_slice() {
        [] | [_, Value::Null, ..] => Ok(None),
        [_] => Err(scaler_error!("loki query {query} didn't return enough values")),
        // `NaN` and infinities count as no result.
        [_, Value::String(text), ..] => match text.parse::<f64>() {
            Ok(_) => Ok(parsed(text)),
            Err(_) => Err(scaler_error!("loki query {query} returned a text which is not a number")),
        },
        [_, other, ..] => {
            Err(scaler_error!("loki query {query} returned {} instead of a text", kind(Some(other))))
        }
    }
}
