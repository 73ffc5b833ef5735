//! AWS credentials and signed requests.

mod request;
mod sign;
#[cfg(test)]
mod tests;

pub(crate) use request::{AwsRequest, answer};
pub(crate) use sign::{AwsKeys, RequestToSign, sign};

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::backends::Backends;
use crate::parameters::Secret;
use crate::single::send;
use crate::web::SharedHttpClient;
use crate::{ScalerError, Trigger};

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

/// AWS credentials.
#[derive(Clone, Debug)]
pub(crate) enum AwsIdentity {
    /// Static keys.
    Keys(AwsKeys),
    /// An identity that needs AWS STS, which is not supported; names the parameter that asks for it.
    Unsupported(&'static str),
}

impl AwsCredentials {
    /// The identity; an error if keys are missing.
    pub(crate) fn identity(&self, trigger: &Trigger) -> Result<AwsIdentity, ScalerError> {
        if trigger.identity.provider == "aws" {
            return Ok(AwsIdentity::Unsupported("pod identity aws"));
        }
        match &*self.identity_owner {
            "" | "pod" => {}
            _ => return Ok(AwsIdentity::Unsupported("identityOwner operator")),
        }
        if self.role.is_some() {
            return Ok(AwsIdentity::Unsupported("awsRoleArn"));
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
            within: trigger.http_timeout,
            web: Arc::clone(&backends.web),
        })
    }

    /// Sends a request; returns status and body of the response.
    pub(crate) async fn send(&self, request: AwsRequest<'_>) -> Result<(u16, Bytes), ScalerError> {
        let endpoint = request::endpoint(request.host, &self.region, self.endpoint.as_deref());
        let call =
            request.call(&endpoint, &self.region, self.identity.keys()?, self.web.now(), self.within)?;
        send(&self.web, call).await
    }
}

impl AwsIdentity {
    /// The keys, or an error that says what to configure instead.
    pub(crate) fn keys(&self) -> Result<&AwsKeys, ScalerError> {
        match self {
            Self::Keys(keys) => Ok(keys),
            Self::Unsupported(what) => Err(scaler_error!(
                "{what} is not supported yet: give awsAccessKeyID and awsSecretAccessKey in a TriggerAuthentication"
            )),
        }
    }
}
