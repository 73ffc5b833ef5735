//! Requests in the JSON protocol of AWS, and their error responses.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use crate::ScalerError;
use crate::identity::{AwsKeys, RequestToSign, aws_domain, sign};
use crate::parameters::Secret;
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

/// Where, with which keys and when a request is sent.
pub(super) struct AwsDispatch<'a> {
    /// URL without trailing slash.
    pub(super) endpoint: &'a str,
    pub(super) region: &'a str,
    pub(super) keys: &'a AwsKeys,
    pub(super) now: Timestamp,
    pub(super) within: Duration,
}

impl AwsRequest<'_> {
    /// Signs the request.
    pub(super) fn call(self, dispatch: &AwsDispatch<'_>) -> Result<HttpCall, ScalerError> {
        let kind = format!("application/x-amz-json-{}", self.version);
        let headers = [("content-type", &*kind), ("x-amz-target", self.target)];
        dispatch.call(self.service, &headers, self.body)
    }
}

impl AwsDispatch<'_> {
    fn call(&self, service: &str, headers: &[(&str, &str)], body: String) -> Result<HttpCall, ScalerError> {
        let url = format!("{}/", self.endpoint);
        let request = RequestToSign {
            method: "POST",
            host: urls::host(&url),
            path: urls::path(&url),
            query: "",
            headers,
            body: body.as_bytes(),
            region: self.region,
            service,
        };
        let signed = sign(&request, self.keys, self.now);
        let AwsKeys { access, secret, session } = self.keys;
        let session = session.as_ref().map_or("", Secret::reveal);
        // Limits of AWS are those of an operation, too.
        let operation =
            headers.iter().find(|(name, _)| *name == "x-amz-target").map_or("", |(_, target)| *target);
        let mut call = HttpCall::post(&*url, body, self.within).signed_by(&[
            access.as_str(),
            secret.reveal(),
            session,
            operation,
        ]);
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
        None => format!("https://{service}.{region}.{}", aws_domain(region)),
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
