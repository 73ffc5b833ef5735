//! Addresses of the admin API, and what it answers.

use serde_json::Value;

use crate::Error;
use crate::answers::{excerpt, json, kind, number};

/// The address of a topic's statistics. A topic may be written with or without its domain.
pub(super) fn url(admin: &str, topic: &str, partitioned: bool) -> String {
    let admin = admin.trim_end_matches('/');
    let (domain, name) = match topic.split_once("://") {
        Some((domain @ ("persistent" | "non-persistent"), name)) => (domain, name),
        _ => ("persistent", topic),
    };
    let stats = if partitioned { "partitioned-stats" } else { "stats" };
    format!("{admin}/admin/v2/{domain}/{name}/{stats}")
}

/// The backlog of a subscription. One that does not exist has no backlog of zero: nobody knows what it will be.
pub(super) fn backlog(status: u16, body: &[u8], subscription: &str) -> Result<f64, Error> {
    if status != 200 {
        return Err(Error::new(format!("Pulsar admin API returned {status}: {}", excerpt(body))));
    }
    let answer = json(body)?;
    let found = answer.get("subscriptions");
    let Some(subscriptions) = found.and_then(Value::as_object) else {
        return Err(Error::new(format!(
            "the answer has {} at subscriptions instead of an object",
            kind(found)
        )));
    };
    let Some(subscription) = subscriptions.get(subscription) else {
        return Err(Error::new(format!("the topic has no subscription {subscription:?}")));
    };
    number(subscription, "/msgBacklog")
}
