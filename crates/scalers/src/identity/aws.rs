//! Keys of AWS: static ones, web identity (IRSA), EKS Pod Identity, assumed roles.

use std::time::Duration;

use serde_json::Value;
use sources::http::Secret;

use super::sigv4::{AwsKeys, RequestToSign, sign};
use super::{Identities, REQUEST_TIMEOUT, send, token_file, until};
use crate::ScalerError;
use crate::responses::{excerpt, hidden, json};
use crate::urls;
use crate::web::{HttpCall, SharedHttpClient, escaped};
use crate::xml::element;

/// Name of the sessions of assumed roles, as in KEDA: trust policies may contain it.
const SESSION_NAME: &str = "KEDA";
/// Lifetime of credentials without `Expiration`.
const DEFAULT_LIFETIME: Duration = Duration::from_mins(15);
/// Hosts from which container credentials may be requested without TLS: EKS, ECS and this machine.
const CREDENTIAL_HOSTS: [&str; 5] =
    ["169.254.170.23", "[fd00:ec2::23]", "169.254.170.2", "127.0.0.1", "localhost"];

/// Maximum length of a region, in bytes: that of a label of a host name.
const MAX_REGION_BYTES: usize = 63;

/// The identity of a request to AWS.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AwsIdentity {
    /// Static keys.
    Keys(AwsKeys),
    /// The identity of the operator's pod.
    Operator,
    /// A role.
    Role {
        /// Its ARN.
        arn: String,
        /// The external id that its trust policy demands.
        external_id: Option<String>,
        /// Whether the web identity of the operator's pod is tried before its role.
        web_identity: bool,
    },
}

/// Region and identity.
pub(super) type AwsCacheKey = (String, AwsIdentity);

impl AwsIdentity {
    /// The identity as shown in errors.
    fn shown(&self) -> String {
        match self {
            Self::Keys(keys) => format!("AWS access key {}", keys.access),
            Self::Operator => "the AWS identity of the operator".to_owned(),
            Self::Role { arn, .. } => format!("AWS role {arn}"),
        }
    }
}

/// Whether a text has the form of a region, such as `us-gov-west-1`. Another label of a host name would lead elsewhere:
/// `sts.s3.amazonaws.com` is a bucket, which anybody can own.
pub(crate) fn is_aws_region(text: &str) -> bool {
    let is_word = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase());
    let Some((words, number)) = text.rsplit_once('-') else { return false };
    let Some((area, place)) = words.split_once('-') else { return false };
    // `eusc` is the European Sovereign Cloud.
    let is_area = area == "eusc" || area.len() == 2 && is_word(area);
    let is_number = matches!(number.len(), 1..=2) && number.bytes().all(|byte| byte.is_ascii_digit());
    text.len() <= MAX_REGION_BYTES && is_area && place.split('-').all(is_word) && is_number
}

/// The domain of the services of a region, which depends on the partition of AWS that the region is in.
pub(crate) fn aws_domain(region: &str) -> &'static str {
    const DOMAINS: [(&str, &str); 6] = [
        ("cn-", "amazonaws.com.cn"),
        ("eusc-", "amazonaws.eu"),
        ("us-iso-", "c2s.ic.gov"),
        ("us-isob-", "sc2s.sgov.gov"),
        ("us-isof-", "csp.hci.ic.gov"),
        ("eu-isoe-", "cloud.adc-e.uk"),
    ];
    let found = DOMAINS.iter().find(|(prefix, _)| region.starts_with(*prefix));
    found.map_or("amazonaws.com", |(_, domain)| *domain)
}

impl Identities {
    /// The keys of an identity in a region.
    pub async fn aws(
        &self,
        identity: &AwsIdentity,
        region: &str,
        web: &SharedHttpClient,
    ) -> Result<AwsKeys, ScalerError> {
        if let AwsIdentity::Keys(keys) = identity {
            return Ok(keys.clone());
        }
        // The region becomes part of the host that the operator's credentials are sent to.
        if !is_aws_region(region) {
            bail!("{region:?} is not an AWS region");
        }
        let key = (region.to_owned(), identity.clone());
        let keys = match identity {
            AwsIdentity::Keys(keys) => Ok(keys.clone()),
            AwsIdentity::Operator => self.aws.get(&key, || self.operator_keys(region, web)).await,
            AwsIdentity::Role { arn, external_id, web_identity } => {
                self.aws
                    .get(&key, || self.role_keys(arn, external_id.as_deref(), *web_identity, region, web))
                    .await
            }
        };
        keys.map_err(|error| error.inside(format!("{} cannot be used", identity.shown())))
    }

