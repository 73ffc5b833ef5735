//! Tokens of OpenStack's Keystone (Identity API v3), cached until shortly before they expire, and its service catalog.

#[cfg(test)]
mod tests;

use std::time::Duration;

use http::StatusCode;
use jiff::Timestamp;
use serde_json::{Value, json};
use sources::http::HttpResponse;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::ScalerError;
use crate::parameters::Secret;
use crate::responses::{error_field, json as read};
use crate::web::{HttpCall, SharedHttpClient};

/// How long before its expiry a token is replaced.
const REFRESH_MARGIN: Duration = Duration::from_mins(1);
/// Lifetime of tokens without `expires_at`.
const DEFAULT_TOKEN_LIFETIME: Duration = Duration::from_mins(5);
/// Maximum time for which a token is cached.
const MAX_TOKEN_LIFETIME: Duration = Duration::from_hours(24);
/// Default timeout of requests, as in KEDA.
const DEFAULT_TIMEOUT_SECONDS: u64 = 30;
/// Maximum timeout of requests.
const MAX_TIMEOUT_SECONDS: u64 = 300;

/// The credentials of a login.
#[derive(Clone, Copy)]
pub(crate) enum KeystoneLogin<'a> {
    /// A user, for a project; without a project the token has the user's default one.
    Password { user_id: &'a str, password: &'a Secret, project_id: &'a str },
    /// An application credential, which belongs to a project.
    ApplicationCredential { id: &'a str, secret: &'a Secret },
}

impl KeystoneLogin<'_> {
    /// The body of a request for a token.
    fn body(self) -> String {
        match self {
            Self::Password { user_id, password, project_id } => {
                let user = json!({"id": user_id, "password": password.reveal()});
                let identity = json!({"methods": ["password"], "password": {"user": user}});
                match project_id {
                    "" => json!({"auth": {"identity": identity}}),
                    id => json!({"auth": {"identity": identity, "scope": {"project": {"id": id}}}}),
                }
            }
            Self::ApplicationCredential { id, secret } => {
                let credential = json!({"id": id, "secret": secret.reveal()});
                let methods = ["application_credential"];
                json!({"auth": {"identity": {"methods": methods, "application_credential": credential}}})
            }
        }
        .to_string()
    }
}

/// A token, and the URL of the service that it is for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct KeystoneSession {
    /// The token, for the header `X-Auth-Token`.
    pub(crate) token: Secret,
    /// The public URL of the service in the catalog; none if the catalog does not have it.
    pub(crate) service_url: Option<String>,
}

