//! Requests to the APIs of Google Cloud with the credentials of a trigger.
//!
//! Scalers give only URLs of Google's own hosts, so that tokens of the operator are sent nowhere else.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::Value;

use crate::backends::Backends;
use crate::google_credentials::GoogleCredentials;
use crate::identity::{GoogleIdentity, Identities};
use crate::responses::{error_field, json};
use crate::single::send;
use crate::web::{HttpCall, SharedHttpClient};
use crate::{ScalerError, Trigger};

/// Sends requests to Google for one trigger.
pub(crate) struct GoogleClient {
    /// The identity, or why there is none: that is an error of queries, as in KEDA, and not of the object.
    identity: Result<GoogleIdentity, ScalerError>,
    identities: Arc<Identities>,
    /// Scope of tokens.
    scope: &'static str,
    /// Timeout of requests.
    within: Duration,
    web: Arc<SharedHttpClient>,
}

impl GoogleClient {
    /// A client with the credentials of a trigger.
    pub(crate) fn new(
        credentials: &GoogleCredentials,
        scope: &'static str,
        trigger: &Trigger,
        backends: &Backends,
    ) -> Self {
        Self {
            identity: credentials.identity(trigger),
            identities: backends.state(),
            scope,
            within: trigger.http_timeout,
            web: Arc::clone(&backends.web),
        }
    }

    /// The current time.
    pub(crate) fn now(&self) -> Timestamp {
        self.web.now()
    }

    /// The project of the credentials.
    pub(crate) async fn project(&self) -> Result<String, ScalerError> {
        self.identities.google_project(self.identity()?, &self.web).await
    }

    /// Sends `GET`; returns status and body. Requests with the same key share a response, if there is a key.
    pub(crate) async fn get(
        &self,
        url: String,
        same_as: Option<String>,
    ) -> Result<(u16, Bytes), ScalerError> {
        self.send(HttpCall { same_as, ..HttpCall::get(url, self.within) }).await
    }

    /// Sends JSON with `POST`; returns status and body.
    pub(crate) async fn post(&self, url: String, body: String) -> Result<(u16, Bytes), ScalerError> {
        self.send(HttpCall::post(url, body, self.within).header("content-type", "application/json")?).await
    }

    async fn send(&self, call: HttpCall) -> Result<(u16, Bytes), ScalerError> {
        let token = self.identities.google(self.identity()?, self.scope, &self.web).await?;
        let call = call.header("authorization", &format!("Bearer {}", token.reveal()))?;
        send(&self.web, call).await
    }

    fn identity(&self) -> Result<&GoogleIdentity, ScalerError> {
        self.identity.as_ref().map_err(Clone::clone)
    }
}

/// The object in a response of an API of Google, or the error in it.
pub(crate) fn google_answer(product: &str, status: u16, body: &[u8]) -> Result<Value, ScalerError> {
    if status != 200 {
        bail!("{product} returned {status}: {}", error_field(body, "/error/message"));
    }
    let answer = json(body)?;
    if !answer.is_object() {
        bail!("the answer of {product} is not an object: {}", crate::responses::hidden(body));
    }
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_objects() {
        assert!(google_answer("Google", 200, b"{}").is_ok());
        let error =
            |status, body: &str| google_answer("Google", status, body.as_bytes()).unwrap_err().message;
        assert_eq!(error(403, r#"{"error": {"message": "denied"}}"#), "Google returned 403: denied");
        assert_eq!(error(503, "busy"), "Google returned 503: (4 bytes, not shown)");
        assert_eq!(error(200, "[]"), "the answer of Google is not an object: (2 bytes, not shown)");
        assert!(error(200, "<html>").contains("not JSON"));
    }
}
