//! Questions in the JSON protocol of AWS, and why they are refused.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use super::{Keys, Request, sign};
use crate::Error;
use crate::answers::{excerpt, json};
use crate::urls;
use crate::web::Call;

/// A question.
pub(crate) struct Question<'a> {
    /// Where, without a slash at the end.
    pub(crate) endpoint: &'a str,
    pub(crate) region: &'a str,
    /// The service, as signatures name it.
    pub(crate) service: &'a str,
    /// The operation, e.g. `AmazonSQS.GetQueueAttributes`.
    pub(crate) target: &'a str,
    /// The version of the protocol: `1.0` or `1.1`.
    pub(crate) version: &'a str,
    pub(crate) body: String,
}

impl Question<'_> {
    /// Signed at a time.
    pub(crate) fn call(self, keys: &Keys, now: Timestamp, within: Duration) -> Result<Call, Error> {
        let url = format!("{}/", self.endpoint);
        let kind = format!("application/x-amz-json-{}", self.version);
        let headers = [("content-type", &*kind), ("x-amz-target", self.target)];
        let request = Request {
            method: "POST",
            host: urls::host(&url),
            path: urls::path(&url),
            query: "",
            headers: &headers,
            body: self.body.as_bytes(),
            region: self.region,
            service: self.service,
        };
        let signed = sign(&request, keys, now);
        let mut call = Call::post(&*url, self.body, within);
        for (name, value) in headers {
            call = call.header(name, value)?;
        }
        for (name, value) in signed {
            call = call.header(name, &value)?;
        }
        Ok(call)
    }
}

/// Where a service is asked in a region, unless it is somewhere else.
pub(crate) fn endpoint(service: &str, region: &str, given: Option<&str>) -> String {
    match given {
        Some(given) => given.trim_end_matches('/').to_owned(),
        None if region.starts_with("cn-") => format!("https://{service}.{region}.amazonaws.com.cn"),
        None => format!("https://{service}.{region}.amazonaws.com"),
    }
}

/// An answer, or why there is none.
pub(crate) fn answer(product: &str, status: u16, body: &[u8]) -> Result<Value, Error> {
    if status == 200 {
        return json(body);
    }
    Err(Error::new(format!("{product} returned {status}: {}", reason(body))))
}

fn reason(body: &[u8]) -> String {
    let Ok(answer) = json(body) else { return excerpt(body) };
    let text = |key: &str| answer.get(key).and_then(Value::as_str).unwrap_or_default();
    // `com.amazonaws.sqs#QueueDoesNotExist`
    let type_ = text("__type").rsplit('#').next().unwrap_or_default();
    let message = [text("message"), text("Message")].concat();
    match (type_, &*message) {
        ("", "") => excerpt(body),
        ("", message) => excerpt(message.as_bytes()),
        (type_, message) => excerpt(format!("{type_}: {message}").as_bytes()),
    }
}