    /// The region of the operator's pod, if the platform has set it.
    pub(crate) fn aws_region(&self) -> Option<&str> {
        self.environment.variable("AWS_REGION")
    }

    /// The first identity that the platform has given to the operator's pod.
    async fn operator_keys(
        &self,
        region: &str,
        web: &SharedHttpClient,
    ) -> Result<(AwsKeys, Duration), ScalerError> {
        let variable = |name| self.environment.variable(name);
        if let (Some(access), Some(secret)) =
            (variable("AWS_ACCESS_KEY_ID"), variable("AWS_SECRET_ACCESS_KEY"))
        {
            let session = variable("AWS_SESSION_TOKEN").map(Secret::new);
            let keys = AwsKeys { access: access.to_owned(), secret: Secret::new(secret), session };
            return Ok((keys, DEFAULT_LIFETIME));
        }
        if let (Some(_), Some(role)) = (variable("AWS_WEB_IDENTITY_TOKEN_FILE"), variable("AWS_ROLE_ARN")) {
            return self.web_identity_keys(role, region, web).await;
        }
        if let Some(url) = variable("AWS_CONTAINER_CREDENTIALS_FULL_URI") {
            return self.container_keys(url, web).await;
        }
        bail!(
            "its pod has none: set up IRSA or EKS Pod Identity for the operator's ServiceAccount, or give keys"
        )
    }

    async fn role_keys(
        &self,
        arn: &str,
        external_id: Option<&str>,
        web_identity: bool,
        region: &str,
        web: &SharedHttpClient,
    ) -> Result<(AwsKeys, Duration), ScalerError> {
        let has_token = self.environment.variable("AWS_WEB_IDENTITY_TOKEN_FILE").is_some();
        // A web identity cannot show an external id.
        let mut refused = None;
        if web_identity && has_token && external_id.is_none() {
            match self.web_identity_keys(arn, region, web).await {
                Ok(keys) => return Ok(keys),
                Err(error) => refused = Some(error),
            }
        }
        let assumed = self.assumed_keys(arn, external_id, region, web).await;
        assumed.map_err(|error| match refused {
            Some(refused) => {
                scaler_error!("neither by web identity ({refused}) nor by assuming it ({error})")
            }
            None => error,
        })
    }

    /// Keys for the token of the operator's ServiceAccount.
    async fn web_identity_keys(
        &self,
        arn: &str,
        region: &str,
        web: &SharedHttpClient,
    ) -> Result<(AwsKeys, Duration), ScalerError> {
        let file = self.environment.variable("AWS_WEB_IDENTITY_TOKEN_FILE").unwrap_or_default();
        let token = token_file(file).await?;
        let form = format!(
            "Action=AssumeRoleWithWebIdentity&RoleArn={}&RoleSessionName={SESSION_NAME}&Version=2011-06-15\
             &WebIdentityToken={}",
            escaped(arn),
            escaped(token.reveal())
        );
        let call = HttpCall::post(format!("{}/", self.sts(region)), form, REQUEST_TIMEOUT)
            .header("content-type", "application/x-www-form-urlencoded")?;
        sts_keys(send(web, call).await?, web)
    }

