//! One request to the API server, and errors in the words of client-go.

use std::time::Duration;

use bytes::Bytes;
use http::Method;
use kube::Client;

/// A request, not yet sent.
#[derive(Clone, Debug)]
pub struct Request {
    /// Method.
    pub method: Method,
    /// Path and query, encoded.
    pub uri: String,
    /// Resource and group in messages: `pods.metrics.k8s.io`, `deployments.apps`, `pods`.
    pub resource: String,
    /// Name of the object in messages; empty if there is none.
    pub name: String,
    /// Content type and body, where there is one.
    pub body: Option<(&'static str, Vec<u8>)>,
    /// When to give up.
    pub deadline: Duration,
}

/// What went wrong, worded as client-go words it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// HTTP status; 0 if there was no answer.
    pub code: u16,
    /// `NotFound`, `Conflict`, …; empty if there was no answer.
    pub reason: String,
    /// Text.
    pub message: String,
    /// How long the server asks us to wait.
    pub retry_after: Option<Duration>,
}

impl ApiError {
    /// Whether somebody else wrote in between.
    pub fn is_conflict(&self) -> bool {
        self.code == 409 && self.reason == "Conflict"
    }

    /// Whether the object, or the whole resource, is not there.
    pub fn is_not_found(&self) -> bool {
        self.code == 404
    }
}

/// Sends a request and waits for the whole answer.
pub async fn send(client: &Client, request: Request) -> Result<Bytes, ApiError> {
    let _ = (client, request);
    todo!()
}
