//! solace-direct-messaging: the transmission rates of clients of a Solace broker.

mod query;
#[cfg(test)]
mod tests;

use query::{ClientRates, Requested};

use crate::prelude::*;
use crate::urls::shown;

/// Maximum number of pages of one answer.
const MAX_PAGES: usize = 20;

/// The scaler type `solace-direct-messaging`.
pub const TYPE: ScalerType = ScalerType {
    name: "solace-direct-messaging",
    about: "How many messages and bytes per second clients of a Solace broker receive.",
    display: "SolaceDMScaler",
    parameters: Parameters::PARAMETERS,
    build,
    samples: &[Sample::http(
        &[
            ("solaceSempBaseURL", "http://{}"),
            ("messageVpn", "v"),
            ("clientNamePattern", "c"),
            ("aggregatedClientTxMsgRateTarget", "5"),
        ],
        sample::USER_AND_PASSWORD,
    )],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// Parameters of solace-direct-messaging. Each target greater than 0 is a metric.
    pub struct Parameters of "error parsing metadata" {
        /// URLs of SEMP, e.g. `http://broker.solace:8080`, separated by commas; the first that responds is used.
        semp_urls: Vec<String> = "solaceSempBaseURL" in [Metadata], required;
        /// User name.
        username: String = "username" in [Authentication, Environment], required;
        /// Password.
        password: Secret = "password" in [Authentication, Environment], required;
        /// The message VPN.
        message_vpn: String = "messageVpn" in [Metadata], required;
        /// A part of the names of the clients.
        client_pattern: String = "clientNamePattern" in [Metadata], required;
        /// Accepts any server certificate.
        unsafe_ssl: bool = "unsafeSSL" in [Metadata];
        /// How much messages and bytes that wait in the clients' queues of direct messages add to the rates: 1 to 100 times.
        queued_factor: i64 = "queuedMessagesFactor" in [Metadata], default "3";
        /// Target number of bytes per second per replica, of all clients together.
        bytes: i64 = "aggregatedClientTxByteRateTarget" in [Metadata];
        /// Target number of bytes per second per replica, averaged over a minute.
        average_bytes: i64 = "aggregatedClientAverageTxByteRateTarget" in [Metadata];
        /// Target number of messages per second per replica, of all clients together.
        messages: i64 = "aggregatedClientTxMsgRateTarget" in [Metadata];
        /// Target number of messages per second per replica, averaged over a minute.
        average_messages: i64 = "aggregatedClientAverageTxMsgRateTarget" in [Metadata];
        /// Has no effect: the trigger is always active, as in KEDA.
        activation_bytes: isize = "activationAggregatedClientTxByteRateTarget" in [Metadata];
        /// Has no effect: the trigger is always active, as in KEDA.
        activation_average_bytes: isize = "activationAggregatedClientAverageTxByteRateTarget" in [Metadata];
        /// Has no effect: the trigger is always active, as in KEDA.
        activation_messages: isize = "activationAggregatedClientTxMsgRateTarget" in [Metadata];
        /// Has no effect: the trigger is always active, as in KEDA.
        activation_average_messages: isize = "activationAggregatedClientAverageTxMsgRateTarget" in [Metadata];
    }
    check Parameters::check
}

impl Parameters {
    fn check(&mut self, _: &Trigger) -> Result<(), ParseError> {
        let missing = [String::new()];
        let urls: &[String] = if self.semp_urls.is_empty() { missing.as_slice() } else { &self.semp_urls };
        for (at, url) in urls.iter().enumerate() {
            let wrong = match &**url {
                "" => "empty",
                url if !query::is_base_url(url) => "invalid",
                _ => continue,
            };
            let url = shown(url);
            let text =
                format!("{wrong} host url value found in the scaler configuration. Url[{at}]: '{url}'");
            return Err(text.into());
        }
        let (client_pattern, queued_factor) = (&self.client_pattern, self.queued_factor);
        if client_pattern.contains('*') {
            let text =
                format!("client-name-pattern should not contain '*'. ClientNamePattern: '{client_pattern}'");
            return Err(text.into());
        }
        if !(1..=100).contains(&queued_factor) {
            let text = format!(
                "queued messages factor should be >0 and <=100. QueuedMessagesFactor: '{queued_factor}'"
            );
            return Err(text.into());
        }
        if [self.messages, self.bytes, self.average_messages, self.average_bytes].iter().all(|one| *one < 1) {
            return Err("no target value found in the scaler configuration".into());
        }
        Ok(())
    }
}

