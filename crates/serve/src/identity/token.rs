//! Bearer tokens, authenticated by TokenReviews.

use std::sync::Mutex;
use std::time::Duration;

use futures::FutureExt as _;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec};
use kube::Client;
use locks::MutexExt as _;
use tokio::time::Instant;

use super::user::User;
use crate::cache::{Cache, CacheTtl, ExpiringMap};
use crate::digest;
use crate::peer_address::PeerAddress;
use crate::review::{self, FAILED_REVIEWS_PER_SECOND, MAX_FAILED_REVIEWS, ReviewError, ReviewQueue};
use crate::throttle::Throttle;

/// How many results are cached.
const MAX_CACHED_TOKENS: usize = 4096;

/// How long a token that was valid may be reviewed again whatever others at the same address do.
const PROVEN_TTL: Duration = Duration::from_hours(1);

/// Authenticates tokens; only their digests are kept.
pub(super) struct Tokens {
    client: Client,
    known: Cache<Vec<u8>, Option<User>, ReviewError>,
    /// Tokens that were valid.
    proven: Mutex<ExpiringMap<Vec<u8>, ()>>,
    failures: Throttle<PeerAddress>,
}

/// Why the user of a token is not known.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum TokenError {
    #[error(transparent)]
    Review(#[from] ReviewError),
    #[error("too many tokens of this client were not valid")]
    Throttled,
}

impl Tokens {
    /// A result is cached for `life`, refusals included.
    pub(super) fn new(client: Client, life: Duration) -> Self {
        Self {
            client,
            known: Cache::new(MAX_CACHED_TOKENS, move |_| CacheTtl::of(life)),
            proven: Mutex::new(ExpiringMap::new(MAX_CACHED_TOKENS)),
            failures: Throttle::new(MAX_FAILED_REVIEWS, FAILED_REVIEWS_PER_SECOND),
        }
    }

    /// The user of a token; none if the token is not valid. No TokenReview is sent for a while for a client whose tokens are not valid.
    pub(super) async fn owner(
        &self,
        token: &str,
        peer: Option<PeerAddress>,
    ) -> Result<Option<User>, TokenError> {
        let digest = digest::sha256(token.as_bytes());
        // A client that invents tokens has neither a cached nor a verified one.
        let peer = peer.filter(|_| !self.known.holds(&digest) && !self.is_proven(&digest));
        if peer.is_some_and(|peer| !self.failures.take(&peer)) {
            return Err(TokenError::Throttled);
        }
        let review = || review_token(self.client.clone(), token.to_owned()).boxed();
        let owner = self.known.get(digest.clone(), review).await?;
        if owner.is_some() {
            let until = Instant::now() + PROVEN_TTL;
            self.proven.locked().put(digest, (), until, until);
            if let Some(peer) = peer {
                self.failures.give_back(&peer);
            }
        }
        Ok(owner)
    }

    fn is_proven(&self, digest: &Vec<u8>) -> bool {
        let proven = self.proven.locked();
        proven.get(digest, Instant::now()).is_some()
    }
}

async fn review_token(client: Client, token: String) -> Result<Option<User>, ReviewError> {
    let spec = TokenReviewSpec { token, ..TokenReviewSpec::default() };
    let review = TokenReview { spec, ..TokenReview::default() };
    let status = review::post(&client, ReviewQueue::Tokens, &review).await?.status.unwrap_or_default();
    let found = status.user.filter(|_| status.authenticated == Some(true));
    Ok(found.map(|found| User {
        name: found.username.unwrap_or_default(),
        uid: found.uid.unwrap_or_default(),
        groups: found.groups.unwrap_or_default(),
        extra: found.extra.unwrap_or_default(),
    }))
}

/// The bearer token of a request.
pub(super) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.trim().split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}
