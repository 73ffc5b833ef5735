//! solace-event-queue: messages in a queue, the space they take, and how fast they come.

mod query;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use api::autoscaling::v2::MetricSpec;

use crate::backends::Backends;
use crate::metric::{external, milli, target_type, whole};
use crate::parameters::Secret;
use crate::single::ask;
use crate::table::Type;
use crate::web::{Call, Web};
use crate::{Answer, Error, Reading, Scaler, Trigger};
use query::Queue;

/// Space is given in these.
const MEGABYTE: i64 = 1 << 20;

/// solace-event-queue.
pub const TYPE: Type = Type {
    name: "solace-event-queue",
    about: "Messages in a queue of Solace PubSub+, the space they take, and how fast they come.",
    display: "SolaceScaler",
    parameters: Parameters::PARAMETERS,
    push: false,
    build,
};

crate::parameters! {
    /// What solace-event-queue accepts. Each target that is more than 0 is a metric of its own.
    pub struct Parameters of "error parsing prometheus metadata" {
        /// Where SEMP is, e.g. `http://broker.solace:8080`.
        semp_url: String = "solaceSempBaseURL" in [Metadata], required;
        /// The message VPN.
        message_vpn: String = "messageVpn" in [Metadata], required;
        /// The queue.
        queue_name: String = "queueName" in [Metadata], required;
        /// How many messages one replica is for.
        messages: i64 = "messageCountTarget" in [Metadata];
        /// How many megabytes one replica is for.
        spool: i64 = "messageSpoolUsageTarget" in [Metadata];
        /// How many messages per second one replica is for.
        rate: i64 = "messageReceiveRateTarget" in [Metadata];
        /// The trigger is active above so many messages.
        activation_messages: isize = "activationMessageCountTarget" in [Metadata], default "0";
        /// It is also active above so many megabytes.
        activation_spool: isize = "activationMessageSpoolUsageTarget" in [Metadata], default "0";
        /// It is also active above so many messages per second.
        activation_rate: isize = "activationMessageReceiveRateTarget" in [Metadata], default "0";
        /// User.
        username: String = "username" in [Authentication, Metadata, Environment], required;
        /// Password.
        password: Secret = "password" in [Authentication, Metadata, Environment], required;
    }
    check Parameters::check
}

impl Parameters {
    fn check(&mut self, _: &Trigger) -> Result<(), String> {
        if self.messages > 0 || self.spool > 0 || self.rate > 0 {
            return Ok(());
        }
        Err("no target value found in the scaler configuration".to_owned())
    }

    /// Whether any of the three is above what the trigger waits for.
    fn is_active(&self, queue: Queue) -> bool {
        let spool = self.activation_spool as f64 * MEGABYTE as f64;
        queue.messages > self.activation_messages as f64
            || queue.spool > spool
            || queue.rate > self.activation_rate as f64
    }
}

/// One number of a queue.
type Pick = fn(&Queue) -> f64;

struct Solace {
    metrics: Vec<(MetricSpec, Pick)>,
    parameters: Parameters,
    within: Duration,
    web: Arc<Web>,
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, Error> {
    target_type(trigger)?;
    let parameters = Parameters::read(trigger)?;
    let Parameters { messages, spool, rate, queue_name, .. } = &parameters;
    let all: [(i64, &str, Pick); 3] = [
        (*messages, "msgcount", |queue| queue.messages),
        (spool.saturating_mul(MEGABYTE), "msgspoolusage", |queue| queue.spool),
        (*rate, "msgrcvrate", |queue| queue.rate),
    ];
    let wanted = all.into_iter().filter(|(target, ..)| *target > 0);
    let metrics = wanted.map(|(target, what, pick)| {
        (external(trigger, &format!("solace-{queue_name}-{what}"), whole(target)), pick)
    });
    let metrics = metrics.collect();
    Ok(Arc::new(Solace { metrics, parameters, within: trigger.http_timeout, web: Arc::clone(&backends.web) }))
}

fn name(spec: &MetricSpec) -> &str {
    spec.external.as_ref().map_or("", |external| &external.metric.name)
}

impl Scaler for Solace {
    fn specs(&self) -> Answer<'_, Vec<MetricSpec>> {
        Box::pin(async { Ok(self.metrics.iter().map(|(spec, _)| spec.clone()).collect()) })
    }

    fn read<'a>(&'a self, metric: &'a str) -> Answer<'a, Reading> {
        Box::pin(async move {
            let Parameters { semp_url, message_vpn, queue_name, username, password, .. } = &self.parameters;
            let known = self.metrics.iter().find(|(spec, _)| name(spec).eq_ignore_ascii_case(metric));
            let (_, pick) = known.ok_or_else(|| Error::new(format!("unknown metric {metric}")))?;
            let url = query::url(semp_url, message_vpn, queue_name);
            // The same for all three metrics: it is asked once.
            let (status, body) =
                ask(&self.web, Call::get(url, self.within).basic(username, password)).await?;
            let queue = query::queue(status, &body)?;
            Ok(Reading::one(metric, milli(pick(&queue)), self.parameters.is_active(queue)))
        })
    }
}
