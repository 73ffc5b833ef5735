//! Tokens of a client that shows its own credentials (RFC 6749, 4.4), kept until shortly before they end.

use std::time::Duration;

use serde_json::Value;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::Parameters;
use crate::Error;
use crate::answers::{excerpt, json};
use crate::parameters::Secret;
use crate::single::ask;
use crate::web::{Call, Web, escaped};

/// A token is not used for the last part of its life.
const SPARE: Duration = Duration::from_secs(30);
/// How long a token is good if nobody says.
const GOOD: Duration = Duration::from_mins(5);

/// The token of a client, and until when it is used.
#[derive(Default)]
pub(super) struct Tokens(Mutex<Option<(Secret, Instant)>>);

impl Tokens {
    /// The token, a new one if need be.
    pub(super) async fn token(&self, web: &Web, of: &Parameters, within: Duration) -> Result<Secret, Error> {
        let mut kept = self.0.lock().await;
        if let Some((token, until)) = &*kept
            && Instant::now() < *until
        {
            return Ok(token.clone());
        }
        let call = Call::post(&of.oauth_token_uri, form(of), within).access(of.trust());
        let call = call.header("content-type", "application/x-www-form-urlencoded")?;
        let (status, body) =
            ask(web, call.basic(&escaped(&of.client_id), &Secret::new(escaped(of.client_secret.reveal()))))
                .await?;
        let (token, good) = answer(status, &body)?;
        *kept = Some((token.clone(), Instant::now() + good.saturating_sub(SPARE)));
        Ok(token)
    }
}

/// What is asked.
fn form(of: &Parameters) -> String {
    let mut form = "grant_type=client_credentials".to_owned();
    if !of.scopes.is_empty() {
        form.push_str(&format!("&scope={}", escaped(&of.scopes.join(" "))));
    }
    for (key, value) in &of.endpoint_params.0 {
        form.push_str(&format!("&{}={}", escaped(key), escaped(value)));
    }
    form
}

/// The token in an answer, and how long it is good. Errors do not repeat an answer that has one.
pub(super) fn answer(status: u16, body: &[u8]) -> Result<(Secret, Duration), Error> {
    if !(200..300).contains(&status) {
        return Err(Error::new(format!("the token endpoint returned {status}: {}", excerpt(body))));
    }
    let answer =
        json(body).map_err(|_| Error::new("the token endpoint answered with something that is not JSON"))?;
    let token = answer.get("access_token").and_then(Value::as_str).filter(|token| !token.is_empty());
    let token = token.ok_or_else(|| Error::new("the token endpoint answered without access_token"))?;
    let good = answer.get("expires_in").and_then(Value::as_u64).map_or(GOOD, Duration::from_secs);
    Ok((Secret::new(token), good.min(Duration::from_hours(24))))
}
