//! GitHub Apps: an installation token is requested with a JWT signed by the app's key (RFC 7519).

use std::time::Duration;

use serde_json::json;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::query;
use crate::ScalerError;
use crate::identity::jwt;
use crate::parameters::Secret;
use crate::single::send;
use crate::web::{HttpCall, SharedHttpClient};

/// How long a token is used; GitHub's tokens are valid for an hour.
const TOKEN_LIFETIME: Duration = Duration::from_mins(50);

/// A GitHub App, and the cached token of its installation.
pub(super) struct App {
    pub(super) id: i64,
    pub(super) installation: i64,
    pub(super) key: Secret,
    pub(super) token: Mutex<Option<(Secret, Instant)>>,
}

impl App {
    /// The cached token, or a new one. `now` is a Unix time in seconds.
    pub(super) async fn token(
        &self,
        web: &SharedHttpClient,
        api: &str,
        within: Duration,
        now: i64,
    ) -> Result<Secret, ScalerError> {
        let mut kept = self.token.lock().await;
        if let Some((token, until)) = &*kept
            && Instant::now() < *until
        {
            return Ok(token.clone());
        }
        let assertion = assertion(self.id, &self.key, now)?;
        let call = HttpCall::post(query::token_url(api, self.installation), "", within)
            .signed_by(&[self.id.to_string().as_str(), self.key.reveal()])
            .header("authorization", &format!("Bearer {}", assertion.reveal()))?
            .header("accept", "application/vnd.github+json")?;
        let (status, body) = send(web, call).await?;
        let token = Secret::new(query::token(status, &body)?);
        *kept = Some((token.clone(), Instant::now() + TOKEN_LIFETIME));
        Ok(token)
    }
}

/// The signed JWT of the app.
pub(super) fn assertion(id: i64, key: &Secret, now: i64) -> Result<Secret, ScalerError> {
    let header = json!({"alg": "RS256", "typ": "JWT"});
    // Issued a little in the past, because clocks differ.
    let claims = json!({"iat": now - 60, "exp": now + 540, "iss": id.to_string()});
    jwt::signed(&header, &claims, key).map_err(|error| scaler_error!("appKey: {error}"))
}
