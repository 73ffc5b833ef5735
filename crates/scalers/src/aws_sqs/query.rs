//! The question in SQS's JSON protocol, and its answer.

use serde_json::{Value, json};

use crate::Error;
use crate::answers::{excerpt, json as read, kind};
use crate::urls::path;

/// Messages that wait, that are being worked on, that are not due yet.
pub(super) const WAITING: &str = "ApproximateNumberOfMessages";
pub(super) const IN_FLIGHT: &str = "ApproximateNumberOfMessagesNotVisible";
pub(super) const DELAYED: &str = "ApproximateNumberOfMessagesDelayed";

/// The name of a queue: that of its address, or a bare one.
pub(super) fn name(url: &str) -> Result<&str, Error> {
    let address = url.contains("://") || url.starts_with('/');
    if !address {
        return Ok(url);
    }
    let path = path(url).split('?').next().unwrap_or_default();
    match path.split('/').collect::<Vec<_>>().as_slice() {
        ["", _, name] if !name.is_empty() => Ok(name),
        _ => Err(Error::new("cannot get queueName from queueURL")),
    }
}

/// Where a region is asked.
pub(super) fn endpoint(region: &str, given: Option<&str>) -> String {
    match given {
        Some(given) => given.trim_end_matches('/').to_owned(),
        None if region.starts_with("cn-") => format!("https://sqs.{region}.amazonaws.com.cn"),
        None => format!("https://sqs.{region}.amazonaws.com"),
    }
}

/// The question for attributes of a queue.
pub(super) fn question(url: &str, attributes: &[&str]) -> String {
    json!({"QueueUrl": url, "AttributeNames": attributes}).to_string()
}

/// The sum of attributes.
pub(super) fn length(status: u16, body: &[u8], attributes: &[&str]) -> Result<i64, Error> {
    if status != 200 {
        return Err(Error::new(format!("SQS returned {status}: {}", reason(body))));
    }
    let answer = read(body)?;
    let mut sum = 0_i64;
    for name in attributes {
        let Some(found) = answer.get("Attributes").and_then(|all| all.get(name)) else {
            return Err(Error::new(format!("metric {name} not found in SQS queue attributes")));
        };
        let count: Option<i64> = found.as_str().and_then(|text| text.parse().ok()).or_else(|| found.as_i64());
        let count = count.ok_or_else(|| Error::new(format!("SQS answered {} as {name}", kind(Some(found)))))?;
        sum = sum.saturating_add(count);
    }
    Ok(sum)
}

/// Why AWS refused.
fn reason(body: &[u8]) -> String {
    let Ok(answer) = read(body) else { return excerpt(body) };
    let text = |key: &str| answer.get(key).and_then(Value::as_str).unwrap_or_default();
    // `com.amazonaws.sqs#QueueDoesNotExist`
    let type_ = text("__type").rsplit('#').next().unwrap_or_default();
    let message = [text("message"), text("Message")].concat();
    match (type_, &*message) {
        ("", "") => excerpt(body),
        (type_, message) => excerpt(format!("{type_}: {message}").as_bytes()),
    }
}
