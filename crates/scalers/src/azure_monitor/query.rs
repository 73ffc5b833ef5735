//! The request for a metric of Azure Monitor, and its response, without IO.

use jiff::Timestamp;
use serde_json::Value;

use super::Parameters;
use crate::ScalerError;
use crate::azure_client::azure_answer;
use crate::responses::{excerpt, kind};
use crate::web::{escaped, path_escaped};

/// How many seconds back values count by default.
const DEFAULT_SECONDS: i64 = 300;

/// Path and query of the request, and what equal requests have in common; their times differ.
pub(super) fn path(parameters: &Parameters, now: Timestamp) -> Result<(String, String), ScalerError> {
    let Parameters { subscription, resource_group, resource_uri, .. } = parameters;
    // Each part is one segment, so that no other resource can be named with the rights of the operator.
    let resource: Vec<String> = resource_uri.split('/').map(path_escaped).collect();
    let mut url = format!(
        "/subscriptions/{}/resourceGroups/{}/providers/{}/providers/Microsoft.Insights/metrics?api-version=2018-01-01",
        path_escaped(subscription),
        path_escaped(resource_group),
        resource.join("/")
    );
    for (name, value) in [
        ("metricnames", &parameters.metric_name),
        ("aggregation", &parameters.aggregation_type),
        ("metricnamespace", &parameters.metric_namespace),
        ("$filter", &parameters.metric_filter),
        ("interval", &parameters.metric_interval),
    ] {
        if !value.is_empty() {
            url.push_str(&format!("&{name}={}", escaped(value)));
        }
    }
    let seconds = seconds(&parameters.aggregation_interval)?;
    let end = now.as_second();
    let time = |second| Timestamp::from_second(second).unwrap_or(now);
    let timespan = format!("{}/{}", time(end.saturating_sub(seconds).max(0)), time(end));
    Ok((format!("{url}&timespan={}", escaped(&timespan)), format!("{seconds} {url}")))
}

/// The seconds of `hh:mm:ss`; the default if it is empty.
fn seconds(interval: &str) -> Result<i64, ScalerError> {
    if interval.is_empty() {
        return Ok(DEFAULT_SECONDS);
    }
    let parts: Vec<u32> = interval.split(':').filter_map(|part| part.parse().ok()).collect();
    match parts.as_slice() {
        [hours, minutes, seconds] => {
            Ok(i64::from(*hours) * 3600 + i64::from(*minutes) * 60 + i64::from(*seconds))
        }
        _ => Err(scaler_error!("metricAggregationInterval {interval} does not have the form hh:mm:ss")),
    }
}

/// The newest value of a metric.
pub(super) fn newest(status: u16, body: &[u8], aggregation: &str) -> Result<f64, ScalerError> {
    let answer = azure_answer("Azure Monitor", status, body)?;
    let Some(metric) = answer.get("value").and_then(Value::as_array).filter(|all| all.len() == 1) else {
        bail!("the answer of Azure Monitor has {} instead of one metric", kind(answer.get("value")));
    };
    let metric = metric.first().unwrap_or(&Value::Null);
    let text = |key: &str| metric.get(key).and_then(Value::as_str).unwrap_or_default();
    if !matches!(text("errorCode"), "" | "Success") {
        let message = format!("{}: {}", text("errorCode"), text("errorMessage"));
        bail!("Azure Monitor could not read the metric: {}", excerpt(&message));
    }
    let Some(series) = metric.pointer("/timeseries/0") else {
        bail!("the metric has no time series: check metricFilter and metricNamespace");
    };
    let Some(point) = series.get("data").and_then(Value::as_array).and_then(|points| points.last()) else {
        bail!("the time series of the metric has no values");
    };
    if aggregation == "None" {
        bail!("unsupported aggregation type None");
    }
    let value = point.get(aggregation.to_ascii_lowercase());
    value
        .and_then(Value::as_f64)
        .filter(|value| value.is_finite())
        .ok_or_else(|| scaler_error!("the newest point of the metric has {} as {aggregation}", kind(value)))
}
