//! Access tokens of Google Cloud: service account keys, the metadata server, and federation.

use std::time::Duration;

use serde_json::{Value, json};
use sources::http::Secret;

use super::{Identities, REQUEST_TIMEOUT, is_name, jwt, send, token_file};
use crate::ScalerError;
use crate::oauth;
use crate::responses;
use crate::web::{HttpCall, SharedHttpClient, escaped};

/// Validity of a signed token, in seconds.
const ASSERTION_SECONDS: i64 = 3600;
/// How far a signed token is dated back, because clocks differ, in seconds.
const CLOCK_SKEW_SECONDS: i64 = 10;
/// Validity of the token of an impersonated service account.
const IMPERSONATION_LIFETIME: Duration = Duration::from_hours(1);
/// The metadata server of Google's machines.
const METADATA_HOST: &str = "metadata.google.internal";

/// The identity of a request to Google.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum GoogleIdentity {
    /// A service account key, as the JSON that Google hands out.
    Key(Secret),
    /// The identity of the operator's pod: its `GOOGLE_APPLICATION_CREDENTIALS`, or else the metadata server.
    Operator,
}

/// Identity and scope.
pub(super) type GoogleCacheKey = (GoogleIdentity, String);

impl Identities {
    /// An access token of an identity for a scope, e.g. `https://www.googleapis.com/auth/monitoring.read`.
    pub async fn google(
        &self,
        identity: &GoogleIdentity,
        scope: &str,
        web: &SharedHttpClient,
    ) -> Result<Secret, ScalerError> {
        let key = (identity.clone(), scope.to_owned());
        self.google.get(&key, || self.google_token(identity, scope, web)).await
    }

    async fn google_token(
        &self,
        identity: &GoogleIdentity,
        scope: &str,
        web: &SharedHttpClient,
    ) -> Result<(Secret, Duration), ScalerError> {
        let file = self.environment.variable("GOOGLE_APPLICATION_CREDENTIALS");
        match (identity, file) {
            (GoogleIdentity::Key(key), _) => {
                let account = credentials(key)?;
                match text(&account, "type") {
                    "service_account" => self.account_token(&account, scope, web).await,
                    // Such a file names files of the operator, and where to send them.
                    "external_account" => Err(scaler_error!(
                        "federated credentials (external_account) are accepted only from the operator's own \
                         GOOGLE_APPLICATION_CREDENTIALS: use pod identity gcp"
                    )),
                    other => Err(scaler_error!("Google credentials of type {other:?} cannot be used")),
                }
            }
            (GoogleIdentity::Operator, Some(file)) => {
                let account = credentials(&token_file(file).await?)?;
                match text(&account, "type") {
                    "service_account" => self.account_token(&account, scope, web).await,
                    "external_account" => self.federated_token(&account, scope, web).await,
                    other => Err(scaler_error!("Google credentials of type {other:?} cannot be used")),
                }
            }
            (GoogleIdentity::Operator, None) => self.metadata_token(scope, web).await,
        }
    }

    /// A token for a JWT signed with the key of a service account (RFC 7523).
    async fn account_token(
        &self,
        account: &Value,
        scope: &str,
        web: &SharedHttpClient,
    ) -> Result<(Secret, Duration), ScalerError> {
        let email = text(account, "client_email");
        let now = web.now().as_second() - CLOCK_SKEW_SECONDS;
        let url = &self.environment.google_token_url;
        let header = json!({"alg": "RS256", "typ": "JWT", "kid": text(account, "private_key_id")});
        let claims =
            json!({"iss": email, "scope": scope, "aud": url, "iat": now, "exp": now + ASSERTION_SECONDS});
        let assertion = jwt::signed(&header, &claims, &Secret::new(text(account, "private_key")))
            .map_err(|error| scaler_error!("Google service account {email}: {error}"))?;
        let grant = escaped("urn:ietf:params:oauth:grant-type:jwt-bearer");
        let form = format!("assertion={}&grant_type={grant}", escaped(assertion.reveal()));
        let call = HttpCall::post(&**url, form, REQUEST_TIMEOUT)
            .header("content-type", "application/x-www-form-urlencoded")?;
        let (status, body) = send(web, call).await?;
        oauth::answer(status, &body).map_err(|error| error.inside(format!("Google service account {email}")))
    }

    /// A token of the service account of this machine or pod.
    async fn metadata_token(
        &self,
        scope: &str,
        web: &SharedHttpClient,
    ) -> Result<(Secret, Duration), ScalerError> {
        let host = self.environment.variable("GCE_METADATA_HOST").unwrap_or(METADATA_HOST);
        let url = format!(
            "http://{host}/computeMetadata/v1/instance/service-accounts/default/token?scopes={}",
            escaped(scope)
        );
        let call = HttpCall::get(url, REQUEST_TIMEOUT).header("metadata-flavor", "Google")?;
        let failed = |error: ScalerError| error.inside("the Google identity of the operator cannot be used");
        let (status, body) = send(web, call).await.map_err(failed)?;
        oauth::answer(status, &body).map_err(failed)
    }

