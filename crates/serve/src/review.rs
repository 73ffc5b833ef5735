//! Questions to the API server that are answered and never stored: TokenReview and SubjectAccessReview.

use std::time::Duration;

use http::Request;
use k8s_openapi::Resource;
use kube::Client;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;

/// How long the API server may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often a question is asked that was not answered.
const ATTEMPTS: u32 = 3;

/// How long after the first failure it is asked again; then twice as long.
const PAUSE: Duration = Duration::from_millis(250);

/// How many questions are asked at a time, however many strangers come with tokens of their own making.
static PLACES: Semaphore = Semaphore::const_new(64);

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("failed to create a {kind}: {text}{remedy}")]
pub(crate) struct ReviewError {
    kind: &'static str,
    text: String,
    remedy: &'static str,
}

/// Posts a review and returns it with its answer.
pub(crate) async fn post<R>(client: &Client, review: &R) -> Result<R, ReviewError>
where
    R: Resource + Serialize + DeserializeOwned,
{
    let failed = |text: String, remedy| ReviewError { kind: R::KIND, text, remedy };
    let path = format!("/apis/{}/{}", R::API_VERSION, R::URL_PATH_SEGMENT);
    let body = serde_json::to_vec(review).map_err(|error| failed(error.to_string(), ""))?;
    let attempts = async {
        let _place = PLACES.acquire().await;
        let mut pause = PAUSE;
        let mut attempt = 1;
        loop {
            let request = Request::post(&path).header("content-type", "application/json").body(body.clone());
            let request = request.map_err(|error| failed(error.to_string(), ""))?;
            match client.request::<R>(request).await {
                Ok(answer) => return Ok(answer),
                Err(error) if attempt < ATTEMPTS && may_pass(&error) => {
                    tokio::time::sleep(pause).await;
                    pause *= 2;
                    attempt += 1;
                }
                Err(error) => return Err(failed(error.to_string(), remedy(&error))),
            }
        }
    };
    let late = || Err(failed(format!("no answer within {PATIENCE:?}"), ""));
    tokio::time::timeout(PATIENCE, attempts).await.unwrap_or_else(|_| late())
}

/// Whether the same may be answered in a moment.
fn may_pass(error: &kube::Error) -> bool {
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
