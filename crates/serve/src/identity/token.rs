//! Bearer tokens, authenticated by TokenReviews.

use std::time::Duration;

use futures::FutureExt as _;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec};
use kube::Client;

use super::user::User;
use crate::cache::{Cache, CacheTtl};
use crate::digest;
use crate::review::{self, ReviewError};

/// How many results are cached.
const MAX_CACHED_TOKENS: usize = 4096;

/// Authenticates tokens; only their digests are kept.
pub(super) struct Tokens {
    client: Client,
    known: Cache<Vec<u8>, Option<User>, ReviewError>,
}

impl Tokens {
    /// A result is cached for `life`, refusals included.
    pub(super) fn new(client: Client, life: Duration) -> Self {
        Self { client, known: Cache::new(MAX_CACHED_TOKENS, move |_| CacheTtl::of(life)) }
    }

    /// The user of a token; none if the token is not valid.
    pub(super) async fn owner(&self, token: &str) -> Result<Option<User>, ReviewError> {
        let digest = digest::sha256(token.as_bytes());
        self.known.get(digest, || ask(self.client.clone(), token.to_owned()).boxed()).await
    }
}

async fn ask(client: Client, token: String) -> Result<Option<User>, ReviewError> {
    let spec = TokenReviewSpec { token, ..TokenReviewSpec::default() };
    let review = TokenReview { spec, ..TokenReview::default() };
    let status = review::post(&client, &review).await?.status.unwrap_or_default();
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
