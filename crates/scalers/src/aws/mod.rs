//! AWS credentials of triggers, and signed requests.

mod request;
#[cfg(test)]
mod tests;

pub(crate) use request::{AwsRequest, answer};

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::backends::{Backends, OperatorIdentity};
use crate::identity::{AwsIdentity, AwsKeys, Identities, aws_domain, is_aws_region};
use crate::parameters::Secret;
use crate::single::send;
use crate::urls;
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

/// Domains of AWS. Only hosts of AWS get requests with credentials of the operator, because tenants choose region, endpoint and
/// brokers. A domain alone does not make a host one of AWS: customers run machines and load balancers in it.
pub(crate) const AWS_DOMAINS: [&str; 8] = [
    ".amazonaws.com",
    ".amazonaws.com.cn",
    ".amazonaws.eu",
    ".api.aws",
    ".c2s.ic.gov",
    ".sc2s.sgov.gov",
    ".csp.hci.ic.gov",
    ".cloud.adc-e.uk",
];

/// An error if a host that is not of AWS would get a request with credentials of the operator.
pub(crate) fn check_destination(identity: &AwsIdentity, host: &str) -> Result<(), ScalerError> {
    let is_vendor = AWS_DOMAINS.iter().any(|domain| host.to_ascii_lowercase().ends_with(domain));
    if is_vendor || matches!(identity, AwsIdentity::Keys(_)) {
        return Ok(());
    }
    Err(scaler_error!(
        "credentials of the operator are sent to hosts of AWS only, not to {host}: give keys in a TriggerAuthentication"
    ))
}

/// An error if a request with credentials of the operator would be sent to an endpoint that is not one of the service. `hosts` are
/// the first labels of its host names.
fn check_endpoint(
    identity: &AwsIdentity,
    endpoint: &str,
    hosts: [&str; 2],
    region: &str,
) -> Result<(), ScalerError> {
    if matches!(identity, AwsIdentity::Keys(_)) || is_of_service(endpoint, hosts, region) {
        return Ok(());
    }
    let [host, _] = hosts;
    Err(scaler_error!(
        "credentials of the operator are sent to hosts of AWS only (https://{host}.{region}.{} or a VPC endpoint of it), \
         not to {}: give keys in a TriggerAuthentication",
        aws_domain(region),
        urls::shown(endpoint)
    ))
}

/// Whether an endpoint (without a trailing slash) is that of a service of AWS in a region: a public one, also with FIPS or IPv6,
/// or a VPC endpoint. It is compared as a whole, so that no other reading of the URL leads elsewhere, and it has TLS.
fn is_of_service(endpoint: &str, hosts: [&str; 2], region: &str) -> bool {
    let endpoint = endpoint.to_ascii_lowercase();
    let Some(given) = endpoint.strip_prefix("https://") else { return false };
    if !is_aws_region(region) {
        return false;
    }
    // Hosts with IPv6 have one label where others have two (`streams-dynamodb`).
    let mut names =
        hosts.into_iter().flat_map(|host| [host.to_owned(), format!("{host}-fips"), host.replace('.', "-")]);
    // Others can run servers at endpoints of their own services (`vpce-ID.vpce-svc-ID.REGION.vpce.amazonaws.com`).
    let is_id = |label: &str| label.starts_with("vpce-") && is_label(label);
    names.any(|name| {
        AWS_DOMAINS.iter().any(|domain| {
            let private = format!(".{name}.{region}.vpce{domain}");
            given == format!("{name}.{region}{domain}") || given.strip_suffix(&private).is_some_and(is_id)
        })
    })
}

