//! URLs and responses of SolarWinds Observability, without IO.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::Parameters;
use crate::ScalerError;
use crate::responses::{hidden, json, kind};
use crate::web::{escaped, path_escaped};

/// The URL of the measurements of the last interval.
pub(super) fn url(parameters: &Parameters, now: Timestamp) -> String {
    let seconds = i64::try_from(parameters.interval).unwrap_or(0).max(0);
    let start = now.saturating_sub(SignedDuration::from_secs(seconds)).unwrap_or(now);
    let time = |time: Timestamp| escaped(&time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
    let window = format!("&startTime={}&endTime={}", time(start), time(now));
    format!("{}{window}", without_window(parameters))
}

/// What requests with the same response have in common: all but the time window, which moves with every request, and its length.
pub(super) fn sharing_key(parameters: &Parameters) -> String {
    format!("{}#{}", without_window(parameters), parameters.interval)
}

fn without_window(parameters: &Parameters) -> String {
    let Parameters { host, metric_name, aggregation, filter, .. } = parameters;
    let mut url = format!(
        "{}/v1/metrics/{}/measurements?aggregateBy={}&seriesType=SCALAR",
        host.trim_end_matches('/'),
        path_escaped(metric_name),
        escaped(aggregation)
    );
    if !filter.is_empty() {
        url.push_str(&format!("&filter={}", escaped(filter)));
    }
    url
}

/// The first measurement that is not null.
pub(super) fn value(status: u16, body: &[u8]) -> Result<f64, ScalerError> {
    if status != 200 {
        bail!("SolarWinds returned {status}: {}", hidden(body));
    }
    let answer = json(body)?;
    let Some(groups) = answer.get("groupings").and_then(Value::as_array) else {
        bail!("the answer has {} at groupings instead of a list", kind(answer.get("groupings")));
    };
    let measurements = groups.iter().filter_map(|group| group.get("measurements")?.as_array()).flatten();
    let mut values = measurements.filter_map(|one| one.get("value")?.as_f64());
    values.find(|value| value.is_finite()).ok_or_else(|| scaler_error!("SolarWinds has no measurement"))
}
