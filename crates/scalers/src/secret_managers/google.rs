//! GCP Secret Manager: the secrets of one project.

use std::sync::Arc;

use api::keda::GcpSecretManagerSecret;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;
use sources::http::Secret;

use super::{REQUEST_TIMEOUT, SecretManagers};
use crate::ScalerError;
use crate::google_client::google_answer;
use crate::identity::{GoogleIdentity, Identities};
use crate::single::send;
use crate::web::{HttpCall, SharedHttpClient, escaped};

const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";
/// The only host that gets tokens.
const ENDPOINT: &str = "https://secretmanager.googleapis.com";

/// Reads secrets of the project of an identity.
pub struct GoogleSecretClient {
    identity: GoogleIdentity,
    identities: Arc<Identities>,
    web: Arc<SharedHttpClient>,
}

impl SecretManagers {
    /// The secrets of the project of an identity.
    pub fn google(&self, identity: GoogleIdentity) -> GoogleSecretClient {
        GoogleSecretClient { identity, identities: Arc::clone(&self.identities), web: Arc::clone(&self.web) }
    }
}

impl GoogleSecretClient {
    /// The text of a secret.
    pub async fn read(&self, secret: &GcpSecretManagerSecret) -> Result<Secret, ScalerError> {
        let path = path(secret)?;
        let project = self.identities.google_project(&self.identity, &self.web).await?;
        let token = self.identities.google(&self.identity, SCOPE, &self.web).await?;
        let url = format!("{ENDPOINT}/v1/projects/{}/{path}", escaped(&project));
        let call = HttpCall::get(url, REQUEST_TIMEOUT)
            .header("authorization", &format!("Bearer {}", token.reveal()))?
            .alone();
        let (status, body) = send(&self.web, call).await?;
        let answer = google_answer("GCP Secret Manager", status, &body)?;
        let data = answer.pointer("/payload/data").and_then(Value::as_str);
        let bytes = data.and_then(|data| BASE64_STANDARD.decode(data).ok());
        let Some(bytes) = bytes else { bail!("GCP Secret Manager answered without data") };
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Secret::new(text)),
            Err(_) => Err(scaler_error!("it is not text, and binary secrets cannot be parameters")),
        }
    }
}

fn path(secret: &GcpSecretManagerSecret) -> Result<String, ScalerError> {
    let is_name =
        |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
    let version = if secret.version.is_empty() { "latest" } else { &secret.version };
    if !is_name(&secret.id) || !is_name(version) {
        bail!("id and version of a secret have only letters, digits, hyphens and underscores");
    }
    Ok(format!("secrets/{}/versions/{version}:access", secret.id))
}
