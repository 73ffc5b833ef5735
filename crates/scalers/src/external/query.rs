//! Metadata, specs, values and delays, without IO.

use std::time::Duration;

use api::autoscaling::v2;
use api::provider::Compat;
use external_scaler::ScaledObjectRef;
use external_scaler::protocol::{MetricSpec, MetricValue};

use crate::{ParseError, ReadingValue, Trigger, metric};

/// Delay before the first reconnection of a stream; it doubles each time.
pub(super) const MIN_RECONNECT_DELAY: Duration = Duration::from_secs(2);
/// Maximum delay.
const MAX_RECONNECT_DELAY: Duration = Duration::from_mins(1);

/// The reference sent to the server: all metadata, where keys that end in `FromEnv` have the value of the variable.
pub(super) fn object(trigger: &Trigger) -> ScaledObjectRef {
    let metadata = trigger.metadata.iter().filter_map(|(key, value)| {
        let value = if key.ends_with("FromEnv") {
            trigger.environment.get(value).filter(|value| !value.is_empty())?
        } else {
            value
        };
        Some((key.clone(), value.clone()))
    });
    ScaledObjectRef {
        name: trigger.owner.name.clone(),
        namespace: trigger.owner.namespace.clone(),
        scaler_metadata: metadata.collect(),
    }
}

/// The metric spec for the HPA. The server's metric name is not escaped.
pub(super) fn spec(trigger: &Trigger, spec: &MetricSpec) -> v2::MetricSpec {
    let target = if spec.target_size_float > 0.0 {
        metric::milli(spec.target_size_float)
    } else {
        metric::whole(spec.target_size)
    };
    metric::external_named(trigger, format!("s{}-{}", trigger.index, spec.metric_name), target)
}

/// The server's name of a metric.
pub(super) fn own_name(index: usize, metric: &str) -> &str {
    metric.strip_prefix(&*format!("s{index}-")).unwrap_or(metric)
}

/// The values, under the requested name.
pub(super) fn values(
    requested: &str,
    values: &[MetricValue],
    compat: Compat,
) -> Result<Vec<ReadingValue>, ParseError> {
    let one = |value: &MetricValue| {
        // KEDA turns infinity, and NaN without a whole value, into 0, which would scale the target in.
        let float = value.metric_value_float;
        if (float.is_infinite() || float.is_nan() && value.metric_value <= 0) && !compat.is_strict() {
            let what = if float.is_nan() { "not a number" } else { "infinite" };
            return Err(format!("the value of {requested} is {what}").into());
        }
        let amount = if value.metric_value_float > 0.0 {
            metric::milli(value.metric_value_float)
        } else {
            metric::whole(value.metric_value.max(0))
        };
        Ok(ReadingValue { name: requested.to_owned(), value: amount })
    };
    values.iter().map(one).collect()
}

/// The delay before reconnecting, and the delay after the next end. It starts over after a clean end, or after a stream that
/// lasted longer than the maximum delay.
pub(super) fn reconnect(delay: Duration, clean: bool, lived: Duration) -> (Duration, Duration) {
    let wait = if clean || lived > MAX_RECONNECT_DELAY { MIN_RECONNECT_DELAY } else { delay };
    let next = if clean { MIN_RECONNECT_DELAY } else { (wait * 2).min(MAX_RECONNECT_DELAY) };
    (wait, next)
}
