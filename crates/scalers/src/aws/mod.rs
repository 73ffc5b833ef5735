//! AWS credentials of triggers, and signed requests.

mod request;
#[cfg(test)]
mod tests;

pub(crate) use request::{AwsRequest, answer};

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::backends::Backends;
use crate::identity::{AwsIdentity, AwsKeys, Identities};
use crate::parameters::Secret;
use crate::single::send;
use crate::web::SharedHttpClient;
use crate::{ScalerError, Trigger};
use request::AwsDispatch;

crate::parameters! {
    /// Endpoint and credentials of AWS.
    pub struct AwsCredentials {
        /// Endpoint URL, if not the one of the region.
        endpoint: Option<String> = "awsEndpoint" in [Metadata];
        /// Whose identity is used: `pod` (default) for the keys or the role given here, `operator` for the operator's own.
        identity_owner: String = "identityOwner" in [Metadata];
        /// ARN of a role to assume.
        role: Option<String> = "awsRoleArn" in [Authentication];
        /// Access key.
        access_key: Option<String> = "awsAccessKeyID" | "awsAccessKeyId" in [Authentication];
        /// Its secret key.
        secret_key: Option<Secret> = "awsSecretAccessKey" in [Authentication];
        /// Session token of temporary keys.
        session_token: Option<Secret> = "awsSessionToken" in [Authentication];
        /// Access key, from the workload's environment.
        own_access_key: Option<String> = "awsAccessKeyID" in [Metadata, Environment];
        /// Its secret key, from the workload's environment.
        own_secret_key: Option<Secret> = "awsSecretAccessKey" in [Environment];
    }
}

impl AwsCredentials {
    /// The identity; an error if keys are missing.
    pub(crate) fn identity(&self, trigger: &Trigger) -> Result<AwsIdentity, ScalerError> {
        let external_id = trigger.identity.external_id.clone().filter(|id| !id.is_empty());
        if trigger.identity.provider == "aws" {
            let role =
                trigger.identity.role_arn.clone().filter(|role| !role.is_empty()).or(self.role.clone());
            return Ok(match role {
                Some(arn) => AwsIdentity::Role { arn, external_id, web_identity: true },
                None => AwsIdentity::Operator,
            });
        }
        match &*self.identity_owner {
            "" | "pod" => {}
            _ => return Ok(AwsIdentity::Operator),
        }
        if let Some(arn) = self.role.clone() {
            return Ok(AwsIdentity::Role { arn, external_id: None, web_identity: false });
        }
        // The source of the access key decides where the secret key is read from.
        let (access, secret) = match &self.access_key {
            Some(_) => (&self.access_key, &self.secret_key),
            None => (&self.own_access_key, &self.own_secret_key),
        };
        let access = access.clone().ok_or_else(|| scaler_error!("awsAccessKeyID not found"))?;
        let secret = secret.clone().ok_or_else(|| scaler_error!("awsSecretAccessKey not found"))?;
        Ok(AwsIdentity::Keys(AwsKeys { access, secret, session: self.session_token.clone() }))
    }
}

/// Sends signed requests to AWS for one trigger.
pub(crate) struct AwsClient {
    region: String,
    endpoint: Option<String>,
    identity: AwsIdentity,
    identities: Arc<Identities>,
    /// Timeout of requests.
    within: Duration,
    web: Arc<SharedHttpClient>,
}

impl AwsClient {
    /// A client for a region; an error if keys are missing.
    pub(crate) fn new(
        region: &str,
        credentials: &AwsCredentials,
        trigger: &Trigger,
        backends: &Backends,
    ) -> Result<Self, ScalerError> {
        Ok(Self {
            region: region.to_owned(),
            endpoint: credentials.endpoint.clone(),
            identity: credentials.identity(trigger)?,
            identities: backends.state(),
            within: trigger.http_timeout,
            web: Arc::clone(&backends.web),
        })
    }

    /// Sends a request; returns status and body of the response.
    pub(crate) async fn send(&self, request: AwsRequest<'_>) -> Result<(u16, Bytes), ScalerError> {
        let (host, keys) = (request.host, self.keys().await?);
        send(&self.web, request.call(&self.dispatch(&self.endpoint(host), &keys))?).await
    }

    async fn keys(&self) -> Result<AwsKeys, ScalerError> {
        self.identities.aws(&self.identity, &self.region, &self.web).await
    }

    fn endpoint(&self, host: &str) -> String {
        request::endpoint(host, &self.region, self.endpoint.as_deref())
    }

    fn dispatch<'a>(&'a self, endpoint: &'a str, keys: &'a AwsKeys) -> AwsDispatch<'a> {
        AwsDispatch { endpoint, region: &self.region, keys, now: self.web.now(), within: self.within }
    }
}
