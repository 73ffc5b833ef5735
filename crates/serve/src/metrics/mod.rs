//! The three metrics APIs over HTTP: `metrics.k8s.io`, `custom.metrics.k8s.io` and `external.metrics.k8s.io`.
//!
//! ```text
//! resource   /nodes, /pods …              usage, table, partial  how nodes and pods are shown
//! custom     /{resource}/{name}/{metric}  values                 how values are shown
//! external   /namespaces/{ns}/{metric}
//! list_options    the query parameters of a list
//! metric_listing  the list of metrics, which changes
//! list_stream     long lists, encoded while they are sent
//! freshness       the age of the samples in responses
//! ```
//!
//! The values come from the implementations of the traits of [`api::provider`].

mod custom;
mod external;
mod freshness;
mod list_options;
mod list_stream;
mod metric_listing;
mod partial;
mod resource;
mod table;
mod usage;
mod values;

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use api::metrics::SOURCE_HEADER;
use api::provider::{Compat, MetricsError};
use http::{HeaderName, HeaderValue, Method, Request, Response};
use runtime::Clock;
use tower::util::BoxCloneSyncService;

pub use custom::custom;
pub use external::external;
pub use freshness::{Freshness, FreshnessHistogram};
pub use resource::resource;

use crate::api_group::Route;
use crate::encode::{self, Choice, Object};
use crate::request::AuthorizedRequest;
use crate::response::{self, Body};
use crate::status::Status;

/// How an API is served.
#[derive(Clone, Default)]
pub struct MetricsApiSettings {
    /// How exactly the servers that are replaced are imitated.
    pub compat: Compat,
    /// The clock.
    pub clock: Clock,
    /// Records the age of samples in responses; the caller keeps a clone to export it.
    pub freshness: Arc<Freshness>,
}

impl MetricsApiSettings {
    /// A response with the header that states what took its samples, unless the servers that are replaced are imitated exactly.
    fn with_source(&self, mut response: Response<Body>, source: Option<&str>) -> Response<Body> {
        /// Longer statements are cut: a query of Prometheus can be as long as a page.
        const MAX_SOURCE_CHARS: usize = 300;
        let Some(source) = source.filter(|_| !self.compat.is_strict()) else { return response };
        let printable = |c: char| if c.is_ascii_graphic() { c } else { ' ' };
        let text: String = source.chars().take(MAX_SOURCE_CHARS).map(printable).collect();
        if let Ok(value) = HeaderValue::try_from(text.trim()) {
            response.headers_mut().insert(HeaderName::from_static(SOURCE_HEADER), value);
        }
        response
    }
}

impl From<Compat> for MetricsApiSettings {
    fn from(compat: Compat) -> Self {
        Self { compat, ..Self::default() }
    }
}

impl fmt::Debug for MetricsApiSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings").field("compat", &self.compat).finish_non_exhaustive()
    }
}

/// Larger lists are encoded on a blocking thread.
const MAX_INLINE_OBJECTS: usize = 2000;

/// Makes a route of a handler.
fn route<H, F>(handler: H) -> Route
where
    H: Fn(AuthorizedRequest) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Result<Response<Body>, Status>> + Send + 'static,
{
    BoxCloneSyncService::new(tower::service_fn(move |mut request: Request<Body>| {
        let handler = handler.clone();
        async move {
            let found = match request.extensions_mut().remove::<AuthorizedRequest>() {
                Some(call) => handler(call).await,
                None => Err(Status::internal("the request has not been authorized")),
            };
            Ok(found.unwrap_or_else(|error| response::status(&error)))
        }
    }))
}

/// The path below `/apis/{group}/{version}`.
fn below(call: &AuthorizedRequest) -> Vec<&str> {
    call.path.trim_matches('/').split('/').skip(3).collect()
}

/// An error unless the method is GET.
fn only_get(call: &AuthorizedRequest) -> Result<(), Status> {
    if call.method == Method::GET { Ok(()) } else { Err(Status::not_allowed()) }
}

fn sent(object: &impl Object, choice: Choice) -> Response<Body> {
    response::with_type(200, choice.encoding.content_type(), response::full(encode::encode(object, choice)))
}

/// Encodes and sends an object that may be large.
async fn sent_many<T: Object + Send + 'static>(
    object: T,
    count: usize,
    choice: Choice,
) -> Result<Response<Body>, Status> {
    if count <= MAX_INLINE_OBJECTS {
        return Ok(sent(&object, choice));
    }
    let written = tokio::task::spawn_blocking(move || sent(&object, choice)).await;
    written.map_err(|_| Status::internal("the response could not be encoded"))
}

/// The status of a provider's failure.
fn status(failure: MetricsError) -> Status {
    match failure {
        MetricsError::NoMetric(message) => Status::new(404, "NotFound", message, None),
        MetricsError::BadRequest(message) => Status::bad_request(message),
        MetricsError::Internal(message) => Status::internal(&message),
        MetricsError::Plain(message) => Status::new(500, "", message, None),
        MetricsError::Unavailable(message) => Status::new(503, "ServiceUnavailable", message, None),
        MetricsError::Status { code, reason, message } => Status::new(code, reason, message, None),
        MetricsError::Detailed { code, reason, message, details } => {
            Status::new(code, reason, message, None).with_details(&details)
        }
    }
}

#[cfg(test)]
mod tests;
