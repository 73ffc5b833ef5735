//! Logins at Amazon MSK with an AWS identity, by either SASL mechanism.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value};
use sources::http::Secret;

use super::login::{TokenLogin, TokenSource, bearer_message};
use crate::aws::{AWS_DOMAINS, check_destination};
use crate::identity::{AwsIdentity, Identities, RequestToPresign, presign};
use crate::web::{SharedHttpClient, escaped};
use crate::{ScalerError, ScalerFuture};

/// The action that a client signs.
const ACTION: &str = "kafka-cluster:Connect";
/// The service in signatures.
const SERVICE: &str = "kafka-cluster";
/// Validity of a signature, in seconds.
const EXPIRES_SECONDS: u32 = 900;
/// Name of this client in the logs of MSK.
const USER_AGENT: &str = "plimsoll";

/// A login at Amazon MSK.
pub(crate) struct MskLogin {
    /// Whether the signature is sent as a token of OAUTHBEARER instead of AWS_MSK_IAM.
    as_token: bool,
    region: String,
    identity: AwsIdentity,
    identities: Arc<Identities>,
    web: Arc<SharedHttpClient>,
}

impl MskLogin {
    /// The login of an identity in a region.
    pub(crate) fn login(
        as_token: bool,
        region: &str,
        identity: &AwsIdentity,
        identities: Arc<Identities>,
        web: &Arc<SharedHttpClient>,
    ) -> TokenLogin {
        let mut credentials = vec![Secret::new(region), Secret::new(format!("{identity:?}"))];
        if let AwsIdentity::Keys(keys) = identity {
            // Debug hides them.
            credentials.push(keys.secret.clone());
            credentials.extend(keys.session.clone());
        }
        let (identity, web) = (identity.clone(), Arc::clone(web));
        let is_of_operator = !matches!(identity, AwsIdentity::Keys(_));
        let source = Self { as_token, region: region.to_owned(), identity, identities, web };
        let mechanism = if as_token { "OAUTHBEARER" } else { "AWS_MSK_IAM" };
        TokenLogin { mechanism, credentials, is_of_operator, source: Arc::new(source) }
    }
}

impl MskLogin {
    /// An error if a token of the operator would be sent to a host that is not a broker of MSK in the region: others can run
    /// servers on hosts of AWS, and a token is valid at every broker.
    fn check_broker(&self, host: &str) -> Result<(), ScalerError> {
        check_destination(&self.identity, host)?;
        let is_own = matches!(self.identity, AwsIdentity::Keys(_));
        let host = host.to_ascii_lowercase();
        let is_broker = AWS_DOMAINS.iter().any(|domain| {
            ["kafka", "kafka-serverless"]
                .iter()
                .any(|service| host.ends_with(&format!(".{service}.{}{domain}", self.region)))
        });
        if is_own || is_broker {
            return Ok(());
        }
        Err(scaler_error!(
            "credentials of the operator are sent to brokers of Amazon MSK only, not to {host}: give keys in a \
             TriggerAuthentication"
        ))
    }
}

impl TokenSource for MskLogin {
    fn message<'a>(&'a self, host: &'a str) -> ScalerFuture<'a, Secret> {
        Box::pin(async move {
            let region = &*self.region;
            self.check_broker(host)?;
            let keys = self.identities.aws(&self.identity, region, &self.web).await?;
            let service_host = format!("kafka.{region}.amazonaws.com");
            let host = if self.as_token { &service_host } else { host };
            let request =
                RequestToPresign { host, action: ACTION, region, service: SERVICE, expires: EXPIRES_SECONDS };
            let signed = presign(&request, &keys, self.web.now());
            if self.as_token {
                return bearer_message(&token(host, &signed), &[]);
            }
            Ok(message(host, &signed))
        })
    }
}

/// The token of OAUTHBEARER: a signed URL.
fn token(host: &str, signed: &[(&'static str, String)]) -> Secret {
    let pairs: Vec<String> =
        signed.iter().map(|(name, value)| format!("{name}={}", escaped(value))).collect();
    Secret::new(
        URL_SAFE_NO_PAD.encode(format!("https://{host}/?{}&User-Agent={USER_AGENT}", pairs.join("&"))),
    )
}

/// The message of AWS_MSK_IAM: the parameters of the signed URL as JSON.
fn message(host: &str, signed: &[(&'static str, String)]) -> Secret {
    let mut fields = Map::new();
    for (name, value) in [("version", "2020_10_22"), ("host", host), ("user-agent", USER_AGENT)] {
        fields.insert(name.to_owned(), Value::from(value));
    }
    for (name, value) in signed {
        fields.insert(name.to_ascii_lowercase(), Value::from(value.clone()));
    }
    Secret::new(Value::Object(fields).to_string())
}
