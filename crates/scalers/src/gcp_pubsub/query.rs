//! The query of a metric of Pub/Sub in the language of Cloud Monitoring (MQL), without IO.

use std::time::Duration;

use crate::ScalerError;

/// How far back points count.
const TIME_HORIZON: Duration = Duration::from_mins(2);
/// The same with an aggregation: with less there may be no data.
const AGGREGATION_TIME_HORIZON: Duration = Duration::from_mins(5);
/// The metric that KEDA calls `SubscriptionSize`.
const SUBSCRIPTION_SIZE: &str = "NumUndeliveredMessages";
/// Aggregations besides percentiles.
const AGGREGATIONS: [&str; 6] = ["median", "mean", "variance", "stddev", "sum", "count"];

/// What has the metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PubSubResource {
    Subscription,
    Topic,
}

impl PubSubResource {
    fn name(self) -> &'static str {
        match self {
            Self::Subscription => "subscription",
            Self::Topic => "topic",
        }
    }
}

/// Project and id of a resource; the project is empty if the name has none.
pub(super) fn resource(name: &str) -> (&str, &str) {
    match name.split('/').collect::<Vec<_>>().as_slice() {
        ["projects", project, "subscriptions" | "topics", id] => (project, id),
        _ => ("", name),
    }
}

/// The query. All parts of it are checked, because triggers write them.
pub(super) fn mql(
    kind: PubSubResource,
    (project, id): (&str, &str),
    mode: &str,
    aggregation: &str,
    horizon: Option<Duration>,
) -> Result<String, ScalerError> {
    check_id(id)?;
    let (kind, metric) = (kind.name(), metric(mode)?);
    let default = if aggregation.is_empty() { TIME_HORIZON } else { AGGREGATION_TIME_HORIZON };
    let horizon = horizon.filter(|horizon| !horizon.is_zero()).unwrap_or(default);
    let within = match horizon.subsec_millis() {
        0 => format!("{}s", horizon.as_secs()),
        _ => format!("{}ms", horizon.as_millis()),
    };
    let mut query = format!(
        "fetch pubsub_{kind} | metric 'pubsub.googleapis.com/{kind}/{metric}' | filter (resource.project_id == \
         '{project}' && resource.{kind}_id == '{id}') | within {within}"
    );
    if !aggregation.is_empty() {
        let aggregated = aggregated(aggregation)?;
        query.push_str(&format!(" | align delta(3m) | every 3m | group_by [], {aggregated}"));
    }
    Ok(query)
}

/// Checks the id of a subscription or topic.
fn check_id(id: &str) -> Result<(), ScalerError> {
    if id.to_ascii_lowercase().starts_with("goog") {
        bail!("invalid Pub/Sub resource name {id:?}: names cannot start with \"goog\"");
    }
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.~+%".contains(c);
    let is_valid = id.starts_with(|c: char| c.is_ascii_alphabetic())
        && (3..=255).contains(&id.len())
        && id.chars().all(allowed);
    if is_valid { Ok(()) } else { Err(scaler_error!("invalid Pub/Sub resource name {id:?}")) }
}

/// The metric of a mode: `OldestUnackedMessageAge` is `oldest_unacked_message_age`.
fn metric(mode: &str) -> Result<String, ScalerError> {
    let mode = if mode == "SubscriptionSize" { SUBSCRIPTION_SIZE } else { mode };
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '/');
    if mode.is_empty() || !mode.chars().all(allowed) {
        bail!("mode {mode:?} is not the name of a metric of Pub/Sub");
    }
    let letters: Vec<char> = mode.chars().collect();
    let mut snake = String::with_capacity(mode.len() + 8);
    for (at, letter) in letters.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|at| letters.get(at));
        let is_after_word = before.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
        let begins_word = before.is_some() && letters.get(at + 1).is_some_and(char::is_ascii_lowercase);
        if letter.is_ascii_uppercase() && (is_after_word || begins_word) {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    Ok(snake)
}

/// The function of an aggregation.
fn aggregated(aggregation: &str) -> Result<String, ScalerError> {
    if let Some(given) = aggregation.strip_prefix("percentile") {
        return match given.parse::<u8>() {
            Ok(percentile @ 0..=100) => Ok(format!("percentile(value, {percentile})")),
            _ => Err(scaler_error!("invalid percentile value: {given}")),
        };
    }
    if AGGREGATIONS.contains(&aggregation) {
        return Ok(format!("{aggregation}(value)"));
    }
    Err(scaler_error!("unsupported aggregation function: {aggregation}"))
}
