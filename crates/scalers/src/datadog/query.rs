//! Requests to Datadog and its cluster agent, and their responses.

use quantity::Quantity;
use serde_json::Value;

use crate::ScalerError;
use crate::responses::{error_field, excerpt, json, kind};
use crate::web::{escaped, path_escaped};

/// How the results of several queries are aggregated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Aggregator {
    /// The largest.
    Max,
    /// The mean.
    Average,
}

/// The metric of a query: everything before the scope.
pub(super) fn metric(query: &str) -> Result<&str, ScalerError> {
    match query.split_once('{') {
        Some((metric, scope)) if scope.contains('}') => Ok(metric),
        _ => Err(scaler_error!("error in query: malformed Datadog query: missing query scope")),
    }
}

/// The URL of a query over the time from `from` to `to`, in Unix seconds.
pub(super) fn url(api: &str, query: &str, from: i64, to: i64) -> String {
    format!("{api}/api/v1/query?from={from}&to={to}&query={}", escaped(query))
}

/// The value of a query; `None` if there is none in the time window.
pub(super) fn value(
    status: u16,
    body: &[u8],
    aggregator: Option<Aggregator>,
    back: usize,
) -> Result<Option<f64>, ScalerError> {
    match status {
        200..=299 => {}
        429 => {
            bail!(
                "the rate limit of the Datadog API is reached (429): ask less often, or let the cluster agent ask"
            );
        }
        _ => bail!("Datadog API returned {status}: {}", error_field(body, "/errors/0")),
    }
    let answer = json(body)?;
    if answer.get("status").and_then(Value::as_str) == Some("error") {
        let why = answer.get("error").and_then(Value::as_str).unwrap_or("no reason given");
        bail!("error getting metrics from Datadog: {}", excerpt(why));
    }
    let found = answer.get("series");
    let Some(series) = found.and_then(Value::as_array) else {
        bail!("the answer has {} at series instead of a list", kind(found));
    };
    if series.len() > 1 && aggregator.is_none() {
        bail!(
            "query returned more than 1 series; modify the query to return only 1 series or add a queryAggregator"
        );
    }
    let mut values = Vec::with_capacity(series.len());
    for one in series {
        // What is known of the other series is not the value of the query.
        let Some(value) = point(one, back)? else { return Ok(None) };
        values.push(value);
    }
    if values.is_empty() {
        return Ok(None);
    }
    Ok(Some(match aggregator {
        Some(Aggregator::Average) => values.iter().sum::<f64>() / values.len() as f64,
        Some(Aggregator::Max) | None => values.into_iter().fold(f64::NEG_INFINITY, f64::max),
    }))
}

/// The value `back` points before the last of a series.
fn point(series: &Value, back: usize) -> Result<Option<f64>, ScalerError> {
    let found = series.get("pointlist");
    let Some(points) = found.and_then(Value::as_array) else {
        bail!("a series has {} at pointlist instead of a list", kind(found));
    };
    let mut values = Vec::new();
    for point in points {
        match point.get(1) {
            Some(Value::Number(number)) => values.extend(number.as_f64()),
            // Null means that there is no measurement (yet).
            Some(Value::Null) => {}
            other => bail!("a point has {} instead of a value", kind(other)),
        }
    }
    Ok(values.into_iter().rev().nth(back))
}

/// The URL of a metric at the cluster agent.
pub(super) fn agent_url(service: &str, namespace: &str, port: i64, metrics_of: &str, metric: &str) -> String {
    let path = format!("namespaces/{}/{}", path_escaped(metrics_of), path_escaped(metric));
    format!("https://{service}.{namespace}:{port}/apis/external.metrics.k8s.io/v1beta1/{path}")
}

/// The value that the cluster agent serves; `None` if it has none.
pub(super) fn agent_value(status: u16, body: &[u8]) -> Result<Option<f64>, ScalerError> {
    if !(200..300).contains(&status) {
        bail!("the Datadog cluster agent returned {status}: {}", error_field(body, "/message"));
    }
    let answer = json(body)?;
    let found = answer.get("items");
    let Some(items) = found.and_then(Value::as_array) else {
        bail!("the answer has {} at items instead of a list", kind(found));
    };
    let Some(first) = items.first() else { return Ok(None) };
    let value = first.get("value");
    let quantity = value.and_then(Value::as_str).and_then(|text| Quantity::parse(text).ok());
    match quantity {
        Some(quantity) => Ok(Some(quantity.as_f64())),
        None => Err(scaler_error!("the cluster agent served {} as value instead of a quantity", kind(value))),
    }
}
