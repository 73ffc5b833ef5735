//! Who asks: the front proxy is believed, certificates are checked, tokens are shown to the API server.
//!
//! ```text
//! user     who
//! peer     the certificate somebody showed, and whom it chains to
//! trust    whom the cluster trusts, from a ConfigMap that is read again and again
//! headers  whom the front proxy speaks for
//! token    whose token it is
//! ```

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
pub(crate) use trust::{Keeper, Source, Trust};
pub use user::User;

use crate::status::Status;

/// Finds out who asks.
pub(crate) struct Authenticator {
    keeper: Keeper,
    tokens: token::Tokens,
}

impl Authenticator {
    /// Whose token it is, is asked again after `life`.
    pub(crate) fn new(client: Client, keeper: Keeper, life: Duration) -> Self {
        Self { keeper, tokens: token::Tokens::new(client, life) }
    }

    /// Who sent a request. Whoever shows something that is not good is refused; whoever shows nothing is anonymous.
    pub(crate) async fn identify(&self, peer: Option<&Peer>, headers: &HeaderMap) -> Result<User, Status> {
        let trust = self.keeper.current();
        let by_certificate = by_certificate(&trust, peer, headers);
        if let Ok(Some(user)) = by_certificate {
            return Ok(user.authenticated());
        }
        let mut refused = by_certificate.is_err();
        if refused {
            // Perhaps the cluster has new authorities.
            self.keeper.look_again();
        }
        if let Some(token) = token::bearer(headers) {
            match self.tokens.owner(token).await {
                Ok(Some(user)) => return Ok(user.authenticated()),
                Ok(None) => refused = true,
                Err(error) => {
                    tracing::warn!(%error, "failed to ask the API server whose token it is");
                    refused = true;
                }
            }
        }
        if refused { Err(Status::unauthorized()) } else { Ok(User::anonymous()) }
    }

    /// Removes what says who asks, so that nobody behind this believes it or passes it on.
    pub(crate) fn strip(&self, headers: &mut HeaderMap) {
        headers::strip(self.keeper.current().proxy.as_ref(), headers);
    }
}

/// The certificate shown is good for nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Refused;

/// Whom a certificate speaks for: the front proxy for others, anybody else for himself.
fn by_certificate(trust: &Trust, peer: Option<&Peer>, headers: &HeaderMap) -> Result<Option<User>, Refused> {
    let Some(peer) = peer else { return Ok(None) };
    let standing = peer.standing(trust);
    let proxy = trust.proxy.as_ref().filter(|proxy| standing.proxy && proxy.admits(peer.name()));
    if let Some(user) = proxy.and_then(|proxy| headers::user(proxy, headers)) {
        return Ok(Some(user));
    }
    if standing.client { Ok(peer.user()) } else { Err(Refused) }
}

#[cfg(test)]
mod tests;
