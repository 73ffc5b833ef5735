//! AWS Secrets Manager: `GetSecretValue`.

use std::sync::Arc;

use api::keda::AwsSecretManagerSecret;
use serde_json::{Map, Value};
use sources::http::Secret;

use super::{REQUEST_TIMEOUT, SecretManagers};
use crate::ScalerError;
use crate::aws::{AwsClient, AwsRequest, answer};
use crate::identity::AwsIdentity;
use crate::responses::kind;

/// Reads secrets of one region.
pub struct AwsSecretClient(AwsClient);

impl SecretManagers {
    /// The secrets of a region; an empty one is that of the operator.
    pub fn aws(&self, identity: AwsIdentity, region: &str) -> Result<AwsSecretClient, ScalerError> {
        let region = match region {
            "" => self.identities.aws_region().unwrap_or_default(),
            given => given,
        };
        if region.is_empty() {
            bail!("region is missing: set it in awsSecretManager, or AWS_REGION for the operator");
        }
        let (identities, web) = (Arc::clone(&self.identities), Arc::clone(&self.web));
        Ok(AwsSecretClient(AwsClient::of_identity(identity, region, REQUEST_TIMEOUT, identities, web)))
    }
}

impl AwsSecretClient {
    /// The text of a secret: the whole of it, whatever its `secretKey` is.
    pub async fn read(&self, secret: &AwsSecretManagerSecret) -> Result<Secret, ScalerError> {
        let request = AwsRequest {
            host: "secretsmanager",
            service: "secretsmanager",
            target: "secretsmanager.GetSecretValue",
            version: "1.1",
            body: request_body(secret),
        };
        let (status, body) = self.0.send(request).await?;
        let answer = answer("AWS Secrets Manager", status, &body)?;
        match answer.get("SecretString").and_then(Value::as_str) {
            Some(text) => Ok(Secret::new(text)),
            None => Err(scaler_error!("it has no text, and binary secrets cannot be parameters")),
        }
    }
}

fn request_body(secret: &AwsSecretManagerSecret) -> String {
    let fields = [
        ("SecretId", &secret.name),
        ("VersionId", &secret.version_id),
        ("VersionStage", &secret.version_stage),
    ];
    let given = fields.into_iter().filter(|(_, text)| !text.is_empty());
    let body: Map<String, Value> =
        given.map(|(name, text)| (name.to_owned(), Value::from(text.as_str()))).collect();
    Value::Object(body).to_string()
}

/// The string at a key of a secret that is a JSON object; without a key, the whole secret.
pub fn value_of_key(text: &Secret, key: &str) -> Result<Secret, ScalerError> {
    if key.is_empty() {
        return Ok(text.clone());
    }
    let Ok(fields) = serde_json::from_str::<Value>(text.reveal()) else {
        bail!("it is not JSON, so that it has no key {key:?}: leave out secretKey to use the whole secret");
    };
    match fields.get(key) {
        Some(Value::String(value)) => Ok(Secret::new(value.as_str())),
        found => Err(scaler_error!("it has {} at key {key:?} instead of a string", kind(found))),
    }
}
