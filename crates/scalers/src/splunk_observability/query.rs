//! Requests and event streams of SignalFlow, without IO.

use serde_json::Value;

use crate::ScalerError;
use crate::responses::{error_field, excerpt, hidden, json, kind};
use crate::web::path_escaped;

/// The URL that runs a program over a past span of time, in milliseconds of Unix time.
pub(super) fn url(realm: &str, start: i64, stop: i64) -> String {
    // The realm cannot end the host name.
    let realm = path_escaped(realm).replace(['.', ':', '@'], "");
    format!(
        "https://stream.{realm}.signalfx.com/v2/signalflow/execute?start={start}&stop={stop}&immediate=true"
    )
}

/// The times (milliseconds of Unix time) and values of all points in a stream, in their order.
pub(super) fn points(status: u16, body: &[u8]) -> Result<Vec<(i64, f64)>, ScalerError> {
    if status != 200 {
        bail!("Splunk Observability Cloud returned {status}: {}", error_field(body, "/message"));
    }
    let text = std::str::from_utf8(body)
        .map_err(|_| scaler_error!("the answer is no stream of events: {}", hidden(body)))?;
    let (mut points, mut is_over) = (Vec::new(), false);
    for message in text.replace("\r\n", "\n").split("\n\n") {
        let Some((name, data)) = event(message) else { continue };
        match &*name {
            "data" => points.extend(values(&json(data.as_bytes())?)?),
            "control-message" => {
                let message = json(data.as_bytes())?;
                match message.get("event").and_then(Value::as_str) {
                    Some("END_OF_CHANNEL") => is_over = true,
                    Some("CHANNEL_ABORT") => {
                        let why = message.pointer("/abortInfo/sf_job_abortReason").and_then(Value::as_str);
                        bail!("the program was aborted: {}", excerpt(why.unwrap_or_default()));
                    }
                    _ => {}
                }
            }
            "error" => {
                let message = json(data.as_bytes())?;
                let found = message.pointer("/errors/0/code").or_else(|| message.get("message"));
                let why = found.and_then(Value::as_str).unwrap_or_default();
                bail!("the program is refused: {}", excerpt(why));
            }
            _ => {}
        }
    }
    if !is_over {
        bail!("the stream ended before the program did: {}", hidden(body));
    }
    Ok(points)
}

/// The name and the data of an event.
fn event(message: &str) -> Option<(String, String)> {
    let field = |line: &str, name: &str| {
        line.strip_prefix(name)?
            .strip_prefix(':')
            .map(|value| value.strip_prefix(' ').unwrap_or(value).to_owned())
    };
    let name = message.lines().find_map(|line| field(line, "event"))?;
    let data: Vec<String> = message.lines().filter_map(|line| field(line, "data")).collect();
    Some((name, data.join("\n")))
}

/// The values of the points in the last `span` milliseconds, up to the latest point.
pub(super) fn latest(points: &[(i64, f64)], span: i64) -> Vec<f64> {
    let end = points.iter().map(|(time, _)| *time).max().unwrap_or_default();
    points.iter().filter(|(time, _)| end.saturating_sub(*time) < span).map(|(_, value)| *value).collect()
}

/// The time and the values of a data message; a series without a point at this time has none.
fn values(message: &Value) -> Result<Vec<(i64, f64)>, ScalerError> {
    let time = message.get("logicalTimestampMs");
    let Some(time) = time.and_then(Value::as_i64) else {
        bail!("the time of a message is {} instead of a whole number", kind(time));
    };
    let found = message.get("data");
    let Some(data) = found.and_then(Value::as_array) else {
        bail!("the data of a message are {} instead of a list", kind(found));
    };
    let mut values = Vec::new();
    for point in data {
        match point.get("value") {
            Some(Value::Null) => {}
            Some(Value::Number(number)) => values.extend(number.as_f64().map(|value| (time, value))),
            other => bail!("the value of a point is {} instead of a number", kind(other)),
        }
    }
    Ok(values)
}

/// One value out of all points.
pub(super) fn aggregated(points: &[f64], aggregator: &str) -> Result<f64, ScalerError> {
    let Some(latest) = points.last() else { bail!("query returned no data points") };
    let sum: f64 = points.iter().sum();
    match aggregator {
        "max" => Ok(points.iter().copied().fold(f64::NEG_INFINITY, f64::max)),
        "min" => Ok(points.iter().copied().fold(f64::INFINITY, f64::min)),
        "avg" => Ok(sum / points.len() as f64),
        "sum" => Ok(sum),
        "count" => Ok(points.len() as f64),
        "latest" => Ok(*latest),
        "" if points.len() == 1 => Ok(*latest),
        "" => Err(scaler_error!(
            "query returned more than 1 series; modify the query to return only 1 series or add a queryAggregator"
        )),
        other => Err(scaler_error!("invalid queryAggregator: {}", api::gotext::quote(other))),
    }
}
