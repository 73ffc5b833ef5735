//! Creates TokenReviews and SubjectAccessReviews.

use std::sync::Arc;
use std::time::Duration;

use http::Request;
use k8s_openapi::Resource;
use kube::Client;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;

/// How long results of reviews are cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReviewTtls {
    /// A permission. It is refreshed in the background before it expires.
    pub allowed: Duration,
    /// A refusal.
    pub denied: Duration,
    /// The user of a token.
    pub tokens: Duration,
}

impl Default for ReviewTtls {
    /// As in aggregated API servers of Kubernetes: a permission that is revoked is used for ten more seconds at most.
    fn default() -> Self {
        let moment = Duration::from_secs(10);
        Self { allowed: moment, denied: moment, tokens: moment }
    }
}

/// The timeout of a review, retries included.
const REVIEW_TIMEOUT: Duration = Duration::from_secs(10);

/// How often a failing review is sent.
const MAX_ATTEMPTS: u32 = 3;

/// The pause after the first failure; it doubles after each further one.
const FIRST_RETRY_PAUSE: Duration = Duration::from_millis(250);

/// Whose reviews wait for each other. However many invalid tokens clients send, reviews of known users do not wait for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReviewQueue {
    /// Tokens.
    Tokens,
    /// What users without credentials may do.
    Anonymous,
    /// What users may do.
    Users,
}

impl ReviewQueue {
    /// Limits concurrent reviews.
    fn places(self) -> &'static Semaphore {
        static TOKEN_REVIEW_PERMITS: Semaphore = Semaphore::const_new(32);
        static ANONYMOUS_ACCESS_REVIEW_PERMITS: Semaphore = Semaphore::const_new(8);
        static USER_ACCESS_REVIEW_PERMITS: Semaphore = Semaphore::const_new(32);
        match self {
            Self::Tokens => &TOKEN_REVIEW_PERMITS,
            Self::Anonymous => &ANONYMOUS_ACCESS_REVIEW_PERMITS,
            Self::Users => &USER_ACCESS_REVIEW_PERMITS,
        }
    }
}

/// How many reviews of one client may fail at once; further ones are refused without a review.
pub(crate) const MAX_FAILED_REVIEWS: u32 = 100;

/// How many more reviews of one client may fail, per second.
pub(crate) const FAILED_REVIEWS_PER_SECOND: u32 = 20;

/// Why a review failed.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum ReviewError {
    /// The review cannot be written as JSON.
    #[error("failed to create a {kind}: {source}")]
    Encode { kind: &'static str, source: Arc<serde_json::Error> },
    /// The request cannot be built.
    #[error("failed to create a {kind}: {source}")]
    Build { kind: &'static str, source: Arc<http::Error> },
    /// The API server did not create the review.
    #[error("failed to create a {kind}: {source}{remedy}")]
    Request { kind: &'static str, source: Arc<kube::Error>, remedy: &'static str },
    /// The API server did not respond in time.
    #[error("failed to create a {kind}: no response within {timeout:?}")]
    Timeout { kind: &'static str, timeout: Duration },
}

/// Posts a review and returns it with its status.
pub(crate) async fn post<R>(client: &Client, queue: ReviewQueue, review: &R) -> Result<R, ReviewError>
where
    R: Resource + Serialize + DeserializeOwned,
{
    let kind = R::KIND;
    let path = format!("/apis/{}/{}", R::API_VERSION, R::URL_PATH_SEGMENT);
    let body =
        serde_json::to_vec(review).map_err(|error| ReviewError::Encode { kind, source: Arc::new(error) })?;
    let attempts = async {
        let _place = queue.places().acquire().await;
        let mut pause = FIRST_RETRY_PAUSE;
        let mut attempt = 1;
        loop {
            let request = Request::post(&path).header("content-type", "application/json").body(body.clone());
            let request = request.map_err(|error| ReviewError::Build { kind, source: Arc::new(error) })?;
            match client.request::<R>(request).await {
                Ok(answer) => return Ok(answer),
                Err(error) if attempt < MAX_ATTEMPTS && is_transient(&error) => {
                    tokio::time::sleep(pause).await;
                    pause *= 2;
                    attempt += 1;
                }
                Err(error) => {
                    let remedy = remedy(&error);
                    return Err(ReviewError::Request { kind, source: Arc::new(error), remedy });
                }
            }
        }
    };
    let late = || Err(ReviewError::Timeout { kind, timeout: REVIEW_TIMEOUT });
    tokio::time::timeout(REVIEW_TIMEOUT, attempts).await.unwrap_or_else(|_| late())
}

/// Whether a retry may succeed.
fn is_transient(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(status) => matches!(status.code, 429 | 500..=599),
        _ => true,
    }
}

fn remedy(error: &kube::Error) -> &'static str {
    match error {
        kube::Error::Api(status) if status.code == 403 => {
            "; bind the ClusterRole system:auth-delegator to the account this runs as"
        }
        _ => "",
    }
}
