//! nats-jetstream: the number of messages that a consumer has not received or not acknowledged.

mod query;
#[cfg(test)]
mod tests;

use std::sync::Mutex;

use bytes::Bytes;
use locks::MutexExt as _;

use query::{Consumer, JetStreamState};

use crate::prelude::*;

/// The scaler type `nats-jetstream`.
pub const TYPE: ScalerType = ScalerType {
    name: "nats-jetstream",
    about: "How many messages of a stream a consumer has not got or not acknowledged.",
    display: "natsJetStreamScaler",
    parameters: Parameters::PARAMETERS,
    build,
    unit: |_| "messages",
    samples: &[Sample::http(
        &[("natsServerMonitoringEndpoint", "{}"), ("account", "$G"), ("stream", "s"), ("consumer", "c")],
        &[],
    )],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// Parameters of nats-jetstream.
    pub struct Parameters of "error parsing nats metadata" {
        /// The account, e.g. `$G`. The account or its id is required.
        account: String = "account" in [Authentication, Metadata];
        /// The id of the account; by default its name.
        account_id: String = "accountID" in [Authentication, Metadata];
        /// The stream.
        stream: String = "stream" in [Metadata], required;
        /// The consumer.
        consumer: String = "consumer" in [Metadata], required;
        /// Target number of messages per replica.
        lag_threshold: i64 = "lagThreshold" in [Metadata], default "10";
        /// The trigger is active above this number of messages.
        activation_lag_threshold: i64 = "activationLagThreshold" in [Metadata], default "0";
        /// Uses HTTPS for the monitoring endpoint.
        use_https: bool = "useHttps" in [Metadata], default "false";
        /// Host and port of the monitoring endpoint, e.g. `nats.nats.svc:8222`.
        endpoint: String = "natsServerMonitoringEndpoint" in [Authentication, Metadata], required;
    }
}

struct Nats {
    parameters: Parameters,
    within: Duration,
    web: Arc<SharedHttpClient>,
    /// The last known leader of the consumer, which is queried first.
    leader: Mutex<Option<Leader>>,
}

/// A server of a cluster.
#[derive(Clone)]
struct Leader {
    name: String,
    url: String,
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    const PREFIX: &str = "error parsing NATS JetStream metadata";
    target_type(trigger)?;
    let mut parameters = Parameters::read(trigger).map_err(|error| error.inside(PREFIX))?;
    if parameters.account_id.is_empty() {
        if parameters.account.is_empty() {
            return Err(scaler_error!("no account name or id given").inside(PREFIX));
        }
        parameters.account_id.clone_from(&parameters.account);
    }
    let name = format!("nats-jetstream-{}", parameters.stream);
    let spec = external(trigger, &name, whole(parameters.lag_threshold));
    let activation = parameters.activation_lag_threshold as f64;
    let web = Arc::clone(&backends.web);
    let source = Nats { parameters, within: trigger.http_timeout, web, leader: Mutex::default() };
    SingleMetricScaler::build(spec, activation, source)
}

impl Nats {
    fn url(&self, endpoint: &str) -> String {
        format!("{}://{endpoint}", if self.parameters.use_https { "https" } else { "http" })
    }

    async fn get(&self, server: &str, path: &str) -> Result<Bytes, ScalerError> {
        send(&self.web, HttpCall::get(format!("{server}{path}"), self.within)).await.map(|(_, body)| body)
    }

    async fn jetstream(&self, server: &str) -> Result<JetStreamState, ScalerError> {
        let Parameters { account_id, stream, consumer, .. } = &self.parameters;
        let body = self.get(server, &query::jsz(account_id)).await?;
        query::jetstream(&body, account_id, stream, consumer)
    }

    /// The state of the consumer at its leader.
    async fn led_by(&self, leader: &Leader) -> Result<Option<Consumer>, ScalerError> {
        let consumer = self.jetstream(&leader.url).await?.consumer;
        Ok(consumer.filter(|consumer| consumer.leader == leader.name))
    }

    fn remembered(&self) -> Option<Leader> {
        self.leader.locked().clone()
    }

    fn remember(&self, leader: Option<Leader>) {
        *self.leader.locked() = leader;
    }

    /// Searches for the leader of the consumer, because only the leader knows its state.
    async fn search(&self, base: &str, first: JetStreamState) -> Result<Consumer, ScalerError> {
        let this = query::server(&self.get(base, "/varz").await?)?;
        if let Some(consumer) = first.consumer.filter(|consumer| consumer.leader == this.name) {
            self.remember(Some(Leader { name: this.name, url: base.to_owned() }));
            return Ok(consumer);
        }
        let endpoint = &self.parameters.endpoint;
        let mut failed = None;
        let named = this.labels.iter().filter(|_| this.hosts.is_empty());
        let mut candidates: Vec<(Option<String>, String)> =
            named.map(|label| (Some(label.clone()), self.url(&format!("{label}.{endpoint}")))).collect();
        candidates.extend(this.hosts.iter().map(|host| (None, self.url(&query::at_host(endpoint, host)))));
        for (name, url) in candidates {
            let found = async {
                let name = match name {
                    Some(name) => name,
                    None => query::server(&self.get(&url, "/varz").await?)?.name,
                };
                let leader = Leader { name, url };
                Ok(self.led_by(&leader).await?.map(|consumer| (leader, consumer)))
            };
            match found.await {
                Ok(Some((leader, consumer))) => {
                    self.remember(Some(leader));
                    return Ok(consumer);
                }
                Ok(None) => {}
                Err(error) => failed = Some::<ScalerError>(error),
            }
        }
        let text = format!("leader node not found for consumer {}", self.parameters.consumer);
        Err(ScalerError::new(match failed {
            Some(error) => format!("{text}: {error}"),
            None => text,
        }))
    }
}

impl ValueSource for Nats {
    fn value(&self) -> ScalerFuture<'_, f64> {
        Box::pin(async {
            if let Some(leader) = self.remembered() {
                if let Ok(Some(consumer)) = self.led_by(&leader).await {
                    return Ok(consumer.lag as f64);
                }
                self.remember(None);
            }
            let base = self.url(&self.parameters.endpoint);
            let first = self.jetstream(&base).await?;
            if first.servers > 1 {
                return self.search(&base, first).await.map(|consumer| consumer.lag as f64);
            }
            let Parameters { consumer, stream, .. } = &self.parameters;
            let missing = || scaler_error!("consumer {consumer:?} not found in stream {stream:?}");
            first.consumer.map(|consumer| consumer.lag as f64).ok_or_else(missing)
        })
    }
}
