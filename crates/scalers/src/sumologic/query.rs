//! Requests of Sumo Logic's metric queries and search jobs, and their responses.

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use crate::ScalerError;
use crate::responses::{error_field, excerpt, json as read, kind, number, parsed};

/// Type of both boundaries of a time range.
const BOUNDARY: &str = "Iso8601TimeRangeBoundary";

/// Begin and end of the time range of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct QueryRange {
    from: String,
    to: String,
}

/// The state of a search job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SearchJob {
    /// Records are not complete yet.
    Gathering,
    /// All records are there: their number.
    Done(u64),
}

impl QueryRange {
    /// The range before now, in a time zone.
    pub(super) fn new(now: Timestamp, back: Duration, zone: &str) -> Result<Self, ScalerError> {
        let zone = TimeZone::get(zone).map_err(|_| scaler_error!("the time zone {zone:?} is not known"))?;
        let back = i64::try_from(back.as_secs()).unwrap_or(i64::MAX);
        let from = Timestamp::from_second(now.as_second().saturating_sub(back))
            .map_err(|_| scaler_error!("timerange is too long"))?;
        let text = |at: Timestamp| at.to_zoned(zone.clone()).strftime("%Y-%m-%dT%H:%M:%S%:z").to_string();
        Ok(Self { from: text(from), to: text(now) })
    }
}

/// The URL of metric queries.
pub(super) fn metrics_url(host: &str) -> String {
    format!("{}/api/v1/metricsQueries", host.trim_end_matches('/'))
}

/// The URL of search jobs.
pub(super) fn jobs_url(host: &str) -> String {
    format!("{}/api/v1/search/jobs", host.trim_end_matches('/'))
}

/// The request of metric queries with their row ids.
pub(super) fn metrics_body(
    rows: &[(String, String)],
    (quantization, rollup): (Duration, &str),
    range: &QueryRange,
) -> String {
    let quantization = u64::try_from(quantization.as_millis()).unwrap_or(u64::MAX);
    let rows: Vec<Value> = rows
        .iter()
        .map(|(id, query)| json!({"rowId": id, "query": query, "quantization": quantization, "rollup": rollup}))
        .collect();
    let at = |time: &str| json!({"type": BOUNDARY, "iso8601Time": time});
    let range = json!({"type": "BeginBoundedTimeRange", "from": at(&range.from), "to": at(&range.to)});
    json!({"queries": rows, "timeRange": range}).to_string()
}

/// The request of a search job.
pub(super) fn job_body(query: &str, range: &QueryRange, zone: &str) -> String {
    json!({"query": query, "from": range.from, "to": range.to, "timeZone": zone}).to_string()
}

/// Whether a request may succeed if it is repeated.
pub(super) fn is_transient(status: u16) -> bool {
    status == 429 || status >= 500
}

fn accepted(status: u16, body: &[u8]) -> Result<Value, ScalerError> {
    match status {
        200..=299 => read(body),
        401 => bail!("Sumo Logic returned 401: check accessID and accessKey"),
        _ => bail!("Sumo Logic returned {status}: {}", error_field(body, "/errors/0/message")),
    }
}

