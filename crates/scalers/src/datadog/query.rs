//! What Datadog and its cluster agent are asked, and what they answer.

use quantity::Quantity;
use serde_json::Value;

use crate::Error;
use crate::answers::{excerpt, json, kind};
use crate::web::{escaped, path_escaped};

/// How the results of several queries become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Aggregator {
    /// The largest.
    Max,
    /// Their mean.
    Average,
}

/// The part of a query that names its metric: all before the scope.
pub(super) fn metric(query: &str) -> Result<&str, Error> {
    match query.split_once('{') {
        Some((metric, _)) if query.contains('}') => Ok(metric),
        _ => Err(Error::new("error in query: malformed Datadog query: missing query scope")),
    }
}

/// The address of a query about the time from `from` to `to`, in seconds.
pub(super) fn url(api: &str, query: &str, from: i64, to: i64) -> String {
    format!("{api}/api/v1/query?from={from}&to={to}&query={}", escaped(query))
}

/// The value of a query; `None` if there is none in this time.
pub(super) fn value(
    status: u16,
    body: &[u8],
    aggregator: Option<Aggregator>,
    back: usize,
) -> Result<Option<f64>, Error> {
    match status {
        200..=299 => {}
        429 => {
            return Err(Error::new(
                "the rate limit of the Datadog API is reached (429): ask less often, or let the cluster agent ask",
            ));
        }
        _ => return Err(Error::new(format!("Datadog API returned {status}: {}", excerpt(body)))),
    }
    let answer = json(body)?;
    if answer.get("status").and_then(Value::as_str) == Some("error") {
        let why = answer.get("error").and_then(Value::as_str).unwrap_or("no reason given");
        return Err(Error::new(format!("error getting metrics from Datadog: {}", excerpt(why.as_bytes()))));
    }
    let found = answer.get("series");
    let Some(series) = found.and_then(Value::as_array) else {
        return Err(Error::new(format!("the answer has {} at series instead of a list", kind(found))));
    };
    if series.len() > 1 && aggregator.is_none() {
        return Err(Error::new(
            "query returned more than 1 series; modify the query to return only 1 series or add a queryAggregator",
        ));
    }
    let mut values = Vec::with_capacity(series.len());
    for one in series {
        values.extend(point(one, back)?);
    }
    if values.is_empty() {
        return Ok(None);
    }
    Ok(Some(match aggregator {
        Some(Aggregator::Average) => values.iter().sum::<f64>() / values.len() as f64,
        Some(Aggregator::Max) | None => values.into_iter().fold(f64::NEG_INFINITY, f64::max),
    }))
}

/// The last value of a series, or so many before it.
fn point(series: &Value, back: usize) -> Result<Option<f64>, Error> {
    let found = series.get("pointlist");
    let Some(points) = found.and_then(Value::as_array) else {
        return Err(Error::new(format!("a series has {} at pointlist instead of a list", kind(found))));
    };
    let mut values = Vec::new();
    for point in points {
        match point.get(1) {
            Some(Value::Number(number)) => values.extend(number.as_f64()),
            // Not measured, or not yet.
            Some(Value::Null) => {}
            other => return Err(Error::new(format!("a point has {} instead of a value", kind(other)))),
        }
    }
    Ok(values.into_iter().rev().nth(back))
}

/// Where the cluster agent serves a metric.
pub(super) fn agent_url(service: &str, namespace: &str, port: i64, metrics_of: &str, metric: &str) -> String {
    let path = format!("namespaces/{}/{}", path_escaped(metrics_of), path_escaped(metric));
    format!("https://{service}.{namespace}:{port}/apis/external.metrics.k8s.io/v1beta1/{path}")
}

/// The value that the cluster agent serves; `None` if it has none.
pub(super) fn agent_value(status: u16, body: &[u8]) -> Result<Option<f64>, Error> {
    if !(200..300).contains(&status) {
        return Err(Error::new(format!("the Datadog cluster agent returned {status}: {}", excerpt(body))));
    }
    let answer = json(body)?;
    let found = answer.get("items");
    let Some(items) = found.and_then(Value::as_array) else {
        return Err(Error::new(format!("the answer has {} at items instead of a list", kind(found))));
    };
    let Some(first) = items.first() else { return Ok(None) };
    let value = first.get("value");
    let quantity = value.and_then(Value::as_str).and_then(|text| Quantity::parse(text).ok());
    match quantity {
        Some(quantity) => Ok(Some(quantity.as_f64())),
        None => Err(Error::new(format!(
            "the cluster agent served {} as value instead of a quantity",
            kind(value)
        ))),
    }
}
