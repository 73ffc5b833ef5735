//! solace-event-queue: number, size and receive rate of the messages in a queue.

mod query;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicUsize, Ordering};

use query::SolaceQueue;

use crate::prelude::*;
use crate::urls::shown;

/// Unit of the spool usage parameters, in bytes.
const BYTES_PER_MEGABYTE: i64 = 1 << 20;

/// The scaler type `solace-event-queue`.
pub const TYPE: ScalerType = ScalerType {
    name: "solace-event-queue",
    about: "Messages in a queue of Solace PubSub+, the space they take, and how fast they come.",
    display: "SolaceScaler",
    parameters: Parameters::PARAMETERS,
    build,
    samples: &[Sample::http(
        &[
            ("solaceSempBaseURL", "http://{}"),
            ("messageVpn", "v"),
            ("queueName", "q"),
            ("messageCountTarget", "5"),
        ],
        sample::USER_AND_PASSWORD,
    )],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// Parameters of solace-event-queue. Each target greater than 0 is a metric.
    pub struct Parameters of "error parsing prometheus metadata" {
        /// URLs of SEMP, e.g. `http://broker.solace:8080`, separated by commas; the broker whose message VPN is up is asked.
        semp_urls: String = "solaceSempBaseURL" in [Metadata], required;
        /// The message VPN.
        message_vpn: String = "messageVpn" in [Metadata], required;
        /// The queue.
        queue_name: String = "queueName" in [Metadata], required;
        /// User name.
        username: String = "username" in [Authentication, Metadata, Environment], required;
        /// Password.
        password: Secret = "password" in [Authentication, Metadata, Environment], required;
        /// Target number of messages per replica.
        messages: i64 = "messageCountTarget" in [Metadata];
        /// Target number of megabytes per replica.
        spool: i64 = "messageSpoolUsageTarget" in [Metadata];
        /// Target number of messages per second per replica.
        rate: i64 = "messageReceiveRateTarget" in [Metadata];
        /// The trigger is active above this number of messages.
        activation_messages: isize = "activationMessageCountTarget" in [Metadata], default "0";
        /// The trigger is also active above this number of megabytes.
        activation_spool: isize = "activationMessageSpoolUsageTarget" in [Metadata], default "0";
        /// The trigger is also active above this number of messages per second.
        activation_rate: isize = "activationMessageReceiveRateTarget" in [Metadata], default "0";
    }
    check Parameters::check
}

impl Parameters {
    fn check(&mut self, _: &Trigger) -> Result<(), ParseError> {
        if self.messages > 0 || self.spool > 0 || self.rate > 0 {
            return Ok(());
        }
        Err("no target value found in the scaler configuration".into())
    }

    /// Whether any of the three values is above its activation.
    fn is_active(&self, queue: SolaceQueue) -> bool {
        let spool = self.activation_spool as f64 * BYTES_PER_MEGABYTE as f64;
        queue.messages > self.activation_messages as f64
            || queue.spool > spool
            || queue.rate > self.activation_rate as f64
    }
}

/// Reads one of the three metrics.
type QueueMetric = fn(&SolaceQueue) -> f64;

struct Solace {
    metrics: Vec<(MetricSpec, QueueMetric)>,
    parameters: Parameters,
    /// Which of the URLs answered last.
    current: AtomicUsize,
    within: Duration,
    web: Arc<SharedHttpClient>,
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    target_type(trigger)?;
    let parameters = Parameters::read(trigger)?;
    let Parameters { messages, spool, rate, queue_name, .. } = &parameters;
    // KEDA's multiplication overflows.
    let spool = if backends.compat.is_strict() {
        spool.wrapping_mul(BYTES_PER_MEGABYTE)
    } else {
        spool.saturating_mul(BYTES_PER_MEGABYTE)
    };
    let all: [(i64, &str, QueueMetric); 3] = [
        (*messages, "msgcount", |queue| queue.messages),
        (spool, "msgspoolusage", |queue| queue.spool),
        (*rate, "msgrcvrate", |queue| queue.rate),
    ];
    let wanted = all.into_iter().filter(|(target, ..)| *target > 0);
    let metrics = wanted.map(|(target, what, pick)| {
        (external(trigger, &format!("solace-{queue_name}-{what}"), whole(target)), pick)
    });
    let metrics = metrics.collect();
    let (within, web) = (trigger.http_timeout, Arc::clone(&backends.web));
    Ok(Arc::new(Solace { metrics, parameters, current: AtomicUsize::new(0), within, web }))
}

fn name(spec: &MetricSpec) -> &str {
    spec.external.as_ref().map_or("", |external| &external.metric.name)
}

impl Solace {
    /// The queue at the first broker that has it, beginning with the one that answered last.
    async fn queue(&self) -> Result<SolaceQueue, ScalerError> {
        let urls: Vec<&str> = self.parameters.semp_urls.split(',').map(str::trim).collect();
        let first = self.current.load(Ordering::Relaxed);
        let mut failed: Option<ScalerError> = None;
        for (at, url) in urls.iter().enumerate().cycle().skip(first).take(urls.len()) {
            match self.queue_at(url).await {
                Ok(queue) => {
                    self.current.store(at, Ordering::Relaxed);
                    return Ok(queue);
                }
                Err(error) => {
                    failed = Some(match failed {
                        Some(before) => error.inside(format!("{}, and at the next broker", before.message)),
                        None => error,
                    });
                }
            }
        }
        Err(failed.unwrap_or_else(|| scaler_error!("no URL is given")))
    }

    /// The queue at one broker.
    async fn queue_at(&self, url: &str) -> Result<SolaceQueue, ScalerError> {
        let Parameters { message_vpn, queue_name, username, password, .. } = &self.parameters;
        let call = |url: String| HttpCall::get(url, self.within).basic(username, password);
        // Errors of connections name the server already.
        let named = |error: ScalerError| error.inside(shown(url));
        let (status, body) = send(&self.web, call(query::vpn_url(url, message_vpn))).await?;
        query::check_vpn(status, &body).map_err(named)?;
        // The three metrics share one response.
        let (status, body) = send(&self.web, call(query::url(url, message_vpn, queue_name))).await?;
        query::queue(status, &body).map_err(named)
    }
}

impl Scaler for Solace {
    fn specs(&self) -> ScalerFuture<'_, Vec<MetricSpec>> {
        Box::pin(async { Ok(self.metrics.iter().map(|(spec, _)| spec.clone()).collect()) })
    }

    fn read<'a>(&'a self, metric: &'a str) -> ScalerFuture<'a, Reading> {
        Box::pin(async move {
            let known = self.metrics.iter().find(|(spec, _)| name(spec).eq_ignore_ascii_case(metric));
            let (_, pick) = known.ok_or_else(|| scaler_error!("unknown metric {metric}"))?;
            let queue = self.queue().await?;
            Ok(Reading::one(metric, milli(pick(&queue)), self.parameters.is_active(queue)))
        })
    }
}