/// One of the four metrics.
type PickRate = fn(&ClientRates) -> i64;

struct SolaceClients {
    metrics: Vec<(MetricSpec, PickRate)>,
    parameters: Parameters,
    within: Duration,
    web: Arc<SharedHttpClient>,
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    target_type(trigger)?;
    let parameters = Parameters::read(trigger)?;
    let all: [(i64, &str, PickRate); 4] = [
        (parameters.bytes, "aggregatedClientTxByteRateTarget", |rates| rates.bytes),
        (parameters.average_bytes, "aggregatedClientAverageTxByteRateTarget", |rates| rates.average_bytes),
        (parameters.messages, "aggregatedClientTxMsgRateTarget", |rates| rates.messages),
        (parameters.average_messages, "aggregatedClientAverageTxMsgRateTarget", |rates| {
            rates.average_messages
        }),
    ];
    let wanted = all.into_iter().filter(|(target, ..)| *target > 0);
    let metrics = wanted.map(|(target, key, pick)| {
        let name = format!("solace-dm-{}-{key}", parameters.client_pattern);
        (external(trigger, &name, whole(target)), pick)
    });
    let metrics = metrics.collect();
    let (within, web) = (trigger.http_timeout, Arc::clone(&backends.web));
    Ok(Arc::new(SolaceClients { metrics, parameters, within, web }))
}

fn name(spec: &MetricSpec) -> &str {
    spec.external.as_ref().map_or("", |external| &external.metric.name)
}

impl SolaceClients {
    /// Adds what the clients of a server have to the rates.
    async fn add(&self, url: &str, what: Requested, rates: &mut ClientRates) -> Result<(), ScalerError> {
        let Parameters { message_vpn, client_pattern, username, password, unsafe_ssl, .. } = &self.parameters;
        let mut request_body = query::request_body(client_pattern, what);
        for _ in 0..MAX_PAGES {
            let call = HttpCall::post(query::url(url), request_body, self.within)
                .basic(username, password)
                .unsafe_ssl(*unsafe_ssl)
                .header("content-type", "application/xml")?;
            let (status, body) = send(&self.web, call).await?;
            match query::add(status, &body, (what, message_vpn), rates)? {
                Some(next) => request_body = next,
                None => return Ok(()),
            }
        }
        Err(scaler_error!(
            "the answer of SEMP has more than {MAX_PAGES} pages: give a longer clientNamePattern"
        ))
    }

    /// The rates of the clients, from the first server that responds.
    async fn rates(&self) -> Result<ClientRates, ScalerError> {
        let mut failed = scaler_error!("no URL returned any data");
        for url in &self.parameters.semp_urls {
            let mut rates = ClientRates::default();
            let mut read = Ok(());
            for what in [Requested::Rates, Requested::Queues] {
                if read.is_ok() {
                    read = self.add(url, what, &mut rates).await;
                }
            }
            match read {
                Ok(()) => return Ok(rates.with_queued(self.parameters.queued_factor)),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }
}

impl Scaler for SolaceClients {
    fn specs(&self) -> ScalerFuture<'_, Vec<MetricSpec>> {
        Box::pin(async { Ok(self.metrics.iter().map(|(spec, _)| spec.clone()).collect()) })
    }

    fn read<'a>(&'a self, metric: &'a str) -> ScalerFuture<'a, Reading> {
        Box::pin(async move {
            let known = self.metrics.iter().find(|(spec, _)| name(spec).eq_ignore_ascii_case(metric));
            let (_, pick) = known.ok_or_else(|| scaler_error!("unknown metric {metric}"))?;
            let rates = self.rates().await?;
            // KEDA takes the trigger for active whatever the rates are.
            Ok(Reading::one(metric, milli(pick(&rates) as f64), true))
        })
    }
}