/// The points of a row in the response of metric queries; none without data.
pub(super) fn points(status: u16, body: &[u8], row: &str) -> Result<Option<Vec<f64>>, ScalerError> {
    let answer = accepted(status, body)?;
    if let Some(error) = answer.pointer("/errors/errors/0") {
        let message = error.get("message").and_then(Value::as_str).map_or_else(String::new, excerpt);
        bail!("query execution failed with errors: {message}");
    }
    let Some(results) = answer.get("queryResult").and_then(Value::as_array) else {
        bail!("the answer has {} at queryResult instead of a list", kind(answer.get("queryResult")));
    };
    if results.is_empty() {
        return Ok(None);
    }
    let Some(result) = results.iter().find(|one| one.get("rowId").and_then(Value::as_str) == Some(row))
    else {
        bail!("no query result with matching resultQueryRowID {row} found in metrics query response");
    };
    let series = result.pointer("/timeSeriesList/timeSeries");
    let Some(series) = series.and_then(Value::as_array) else {
        bail!("the answer has {} at timeSeriesList.timeSeries instead of a list", kind(series));
    };
    let points = match series.as_slice() {
        [] => return Ok(None),
        [one] => one.pointer("/points/values"),
        _ => bail!("multiple time series results found, only single time series queries are supported"),
    };
    let Some(values) = points.and_then(Value::as_array) else {
        bail!("the answer has {} at points.values instead of a list", kind(points));
    };
    // A point without a value is no point.
    let mut numbers = Vec::new();
    for value in values.iter().filter(|value| !value.is_null()) {
        let number = value.as_f64().filter(|number| number.is_finite());
        numbers.push(
            number.ok_or_else(|| scaler_error!("a point is {} instead of a number", kind(Some(value))))?,
        );
    }
    Ok((!numbers.is_empty()).then_some(numbers))
}

/// The id of a new search job.
pub(super) fn job_id(status: u16, body: &[u8]) -> Result<String, ScalerError> {
    let answer = accepted(status, body)?;
    let id = answer.get("id").and_then(Value::as_str).filter(|id| !id.is_empty());
    id.map(str::to_owned).ok_or_else(|| scaler_error!("Sumo Logic answered without the id of the search job"))
}

/// The state of a search job.
pub(super) fn job(status: u16, body: &[u8]) -> Result<SearchJob, ScalerError> {
    let answer = accepted(status, body)?;
    match answer.get("state").and_then(Value::as_str) {
        Some("DONE GATHERING RESULTS") => {}
        Some(state @ ("CANCELLED" | "FORCE PAUSED")) => bail!("search job failed, state: {state}"),
        Some(_) => return Ok(SearchJob::Gathering),
        None => bail!("the answer has {} at state instead of a string", kind(answer.get("state"))),
    }
    let (records, messages) = (number(&answer, "/recordCount")?, number(&answer, "/messageCount")?);
    if records <= 0.0 && messages > 0.0 {
        bail!("only agg queries are supported, please check your query");
    }
    Ok(SearchJob::Done(records.max(0.0) as u64))
}

/// The numbers in a field of the records of a search job.
pub(super) fn records(status: u16, body: &[u8], field: &str) -> Result<Vec<f64>, ScalerError> {
    let answer = accepted(status, body)?;
    let Some(records) = answer.get("records").and_then(Value::as_array) else {
        bail!("the answer has {} at records instead of a list", kind(answer.get("records")));
    };
    let mut numbers = Vec::new();
    for value in records.iter().filter_map(|record| record.get("map")?.get(field)) {
        let number = match value {
            Value::String(text) => parsed(text),
            other => other.as_f64().filter(|number| number.is_finite()),
        };
        let wrong = || {
            scaler_error!("failed to parse resultField: {field} has {} that is no number", kind(Some(value)))
        };
        numbers.push(number.ok_or_else(wrong)?);
    }
    Ok(numbers)
}

/// One value of several.
pub(super) fn aggregated(values: &[f64], aggregator: &str) -> Result<f64, ScalerError> {
    let Some(last) = values.last() else {
        bail!("error computing metric stats: no values provided");
    };
    let (sum, count) = (values.iter().sum::<f64>(), values.len() as f64);
    match aggregator {
        "Latest" => Ok(*last),
        "Sum" => Ok(sum),
        "Count" => Ok(count),
        "Avg" => Ok(sum / count),
        "Min" => Ok(values.iter().copied().fold(f64::INFINITY, f64::min)),
        "Max" => Ok(values.iter().copied().fold(f64::NEG_INFINITY, f64::max)),
        other => Err(scaler_error!("invalid aggregation '{other}'")),
    }
}
