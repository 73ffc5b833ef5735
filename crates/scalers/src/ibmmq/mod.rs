//! ibmmq: the depth of queues.

mod query;
#[cfg(test)]
mod tests;

use futures::future::try_join_all;
use sources::http::Endpoint;

use crate::encrypted_key::opened;
use crate::parameters::groups::tls_endpoint;
use crate::prelude::*;
use crate::urls::{is_request_uri, shown};

/// Maximum number of concurrent requests.
const MAX_CONCURRENT_REQUESTS: usize = 16;

/// The scaler type `ibmmq`.
pub const TYPE: ScalerType = ScalerType {
    name: "ibmmq",
    about: "How many messages are in queues of IBM MQ.",
    display: "ibmmqScaler",
    parameters: Parameters::PARAMETERS,
    build,
    unit: |_| "messages",
    samples: &[Sample::http(
        &[("host", "http://{}/ibmmq/rest/v2/admin/action/qmgr/Q/mqsc"), ("queueName", "q")],
        sample::USER_AND_PASSWORD,
    )],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// Parameters of ibmmq.
    pub struct Parameters of "error parsing IBM MQ metadata" {
        /// The administrative REST endpoint, e.g. `https://mq.shop:9443/ibmmq/rest/v2/admin/action/qmgr/QM1/mqsc`.
        host: String = "host" in [Metadata], required;
        /// The queues, separated by commas.
        queues: Vec<String> = "queueName" | "queueNames" in [Metadata], required;
        /// Target number of messages per replica.
        queue_depth: i64 = "queueDepth" in [Metadata], default "20";
        /// The trigger is active above this number of messages.
        activation_queue_depth: i64 = "activationQueueDepth" in [Metadata], default "0";
        /// How the depths of several queues are aggregated.
        operation: String = "operation" in [Metadata], default "max", one_of ["max", "avg", "sum"];
        /// User name.
        username: String = "username" in [Authentication, Environment, Metadata], required;
        /// Password.
        password: Secret = "password" in [Authentication, Environment, Metadata], required;
        /// Accepts any server certificate.
        unsafe_ssl: bool = "unsafeSsl" in [Metadata], default "false";
        /// CA certificate that must have signed the server certificate (PEM).
        authority: String = "ca" in [Authentication];
        /// Client certificate (PEM).
        certificate: String = "cert" in [Authentication];
        /// Private key of the client certificate (PEM).
        key: Secret = "key" in [Authentication];
        /// Password of the private key; encrypted keys are refused.
        key_password: Secret = "keyPassword" in [Authentication];
    }
    check Parameters::check
}

impl Parameters {
    fn check(&mut self, _: &Trigger) -> Result<(), ParseError> {
        if !is_request_uri(&self.host) {
            return Err(format!("invalid URL: {:?} is not an address", shown(&self.host)).into());
        }
        if self.certificate.is_empty() != self.key.reveal().is_empty() {
            return Err("both cert and key must be provided when using TLS".into());
        }
        self.key = opened(&self.key, &self.key_password);
        Ok(())
    }

    /// TLS settings of the endpoint.
    fn trust(&self) -> Endpoint {
        let own = (!self.certificate.is_empty()).then_some((&*self.certificate, &self.key));
        Endpoint { insecure: self.unsafe_ssl, ..tls_endpoint(&self.authority, own) }
    }
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    target_type(trigger)?;
    let parameters = Parameters::read(trigger)?;
    let first = parameters.queues.first().map_or("", String::as_str);
    let spec = external(trigger, &format!("ibmmq-{first}"), whole(parameters.queue_depth));
    let activation = parameters.activation_queue_depth as f64;
    let source = HttpSource::new(parameters, trigger, backends);
    SingleMetricScaler::build(spec, activation, source)
}

impl HttpSource<Parameters> {
    async fn depth(&self, queue: &str) -> Result<f64, ScalerError> {
        let Parameters { host, username, password, .. } = &self.parameters;
        let call = HttpCall::post_query(host, query::command(queue), self.within)
            .access(self.parameters.trust())
            .basic(username, password)
            .header("content-type", "application/json")?
            // Required CSRF header; its value does not matter.
            .header("ibm-mq-rest-csrf-token", "value")?;
        let (status, body) = send(&self.web, call).await?;
        query::depth(status, &body, queue)
    }
}

impl ValueSource for HttpSource<Parameters> {
    fn value(&self) -> ScalerFuture<'_, f64> {
        Box::pin(async {
            let mut depths = Vec::new();
            for some in self.parameters.queues.chunks(MAX_CONCURRENT_REQUESTS) {
                depths.extend(try_join_all(some.iter().map(|queue| self.depth(queue))).await?);
            }
            let sum: f64 = depths.iter().sum();
            Ok(match &*self.parameters.operation {
                "sum" => sum,
                "avg" => sum / depths.len().max(1) as f64,
                _ => depths.into_iter().fold(0.0, f64::max),
            })
        })
    }
}
