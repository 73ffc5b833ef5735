//! OAuth2 client credentials grant (RFC 6749, 4.4); tokens are cached until shortly before they expire.

use std::time::Duration;

use serde_json::Value;
use sources::http::Endpoint;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::ScalerError;
use crate::parameters::{QueryValues, Secret};
use crate::responses::{error_field, json};
use crate::single::send;
use crate::web::{HttpCall, SharedHttpClient, escaped};

/// How long before its expiry a token is replaced.
const REFRESH_MARGIN: Duration = Duration::from_secs(30);
/// Lifetime of tokens without `expires_in`.
const DEFAULT_TOKEN_LIFETIME: Duration = Duration::from_mins(5);

/// An OAuth2 client and its cached token.
pub(crate) struct OAuthClient {
    uri: String,
    id: String,
    secret: Secret,
    /// TLS settings of the token endpoint.
    access: Endpoint,
    /// The form to send; its parameters may be secrets.
    form: Secret,
    /// The cached token, and when it is replaced.
    kept: Mutex<Option<(Secret, Instant)>>,
}

impl OAuthClient {
    /// A client without a token.
    pub(crate) fn new(
        (uri, access): (&str, Endpoint),
        (id, secret): (&str, &Secret),
        scopes: &[String],
        more: &QueryValues,
    ) -> Self {
        let mut form = "grant_type=client_credentials".to_owned();
        if !scopes.is_empty() {
            form.push_str(&format!("&scope={}", escaped(&scopes.join(" "))));
        }
        for (key, value) in &more.0 {
            form.push_str(&format!("&{}={}", escaped(key), escaped(value)));
        }
        let (uri, id, secret) = (uri.to_owned(), id.to_owned(), secret.clone());
        Self { uri, id, secret, access, form: Secret::new(form), kept: Mutex::default() }
    }

    /// The cached token, or a new one.
    pub(crate) async fn token(
        &self,
        web: &SharedHttpClient,
        within: Duration,
    ) -> Result<Secret, ScalerError> {
        let mut kept = self.kept.lock().await;
        if let Some((token, until)) = &*kept
            && Instant::now() < *until
        {
            return Ok(token.clone());
        }
        let secret = Secret::new(escaped(self.secret.reveal()));
        let call = HttpCall::post(&*self.uri, self.form.reveal().to_owned(), within)
            .access(self.access.clone())
            .basic(&escaped(&self.id), &secret)
            .header("content-type", "application/x-www-form-urlencoded")?;
        let (status, body) = send(web, call).await?;
        let (token, good) = answer(status, &body)?;
        *kept = Some((token.clone(), Instant::now() + good.saturating_sub(REFRESH_MARGIN)));
        Ok(token)
    }
}

/// The token in a response, and its lifetime. Errors do not quote a body that may contain a token.
pub(crate) fn answer(status: u16, body: &[u8]) -> Result<(Secret, Duration), ScalerError> {
    if !(200..300).contains(&status) {
        bail!("the token endpoint returned {status}: {}", error_field(body, "/error"));
    }
    let answer = json(body)
        .map_err(|_| scaler_error!("the token endpoint answered with something that is not JSON"))?;
    let token = answer.get("access_token").and_then(Value::as_str).filter(|token| !token.is_empty());
    let token = token.ok_or_else(|| scaler_error!("the token endpoint answered without access_token"))?;
    let seconds = answer.get("expires_in").and_then(Value::as_f64);
    let good = seconds
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .unwrap_or(DEFAULT_TOKEN_LIFETIME);
    Ok((Secret::new(token), good.min(Duration::from_hours(24))))
}
