//! Client of another replica.

use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use http::StatusCode;
use locks::MutexExt as _;

use super::PATH;
use super::codec::{self, DecodeError, SamplesPage};
use super::members::Replica;
use crate::http::{Endpoint, HttpClient, HttpErrorCause, HttpRequest};

/// Size limit of a response in bytes: a page, and the scrape that exceeded it.
const MAX_RESPONSE_BYTES: usize = 10 << 20;

/// Another replica.
pub(super) struct Peer {
    pub(super) replica: Replica,
    endpoint: Endpoint,
    timeout: Duration,
    state: Mutex<PeerState>,
}

#[derive(Default)]
struct PeerState {
    client: Option<HttpClient>,
    /// Last known generation, and its run.
    since: u64,
    of: u64,
}

/// Why samples of a replica could not be fetched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum PeerError {
    #[error(transparent)]
    Http(#[from] HttpErrorCause),
    #[error("it does not authenticate this replica (401)")]
    Unauthenticated,
    #[error("it does not authorize this replica (403)")]
    Unauthorized,
    #[error("it answered with {0}")]
    Status(StatusCode),
    #[error("its response is not valid: {0}")]
    Invalid(#[from] DecodeError),
    #[error("it repeats the same page")]
    RepeatedPage,
    #[error("its address leads to this replica itself")]
    OwnAddress,
}

impl PeerError {
    /// What the user can do about it.
    pub(super) fn remedy(&self) -> &'static str {
        match self {
            Self::Http(cause) => cause.remedy(),
            Self::Unauthenticated => {
                "mount the token of the service account, for an audience that the API server accepts"
            }
            Self::Unauthorized => "allow the service account to get the non-resource URL /plimsoll/samples",
            Self::Status(_) => "check that all replicas run the same version, and their logs",
            Self::Invalid(_) => "check that all replicas run the same version",
            Self::RepeatedPage => "restart it",
            Self::OwnAddress => "check the addresses of the replicas: they must be those of pods",
        }
    }
}

impl Peer {
    pub(super) fn new(replica: Replica, template: &Endpoint, timeout: Duration) -> Self {
        let url = if replica.address.contains("://") {
            replica.address.clone()
        } else {
            format!("https://{}", replica.address)
        };
        let endpoint = Endpoint { url, ..template.clone() };
        Self { replica, endpoint, timeout, state: Mutex::default() }
    }

    /// Fetches the changes since the last call.
    pub(super) async fn fetch(&self) -> Result<SamplesPage, PeerError> {
        let (client, since, of) = self.begin()?;
        let path = format!("{PATH}?since={since}&of={of}");
        let request = HttpRequest::get(path).timeout(self.timeout).max_bytes(MAX_RESPONSE_BYTES);
        let response = client.send(request).await.map_err(|error| error.cause)?;
        match response.status {
            StatusCode::OK => {}
            StatusCode::UNAUTHORIZED => return Err(PeerError::Unauthenticated),
            StatusCode::FORBIDDEN => return Err(PeerError::Unauthorized),
            status => return Err(PeerError::Status(status)),
        }
        let page = codec::read(&response.body)?;
        if page.more && page.incarnation == of && page.generation <= since {
            return Err(PeerError::RepeatedPage);
        }
        Ok(page)
    }

    /// Marks the entries of a page as received.
    pub(super) fn acknowledge(&self, page: &SamplesPage) {
        let mut state = self.locked();
        (state.since, state.of) = (page.generation, page.incarnation);
    }

    fn begin(&self) -> Result<(HttpClient, u64, u64), PeerError> {
        let mut state = self.locked();
        let client = match &state.client {
            Some(client) => client.clone(),
            None => HttpClient::new(self.endpoint.clone()).map_err(|error| error.cause)?,
        };
        state.client = Some(client.clone());
        Ok((client, state.since, state.of))
    }

    fn locked(&self) -> MutexGuard<'_, PeerState> {
        self.state.locked()
    }
}
