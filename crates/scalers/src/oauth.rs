//! Tokens of a client that shows its own credentials (RFC 6749, 4.4), kept until shortly before they end.

use std::time::Duration;

use serde_json::Value;
use sources::http::Endpoint;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::Error;
use crate::answers::{excerpt, json};
use crate::parameters::{QueryValues, Secret};
use crate::single::ask;
use crate::web::{Call, Web, escaped};

/// A token is not used for the last part of its life.
const SPARE: Duration = Duration::from_secs(30);
/// How long a token is good if nobody says.
const GOOD: Duration = Duration::from_mins(5);

/// A client, and its token.
pub(crate) struct Client {
    uri: String,
    id: String,
    secret: Secret,
    /// Trust in the server of tokens.
    access: Endpoint,
    /// What is asked; parameters may be secrets, too.
    form: Secret,
    /// The token, and until when it is used.
    kept: Mutex<Option<(Secret, Instant)>>,
}

impl Client {
    /// Has no token yet.
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

    /// The token, a new one if need be.
    pub(crate) async fn token(&self, web: &Web, within: Duration) -> Result<Secret, Error> {
        let mut kept = self.kept.lock().await;
        if let Some((token, until)) = &*kept
            && Instant::now() < *until
        {
            return Ok(token.clone());
        }
        let secret = Secret::new(escaped(self.secret.reveal()));
        let call = Call::post(&*self.uri, self.form.reveal().to_owned(), within)
            .access(self.access.clone())
            .basic(&escaped(&self.id), &secret)
            .header("content-type", "application/x-www-form-urlencoded")?;
        let (status, body) = ask(web, call).await?;
        let (token, good) = answer(status, &body)?;
        *kept = Some((token.clone(), Instant::now() + good.saturating_sub(SPARE)));
        Ok(token)
    }
}

/// The token in an answer, and how long it is good. Errors do not repeat an answer that has one.
pub(crate) fn answer(status: u16, body: &[u8]) -> Result<(Secret, Duration), Error> {
    if !(200..300).contains(&status) {
        return Err(Error::new(format!("the token endpoint returned {status}: {}", excerpt(body))));
    }
    let answer =
        json(body).map_err(|_| Error::new("the token endpoint answered with something that is not JSON"))?;
    let token = answer.get("access_token").and_then(Value::as_str).filter(|token| !token.is_empty());
    let token = token.ok_or_else(|| Error::new("the token endpoint answered without access_token"))?;
    let seconds = answer.get("expires_in").and_then(Value::as_f64);
    let good = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).unwrap_or(GOOD);
    Ok((Secret::new(token), good.min(Duration::from_hours(24))))
}