/// Whether a text is one label of a host name.
fn is_label(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

impl AwsCredentials {
    /// The identity; an error if keys are missing, or if only ClusterTriggerAuthentications may use credentials of the operator.
    pub(crate) fn permitted_identity(
        &self,
        trigger: &Trigger,
        backends: &Backends,
    ) -> Result<AwsIdentity, ScalerError> {
        let identity = self.identity(trigger)?;
        // Pod identities were checked when the TriggerAuthentication was read.
        let is_checked = trigger.identity.provider == "aws" || matches!(identity, AwsIdentity::Keys(_));
        if is_checked || backends.operator_identity == OperatorIdentity::Tenants {
            return Ok(identity);
        }
        Err(scaler_error!(
            "credentials of the operator are not used by triggers (--operator-identity=cluster-only): use podIdentity of a \
             ClusterTriggerAuthentication, or keys"
        ))
    }

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
        match trigger.metadata.get("identityOwner").map_or("", String::as_str) {
            "" | "pod" => {}
            _ => return Ok(AwsIdentity::Operator),
        }
        // Like KEDA, blanks alone count as given here: AWS refuses them in its response.
        let is_given = |key: &str| trigger.auth.get(key).is_some_and(|text| !text.is_empty());
        if is_given("awsRoleArn") {
            let arn = self.role.clone().unwrap_or_default();
            return Ok(AwsIdentity::Role { arn, external_id: None, web_identity: false });
        }
        // The source of the access key decides where the secret key is read from.
        let (access, secret) = if is_given("awsAccessKeyID") || is_given("awsAccessKeyId") {
            let secret = is_given("awsSecretAccessKey").then(|| self.secret_key.clone().unwrap_or_default());
            (Some(self.access_key.clone().unwrap_or_default()), secret)
        } else {
            (self.own_access_key.clone(), self.own_secret_key.clone())
        };
        let access = access.ok_or_else(|| scaler_error!("awsAccessKeyID not found"))?;
        let secret = secret.ok_or_else(|| scaler_error!("awsSecretAccessKey not found"))?;
        Ok(AwsIdentity::Keys(AwsKeys { access, secret, session: self.session_token.clone() }))
    }
}

/// Sends signed requests to AWS for one trigger.
pub(crate) struct AwsClient {
    region: String,
    /// The parameter or field that names the region.
    region_parameter: &'static str,
    endpoint: Option<String>,
    /// The identity, or why it is not used: that is an error of queries, as in KEDA, and not of the object.
    identity: Result<AwsIdentity, ScalerError>,
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
        credentials.identity(trigger)?;
        Ok(Self {
            region: region.to_owned(),
            region_parameter: "awsRegion",
            endpoint: credentials.endpoint.clone(),
            identity: credentials.permitted_identity(trigger, backends),
            identities: backends.state(),
            within: trigger.http_timeout,
            web: Arc::clone(&backends.web),
        })
    }

    /// A client for the endpoint of the `region` of a secret manager. It is checked already that the identity may be used.
    pub(crate) fn of_identity(
        identity: AwsIdentity,
        region: &str,
        within: Duration,
        identities: Arc<Identities>,
        web: Arc<SharedHttpClient>,
    ) -> Self {
        Self {
            region: region.to_owned(),
            region_parameter: "region",
            endpoint: None,
            identity: Ok(identity),
            identities,
            within,
            web,
        }
    }

    /// Sends a request; returns status and body of the response.
    pub(crate) async fn send(&self, request: AwsRequest<'_>) -> Result<(u16, Bytes), ScalerError> {
        let endpoint = self.endpoint(request.host)?;
        let keys = self.keys(&endpoint, [request.host, request.service]).await?;
        send(&self.web, request.call(&self.dispatch(&endpoint, &keys))?).await
    }

    async fn keys(&self, endpoint: &str, hosts: [&str; 2]) -> Result<AwsKeys, ScalerError> {
        let identity = self.identity.as_ref().map_err(Clone::clone)?;
        check_endpoint(identity, endpoint, hosts, &self.region)?;
        self.identities.aws(identity, &self.region, &self.web).await
    }

    /// The endpoint URL. A region is part of its host name, so that other characters would lead to other hosts.
    fn endpoint(&self, host: &str) -> Result<String, ScalerError> {
        if self.endpoint.is_none() && !is_aws_region(&self.region) {
            bail!("{} is not a region of AWS: write it as eu-west-1 or us-gov-west-1", self.region_parameter);
        }
        Ok(request::endpoint(host, &self.region, self.endpoint.as_deref()))
    }

    fn dispatch<'a>(&'a self, endpoint: &'a str, keys: &'a AwsKeys) -> AwsDispatch<'a> {
        AwsDispatch { endpoint, region: &self.region, keys, now: self.web.now(), within: self.within }
    }
}