    /// Keys of a role that the operator's own identity may assume.
    async fn assumed_keys(
        &self,
        arn: &str,
        external_id: Option<&str>,
        region: &str,
        web: &SharedHttpClient,
    ) -> Result<(AwsKeys, Duration), ScalerError> {
        let own = (region.to_owned(), AwsIdentity::Operator);
        let keys = self.aws.get(&own, || self.operator_keys(region, web)).await;
        let keys = keys.map_err(|error| error.inside(AwsIdentity::Operator.shown()))?;
        let external_id = external_id.map(|id| format!("ExternalId={}&", escaped(id))).unwrap_or_default();
        let form = format!(
            "Action=AssumeRole&{external_id}RoleArn={}&RoleSessionName={SESSION_NAME}&Version=2011-06-15",
            escaped(arn)
        );
        let url = format!("{}/", self.sts(region));
        let headers = [("content-type", "application/x-www-form-urlencoded; charset=utf-8")];
        let request = RequestToSign {
            method: "POST",
            host: urls::host(&url),
            path: "/",
            query: "",
            headers: &headers,
            body: form.as_bytes(),
            region,
            service: "sts",
        };
        let signed = sign(&request, &keys, web.now());
        // The role is part of the key of the rate limit: tenants choose it, and one does not stop the others.
        let signers = [keys.access.as_str(), keys.secret.reveal(), form.as_str()];
        let mut call = HttpCall::post(url, form.clone(), REQUEST_TIMEOUT).signed_by(&signers);
        for (name, value) in headers {
            call = call.header(name, value)?;
        }
        for (name, value) in signed {
            call = call.header(name, &value)?;
        }
        sts_keys(send(web, call).await?, web)
    }

    /// Keys from the agent of the node (EKS Pod Identity) or container (ECS).
    async fn container_keys(
        &self,
        url: &str,
        web: &SharedHttpClient,
    ) -> Result<(AwsKeys, Duration), ScalerError> {
        let host = urls::host(url);
        let host =
            host.rsplit_once(':').filter(|(_, port)| !port.ends_with(']')).map_or(host, |(host, _)| host);
        if !url.starts_with("https://") && !CREDENTIAL_HOSTS.contains(&host) {
            bail!(
                "AWS_CONTAINER_CREDENTIALS_FULL_URI names {host}, which is neither an agent of AWS nor HTTPS"
            );
        }
        let mut call = HttpCall::get(url, REQUEST_TIMEOUT);
        if let Some(file) = self.environment.variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE") {
            call = call.header("authorization", token_file(file).await?.reveal())?;
        }
        let (status, body) = send(web, call).await?;
        if status != 200 {
            bail!("the credentials agent returned {status}: {}", hidden(&body));
        }
        let answer =
            json(&body).map_err(|_| scaler_error!("the credentials agent did not answer with JSON"))?;
        let text = |key: &str| answer.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
        keys(&text, "Token", web).ok_or_else(|| scaler_error!("the credentials agent answered without keys"))
    }

    /// URL of the token service in a region, without a trailing slash.
    fn sts(&self, region: &str) -> String {
        match self.environment.variable("AWS_ENDPOINT_URL_STS") {
            Some(url) => url.trim_end_matches('/').to_owned(),
            None => format!("https://sts.{region}.{}", aws_domain(region)),
        }
    }
}

/// The keys in a response of the token service. A response with keys is not quoted.
fn sts_keys(
    (status, body): (u16, bytes::Bytes),
    web: &SharedHttpClient,
) -> Result<(AwsKeys, Duration), ScalerError> {
    let xml = String::from_utf8_lossy(&body);
    if status != 200 {
        let reason = match (element(&xml, "Code"), element(&xml, "Message")) {
            (Some(code), Some(message)) => excerpt(&format!("{code}: {message}")),
            _ => hidden(&body),
        };
        bail!("STS returned {status}: {reason}");
    }
    let found: Vec<(&str, String)> = ["AccessKeyId", "SecretAccessKey", "SessionToken", "Expiration"]
        .into_iter()
        .filter_map(|name| Some((name, element(&xml, name)?)))
        .collect();
    let text = |key: &str| found.iter().find(|(name, _)| *name == key).map(|(_, value)| &**value);
    keys(&text, "SessionToken", web).ok_or_else(|| scaler_error!("STS answered without keys"))
}

fn keys<'a>(
    text: &impl Fn(&str) -> Option<&'a str>,
    session: &str,
    web: &SharedHttpClient,
) -> Option<(AwsKeys, Duration)> {
    let keys = AwsKeys {
        access: text("AccessKeyId")?.to_owned(),
        secret: Secret::new(text("SecretAccessKey")?),
        session: text(session).map(Secret::new),
    };
    let end = text("Expiration").and_then(|text| text.parse().ok());
    Some((keys, end.map_or(DEFAULT_LIFETIME, |end| until(end, web.now()))))
}
