//! URLs of the admin API, and its responses.

use serde_json::Value;

use crate::ScalerError;
use crate::responses::{error_field, json, kind, number};

/// The URL of a topic's statistics. The domain of the topic is optional.
pub(super) fn url(admin: &str, topic: &str, partitioned: bool) -> String {
    let admin = admin.trim_end_matches('/');
    let (domain, name) = match topic.split_once("://") {
        Some((domain @ ("persistent" | "non-persistent"), name)) => (domain, name),
        _ => ("persistent", topic),
    };
    let stats = if partitioned { "partitioned-stats" } else { "stats" };
    format!("{admin}/admin/v2/{domain}/{name}/{stats}")
}

/// The backlog of a subscription; an error if it does not exist, because its backlog is unknown.
pub(super) fn backlog(status: u16, body: &[u8], subscription: &str) -> Result<f64, ScalerError> {
    if status != 200 {
        bail!("Pulsar admin API returned {status}: {}", error_field(body, "/reason"));
    }
    let answer = json(body)?;
    let found = answer.get("subscriptions");
    let Some(subscriptions) = found.and_then(Value::as_object) else {
        bail!("the answer has {} at subscriptions instead of an object", kind(found));
    };
    let Some(subscription) = subscriptions.get(subscription) else {
        bail!("the topic has no subscription {subscription:?}");
    };
    number(subscription, "/msgBacklog")
}
