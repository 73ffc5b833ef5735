//! Delegated authentication: front proxy headers, client certificates, and TokenReviews.
//!
//! ```text
//! user         the authenticated user
//! authorities  CAs of client certificates
//! client_authority  the CA of clients of one service
//! peer         the client certificate of a connection and the CA it chains to
//! trust        the CAs that the cluster publishes in a ConfigMap, re-read periodically
//! headers      the user that a front proxy names in headers
//! token        the user of a bearer token
//! ```

mod authorities;
mod client_authority;
mod headers;
mod peer;
mod token;
mod trust;
mod user;

use std::time::Duration;

use http::HeaderMap;
use kube::Client;
use runtime::Clock;

pub(crate) use client_authority::ClientAuthority;
pub use client_authority::ClientAuthorityError;
pub(crate) use peer::Peer;
pub use trust::{ClientTrust, FrontProxyOptions};
pub(crate) use trust::{ClientTrustReader, Trust, TrustSource};
pub use user::User;

use crate::peer_address::PeerAddress;
use crate::status::Status;
use token::TokenError;

/// Authenticates requests.
pub(crate) struct Authenticator {
    trust_reader: ClientTrustReader,
    tokens: token::Tokens,
    clock: Clock,
}

impl Authenticator {
    /// Results of TokenReviews are cached for `life`.
    pub(crate) fn new(client: Client, trust_reader: ClientTrustReader, life: Duration, clock: Clock) -> Self {
        Self { trust_reader, tokens: token::Tokens::new(client, life), clock }
    }

    /// The user of a request. Invalid credentials are refused; without credentials the user is anonymous.
    pub(crate) async fn identify(
        &self,
        peer: Option<&Peer>,
        address: Option<PeerAddress>,
        headers: &HeaderMap,
    ) -> Result<User, Status> {
        let trust = self.trust_reader.current();
        let by_certificate = by_certificate(&trust, &self.clock, peer, headers);
        if let Ok(Some(user)) = by_certificate {
            return Ok(user.authenticated());
        }
        let mut refused = by_certificate.is_err();
        if refused {
            // The cluster may have published a new CA.
            self.trust_reader.request_read();
        }
        if let Some(token) = token::bearer(headers) {
            match self.tokens.owner(token, address).await {
                Ok(Some(user)) => return Ok(user.authenticated()),
                Ok(None) => refused = true,
                Err(TokenError::Throttled) => return Err(Status::too_many()),
                Err(error) => {
                    tracing::warn!(%error, "TokenReview failed");
                    refused = true;
                }
            }
        }
        if refused { Err(Status::unauthorized()) } else { Ok(User::anonymous()) }
    }

    /// Whether the client is a front proxy.
    pub(crate) fn is_front_proxy(&self, peer: Option<&Peer>) -> bool {
        peer.is_some_and(|peer| is_proxy(&self.trust_reader.current(), &self.clock, peer))
    }

    /// Removes all credentials and user headers, so that no route trusts them or passes them on.
    pub(crate) fn strip(&self, headers: &mut HeaderMap) {
        headers::strip(self.trust_reader.current().proxy.as_ref(), headers);
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
    let proxy = trust.proxy.as_ref().filter(|_| is_proxy(trust, clock, peer));
    if let Some(user) = proxy.and_then(|proxy| headers::user(proxy, headers)) {
        return Ok(Some(user));
    }
    if peer.trusted_chains(trust, clock).client { Ok(peer.user()) } else { Err(Refused) }
}

/// Whether this is a front proxy, by its certificate and name.
fn is_proxy(trust: &Trust, clock: &Clock, peer: &Peer) -> bool {
    let named = trust.proxy.as_ref().is_some_and(|proxy| proxy.admits(peer.name()));
    named && peer.trusted_chains(trust, clock).proxy
}

#[cfg(test)]
mod tests;
