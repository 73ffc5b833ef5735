//! pulsar: the number of messages that a subscription has not acknowledged.

mod query;
#[cfg(test)]
mod tests;

use sources::http::{Auth, Endpoint};

use crate::oauth;
use crate::parameters::QueryValues;
use crate::parameters::groups::{HttpAuth, tls_endpoint};
use crate::prelude::*;

/// The scaler type `pulsar`.
pub const TYPE: ScalerType = ScalerType {
    name: "pulsar",
    about: "How many messages of a topic a subscription has not acknowledged.",
    display: "pulsarScaler",
    parameters: Parameters::PARAMETERS,
    build,
    samples: &[Sample::http(
        &[("adminURL", "http://{}"), ("topic", "persistent://a/b/c"), ("subscription", "s")],
        &[],
    )],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// Parameters of pulsar. The target type is always AverageValue.
    pub struct Parameters of "error parsing pulsar metadata: error parsing pulsar metadata" {
        /// URL of the admin API, e.g. `http://pulsar.shop:8080`.
        admin_url: String = "adminURL" in [Metadata, Environment], required;
        /// The topic, e.g. `persistent://public/default/orders`.
        topic: String = "topic" in [Metadata, Environment], required;
        /// The subscription.
        subscription: String = "subscription" in [Metadata, Environment], required;
        /// Target number of messages per replica.
        threshold: i64 = "msgBacklogThreshold" in [Metadata], default "10";
        /// The trigger is active above this number of messages.
        activation_threshold: i64 = "activationMsgBacklogThreshold" in [Metadata], default "0";
        /// The topic is partitioned.
        partitioned: bool = "isPartitionedTopic" in [Metadata], default "false";
        /// Authentication modes, separated by commas.
        modes: Vec<String> = "authModes" | "authMode" in [Metadata, Authentication],
            one_of ["apiKey", "basic", "tls", "bearer", "custom", "oauth"], only_one_of ["bearer", "basic", "oauth"];
        /// `enable` with `cert` or `key` means the same as `tls` in `authModes`.
        tls: String = "tls" in [Metadata];
        /// The bearer token of `bearer`.
        token: Secret = "bearerToken" | "token" in [Authentication];
        /// The user of `basic`.
        username: String = "username" in [Authentication];
        /// The password of `basic`.
        password: Secret = "password" in [Authentication];
        /// Client certificate of `tls` (PEM).
        certificate: String = "cert" in [Authentication];
        /// Private key of the client certificate (PEM).
        key: Secret = "key" in [Authentication];
        /// CA certificate that must have signed the server certificate (PEM).
        authority: String = "ca" in [Authentication];
        /// Token endpoint of `oauth`.
        oauth_token_uri: String = "oauthTokenURI" in [Authentication, Metadata];
        /// Scopes of `oauth`.
        scopes: Vec<String> = "scopes" | "scope" in [Authentication, Metadata];
        /// Client id of `oauth`.
        client_id: String = "clientID" in [Authentication, Metadata];
        /// Its secret key.
        client_secret: Secret = "clientSecret" in [Authentication];
        /// Further parameters of the token request of `oauth`.
        endpoint_params: QueryValues = "endpointParams" in [Authentication];
        /// The same in the metadata, if `endpointParams` is missing.
        metadata_params: QueryValues = "EndpointParams" in [Metadata];
        /// Has no effect, because Pulsar has no API keys.
        method: String = "method" in [Metadata, Authentication], default "header", one_of ["header", "query"];
    }
    check Parameters::check
}

impl Parameters {
    fn has(&self, mode: &str) -> bool {
        self.modes.iter().any(|chosen| chosen == mode)
    }

    fn check(&mut self, trigger: &Trigger) -> Result<(), ParseError> {
        let has_certificate = !self.certificate.is_empty() || !self.key.reveal().is_empty();
        if self.tls == "enable" && has_certificate && !self.has("tls") {
            self.modes.push("tls".to_owned());
        }
        HttpAuth::check_own(trigger, &self.modes, (&self.oauth_token_uri, &self.client_id))
    }

    /// Further parameters of the token request.
    fn endpoint_params(&self) -> &QueryValues {
        if self.endpoint_params.0.is_empty() { &self.metadata_params } else { &self.endpoint_params }
    }

    /// TLS settings of the endpoint.
    fn trust(&self) -> Endpoint {
        tls_endpoint(&self.authority, self.has("tls").then_some((&*self.certificate, &self.key)))
    }
}

struct Pulsar {
    parameters: Parameters,
    within: Duration,
    web: Arc<SharedHttpClient>,
    client: Option<oauth::OAuthClient>,
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    let parameters = Parameters::read(trigger)?;
    let name = format!("pulsar-{}-{}", parameters.topic, parameters.subscription);
    // The target type is AverageValue whatever the trigger specifies, as in KEDA.
    let average = Trigger { metric_type: String::new(), ..trigger.clone() };
    target_type(&average)?;
    let spec = external(&average, &name, whole(parameters.threshold));
    let activation = parameters.activation_threshold as f64;
    let web = Arc::clone(&backends.web);
    let Parameters { oauth_token_uri, client_id, client_secret, scopes, .. } = &parameters;
    let endpoint_params = parameters.endpoint_params();
    let client = parameters.has("oauth").then(|| {
        let token_endpoint = (&**oauth_token_uri, parameters.trust());
        oauth::OAuthClient::new(token_endpoint, (client_id, client_secret), scopes, endpoint_params)
    });
    let source = Pulsar { parameters, within: trigger.http_timeout, web, client };
    SingleMetricScaler::build(spec, activation, source)
}

impl Pulsar {
    async fn call(&self) -> Result<HttpCall, ScalerError> {
        let Parameters { admin_url, topic, partitioned, token, username, password, .. } = &self.parameters;
        let mut call = HttpCall::get(query::url(admin_url, topic, *partitioned), self.within)
            .access(self.parameters.trust());
        let name = "X-Pulsar-Auth-Method-Name";
        let (auth, method) = if self.parameters.has("bearer") {
            (Auth::Token(token.clone()), "token")
        } else if self.parameters.has("basic") {
            (Auth::Basic { user: username.clone(), password: password.clone() }, "basic")
        } else if let Some(client) = &self.client {
            (Auth::Token(client.token(&self.web, self.within).await?), "token")
        } else if self.parameters.has("tls") {
            (Auth::None, "tls")
        } else {
            return Ok(call);
        };
        call.access.auth = auth;
        call.header(name, method)
    }
}

impl ValueSource for Pulsar {
    fn value(&self) -> ScalerFuture<'_, f64> {
        Box::pin(async {
            let (status, body) = send(&self.web, self.call().await?).await?;
            query::backlog(status, &body, &self.parameters.subscription)
        })
    }
}
