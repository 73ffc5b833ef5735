//! Client of another replica.

use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use http::StatusCode;

use super::PATH;
use super::codec::{self, SamplesPage};
use super::members::Replica;
use crate::http::{Endpoint, HttpClient, HttpRequest};
use crate::lock::locked;

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
#[error("{cause}")]
pub(super) struct PeerError {
    pub(super) cause: String,
    pub(super) remedy: &'static str,
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
        let answer =
            client.send(HttpRequest::get(path).timeout(self.timeout).max_bytes(MAX_RESPONSE_BYTES)).await;
        let answer = answer.map_err(|error| peer_error(&error.cause))?;
        match answer.status {
            StatusCode::OK => {}
            StatusCode::UNAUTHORIZED => {
                return Err(PeerError {
                    cause: "it does not authenticate this replica (401)".into(),
                    remedy: "mount the token of the service account, for an audience that the API server accepts",
                });
            }
            StatusCode::FORBIDDEN => {
                return Err(PeerError {
                    cause: "it does not authorize this replica (403)".into(),
                    remedy: "allow the service account to get the non-resource URL /plimsoll/samples",
                });
            }
            status => {
                return Err(PeerError {
                    cause: format!("it answered with {status}"),
                    remedy: "check that all replicas run the same version, and their logs",
                });
            }
        }
        let page = codec::read(&answer.body).map_err(|broken| PeerError {
            cause: format!("its response is not valid: {broken}"),
            remedy: "check that all replicas run the same version",
        })?;
        if page.more && page.incarnation == of && page.generation <= since {
            return Err(PeerError { cause: "it repeats the same page".into(), remedy: "restart it" });
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
            None => HttpClient::new(self.endpoint.clone()).map_err(|error| peer_error(&error.cause))?,
        };
        state.client = Some(client.clone());
        Ok((client, state.since, state.of))
    }

    fn locked(&self) -> MutexGuard<'_, PeerState> {
        locked(&self.state)
    }
}

fn peer_error(cause: &crate::http::HttpErrorCause) -> PeerError {
    PeerError { cause: cause.to_string(), remedy: cause.remedy() }
}