    /// The project of an identity, for resources that triggers name without their project.
    pub async fn google_project(
        &self,
        identity: &GoogleIdentity,
        web: &SharedHttpClient,
    ) -> Result<String, ScalerError> {
        let project = match identity {
            GoogleIdentity::Key(key) => text(&credentials(key)?, "project_id").to_owned(),
            GoogleIdentity::Operator => match self.environment.variable("CLOUDSDK_CORE_PROJECT") {
                Some(project) => project.to_owned(),
                None => self.metadata_project(web).await?,
            },
        };
        if project.is_empty() {
            bail!("the Google credentials name no project: name it in the trigger");
        }
        Ok(project)
    }

    /// The project of this machine.
    async fn metadata_project(&self, web: &SharedHttpClient) -> Result<String, ScalerError> {
        let host = self.environment.variable("GCE_METADATA_HOST").unwrap_or(METADATA_HOST);
        let url = format!("http://{host}/computeMetadata/v1/project/project-id");
        let call = HttpCall::get(url, REQUEST_TIMEOUT).header("metadata-flavor", "Google")?;
        let failed = |error: ScalerError| {
            error.inside("the Google project of the operator is unknown (set CLOUDSDK_CORE_PROJECT)")
        };
        let (status, body) = send(web, call).await.map_err(failed)?;
        match std::str::from_utf8(&body).map(str::trim) {
            Ok(project) if status == 200 && is_name(&project.replace(':', "-")) => Ok(project.to_owned()),
            _ => {
                let message = responses::hidden(&body);
                Err(failed(scaler_error!("the metadata server returned {status}: {message}")))
            }
        }
    }

    /// A token for the token of another identity provider (RFC 8693), e.g. that of a Kubernetes ServiceAccount.
    async fn federated_token(
        &self,
        account: &Value,
        scope: &str,
        web: &SharedHttpClient,
    ) -> Result<(Secret, Duration), ScalerError> {
        const CLOUD: &str = "https://www.googleapis.com/auth/cloud-platform";
        let source = account.get("credential_source").unwrap_or(&Value::Null);
        let Some(file) = source.get("file").and_then(Value::as_str) else {
            bail!("federated Google credentials can be used only with a file as credential_source");
        };
        let token = token_file(file).await?;
        let token = match source.pointer("/format/type").and_then(Value::as_str) {
            Some("json") => {
                let field = source.pointer("/format/subject_token_field_name").and_then(Value::as_str);
                let parsed: Option<Value> = serde_json::from_str(token.reveal()).ok();
                let found = parsed.as_ref().and_then(|parsed| parsed.get(field?)).and_then(Value::as_str);
                Secret::new(found.ok_or_else(|| scaler_error!("{file} has no such field with a token"))?)
            }
            _ => token,
        };
        let impersonated = text(account, "service_account_impersonation_url");
        let wanted = if impersonated.is_empty() { scope } else { CLOUD };
        let form = format!(
            "audience={}&grant_type={}&requested_token_type={}&scope={}&subject_token={}&subject_token_type={}",
            escaped(text(account, "audience")),
            escaped("urn:ietf:params:oauth:grant-type:token-exchange"),
            escaped("urn:ietf:params:oauth:token-type:access_token"),
            escaped(wanted),
            escaped(token.reveal()),
            escaped(text(account, "subject_token_type")),
        );
        let call = HttpCall::post(&*self.environment.google_sts_url, form, REQUEST_TIMEOUT)
            .header("content-type", "application/x-www-form-urlencoded")?;
        let (status, body) = send(web, call).await?;
        let (token, lifetime) = oauth::answer(status, &body)?;
        if impersonated.is_empty() {
            return Ok((token, lifetime));
        }
        self.impersonated_token(impersonated, &token, scope, web).await
    }

    async fn impersonated_token(
        &self,
        url: &str,
        token: &Secret,
        scope: &str,
        web: &SharedHttpClient,
    ) -> Result<(Secret, Duration), ScalerError> {
        let email = url.rsplit('/').next().and_then(|last| last.strip_suffix(":generateAccessToken"));
        let Some(email) = email.filter(|email| is_name(&email.replace('@', "-"))) else {
            bail!("service_account_impersonation_url does not name a service account");
        };
        let iam = &self.environment.google_iam_url;
        let url = format!("{iam}/v1/projects/-/serviceAccounts/{email}:generateAccessToken");
        let lifetime = format!("{}s", IMPERSONATION_LIFETIME.as_secs());
        let body = json!({"scope": [scope], "lifetime": lifetime}).to_string();
        let call = HttpCall::post(url, body, REQUEST_TIMEOUT)
            .header("authorization", &format!("Bearer {}", token.reveal()))?
            .header("content-type", "application/json")?;
        let (status, body) = send(web, call).await?;
        if status != 200 {
            let message = responses::error_field(&body, "/error/message");
            bail!("Google service account {email} cannot be impersonated: {status}: {message}");
        }
        let answer: Value = serde_json::from_slice(&body).map_err(|_| {
            scaler_error!("Google did not answer with JSON when asked for a token of {email}")
        })?;
        match text(&answer, "accessToken") {
            "" => Err(scaler_error!("Google answered without a token of {email}")),
            token => Ok((Secret::new(token), IMPERSONATION_LIFETIME)),
        }
    }
}

/// Parses credentials. They are not quoted.
fn credentials(text: &Secret) -> Result<Value, ScalerError> {
    serde_json::from_str(text.reveal()).map_err(|_| scaler_error!("the Google credentials are not JSON"))
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}
