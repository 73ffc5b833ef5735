//! pulsar: messages that a subscription has not acknowledged.

mod query;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use sources::http::{Auth, Endpoint};

use crate::backends::Backends;
use crate::metric::{external, target_type, whole};
use crate::parameters::{QueryValues, Secret};
use crate::single::{Single, Source, ask};
use crate::table::Type;
use crate::web::{Call, Web};
use crate::{Answer, Error, Scaler, Trigger, oauth};

/// pulsar.
pub const TYPE: Type = Type {
    name: "pulsar",
    about: "How many messages of a topic a subscription has not acknowledged.",
    display: "pulsarScaler",
    parameters: Parameters::PARAMETERS,
    push: false,
    build,
};

crate::parameters! {
    /// What pulsar accepts. Its target is always an average per replica.
    pub struct Parameters of "error parsing pulsar metadata" {
        /// Where the admin API is, e.g. `http://pulsar.shop:8080`.
        admin_url: String = "adminURL" in [Metadata, Environment], required;
        /// The topic, e.g. `persistent://public/default/orders`.
        topic: String = "topic" in [Metadata, Environment], required;
        /// The subscription.
        subscription: String = "subscription" in [Metadata, Environment], required;
        /// How many messages one replica is for.
        threshold: i64 = "msgBacklogThreshold" in [Metadata], default "10";
        /// The trigger is active above so many messages.
        activation_threshold: i64 = "activationMsgBacklogThreshold" in [Metadata], default "0";
        /// Whether the topic has partitions.
        partitioned: bool = "isPartitionedTopic" in [Metadata], default "false";
        /// How to show who we are; several with commas between them.
        modes: Vec<String> = "authModes" | "authMode" in [Metadata, Authentication, Environment],
            one_of ["apiKey", "basic", "tls", "bearer", "custom", "oauth"], only_one_of ["bearer", "basic", "oauth"];
        /// The token of `bearer`.
        token: Secret = "bearerToken" | "token" in [Authentication];
        /// The user of `basic`.
        username: String = "username" in [Authentication];
        /// The password of `basic`.
        password: Secret = "password" in [Authentication];
        /// Our certificate for `tls` (PEM).
        certificate: String = "cert" in [Authentication];
        /// Its key (PEM).
        key: Secret = "key" in [Authentication];
        /// The authority that the server's certificate must be of (PEM).
        authority: String = "ca" in [Authentication];
        /// Where `oauth` has its tokens from.
        oauth_token_uri: String = "oauthTokenURI" in [Authentication, Metadata];
        /// The scopes that `oauth` asks for.
        scopes: Vec<String> = "scopes" | "scope" in [Authentication, Metadata];
        /// The client of `oauth`.
        client_id: String = "clientID" in [Authentication, Metadata];
        /// Its secret.
        client_secret: Secret = "clientSecret" in [Authentication];
        /// What else `oauth` sends when it asks for a token.
        endpoint_params: QueryValues = "endpointParams" in [Authentication, Metadata];
    }
    check Parameters::check
}

impl Parameters {
    fn has(&self, mode: &str) -> bool {
        self.modes.iter().any(|chosen| chosen == mode)
    }

    fn check(&mut self, _: &Trigger) -> Result<(), String> {
        let missing = |secret: &Secret| secret.reveal().is_empty();
        let rules = [
            ("bearer", missing(&self.token), "no bearer token provided"),
            ("basic", self.username.is_empty(), "no username provided"),
            ("tls", self.certificate.is_empty() || missing(&self.key), "no certificate or key provided"),
            ("oauth", self.oauth_token_uri.is_empty(), "no oauthTokenURI provided"),
            ("oauth", self.client_id.is_empty(), "no clientID provided"),
        ];
        match rules.into_iter().find(|(mode, missing, _)| *missing && self.has(mode)) {
            Some((mode, _, what)) => Err(format!("{what} for auth mode {mode}")),
            None => Ok(()),
        }
    }

    /// Trust and certificate.
    fn trust(&self) -> Endpoint {
        let tls = self.has("tls");
        let authority = (!self.authority.is_empty()).then(|| self.authority.clone().into_bytes());
        Endpoint {
            certificate: tls.then(|| self.certificate.clone().into_bytes()),
            key: tls.then(|| self.key.clone()),
            system_roots_too: authority.is_some(),
            ca_bundle: authority,
            ..Endpoint::default()
        }
    }
}

struct Pulsar {
    parameters: Parameters,
    within: Duration,
    web: Arc<Web>,
    client: Option<oauth::Client>,
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, Error> {
    let parameters =
        Parameters::read(trigger).map_err(|error| error.inside("error parsing pulsar metadata"))?;
    let name = format!("pulsar-{}-{}", parameters.topic, parameters.subscription);
    // Whatever the trigger says.
    let average = Trigger { metric_type: String::new(), ..trigger.clone() };
    target_type(&average)?;
    let spec = external(&average, &name, whole(parameters.threshold));
    let activation = parameters.activation_threshold as f64;
    let web = Arc::clone(&backends.web);
    let Parameters { oauth_token_uri, client_id, client_secret, scopes, endpoint_params, .. } = &parameters;
    let client = parameters.has("oauth").then(|| {
        let place = (&**oauth_token_uri, parameters.trust());
        oauth::Client::new(place, (client_id, client_secret), scopes, endpoint_params)
    });
    let source = Pulsar { parameters, within: trigger.http_timeout, web, client };
    Ok(Arc::new(Single { spec, activation, source }))
}

impl Pulsar {
    async fn call(&self) -> Result<Call, Error> {
        let Parameters { admin_url, topic, partitioned, token, username, password, .. } = &self.parameters;
        let mut call = Call::get(query::url(admin_url, topic, *partitioned), self.within)
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

impl Source for Pulsar {
    fn value(&self) -> Answer<'_, f64> {
        Box::pin(async {
            let (status, body) = ask(&self.web, self.call().await?).await?;
            query::backlog(status, &body, &self.parameters.subscription)
        })
    }
}
