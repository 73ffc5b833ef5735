//! Creates TokenReviews and SubjectAccessReviews.

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
    /// Permissions outlive the 15 seconds between two reads of an autoscaler.
    fn default() -> Self {
        let (minute, moment) = (Duration::from_mins(1), Duration::from_secs(10));
        Self { allowed: minute, denied: moment, tokens: moment }
    }
}

/// The timeout of a review, retries included.
const REVIEW_TIMEOUT: Duration = Duration::from_secs(10);

/// How often a failing review is sent.
const MAX_ATTEMPTS: u32 = 3;

/// The pause after the first failure; it doubles after each further one.
const FIRST_RETRY_PAUSE: Duration = Duration::from_millis(250);

/// Limits concurrent reviews, however many invalid tokens clients send.
static CONCURRENT_REVIEWS: Semaphore = Semaphore::const_new(64);

/// Why a review failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("failed to create a {kind}: {text}{remedy}")]
pub(crate) struct ReviewError {
    kind: &'static str,
    text: String,
    remedy: &'static str,
}

/// Posts a review and returns it with its status.
pub(crate) async fn post<R>(client: &Client, review: &R) -> Result<R, ReviewError>
where
    R: Resource + Serialize + DeserializeOwned,
{
    let failed = |text: String, remedy| ReviewError { kind: R::KIND, text, remedy };
    let path = format!("/apis/{}/{}", R::API_VERSION, R::URL_PATH_SEGMENT);
    let body = serde_json::to_vec(review).map_err(|error| failed(error.to_string(), ""))?;
    let attempts = async {
        let _place = CONCURRENT_REVIEWS.acquire().await;
        let mut pause = FIRST_RETRY_PAUSE;
        let mut attempt = 1;
        loop {
            let request = Request::post(&path).header("content-type", "application/json").body(body.clone());
            let request = request.map_err(|error| failed(error.to_string(), ""))?;
            match client.request::<R>(request).await {
                Ok(answer) => return Ok(answer),
                Err(error) if attempt < MAX_ATTEMPTS && is_transient(&error) => {
                    tokio::time::sleep(pause).await;
                    pause *= 2;
                    attempt += 1;
                }
                Err(error) => return Err(failed(error.to_string(), remedy(&error))),
            }
        }
    };
    let late = || Err(failed(format!("no response within {REVIEW_TIMEOUT:?}"), ""));
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
