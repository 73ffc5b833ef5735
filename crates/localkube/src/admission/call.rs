//! Calls one webhook.

use std::fmt::Display;
use std::net::SocketAddr;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use serde_json::Value;

use super::matching::{Webhook, WebhookTarget};
use super::{ResolveService, WebhookError, Webhooks};
use crate::access::PkiError;
use crate::peer::{PeerAddress, PeerClient, ServerTrust};
use crate::status::Cause;

/// The response of a webhook.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct WebhookVerdict {
    pub(super) allowed: bool,
    pub(super) code: u16,
    pub(super) reason: String,
    pub(super) message: String,
    pub(super) causes: Vec<Cause>,
    pub(super) warnings: Vec<String>,
}

pub(super) fn peer(webhook: &Webhook, address: Option<SocketAddr>) -> Result<PeerClient, PkiError> {
    let address = address.map_or(PeerAddress::ByName, PeerAddress::At);
    PeerClient::new(address, ServerTrust::Bundle(&webhook.bundle), None)
}

impl Webhooks {
    /// Calls a webhook; errors have the texts of the real API server.
    pub(super) async fn call(
        &self,
        webhook: &Webhook,
        uid: &str,
        body: &str,
        resolve: &ResolveService<'_>,
    ) -> Result<WebhookVerdict, WebhookError> {
        let base = match &webhook.target {
            WebhookTarget::Url(url) => url.clone(),
            WebhookTarget::Service { namespace, name, port, path } => {
                format!("https://{name}.{namespace}.svc:{port}{path}")
            }
        };
        let uri = format!("{base}?timeout={}s", webhook.timeout.as_secs());
        let unreached =
            |error: &dyn Display| WebhookError::Call(format!("Post {}: {error}", api::gotext::quote(&uri)));
        let address = match &webhook.target {
            WebhookTarget::Url(_) => None,
            WebhookTarget::Service { namespace, name, port, .. } => {
                let found = resolve(namespace, name, *port);
                let missing = || unreached(&format!("service {} not found", api::gotext::quote(name)));
                Some(found.ok_or_else(missing)?)
            }
        };
        let request = Request::builder()
            .method(Method::POST)
            .uri(&uri)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, */*")
            .header(USER_AGENT, "kube-apiserver-admission")
            .body(Full::new(Bytes::from(body.to_owned())))
            .map_err(|error| unreached(&error))?;
        let host = request.uri().authority().map(ToString::to_string).unwrap_or_default();
        let peer = self.peer(webhook, address, host).map_err(|error| unreached(&error))?;
        let exchange = async {
            let response = peer.send(request).await.map_err(|error| unreached(&error))?;
            let status = response.status();
            let body = response.into_body().collect().await.map_err(|error| unreached(&error))?;
            Ok((status, body.to_bytes()))
        };
        let late = || Err(unreached(&"context deadline exceeded"));
        let (status, body) =
            tokio::time::timeout(webhook.timeout, exchange).await.unwrap_or_else(|_| late())?;
        read(status, &body, uid)
    }
}

/// Decodes the response of a webhook.
fn read(status: StatusCode, body: &[u8], uid: &str) -> Result<WebhookVerdict, WebhookError> {
    if !status.is_success() {
        let text = match status.as_u16() {
            404 => "the server could not find the requested resource",
            400 => "the server rejected our request for an unknown reason",
            401 => "the server has asked for the client to provide credentials",
            429 => "the server has received too many requests and has asked us to try again later",
            _ => "an error on the server (\"unknown\") has prevented the request from succeeding",
        };
        return Err(WebhookError::Call(text.to_owned()));
    }
    let review: Value = serde_json::from_slice(body).map_err(|error| {
        WebhookError::Call(format!("couldn't get version/kind; json parse error: {error}"))
    })?;
    let kind = review.get("kind").and_then(Value::as_str).unwrap_or("AdmissionReview");
    if kind != "AdmissionReview" {
        let kind = api::gotext::quote(kind);
        return Err(WebhookError::Call(format!("no kind {kind} is registered")));
    }
    let wrong = |text: String| Err(WebhookError::Response(text));
    let Some(response) = review.get("response").filter(|response| response.is_object()) else {
        return wrong("webhook response was absent".to_owned());
    };
    let text = |path: &str| response.pointer(path).and_then(Value::as_str).unwrap_or_default();
    if text("/uid") != uid {
        let (wanted, given) = (api::gotext::quote(uid), api::gotext::quote(text("/uid")));
        return wrong(format!("expected response.uid={wanted}, got {given}"));
    }
    if response.get("patch").is_some() {
        return wrong("validating webhook may not return response.patch".to_owned());
    }
    let list = |path: &str| response.pointer(path).and_then(Value::as_array).cloned().unwrap_or_default();
    let cause = |cause: &Value| {
        let text = |field: &str| cause.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        Cause { reason: text("reason"), message: text("message"), field: text("field") }
    };
    let code =
        response.pointer("/status/code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
    Ok(WebhookVerdict {
        allowed: response.get("allowed") == Some(&Value::Bool(true)),
        // A denial never has a success code.
        code: code.filter(|code| (400..600).contains(code)).unwrap_or(400),
        reason: text("/status/reason").to_owned(),
        message: text("/status/message").to_owned(),
        causes: list("/status/details/causes").iter().map(cause).collect(),
        warnings: list("/warnings").iter().filter_map(Value::as_str).map(str::to_owned).collect(),
    })
}
