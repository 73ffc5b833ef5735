//! Admission: the API server asks whether an object may be written, somebody else answers.
//!
//! ```text
//! body ─► review: read, checked ─► Admit ─► Ruling ─► AdmissionReview
//!
//! webhooks   the six paths, and the objects that tell the API server of them
//! ```
//!
//! What cannot be read is an error of HTTP and not a refusal: the webhook's failure policy then says what becomes of the
//! write.

mod review;
#[cfg(test)]
mod tests;
mod webhooks;

use std::convert::Infallible;
use std::sync::Arc;

use futures::future::BoxFuture;
use http::{Method, Request, Response};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::service_fn;

use crate::app::Route;
use crate::response::{self, Body};
use crate::status::Status;

pub use review::AdmissionRequest;
pub use webhooks::{NAME, SERVICE, WEBHOOKS, Webhook, set_ca_bundle, webhook_configuration};

/// Says whether objects may be written.
pub trait AdmissionHandler: Send + Sync + 'static {
    /// Judges one write. It has the time that the API server gives; whoever takes longer is not heard.
    fn admit(&self, review: AdmissionRequest) -> BoxFuture<'_, AdmissionResponse>;
}

/// What becomes of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdmissionResponse {
    /// Why not; none: it may go on.
    pub refused: Option<Status>,
    /// Told to whoever writes.
    pub warnings: Vec<String>,
}

impl AdmissionResponse {
    /// It may go on.
    pub fn allow(warnings: Vec<String>) -> Self {
        Self { refused: None, warnings }
    }

    /// It may not.
    pub fn refuse(status: Status) -> Self {
        Self { refused: Some(status), warnings: Vec::new() }
    }

    fn into_response(self, uid: &str) -> Value {
        let mut response = json!({"uid": uid, "allowed": self.refused.is_none()});
        let Some(fields) = response.as_object_mut() else { return response };
        if let Some(Status { code, reason, message, .. }) = self.refused {
            let mut status = json!({"metadata": {}, "status": "Failure", "message": message, "code": code});
            if let Some(status) = status.as_object_mut().filter(|_| !reason.is_empty()) {
                status.insert("reason".to_owned(), json!(reason));
            }
            fields.insert("status".to_owned(), status);
        }
        if !self.warnings.is_empty() {
            fields.insert("warnings".to_owned(), json!(self.warnings));
        }
        response
    }
}

/// The routes of all webhooks, for [`App::routes`](crate::App).
pub fn routes(admit: &Arc<dyn AdmissionHandler>) -> Vec<(String, Route)> {
    let route = |webhook: &'static Webhook| {
        let admit = Arc::clone(admit);
        let service = service_fn(move |request: Request<Body>| {
            let admit = Arc::clone(&admit);
            async move {
                let answer = answer(request, webhook, admit.as_ref()).await;
                Ok::<_, Infallible>(answer.unwrap_or_else(|error| response::status(&error)))
            }
        });
        (webhook.path.to_owned(), Route::new(service))
    };
    WEBHOOKS.iter().map(route).collect()
}

/// The paths of all webhooks, for [`ServerOptions::open_paths`](crate::Options): the API server does not say who it is.
pub fn open_paths() -> impl Iterator<Item = String> {
    WEBHOOKS.iter().map(|webhook| webhook.path.to_owned())
}

async fn answer(
    request: Request<Body>,
    webhook: &Webhook,
    admit: &dyn AdmissionHandler,
) -> Result<Response<Body>, Status> {
    if request.method() != Method::POST {
        return Err(Status::not_allowed());
    }
    let (head, body) = request.into_parts();
    review::is_json(&head.headers)?;
    let body = body.collect().await.map_err(|error| unread(&*error))?.to_bytes();
    let review = AdmissionRequest::read(&body, webhook)?;
    drop(body);
    let uid = review.uid.clone();
    // Subresources are written by us and by the server itself.
    let ruling = if review.subresource.is_empty() {
        admit.admit(review).await
    } else {
        AdmissionResponse::allow(Vec::new())
    };
    let response = ruling.into_response(&uid);
    Ok(response::json(
        200,
        &json!({"kind": review::KIND, "apiVersion": review::VERSION, "response": response}),
    ))
}

/// Why a body did not arrive.
fn unread(error: &(dyn std::error::Error + 'static)) -> Status {
    if error.is::<http_body_util::LengthLimitError>() {
        return Status::new(413, "RequestEntityTooLarge", "the AdmissionReview is too large", None);
    }
    Status::bad_request(format!("failed to receive the AdmissionReview: {error}"))
}
