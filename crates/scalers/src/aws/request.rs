//! Requests in the JSON protocol of AWS, and their error responses.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use super::{AwsKeys, RequestToSign, sign};
use crate::ScalerError;
use crate::responses::{excerpt, hidden, json};
use crate::urls;
use crate::web::HttpCall;

/// A request in the JSON protocol of AWS.
pub(crate) struct AwsRequest<'a> {
    /// The first label of the endpoint's host name, usually the service.
    pub(crate) host: &'a str,
    /// The service name used in signatures.
    pub(crate) service: &'a str,
    /// The operation, e.g. `AmazonSQS.GetQueueAttributes`.
    pub(crate) target: &'a str,
    /// The version of the protocol: `1.0` or `1.1`.
    pub(crate) version: &'a str,
    pub(crate) body: String,
}

impl AwsRequest<'_> {
    /// Signs the request to an endpoint, whose URL has no trailing slash, at the given time.
    pub(super) fn call(
        self,
        endpoint: &str,
        region: &str,
        keys: &AwsKeys,
        now: Timestamp,
        within: Duration,
    ) -> Result<HttpCall, ScalerError> {
        let url = format!("{endpoint}/");
        let kind = format!("application/x-amz-json-{}", self.version);
        let headers = [("content-type", &*kind), ("x-amz-target", self.target)];
        let request = RequestToSign {
            method: "POST",
            host: urls::host(&url),
            path: urls::path(&url),
            query: "",
            headers: &headers,
            body: self.body.as_bytes(),
            region,
            service: self.service,
        };
        let signed = sign(&request, keys, now);
        let mut call = HttpCall::post(&*url, self.body, within);
        for (name, value) in headers {
            call = call.header(name, value)?;
        }
        for (name, value) in signed {
            call = call.header(name, &value)?;
        }
        Ok(call)
    }
}

/// The endpoint URL of a service in a region, or the configured one.
pub(super) fn endpoint(service: &str, region: &str, given: Option<&str>) -> String {
    match given {
        Some(given) => given.trim_end_matches('/').to_owned(),
        None if region.starts_with("cn-") => format!("https://{service}.{region}.amazonaws.com.cn"),
        None => format!("https://{service}.{region}.amazonaws.com"),
    }
}

/// The response body, or the error in it.
pub(crate) fn answer(product: &str, status: u16, body: &[u8]) -> Result<Value, ScalerError> {
    if status == 200 {
        return json(body);
    }
    Err(scaler_error!("{product} returned {status}: {}", reason(body)))
}

fn reason(body: &[u8]) -> String {
    let Ok(answer) = json(body) else { return hidden(body) };
    let text = |key: &str| answer.get(key).and_then(Value::as_str).unwrap_or_default();
    // `com.amazonaws.sqs#QueueDoesNotExist`
    let type_ = text("__type").rsplit('#').next().unwrap_or_default();
    let message = [text("message"), text("Message")].concat();
    match (type_, &*message) {
        ("", "") => hidden(body),
        ("", message) => excerpt(message),
        (type_, message) => excerpt(&format!("{type_}: {message}")),
    }
}
