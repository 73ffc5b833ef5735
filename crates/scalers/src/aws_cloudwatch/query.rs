//! The request for metric data in the JSON protocol of CloudWatch, and its response, without IO.

use serde_json::{Value, json};

use super::Parameters;
use crate::ScalerError;
use crate::aws::answer;
use crate::responses::{excerpt, kind};

/// Seconds from the year 1, from which Go rounds times, to 1970.
const SECONDS_BEFORE_EPOCH: i64 = 62_135_596_800;

/// Begin and end of the data in seconds: the end is the last one of a whole period.
pub(super) fn window(now: i64, parameters: &Parameters) -> (i64, i64) {
    let end = now.saturating_sub(parameters.end_offset);
    let since = end.saturating_add(SECONDS_BEFORE_EPOCH).checked_rem_euclid(parameters.period).unwrap_or(0);
    let end = end.saturating_sub(since);
    (end.saturating_sub(parameters.collection_time), end)
}

/// The request body for data of the metric or expression, newest first; `token` is that of the page before.
pub(super) fn request_body(parameters: &Parameters, now: i64, token: &str) -> String {
    let Parameters { namespace, metric_name, expression, statistic, metric_unit, period, account, .. } =
        parameters;
    let (start, end) = window(now, parameters);
    let mut query = if expression.is_empty() {
        let names = parameters.dimension_names.iter().zip(&parameters.dimension_values);
        let dimensions: Vec<Value> =
            names.map(|(name, value)| json!({"Name": name, "Value": value})).collect();
        let metric = json!({"Namespace": namespace, "MetricName": metric_name, "Dimensions": dimensions});
        let mut stat = json!({"Metric": metric, "Period": period, "Stat": statistic});
        if !metric_unit.is_empty() {
            set(&mut stat, "Unit", metric_unit);
        }
        json!({"Id": "c1", "MetricStat": stat, "ReturnData": true})
    } else {
        json!({"Id": "q1", "Expression": expression, "Period": period})
    };
    if !account.is_empty() {
        set(&mut query, "AccountId", account);
    }
    let mut body = json!({
        "StartTime": start,
        "EndTime": end,
        "ScanBy": "TimestampDescending",
        "MetricDataQueries": [query],
    });
    if !token.is_empty() {
        set(&mut body, "NextToken", token);
    }
    body.to_string()
}

fn set(object: &mut Value, key: &str, text: &str) {
    if let Value::Object(fields) = object {
        fields.insert(key.to_owned(), Value::from(text));
    }
}

/// What a page of metric data has.
#[derive(Debug, PartialEq)]
pub(super) enum CloudwatchPage {
    /// The newest value of the first metric.
    Value(f64),
    /// No value yet, and the token of the next page.
    Next(String),
    /// No value.
    Nothing,
}

/// Reads a page of metric data.
pub(super) fn newest(status: u16, body: &[u8]) -> Result<CloudwatchPage, ScalerError> {
    let answer = answer("CloudWatch", status, body)?;
    let Some(results) = answer.get("MetricDataResults").and_then(Value::as_array) else {
        bail!("the answer of CloudWatch has {} as MetricDataResults", kind(answer.get("MetricDataResults")));
    };
    let first = results.first();
    let values = match first.and_then(|result| result.get("Values")) {
        None | Some(Value::Null) => None,
        Some(Value::Array(values)) => values.first(),
        Some(other) => bail!("the answer of CloudWatch has {} as Values", kind(Some(other))),
    };
    if let Some(value) = values {
        let number = value.as_f64().filter(|number| number.is_finite());
        let number =
            number.ok_or_else(|| scaler_error!("CloudWatch answered {} as value", kind(Some(value))))?;
        return Ok(CloudwatchPage::Value(number));
    }
    // A metric that could not be read is not one without data.
    let status = first.and_then(|result| result.get("StatusCode")).and_then(Value::as_str);
    if let Some(status @ ("Forbidden" | "InternalError")) = status {
        let message = |holder: &Value| {
            holder.pointer("/Messages/0/Value").and_then(Value::as_str).map(excerpt).unwrap_or_default()
        };
        let detail =
            first.map(message).filter(|detail| !detail.is_empty()).unwrap_or_else(|| message(&answer));
        bail!("CloudWatch could not read the metric ({status}): {detail}");
    }
    match answer.get("NextToken").and_then(Value::as_str) {
        Some(token) if !token.is_empty() => Ok(CloudwatchPage::Next(token.to_owned())),
        _ => Ok(CloudwatchPage::Nothing),
    }
}
