//! Delegated authentication: front proxy headers, client certificates, and TokenReviews.
//!
//! ```text
//! user         the authenticated user
//! authorities  CAs of client certificates
//! peer         the client certificate of a connection and the CA it chains to
//! trust        the CAs that the cluster publishes in a ConfigMap, re-read periodically
//! headers      the user that a front proxy names in headers
//! token        the user of a bearer token
//! ```

mod authorities;
mod headers;
mod peer;
mod token;
mod trust;
mod user;

use std::time::Duration;

use http::HeaderMap;
use kube::Client;

pub(crate) use peer::Peer;
pub use trust::{ClientTrust, FrontProxyOptions};
pub(crate) use trust::{ClientTrustReader, Trust, TrustSource};
pub use user::User;

use crate::clock::Clock;
use crate::status::Status;

/// Authenticates requests.
pub(crate) struct Authenticator {
    keeper: ClientTrustReader,
    tokens: token::Tokens,
    clock: Clock,
}

impl Authenticator {
    /// Results of TokenReviews are cached for `life`.
    pub(crate) fn new(client: Client, keeper: ClientTrustReader, life: Duration, clock: Clock) -> Self {
        Self { keeper, tokens: token::Tokens::new(client, life), clock }
    }

    /// The user of a request. Invalid credentials are refused; without credentials the user is anonymous.
    pub(crate) async fn identify(&self, peer: Option<&Peer>, headers: &HeaderMap) -> Result<User, Status> {
        let trust = self.keeper.current();
        let by_certificate = by_certificate(&trust, &self.clock, peer, headers);
        if let Ok(Some(user)) = by_certificate {
            return Ok(user.authenticated());
        }
        let mut refused = by_certificate.is_err();
        if refused {
            // The cluster may have published a new CA.
            self.keeper.request_read();
        }
        if let Some(token) = token::bearer(headers) {
            match self.tokens.owner(token).await {
                Ok(Some(user)) => return Ok(user.authenticated()),
                Ok(None) => refused = true,
                Err(error) => {
                    tracing::warn!(%error, "TokenReview failed");
                    refused = true;
                }
            }
        }
        if refused { Err(Status::unauthorized()) } else { Ok(User::anonymous()) }
    }

    /// Removes all credentials and user headers, so that no route trusts them or passes them on.
    pub(crate) fn strip(&self, headers: &mut HeaderMap) {
        headers::strip(self.keeper.current().proxy.as_ref(), headers);
    }
}

/// The client certificate is not signed by a trusted CA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Refused;

/// The user by certificate: a front proxy names another user, any other client is itself.
fn by_certificate(
    trust: &Trust,
    clock: &Clock,
    peer: Option<&Peer>,
    headers: &HeaderMap,
) -> Result<Option<User>, Refused> {
    let Some(peer) = peer else { return Ok(None) };
    let standing = peer.standing(trust, clock);
    let proxy = trust.proxy.as_ref().filter(|proxy| standing.proxy && proxy.admits(peer.name()));
    if let Some(user) = proxy.and_then(|proxy| headers::user(proxy, headers)) {
        return Ok(Some(user));
    }
    if standing.client { Ok(peer.user()) } else { Err(Refused) }
}

#[cfg(test)]
mod tests;
