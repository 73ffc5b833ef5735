//! The request for a metric of Application Insights, and its response, without IO.

use serde_json::Value;

use super::Parameters;
use crate::ScalerError;
use crate::azure_client::azure_answer;
use crate::responses::kind;
use crate::web::{escaped, path_escaped, query_unescaped};

/// Path and query of the request.
pub(super) fn path(parameters: &Parameters) -> Result<String, ScalerError> {
    let Parameters { application, metric, timespan, aggregation_type, metric_filter, .. } = parameters;
    // The id of a metric has slashes, such as `requests/count`.
    let metric: Vec<String> = metric.split('/').map(path_escaped).collect();
    let mut url = format!(
        "/v1/apps/{}/metrics/{}?aggregation={}&timespan={}",
        path_escaped(application),
        metric.join("/"),
        escaped(aggregation_type),
        duration(timespan)?
    );
    if !metric_filter.is_empty() {
        // As in KEDA, it may be escaped already.
        let filter = query_unescaped(metric_filter);
        let filter = filter.ok_or_else(|| scaler_error!("metricFilter has an invalid escape sequence"))?;
        url.push_str(&format!("&filter={}", escaped(&filter)));
    }
    Ok(url)
}

/// `hh:mm` as ISO 8601.
fn duration(timespan: &str) -> Result<String, ScalerError> {
    let parts: Vec<u32> = timespan.split(':').filter_map(|part| part.parse().ok()).collect();
    match parts.as_slice() {
        [hours, minutes] => Ok(format!("PT{hours:02}H{minutes:02}M")),
        _ => Err(scaler_error!("invalid interval {timespan}")),
    }
}

/// The value of a metric; none if the answer has none.
pub(super) fn value(
    status: u16,
    body: &[u8],
    metric: &str,
    aggregation: &str,
) -> Result<Option<f64>, ScalerError> {
    let answer = azure_answer("Application Insights", status, body)?;
    let Some(metrics) = answer.get("value").and_then(Value::as_object) else {
        bail!("the answer of Application Insights has {} as value", kind(answer.get("value")));
    };
    match metrics.get(metric).and_then(|found| found.get(aggregation)) {
        None | Some(Value::Null) => Ok(None),
        Some(found) => match found.as_f64().filter(|number| number.is_finite()) {
            Some(number) => Ok(Some(number)),
            None => Err(scaler_error!("metric {metric} has {} as {aggregation}", kind(Some(found)))),
        },
    }
}
