//! ibmmq: how deep queues are.

mod query;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use futures::future::try_join_all;
use sources::http::Endpoint;

use crate::backends::Backends;
use crate::metric::{external, target_type, whole};
use crate::parameters::Secret;
use crate::single::{Single, Source, ask};
use crate::table::Type;
use crate::urls::{is_request_uri, shown};
use crate::web::{Call, Web};
use crate::{Answer, Error, Scaler, Trigger};

/// So many queues are asked for at a time.
const AT_ONCE: usize = 16;

/// ibmmq.
pub const TYPE: Type = Type {
    name: "ibmmq",
    about: "How many messages are in queues of IBM MQ.",
    display: "ibmmqScaler",
    parameters: Parameters::PARAMETERS,
    push: false,
    build,
};

crate::parameters! {
    /// What ibmmq accepts.
    pub struct Parameters of "error parsing IBM MQ metadata" {
        /// The administrative REST endpoint, e.g. `https://mq.shop:9443/ibmmq/rest/v2/admin/action/qmgr/QM1/mqsc`.
        host: String = "host" in [Metadata], required;
        /// The queue; several with commas between them.
        queues: Vec<String> = "queueName" | "queueNames" in [Metadata], required;
        /// What several depths become.
        operation: String = "operation" in [Metadata], default "max", one_of ["max", "avg", "sum"];
        /// How many messages one replica is for.
        queue_depth: i64 = "queueDepth" in [Metadata], default "20";
        /// The trigger is active above so many messages.
        activation_queue_depth: i64 = "activationQueueDepth" in [Metadata], default "0";
        /// User.
        username: String = "username" in [Authentication, Environment, Metadata], required;
        /// Password.
        password: Secret = "password" in [Authentication, Environment, Metadata], required;
        /// Accepts any certificate of the server.
        unsafe_ssl: bool = "unsafeSsl" in [Metadata], default "false";
        /// The authority that the server's certificate must be of (PEM).
        authority: String = "ca" in [Authentication];
        /// Our certificate (PEM).
        certificate: String = "cert" in [Authentication];
        /// Its key (PEM).
        key: Secret = "key" in [Authentication];
        /// The password of the key; keys must not be encrypted here.
        key_password: Secret = "keyPassword" in [Authentication];
    }
    check Parameters::check
}

impl Parameters {
    fn check(&mut self, _: &Trigger) -> Result<(), String> {
        if is_request_uri(&self.host) {
            return Ok(());
        }
        Err(format!("invalid URL: {:?} is not an address", shown(&self.host)))
    }

    /// Trust and certificate.
    fn trust(&self) -> Endpoint {
        let own = !self.certificate.is_empty();
        let authority = (!self.authority.is_empty()).then(|| self.authority.clone().into_bytes());
        Endpoint {
            insecure: self.unsafe_ssl,
            certificate: own.then(|| self.certificate.clone().into_bytes()),
            key: own.then(|| self.key.clone()),
            system_roots_too: authority.is_some(),
            ca_bundle: authority,
            ..Endpoint::default()
        }
    }
}

struct IbmMq {
    parameters: Parameters,
    within: Duration,
    web: Arc<Web>,
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, Error> {
    target_type(trigger)?;
    let parameters = Parameters::read(trigger)?;
    let first = parameters.queues.first().map_or("", String::as_str);
    let spec = external(trigger, &format!("ibmmq-{first}"), whole(parameters.queue_depth));
    let activation = parameters.activation_queue_depth as f64;
    let source = IbmMq { parameters, within: trigger.http_timeout, web: Arc::clone(&backends.web) };
    Ok(Arc::new(Single { spec, activation, source }))
}

impl IbmMq {
    async fn depth(&self, queue: &str) -> Result<f64, Error> {
        let Parameters { host, username, password, .. } = &self.parameters;
        let call = Call::post(host, query::command(queue), self.within)
            .access(self.parameters.trust())
            .basic(username, password)
            .header("content-type", "application/json")?
            // Any value will do; that it is there shows that no browser was led astray.
            .header("ibm-mq-rest-csrf-token", "value")?;
        let (status, body) = ask(&self.web, call).await?;
        query::depth(status, &body, queue)
    }
}

impl Source for IbmMq {
    fn value(&self) -> Answer<'_, f64> {
        Box::pin(async {
            let mut depths = Vec::new();
            for some in self.parameters.queues.chunks(AT_ONCE) {
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
