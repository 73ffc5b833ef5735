//! Reads passes of the leader over TLS.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use api::decisions::passes::{PassItem, PassList, PassListMeta};
use futures::future::BoxFuture;
use http::StatusCode;
use locks::MutexExt as _;
use serde::Deserialize;
use serde_json::Value;
use sources::http::{Auth, Endpoint, HttpClient, HttpErrorCause, HttpRequest};

/// Passes per request.
const PAGE_PASSES: usize = 1_000;
/// Limits of a response.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_RESPONSE_BYTES: usize = 64 << 20;

/// Fetches the passes of the leader at an address, after a cursor.
pub type FetchPasses = Arc<
    dyn Fn(SocketAddr, Option<String>) -> BoxFuture<'static, Result<PassList, HistoryCopyError>>
        + Send
        + Sync,
>;

/// How the passes of the leader are read.
pub struct LeaderHistory {
    /// Group and version of its API of decisions.
    pub api_version: &'static str,
    /// The name that its certificate must carry.
    pub server_name: String,
    /// The token of the service account.
    pub token_file: PathBuf,
    /// The CAs (PEM) that the replicas share, as they are now.
    pub authorities: Arc<dyn Fn() -> String + Send + Sync>,
}

/// Why passes of the leader could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HistoryCopyError {
    /// The leader was restarted, or another process has its address.
    #[error("it does not know the cursor (410)")]
    UnknownCursor,
    /// No response.
    #[error(transparent)]
    Http(#[from] HttpErrorCause),
    /// 401.
    #[error("it does not authenticate this replica (401)")]
    Unauthenticated,
    /// 403.
    #[error("it does not authorize this replica (403)")]
    Unauthorized,
    /// Another status.
    #[error("it answered with {0}")]
    Status(StatusCode),
    /// The response could not be decoded.
    #[error("its response is not a list of passes: {0}")]
    Invalid(String),
}

impl HistoryCopyError {
    /// What the user can do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::UnknownCursor => "none: all passes are read again",
            Self::Http(HttpErrorCause::UnknownAuthority) => {
                "let all replicas share one Secret (--cert-secret-name), and let the service account read it"
            }
            Self::Http(cause) => cause.remedy(),
            Self::Unauthenticated => {
                "mount the token of the service account, for an audience that the API server accepts"
            }
            Self::Unauthorized => {
                "allow the service account to list passes in the API group of decisions, as the manifests do"
            }
            Self::Status(_) | Self::Invalid(_) => {
                "check that all replicas run the same version, and their logs"
            }
        }
    }
}

impl LeaderHistory {
    /// A function that reads pages. Connections are kept as long as address and CAs stay the same.
    pub fn fetcher(self) -> FetchPasses {
        let this = Arc::new(self);
        let kept: Arc<Mutex<Option<(Endpoint, HttpClient)>>> = Arc::default();
        Arc::new(move |address, cursor| {
            let (this, kept) = (Arc::clone(&this), Arc::clone(&kept));
            Box::pin(async move {
                let client = client(&kept, this.endpoint(address))?;
                this.page(&client, cursor).await
            })
        })
    }

    /// Always TLS with the shared CAs: the token is sent only after the certificate was verified.
    fn endpoint(&self, address: SocketAddr) -> Endpoint {
        Endpoint {
            url: format!("https://{address}"),
            ca_bundle: Some((self.authorities)().into_bytes()),
            server_name: Some(self.server_name.clone()),
            auth: Auth::TokenFile(self.token_file.clone()),
            ..Endpoint::default()
        }
    }

    async fn page(&self, client: &HttpClient, cursor: Option<String>) -> Result<PassList, HistoryCopyError> {
        let mut path = format!("/apis/{}/passes?detail=full&limit={PAGE_PASSES}", self.api_version);
        // A cursor has hexadecimal digits and a hyphen; anything else is not sent.
        let is_plain = |text: &String| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        if let Some(cursor) = cursor.filter(is_plain) {
            path.push_str("&after=");
            path.push_str(&cursor);
        }
        let request = HttpRequest::get(path).timeout(REQUEST_TIMEOUT).max_bytes(MAX_RESPONSE_BYTES);
        let response = client.send(request).await.map_err(|error| error.cause)?;
        match response.status {
            StatusCode::OK => {}
            StatusCode::GONE => return Err(HistoryCopyError::UnknownCursor),
            StatusCode::UNAUTHORIZED => return Err(HistoryCopyError::Unauthenticated),
            StatusCode::FORBIDDEN => return Err(HistoryCopyError::Unauthorized),
            status => return Err(HistoryCopyError::Status(status)),
        }
        decoded(&response.body)
    }
}

/// The page of a response.
pub(super) fn decoded(body: &[u8]) -> Result<PassList, HistoryCopyError> {
    let page: PassPage =
        serde_json::from_slice(body).map_err(|error| HistoryCopyError::Invalid(error.to_string()))?;
    Ok(page.into())
}

/// A page whose passes are not decoded yet: one that another version has written must not keep the others from being copied.
#[derive(Deserialize)]
struct PassPage {
    metadata: PassListMeta,
    items: Vec<Value>,
}

impl From<PassPage> for PassList {
    fn from(PassPage { metadata, items }: PassPage) -> Self {
        let read = |item: Value| match PassItem::deserialize(item) {
            Ok(item) => Some(item),
            Err(error) => {
                tracing::debug!(%error, "a pass of the leader cannot be decoded");
                None
            }
        };
        Self { metadata, items: items.into_iter().filter_map(read).collect(), ..Self::default() }
    }
}

/// The client of an endpoint: the one before, if the endpoint is the same.
fn client(
    kept: &Mutex<Option<(Endpoint, HttpClient)>>,
    endpoint: Endpoint,
) -> Result<HttpClient, HistoryCopyError> {
    let mut kept = kept.locked();
    if let Some((known, client)) = &*kept
        && *known == endpoint
    {
        return Ok(client.clone());
    }
    let client = HttpClient::new(endpoint.clone()).map_err(|error| error.cause)?;
    *kept = Some((endpoint, client.clone()));
    Ok(client)
}
