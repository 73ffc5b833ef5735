//! external and external-push: custom scalers over gRPC (docs/spec/keda.md 6).
//!
//! ```text
//! calls        counts of calls, for exported metrics
//! query        metadata, specs, values and delays, without IO
//! client       the calls of the protocol
//! spec_stream  metric specs that a server reports by itself
//! ```

mod calls;
mod client;
mod query;
mod spec_stream;
#[cfg(test)]
mod tests;

use std::pin::Pin;
use std::sync::Mutex;

use api::provider::Compat;
use external_scaler::ScaledObjectRef;
use external_scaler::protocol::{GetMetricSpecResponse, GetMetricsRequest};
use locks::MutexExt as _;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::grpc::{Channel, Channels, Destination};
use crate::prelude::*;
use crate::tls::{CertificateCheck, TlsSettings};
use crate::urls::is_url;

use calls::CallCounter;
pub use calls::{CALL_BUCKETS_SECONDS, CallCounts, CallKey, ExternalCalls};

/// The calls of all triggers that use these backends.
pub fn calls(backends: &Backends) -> Arc<ExternalCalls> {
    backends.state()
}

/// The scaler type `external`.
pub const TYPE: ScalerType = ScalerType {
    name: "external",
    about: "Whatever a scaler of your own measures, read over gRPC.",
    display: "externalScaler",
    parameters: Parameters::PARAMETERS,
    build: |trigger, backends| External::build(trigger, backends, false),
    samples: &[Sample::tcp(&[("scalerAddress", "{}")], &[])],
    ..ScalerType::DEFAULT
};

/// The scaler type `external-push`.
pub const PUSH: ScalerType = ScalerType {
    name: "external-push",
    about: "Whatever a scaler of your own measures, read over gRPC; it also reports activity as soon as it begins.",
    display: "externalPushScaler",
    parameters: Parameters::PARAMETERS,
    push: true,
    build: |trigger, backends| External::build(trigger, backends, true),
    samples: &[Sample::tcp(&[("scalerAddress", "{}")], &[])],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// Address and TLS settings of an external scaler. All metadata of the trigger is sent to it.
    pub struct Parameters of "error parsing external scaler metadata: error parsing external scaler metadata" {
        /// Address of the scaler: `host:port`, or `dns:///host:port`.
        address: String = "scalerAddress" in [Metadata], required;
        /// Uses TLS. TLS is always used with a `caCert` or a client certificate.
        enable_tls: bool = "enableTLS" in [Metadata];
        /// Accepts any server certificate.
        unsafe_ssl: bool = "unsafeSsl" in [Metadata];
        /// CA certificate that is trusted in addition to the system's (PEM).
        ca: String = "caCert" in [Authentication];
        /// Client certificate (PEM).
        certificate: String = "tlsClientCert" in [Authentication];
        /// Private key of the client certificate (PEM).
        key: Secret = "tlsClientKey" in [Authentication];
    }
}

/// How long metric specs are cached: a poll and the queries around it request them once.
const SPECS_CACHE_TTL: Duration = Duration::from_secs(10);

/// An external scaler.
struct External {
    trigger: Trigger,
    object: ScaledObjectRef,
    channel: Arc<Channel>,
    counter: CallCounter,
    compat: Compat,
    push: bool,
    specs: Mutex<Option<(Instant, Vec<MetricSpec>)>>,
    /// The metrics that the server streamed last; they have precedence over `GetMetricSpec`.
    streamed: Mutex<Option<Vec<MetricSpec>>>,
}

impl External {
    fn build(trigger: &Trigger, backends: &Backends, push: bool) -> Result<Arc<dyn Scaler>, ScalerError> {
        let parameters = Parameters::read(trigger)?;
        metric::target_type(trigger).map_err(|error| {
            ScalerError::new(error.message.replacen(
                "error getting scaler",
                "error getting external scaler",
                1,
            ))
        })?;
        let tls = parameters.enable_tls
            || !parameters.ca.is_empty()
            || !(parameters.certificate.is_empty() || parameters.key.reveal().is_empty());
        let certificate_check =
            if parameters.unsafe_ssl { CertificateCheck::Anything } else { CertificateCheck::Full };
        let destination = Destination {
            what: "external scaler",
            // The address is used untrimmed, because KEDA does not trim it either.
            address: trigger.metadata.get("scalerAddress").cloned().unwrap_or_default(),
            tls: tls.then(|| {
                let own = TlsSettings {
                    authorities: parameters.ca,
                    certificate: parameters.certificate,
                    key: parameters.key,
                    certificate_check,
                };
                own.trusting(&backends.web.settings().authorities)
            }),
            server_name: String::new(),
            dialer: backends.dialer.clone(),
            proxies: backends.web.settings().proxies.clone(),
        };
        // KEDA 2.20 accepts such addresses and has no metrics then.
        let target = format!("dns:///{}", destination.address);
        if trigger.profile.behavior().triggers.external_address_is_checked
            && !is_url(&destination.address)
            && !is_url(&target)
        {
            let what = if push { "external push scaler" } else { "external scaler" };
            bail!(
                "error acquiring connection for {what}: parse {}: it is no URL",
                api::gotext::quote(&target)
            );
        }
        Ok(Arc::new(Self {
            trigger: trigger.clone(),
            object: query::object(trigger),
            channel: backends.state::<Channels>().of(destination),
            counter: CallCounter { scaler: if push { PUSH.name } else { TYPE.name }, calls: calls(backends) },
            compat: backends.compat,
            push,
            specs: Mutex::new(None),
            streamed: Mutex::new(None),
        }))
    }

