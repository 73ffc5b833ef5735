//! etcd: the number stored under a key, read through the JSON gateway.

mod query;
#[cfg(test)]
mod tests;

use sources::http::Endpoint;

use crate::encrypted_key::opened;
use crate::parameters::groups::tls_endpoint;
use crate::prelude::*;

/// The scaler type `etcd`.
pub const TYPE: ScalerType = ScalerType {
    name: "etcd",
    about: "A number under a key of etcd.",
    display: "etcdScaler",
    parameters: Parameters::PARAMETERS,
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
        /// Has no effect: etcd is polled, not watched.
        watch_progress_notify_interval: isize = "watchProgressNotifyInterval" in [Metadata], default "600";
        /// User name.
        username: String = "username" in [Authentication, Metadata, Environment];
        /// Password.
        password: Secret = "password" in [Authentication, Environment];
        /// Uses TLS with the client certificate.
        tls: String = "tls" in [Authentication], default "disable", one_of ["enable", "disable"];
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
        let (certificate, key) = (!self.certificate.is_empty(), !self.key.reveal().is_empty());
        match self.tls == "enable" && certificate != key {
            true if certificate => Err("key must be provided with cert".into()),
            true => Err("cert must be provided with key".into()),
            false => Ok(()),
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
    let source = HttpSource::new(parameters, trigger, backends);
    SingleMetricScaler::build(spec, activation, source)
}

impl HttpSource<Parameters> {
    async fn post(
        &self,
        endpoint: &str,
        path: &str,
        body: String,
        token: &str,
    ) -> Result<(u16, bytes::Bytes), ScalerError> {
        let scheme = if self.parameters.tls == "enable" { "https" } else { "http" };
        let endpoint = endpoint.trim_end_matches('/');
        let url = match endpoint.split_once("://") {
            Some(_) => format!("{endpoint}{path}"),
            None => format!("{scheme}://{endpoint}{path}"),
        };
        let mut call = HttpCall::post(url, body, self.within).access(self.parameters.trust());
        if !token.is_empty() {
            call = call.header("authorization", token)?;
        }
        send(&self.web, call).await
    }

    async fn read(&self, endpoint: &str) -> Result<f64, ScalerError> {
        let Parameters { watch_key, username, password, .. } = &self.parameters;
        let mut token = String::new();
        if !username.is_empty() {
            let body = query::credentials(username, password.reveal());
            let (status, body) = self.post(endpoint, "/v3/auth/authenticate", body, "").await?;
            token = query::token(status, &body)?;
        }
        let (status, body) = self.post(endpoint, "/v3/kv/range", query::range(watch_key), &token).await?;
        query::value(status, &body, watch_key)
    }
}

impl ValueSource for HttpSource<Parameters> {
    fn value(&self) -> ScalerFuture<'_, f64> {
        Box::pin(async {
            let mut failed = scaler_error!("no endpoints are given");
            for endpoint in &self.parameters.endpoints {
                match self.read(endpoint).await {
                    Ok(value) => return Ok(value),
                    Err(error) => failed = error,
                }
            }
            Err(failed)
        })
    }
}
