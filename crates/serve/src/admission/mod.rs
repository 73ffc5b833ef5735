//! Admission webhooks: decodes AdmissionReviews and passes them to an [`AdmissionHandler`].
//!
//! ```text
//! body ─► AdmissionRequest ─► AdmissionHandler ─► AdmissionResponse ─► AdmissionReview
//!
//! reviewers  whose reviews are answered, and their limits
//! memory_budget  the memory of reviews under way, by address
//! webhooks   the six paths and the ValidatingWebhookConfiguration
//! ```
//!
//! A review that cannot be decoded is answered with an HTTP error and not with a refusal, so that the webhook's failure
//! policy applies.

mod memory_budget;
mod review;
mod reviewers;
#[cfg(test)]
mod tests;
mod webhooks;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::future::BoxFuture;
use http::header::CONTENT_LENGTH;
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Limited};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};
use tower::service_fn;

use crate::api_group::Route;
use crate::response::{self, Body};
use crate::status::Status;
use crate::tls::Caller;

pub use review::AdmissionRequest;
pub use reviewers::Reviewers;
pub use webhooks::{NAME, SERVICE, WEBHOOKS, Webhook, set_ca_bundle, webhook_configuration};

/// How long a review may wait for its share of memory and take to arrive: the longest `timeoutSeconds` of a webhook is 30 s, ours is
/// 10 s.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a body may take in addition to the time that [`MIN_BODY_BYTES_PER_SECOND`] gives it: a few packets may be lost and sent again.
const BODY_GRACE: Duration = Duration::from_secs(2);

/// The minimum rate of a body: a slow one holds its share of memory, for which reviews of other clients may wait.
const MIN_BODY_BYTES_PER_SECOND: f64 = 1_048_576.0;

/// Decides whether objects may be written.
pub trait AdmissionHandler: Send + Sync + 'static {
    /// Decides about one write, within the webhook's `timeoutSeconds`.
    fn admit(&self, review: AdmissionRequest) -> BoxFuture<'_, AdmissionResponse>;
}

/// The result of admission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdmissionResponse {
    /// Why the write is refused; none if it is allowed.
    pub refused: Option<Status>,
    /// Warnings for the client.
    pub warnings: Vec<String>,
}

impl AdmissionResponse {
    /// Allows the write.
    pub fn allow(warnings: Vec<String>) -> Self {
        Self { refused: None, warnings }
    }

    /// Refuses the write.
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
pub fn routes(admit: &Arc<dyn AdmissionHandler>, reviewers: &Reviewers) -> Vec<(String, Route)> {
    let route = |webhook: &'static Webhook| {
        let (admit, reviewers) = (Arc::clone(admit), reviewers.clone());
        let service = service_fn(move |request: Request<Body>| {
            let (admit, reviewers) = (Arc::clone(&admit), reviewers.clone());
            async move {
                let answer = answer(request, webhook, &reviewers, admit.as_ref()).await;
                Ok::<_, Infallible>(answer.unwrap_or_else(|error| response::status(&error)))
            }
        });
        (webhook.path.to_owned(), Route::new(service))
    };
    WEBHOOKS.iter().map(route).collect()
}

/// The paths of all webhooks, for [`ServerOptions::open_paths`](crate::ServerOptions): the API server does not
/// authenticate itself.
pub fn open_paths() -> impl Iterator<Item = String> {
    WEBHOOKS.iter().map(|webhook| webhook.path.to_owned())
}

async fn answer(
    request: Request<Body>,
    webhook: &Webhook,
    reviewers: &Reviewers,
    admit: &dyn AdmissionHandler,
) -> Result<Response<Body>, Status> {
    if request.method() != Method::POST {
        return Err(Status::not_allowed());
    }
    let address = reviewers.check(request.extensions().get::<Caller>())?;
    let (head, body) = request.into_parts();
    review::is_json(&head.headers)?;
    let until = Instant::now() + BODY_TIMEOUT;
    let announced =
        head.headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    // Held until the answer, because the objects in the review take memory, too.
    let share = reviewers.body_share(address, announced);
    let share = timeout_at(until, share).await.map_err(|_| Status::timeout())?;
    let body = received(Limited::new(body, share.bytes).boxed_unsync(), until).await?;
    let tree = reviewers.tree_share(address, review::tree_bytes(&body)?);
    let _tree = timeout_at(until, tree).await.map_err(|_| Status::timeout())?;
    let review = AdmissionRequest::read(&body, webhook)?;
    drop(body);
    let uid = review.uid.clone();
    // Subresources are written by controllers and the API server only.
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

/// Receives a body until this time, at the minimum rate.
async fn received(mut body: Body, until: Instant) -> Result<Bytes, Status> {
    let begun = Instant::now();
    let mut bytes = BytesMut::new();
    loop {
        let earned = Duration::from_secs_f64(bytes.len() as f64 / MIN_BODY_BYTES_PER_SECOND);
        let frame = timeout_at(until.min(begun + BODY_GRACE + earned), body.frame()).await;
        let Some(frame) = frame.map_err(|_| Status::timeout())? else { return Ok(bytes.freeze()) };
        if let Ok(data) = frame.map_err(|error| body_error(&*error))?.into_data() {
            bytes.extend_from_slice(&data);
        }
    }
}

/// The error for a body that could not be received.
fn body_error(error: &(dyn std::error::Error + 'static)) -> Status {
    if error.is::<http_body_util::LengthLimitError>() {
        return Status::new(413, "RequestEntityTooLarge", "the AdmissionReview is too large", None);
    }
    Status::bad_request(format!("failed to receive the AdmissionReview: {error}"))
}