    async fn request_specs(&self) -> Result<Vec<MetricSpec>, ScalerError> {
        let answer = self.channel.metric_spec(&self.object, &self.counter).await?;
        Ok(answer.metric_specs.iter().map(|spec| query::spec(&self.trigger, spec)).collect())
    }

    /// Keeps streamed metrics; returns whether they differ from those that were streamed before. An update without metrics is
    /// ignored.
    fn keep_streamed(&self, update: &GetMetricSpecResponse) -> bool {
        if update.metric_specs.is_empty() {
            return false;
        }
        let specs: Vec<MetricSpec> =
            update.metric_specs.iter().map(|spec| query::spec(&self.trigger, spec)).collect();
        let mut streamed = self.streamed.locked();
        let is_new = streamed.as_ref() != Some(&specs);
        *streamed = Some(specs);
        is_new
    }

    fn fresh(&self) -> Option<Vec<MetricSpec>> {
        let kept = self.specs.locked();
        kept.as_ref().filter(|(at, _)| at.elapsed() < SPECS_CACHE_TTL).map(|(_, specs)| specs.clone())
    }
}

impl Scaler for External {
    fn specs(&self) -> ScalerFuture<'_, Vec<MetricSpec>> {
        Box::pin(async move {
            let streamed = self.streamed.locked().clone();
            if let Some(specs) = streamed {
                return Ok(specs);
            }
            // KEDA requests specs each time, and treats an unreachable server as one without metrics.
            if self.compat.is_strict() {
                return Ok(self.request_specs().await.unwrap_or_default());
            }
            if let Some(specs) = self.fresh() {
                return Ok(specs);
            }
            let specs = self.request_specs().await?;
            *self.specs.locked() = Some((Instant::now(), specs.clone()));
            Ok(specs)
        })
    }

    fn read<'a>(&'a self, metric: &'a str) -> ScalerFuture<'a, Reading> {
        Box::pin(async move {
            let requested = GetMetricsRequest {
                scaled_object_ref: Some(self.object.clone()),
                metric_name: query::own_name(self.trigger.index, metric).to_owned(),
            };
            let answer = self.channel.metrics(&requested, &self.counter).await?;
            let values = query::values(metric, &answer.metric_values, self.compat)
                .map_err(|reason| scaler_error!("external scaler {}: {reason}", self.channel.address()))?;
            let active = self.channel.is_active(&self.object, &self.counter).await?;
            Ok(Reading { values, active })
        })
    }

    fn push(self: Arc<Self>, sender: mpsc::Sender<bool>) -> Option<Pin<Box<dyn Future<Output = ()> + Send>>> {
        self.push.then(|| -> Pin<Box<dyn Future<Output = ()> + Send>> { Box::pin(listen(self, sender)) })
    }

    fn push_specs(
        self: Arc<Self>,
        changed: mpsc::Sender<()>,
    ) -> Option<Pin<Box<dyn Future<Output = ()> + Send>>> {
        let streams = self.push && self.trigger.profile.behavior().operator.streams_metric_specs;
        streams.then(|| -> Pin<Box<dyn Future<Output = ()> + Send>> {
            Box::pin(spec_stream::follow(self, changed))
        })
    }
}

/// Forwards activity until the future is dropped.
async fn listen(scaler: Arc<External>, sender: mpsc::Sender<bool>) {
    let mut delay = query::MIN_RECONNECT_DELAY;
    loop {
        let begun = Instant::now();
        let end = scaler.channel.listen(&scaler.object, &scaler.counter, &sender).await;
        if sender.is_closed() {
            return std::future::pending().await;
        }
        if let Err(error) = &end {
            tracing::debug!(trigger = ?scaler.trigger, %error, "stream of activity ended");
        }
        let (wait, next) = query::reconnect(delay, end.is_ok(), begun.elapsed());
        tokio::time::sleep(wait).await;
        delay = next;
    }
}
