//! Requests to the machine learning API, without IO.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::Parameters;
use crate::ScalerError;
use crate::responses::{error_field, json as decoded, kind, parsed};
use crate::web::path_escaped;

/// How far a forecast reaches, as in KEDA.
pub(super) fn forecast_duration(look_ahead: Duration) -> Duration {
    look_ahead.saturating_mul(2)
}

/// Path and body of the request for a forecast.
pub(super) fn forecast_request(job: &str, look_ahead: Duration) -> (String, String) {
    let duration = format!("{}s", forecast_duration(look_ahead).as_secs_f64().ceil() as u64);
    let path = format!("/_ml/anomaly_detectors/{}/_forecast", path_escaped(job));
    (path, json!({"duration": duration, "expires_in": duration}).to_string())
}

/// The id of a forecast that was created.
pub(super) fn forecast_id(status: u16, body: &[u8]) -> Result<String, ScalerError> {
    check(status, body)?;
    match decoded(body)?.get("forecast_id") {
        Some(Value::String(id)) if !id.is_empty() => Ok(id.clone()),
        _ => Err(scaler_error!("forecast API response contained no forecast_id")),
    }
}

/// Path and body of the search for the value at the moment that is looked ahead to.
pub(super) fn search_request(parameters: &Parameters, forecast: &str, now: Timestamp) -> (String, String) {
    let ahead = i64::try_from(parameters.look_ahead.as_millis()).unwrap_or(i64::MAX);
    let moment = now.as_millisecond().saturating_add(ahead);
    let terms = [
        ("job_id", &*parameters.job_id),
        ("forecast_id", forecast),
        ("result_type", "model_forecast"),
        ("partition_field_value", &*parameters.partition_field_value),
        ("by_field_value", &*parameters.by_field_value),
        ("over_field_value", &*parameters.over_field_value),
    ];
    let terms = terms.into_iter().filter(|(_, value)| !value.is_empty());
    let mut filters: Vec<Value> = terms.map(|(name, value)| json!({"term": {name: value}})).collect();
    filters.push(json!({"range": {"timestamp": {"lte": moment}}}));
    let body = json!({
        "size": 1,
        "query": {"bool": {"filter": filters}},
        "sort": [{"timestamp": {"order": "desc"}}],
        "_source": ["forecast_prediction", "timestamp"],
    });
    let index = parameters.index.strip_prefix(".ml-anomalies-").unwrap_or(&parameters.index);
    (format!("/.ml-anomalies-{}/_search", path_escaped(index)), body.to_string())
}

/// The value in the result of a search; none if the forecast is not computed yet.
pub(super) fn prediction(status: u16, body: &[u8]) -> Result<Option<f64>, ScalerError> {
    check(status, body)?;
    let answer = decoded(body)?;
    let hits = answer.pointer("/hits/hits");
    let Some(hits) = hits.and_then(Value::as_array) else {
        bail!("the answer has {} at hits.hits instead of a list", kind(hits));
    };
    match hits.first().and_then(|hit| hit.pointer("/_source/forecast_prediction")) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Number(number)) => Ok(number.as_f64()),
        Some(Value::String(text)) if parsed(text).is_some() => Ok(parsed(text)),
        other => Err(scaler_error!("the forecast is {} instead of a number", kind(other))),
    }
}

fn check(status: u16, body: &[u8]) -> Result<(), ScalerError> {
    let why = match status {
        200..300 => return Ok(()),
        401 => "elasticsearch authentication failed (HTTP 401): check username/password or apiKey".to_owned(),
        403 => "elasticsearch authorization failed (HTTP 403): user has insufficient permissions".to_owned(),
        other => format!("elasticsearch returned HTTP {other}: {}", error_field(body, "/error/reason")),
    };
    Err(ScalerError::new(why))
}
