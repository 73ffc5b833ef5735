//! etcd: the number stored under a key, read through the JSON gateway.

mod query;
#[cfg(test)]
mod tests;
mod watch;

use sources::http::Endpoint;

use crate::WakeFuture;
use crate::encrypted_key::opened;
use crate::parameters::groups::tls_endpoint;
use crate::prelude::*;
use crate::wake::WakeStreams;

use watch::WatchedKey;

/// The scaler type `etcd`.
pub const TYPE: ScalerType = ScalerType {
    name: "etcd",
    about: "A number under a key of etcd.",
    display: "etcdScaler",
    parameters: Parameters::PARAMETERS,
    wakes: WakeMode::Always,
    build,
    samples: &[Sample::http(&[("endpoints", "{}"), ("watchKey", "k"), ("value", "5")], &[])],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// Parameters of etcd.
    pub struct Parameters of "error parsing kubernetes workload metadata: error parsing redis metadata" {
        /// URLs of etcd, e.g. `http://etcd-0.etcd:2379,http://etcd-1.etcd:2379`; the first that responds is used.
        endpoints: Vec<String> = "endpoints" in [Metadata], required;
        /// The key.
        watch_key: String = "watchKey" in [Metadata], required;
        /// Target value per replica.
        value: f64 = "value" in [Metadata], required;
        /// The trigger is active above this value.
        activation_value: f64 = "activationValue" in [Metadata], default "0";
        /// How long a watch of the key lasts before it is opened again, in seconds.
        watch_progress_notify_interval: isize = "watchProgressNotifyInterval" in [Metadata], default "600";
        /// User name.
        username: String = "username" in [Authentication, Environment];
        /// Password.
        password: Secret = "password" in [Authentication, Environment];
        /// `enable` uses TLS, with the client certificate if there is one; `disable` does not.
        tls: String = "tls" in [Authentication], default "disable";
        /// Client certificate (PEM).
        certificate: String = "cert" in [Authentication];
        /// Private key of the client certificate (PEM).
        key: Secret = "key" in [Authentication];
        /// Password of the private key; encrypted keys are refused.
        key_password: Secret = "keyPassword" in [Authentication];
        /// CA certificate that must have signed the server certificate (PEM).
        authority: String = "ca" in [Authentication];
    }
    check Parameters::check
}

impl Parameters {
    fn check(&mut self, _: &Trigger) -> Result<(), ParseError> {
        self.key = opened(&self.key, &self.key_password);
        if self.watch_progress_notify_interval <= 0 {
            return Err("watchProgressNotifyInterval must be greater than 0".into());
        }
        let given = |secret: &Secret| !secret.reveal().is_empty();
        match (&*self.tls, !self.certificate.is_empty(), given(&self.key)) {
            ("enable", false, true) => return Err("cert must be provided with key".into()),
            ("enable", true, false) => return Err("key must be provided with cert".into()),
            ("enable" | "disable", ..) => {}
            (other, ..) => return Err(format!("incorrect value for TLS given: {other}").into()),
        }
        match (!self.username.is_empty(), given(&self.password)) {
            (false, true) => Err("username must be provided with password".into()),
            (true, false) => Err("password must be provided with username".into()),
            _ => Ok(()),
        }
    }

    /// TLS settings of the endpoint.
    fn trust(&self) -> Endpoint {
        let own = self.tls == "enable" && !self.certificate.is_empty();
        tls_endpoint(&self.authority, own.then_some((&*self.certificate, &self.key)))
    }
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    target_type(trigger)?;
    let parameters = Parameters::read(trigger)?;
    let spec = external(trigger, &format!("etcd-{}", parameters.watch_key), milli(parameters.value));
    let activation = parameters.activation_value;
    let client = EtcdClient { parameters, within: trigger.http_timeout, web: Arc::clone(&backends.web) };
    let source = Etcd { client: Arc::new(client), streams: WakeStreams::new(trigger, backends) };
    SingleMetricScaler::build(spec, activation, source)
}

/// A key of etcd.
struct Etcd {
    client: Arc<EtcdClient>,
    streams: WakeStreams<WatchedKey>,
}

/// Sends requests to etcd.
struct EtcdClient {
    parameters: Parameters,
    within: Duration,
    web: Arc<SharedHttpClient>,
}

impl EtcdClient {
    fn call(&self, endpoint: &str, path: &str, body: String, token: &str) -> Result<HttpCall, ScalerError> {
        let scheme = if self.parameters.tls == "enable" { "https" } else { "http" };
        let endpoint = endpoint.trim_end_matches('/');
        let url = match endpoint.split_once("://") {
            Some(_) => format!("{endpoint}{path}"),
            None => format!("{scheme}://{endpoint}{path}"),
        };
        let call = HttpCall::post(url, body, self.within).access(self.parameters.trust());
        if token.is_empty() { Ok(call) } else { call.header("authorization", token) }
    }

    /// A token; empty without a user.
    async fn token(&self, endpoint: &str) -> Result<String, ScalerError> {
        let Parameters { username, password, .. } = &self.parameters;
        if username.is_empty() {
            return Ok(String::new());
        }
        let body = query::credentials(username, password.reveal());
        let call = self.call(endpoint, "/v3/auth/authenticate", body, "")?;
        let (status, body) = send(&self.web, call).await?;
        query::token(status, &body)
    }

    async fn read(&self, endpoint: &str) -> Result<f64, ScalerError> {
        let token = self.token(endpoint).await?;
        let watch_key = &self.parameters.watch_key;
        let call = self.call(endpoint, "/v3/kv/range", query::range(watch_key), &token)?;
        let (status, body) = send(&self.web, call).await?;
        query::value(status, &body, watch_key)
    }
}

impl ValueSource for Etcd {
    fn value(&self) -> ScalerFuture<'_, f64> {
        Box::pin(async {
            let mut failed = scaler_error!("no endpoints are given");
            for endpoint in &self.client.parameters.endpoints {
                match self.client.read(endpoint).await {
                    Ok(value) => return Ok(value),
                    Err(error) => failed = error,
                }
            }
            Err(failed)
        })
    }

    fn wake(&self, query_now: tokio::sync::mpsc::Sender<()>) -> Option<WakeFuture> {
        Some(self.streams.follow(WatchedKey(Arc::clone(&self.client)), query_now))
    }
}
