//! The request in the JSON protocol of SQS, and its response.

use serde_json::json;

use crate::ScalerError;
use crate::aws::answer;
use crate::responses::kind;
use crate::urls::path;

/// Attributes for visible, in-flight and delayed messages.
pub(super) const WAITING: &str = "ApproximateNumberOfMessages";
pub(super) const IN_FLIGHT: &str = "ApproximateNumberOfMessagesNotVisible";
pub(super) const DELAYED: &str = "ApproximateNumberOfMessagesDelayed";

/// The name of a queue, from its URL or as given.
pub(super) fn name(url: &str) -> Result<&str, ScalerError> {
    let address = url.contains("://") || url.starts_with('/');
    if !address {
        return Ok(url);
    }
    let path = path(url).split('?').next().unwrap_or_default();
    match path.split('/').collect::<Vec<_>>().as_slice() {
        ["", _, name] if !name.is_empty() => Ok(name),
        _ => Err(scaler_error!("cannot get queueName from queueURL")),
    }
}

/// The request body for attributes of a queue.
pub(super) fn request_body(url: &str, attributes: &[&str]) -> String {
    json!({"QueueUrl": url, "AttributeNames": attributes}).to_string()
}

/// The sum of attributes.
pub(super) fn length(status: u16, body: &[u8], attributes: &[&str]) -> Result<i64, ScalerError> {
    let answer = answer("SQS", status, body)?;
    let mut sum = 0_i64;
    for name in attributes {
        let Some(found) = answer.get("Attributes").and_then(|all| all.get(name)) else {
            bail!("metric {name} not found in SQS queue attributes");
        };
        let count: Option<i64> = found.as_str().and_then(|text| text.parse().ok()).or_else(|| found.as_i64());
        let count = count.ok_or_else(|| scaler_error!("SQS answered {} as {name}", kind(Some(found))))?;
        sum = sum.saturating_add(count);
    }
    Ok(sum)
}
