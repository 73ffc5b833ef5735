//! The URL of the measures of a Gnocchi metric, and its response: rows of time, granularity and value.

use jiff::Timestamp;

use crate::ScalerError;
use crate::responses::{error_field, json, kind};
use crate::web::{escaped, path_escaped};

/// From when on measures are read: a full minute, at most the granularity ago, as in KEDA.
pub(super) fn start(granularity: isize, now: Timestamp) -> Result<String, ScalerError> {
    if granularity < 1 {
        bail!("granularity value is less than 1");
    }
    let minutes = (granularity as i64 / 60 - 1).max(0);
    let start =
        Timestamp::from_second(now.as_second().saturating_sub(minutes.saturating_mul(60))).map_err(|_| {
            scaler_error!("granularity is too long: measures of {granularity} s ago do not exist")
        })?;
    Ok(start.strftime("%Y-%m-%dT%H:%M:00").to_string())
}

/// The URL of the measures since a time; the URL of the metrics may have a query.
pub(super) fn url(
    metrics: &str,
    metric: &str,
    (aggregation, granularity): (&str, isize),
    start: &str,
) -> String {
    let (metrics, given) = metrics.split_once('?').unwrap_or((metrics, ""));
    let (metrics, metric) = (metrics.trim_end_matches('/'), path_escaped(metric));
    let (aggregation, start) = (escaped(aggregation), escaped(start));
    let given = if given.is_empty() { String::new() } else { format!("{given}&") };
    format!(
        "{metrics}/{metric}/measures?{given}aggregation={aggregation}&granularity={granularity}&start={start}"
    )
}

/// The value of the newest measure; 0 without measures, as in KEDA.
pub(super) fn value(status: u16, body: &[u8]) -> Result<f64, ScalerError> {
    match status {
        200 => {}
        401 | 403 => bail!("Gnocchi returned {status}: the token has no right to the metric"),
        _ => bail!("Gnocchi returned {status}: {}", error_field(body, "/description")),
    }
    let answer = json(body)?;
    let Some(measures) = answer.as_array() else {
        bail!("the answer is {} instead of a list of measures", kind(Some(&answer)));
    };
    let Some(newest) = measures.last() else { return Ok(0.0) };
    match newest.as_array().map(Vec::as_slice) {
        Some([_, _, value]) => value
            .as_f64()
            .filter(|number| number.is_finite())
            .ok_or_else(|| scaler_error!("the newest measure has {} instead of a number", kind(Some(value)))),
        Some(other) => Err(scaler_error!(
            "the newest measure has {} fields instead of time, granularity and value",
            other.len()
        )),
        None => Err(scaler_error!("the newest measure is {} instead of a list", kind(Some(newest)))),
    }
}