/// A login at Keystone and its cached token.
pub(crate) struct KeystoneClient {
    url: String,
    body: Secret,
    /// Type of the service in the catalog, such as `object-store`, and its region; all regions if it is empty.
    service: (&'static str, String),
    within: Duration,
    /// The cached session, and when it is replaced.
    kept: Mutex<Option<(KeystoneSession, Instant)>>,
}

/// The timeout of requests in seconds, at most 5 minutes; 30 seconds if it is not positive.
pub(crate) fn timeout(seconds: isize) -> Duration {
    let given = u64::try_from(seconds).ok().filter(|seconds| *seconds > 0);
    Duration::from_secs(given.unwrap_or(DEFAULT_TIMEOUT_SECONDS).min(MAX_TIMEOUT_SECONDS))
}

impl KeystoneClient {
    /// A client without a token. The URL may end with `/v3`.
    pub(crate) fn new(
        auth_url: &str,
        login: KeystoneLogin<'_>,
        service: (&'static str, &str),
        within: Duration,
    ) -> Self {
        let base = auth_url.trim_end_matches('/');
        let version = if base.ends_with("/v3") { "" } else { "/v3" };
        Self {
            url: format!("{base}{version}/auth/tokens"),
            body: Secret::new(login.body()),
            service: (service.0, service.1.to_owned()),
            within,
            kept: Mutex::default(),
        }
    }

    /// Sends the request that a session makes; once more with a new token if the service refuses the cached one.
    pub(crate) async fn send(
        &self,
        web: &SharedHttpClient,
        request: impl Fn(&KeystoneSession) -> Result<HttpCall, ScalerError> + Send + Sync,
    ) -> Result<HttpResponse, ScalerError> {
        let (session, is_new) = self.session(web).await?;
        let answer = web.send(request(&session)?).await?;
        if answer.status != StatusCode::UNAUTHORIZED {
            return Ok(answer);
        }
        // The token was revoked, or it has no right to the service: in that case a new one is refused, too.
        self.forget(&session).await;
        if is_new {
            return Ok(answer);
        }
        let (session, _) = self.session(web).await?;
        Ok(web.send(request(&session)?).await?)
    }

    /// The cached session or a new one, and whether it is new.
    async fn session(&self, web: &SharedHttpClient) -> Result<(KeystoneSession, bool), ScalerError> {
        let mut kept = self.kept.lock().await;
        if let Some((session, until)) = &*kept
            && Instant::now() < *until
        {
            return Ok((session.clone(), false));
        }
        let call = HttpCall::post(&*self.url, self.body.reveal().to_owned(), self.within)
            .header("content-type", "application/json")?
            .header("accept", "application/json")?;
        let answer = web.send(call).await?;
        let token = answer.headers.get("x-subject-token").and_then(|token| token.to_str().ok());
        let (kind, region) = (self.service.0, &*self.service.1);
        let (session, expires) = answered(answer.status.as_u16(), token, &answer.body, (kind, region))?;
        let lifetime = lifetime(expires, web.now());
        *kept = Some((session.clone(), Instant::now() + lifetime));
        Ok((session, true))
    }

    /// Drops a session, unless another caller has replaced it.
    async fn forget(&self, refused: &KeystoneSession) {
        let mut kept = self.kept.lock().await;
        if kept.as_ref().is_some_and(|(session, _)| session == refused) {
            *kept = None;
        }
    }
}

/// How long a token is used.
fn lifetime(expires: Option<Timestamp>, now: Timestamp) -> Duration {
    let Some(expires) = expires else { return DEFAULT_TOKEN_LIFETIME };
    let seconds = expires.as_second().saturating_sub(now.as_second());
    let left = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
    left.saturating_sub(REFRESH_MARGIN).min(MAX_TOKEN_LIFETIME)
}

/// The session in a response, and when its token expires. Errors do not quote a body that may contain a token.
fn answered(
    status: u16,
    token: Option<&str>,
    body: &[u8],
    (kind, region): (&str, &str),
) -> Result<(KeystoneSession, Option<Timestamp>), ScalerError> {
    if !(200..300).contains(&status) {
        bail!("Keystone returned {status}: {}", error_field(body, "/error/message"));
    }
    let Some(token) = token.filter(|token| !token.is_empty()) else {
        bail!("Keystone answered without the header X-Subject-Token: check authURL");
    };
    let answer =
        read(body).map_err(|_| scaler_error!("Keystone answered with something that is not JSON"))?;
    let expires = answer.pointer("/token/expires_at").and_then(Value::as_str);
    let expires = expires.and_then(|text| text.parse::<Timestamp>().ok());
    let service_url = service_url(&answer, kind, region);
    Ok((KeystoneSession { token: Secret::new(token), service_url }, expires))
}

/// The public URL of a service in the catalog of a token.
fn service_url(answer: &Value, kind: &str, region: &str) -> Option<String> {
    let services = answer.pointer("/token/catalog")?.as_array()?;
    let of_kind = services.iter().filter(|service| text(service, "type") == Some(kind));
    let endpoints = of_kind.filter_map(|service| service.get("endpoints")?.as_array()).flatten();
    let mut public = endpoints.filter(|endpoint| {
        let place = text(endpoint, "region_id").or_else(|| text(endpoint, "region"));
        text(endpoint, "interface") == Some("public") && (region.is_empty() || place == Some(region))
    });
    public.find_map(|endpoint| text(endpoint, "url")).filter(|url| !url.is_empty()).map(str::to_owned)
}

fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}
