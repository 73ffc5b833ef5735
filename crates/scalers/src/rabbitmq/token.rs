//! Tokens of OAuth2 for the management API: asked for with the client's secret, used until shortly before they end.

use std::time::Duration;

use serde::Deserialize;
use sources::http::Secret;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::Parameters;
use crate::web::{Call, Web, escaped};

/// So long before its end a token is not used any more.
const EARLY: Duration = Duration::from_secs(30);
/// How long a token lasts that does not say.
const USUAL: Duration = Duration::from_mins(5);

/// Where tokens come from.
pub(super) struct Tokens {
    uri: String,
    client: String,
    secret: Secret,
    form: Secret,
    kept: Mutex<Option<(Secret, Instant)>>,
}

#[derive(Deserialize)]
struct Given {
    access_token: String,
    expires_in: Option<f64>,
}

impl Tokens {
    /// None if the trigger wants no OAuth2.
    pub(super) fn of(parameters: &Parameters) -> Option<Self> {
        if !parameters.wants_oauth() {
            return None;
        }
        let mut form = vec![("grant_type".to_owned(), "client_credentials".to_owned())];
        if !parameters.scopes.is_empty() {
            form.push(("scope".to_owned(), parameters.scopes.join(" ")));
        }
        form.extend(parameters.endpoint_params.0.iter().cloned());
        let form: Vec<String> =
            form.iter().map(|(key, value)| format!("{}={}", escaped(key), escaped(value))).collect();
        Some(Self {
            uri: parameters.oauth_token_uri.clone(),
            client: parameters.client_id.clone(),
            secret: parameters.client_secret.clone(),
            form: Secret::new(form.join("&")),
            kept: Mutex::new(None),
        })
    }

    /// A token that can be used now.
    pub(super) async fn get(&self, web: &Web, within: Duration) -> Result<Secret, String> {
        let mut kept = self.kept.lock().await;
        if let Some((token, until)) = &*kept
            && Instant::now() < *until
        {
            return Ok(token.clone());
        }
        let call = Call::post(&*self.uri, self.form.reveal().to_owned(), within)
            .basic(&escaped(&self.client), &Secret::new(escaped(self.secret.reveal())))
            .header("content-type", "application/x-www-form-urlencoded")
            .map_err(|error| error.0)?;
        let answer = web.ask(call).await.map_err(|error| format!("no token of OAuth2: {error}"))?;
        if !answer.status.is_success() {
            return Err(format!("no token of OAuth2: the server answered {}", answer.status));
        }
        let given: Given = serde_json::from_slice(&answer.body)
            .map_err(|_| "no token of OAuth2: the answer has no access_token".to_owned())?;
        let lasts = given.expires_in.map(Duration::try_from_secs_f64).and_then(Result::ok).unwrap_or(USUAL);
        let token = Secret::new(given.access_token);
        *kept = Some((token.clone(), Instant::now() + lasts.saturating_sub(EARLY)));
        Ok(token)
    }
}
