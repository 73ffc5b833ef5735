//! Another replica, asked for what it scraped.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::StatusCode;

use super::PATH;
use super::code::{self, Page};
use super::members::Replica;
use crate::http::{Ask, Client, Endpoint};

/// Bytes of an answer at most: a page, and the one scrape that made it too long.
const PAGE: usize = 10 << 20;

/// Another replica.
pub(super) struct Peer {
    pub(super) replica: Replica,
    endpoint: Endpoint,
    within: Duration,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    client: Option<Client>,
    /// Up to which generation of which run we know everything.
    since: u64,
    of: u64,
}

/// Why a replica did not tell anything.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{cause}")]
pub(super) struct Silence {
    pub(super) cause: String,
    pub(super) remedy: &'static str,
}

impl Peer {
    pub(super) fn new(replica: Replica, template: &Endpoint, within: Duration) -> Self {
        let url = if replica.address.contains("://") {
            replica.address.clone()
        } else {
            format!("https://{}", replica.address)
        };
        let endpoint = Endpoint { url, ..template.clone() };
        Self { replica, endpoint, within, state: Mutex::default() }
    }

    /// What is new since it was last asked.
    pub(super) async fn ask(&self) -> Result<Page, Silence> {
        let (client, since, of) = self.begin()?;
        let path = format!("{PATH}?since={since}&of={of}");
        let answer = client.send(Ask::get(path).within(self.within).at_most(PAGE)).await;
        let answer = answer.map_err(|error| silence(&error.cause))?;
        match answer.status {
            StatusCode::OK => {}
            StatusCode::UNAUTHORIZED => {
                return Err(Silence {
                    cause: "it does not know who we are (401)".into(),
                    remedy: "give the token of our service account, for an audience that the API server accepts",
                });
            }
            StatusCode::FORBIDDEN => {
                return Err(Silence {
                    cause: "it does not allow us to ask (403)".into(),
                    remedy: "allow our service account to get the non-resource URL /plimsoll/samples",
                });
            }
            status => {
                return Err(Silence {
                    cause: format!("it answered with {status}"),
                    remedy: "check that all replicas run the same version, and their logs",
                });
            }
        }
        let page = code::read(&answer.body).map_err(|broken| Silence {
            cause: format!("its answer makes no sense: {broken}"),
            remedy: "check that all replicas run the same version",
        })?;
        if page.more && page.incarnation == of && page.generation <= since {
            return Err(Silence { cause: "it tells the same again and again".into(), remedy: "restart it" });
        }
        Ok(page)
    }

    /// What a page said is known now.
    pub(super) fn known(&self, page: &Page) {
        let mut state = self.locked();
        (state.since, state.of) = (page.generation, page.incarnation);
    }

    fn begin(&self) -> Result<(Client, u64, u64), Silence> {
        let mut state = self.locked();
        let client = match &state.client {
            Some(client) => client.clone(),
            None => Client::new(self.endpoint.clone()).map_err(|error| silence(&error.cause))?,
        };
        state.client = Some(client.clone());
        Ok((client, state.since, state.of))
    }

    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn silence(cause: &crate::http::Cause) -> Silence {
    Silence { cause: cause.to_string(), remedy: cause.remedy() }
}
