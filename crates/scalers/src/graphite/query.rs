//! The request and its response: one series.

use serde_json::Value;

use crate::ScalerError;
use crate::responses::{hidden, json, kind};
use crate::web::escaped;

/// The URL of a query.
pub(super) fn url(server: &str, query: &str, from: &str) -> String {
    let server = server.trim_end_matches('/');
    format!("{server}/render?from={}&target={}&format=json", escaped(from), escaped(query))
}

/// The newest value of the series; `None` if there is no series, or one without points.
pub(super) fn value(status: u16, body: &[u8]) -> Result<Option<f64>, ScalerError> {
    if !(200..300).contains(&status) {
        let body = hidden(body);
        bail!("graphite query api returned error. status: {status} response: {body}");
    }
    let answer = json(body)?;
    let series = match answer.as_array().map(Vec::as_slice) {
        None => {
            bail!("the answer is {} instead of a list of series", kind(Some(&answer)));
        }
        Some([]) => return Ok(None),
        Some([one]) => one,
        Some(many) => {
            let count = many.len();
            bail!("graphite query returned {count} series, only one is supported");
        }
    };
    let points = series.get("datapoints");
    let Some(points) = points.and_then(Value::as_array) else {
        bail!("the series has {} at datapoints instead of a list", kind(points));
    };
    if points.is_empty() {
        return Ok(None);
    }
    for point in points.iter().rev() {
        match point.get(0) {
            Some(Value::Null) => {}
            Some(Value::Number(number)) => return Ok(number.as_f64()),
            other => {
                bail!("a datapoint has {} instead of a value", kind(other));
            }
        }
    }
    // A gap in the data is not a zero.
    Err(scaler_error!("every value of the series is null: choose a longer queryTime, or correct the query"))
}
