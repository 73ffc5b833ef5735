//! predictkube: what PredictKube predicts for a query of Prometheus.

mod query;
mod rules;
#[cfg(test)]
mod tests;

use query::{GET_PREDICT_METRIC, PredictRequest, PredictResponse};
use rules::{check_duration, is_absolute_url, is_token};

use crate::grpc::{Channel, Channels, Destination};
use crate::prelude::*;
use crate::tls::TlsSettings;

/// The service of the vendor.
const PREDICTKUBE_ADDRESS: &str = "api.predictkube.com:443";

/// What stands in front of errors that are found after the parameters were read.
const PREFIX: &str = "error parsing PredictKube metadata";

/// The scaler type `predictkube`.
pub const TYPE: ScalerType = ScalerType {
    name: "predictkube",
    about: "The value that PredictKube predicts for a query of Prometheus.",
    display: "PredictKubeScaler",
    parameters: Parameters::PARAMETERS,
    build,
    // Not `http`: a good answer of Prometheus leads to a request to the vendor, which tests never send.
    samples: &[Sample::tcp(
        &[
            ("prometheusAddress", "http://{}"),
            ("predictHorizon", "2h"),
            ("query", "q"),
            ("queryStep", "2m"),
            ("historyTimeWindow", "7d"),
            ("threshold", "5"),
        ],
        &[("apiKey", "aHVudGVyMg.aHVudGVyMg.aHVudGVyMg")],
    )],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// Parameters of predictkube.
    pub struct Parameters of "error parsing PredictKube metadata: error parsing predictKube metadata" {
        /// URL of Prometheus.
        address: String = "prometheusAddress" in [Metadata], required;
        /// The query, in PromQL.
        query: String = "query" in [Metadata], required;
        /// How far ahead the prediction looks, e.g. `2h`.
        horizon: String = "predictHorizon" in [Metadata], required;
        /// Distance of the samples, e.g. `2m`.
        step: String = "queryStep" in [Metadata], required;
        /// How far back samples are read, e.g. `7d`.
        history: String = "historyTimeWindow" in [Metadata], required;
        /// API key of PredictKube.
        key: Secret = "apiKey" in [Authentication], required;
        /// Target value per replica.
        threshold: f64 = "threshold" in [Metadata];
        /// The trigger is active above this value.
        activation: f64 = "activationThreshold" in [Metadata], default "0";
    }
    check Parameters::check
}

impl Parameters {
    fn check(&mut self, _: &Trigger) -> Result<(), ParseError> {
        if !is_absolute_url(&self.address) {
            return Err("invalid prometheusAddress".into());
        }
        check_duration("predictHorizon", &self.horizon)?;
        check_duration("queryStep", &self.step)?;
        check_duration("historyTimeWindow", &self.history)?;
        if !is_token(self.key.reveal()) {
            return Err("invalid apiKey".into());
        }
        Ok(())
    }
}

/// A query and the service that predicts.
struct PredictKube {
    spec: MetricSpec,
    metric: String,
    prometheus: HttpSource<Parameters>,
    channel: Arc<Channel>,
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    let tls = TlsSettings::default().trusting(&backends.web.settings().authorities);
    let destination = Destination {
        what: "PredictKube",
        address: PREDICTKUBE_ADDRESS.to_owned(),
        tls: Some(tls),
        server_name: String::new(),
        dialer: backends.dialer.clone(),
        proxies: backends.web.settings().proxies.clone(),
    };
    PredictKube::build(trigger, backends, destination)
}

impl PredictKube {
    fn build(
        trigger: &Trigger,
        backends: &Backends,
        destination: Destination,
    ) -> Result<Arc<dyn Scaler>, ScalerError> {
        target_type(trigger)?;
        let parameters = Parameters::read(trigger)?;
        if parameters.threshold == 0.0 && !trigger.feeds_formula {
            bail!("{PREFIX}: no threshold given");
        }
        let name = "predictkube-predictkube_metric";
        Ok(Arc::new(Self {
            spec: external(trigger, name, milli(parameters.threshold)),
            metric: trigger.metric_name(name),
            prometheus: HttpSource::new(parameters, trigger, backends),
            channel: backends.state::<Channels>().of(destination),
        }))
    }

    /// The prediction, but not less than the newest sample; and that sample.
    async fn predicted(&self) -> Result<(f64, f64), ScalerError> {
        let HttpSource { parameters, within, web } = &self.prometheus;
        let call = HttpCall::get(parameters.history_url(web.now()), *within).alone();
        let (status, body) = send(web, call).await?;
        let observations = query::observations(status, &body, &self.metric)?;
        let newest = observations.last().map_or(0.0, |sample| sample.value);
        let request = PredictRequest { forecast_horizon: parameters.steps_ahead(), observations };
        let headers = [("x-auth-api-key", parameters.key.clone())];
        let answer: PredictResponse = self.channel.unary(GET_PREDICT_METRIC, &request, &headers).await?;
        Ok((newest.max(answer.result as f64), newest))
    }
}

impl Scaler for PredictKube {
    fn specs(&self) -> ScalerFuture<'_, Vec<MetricSpec>> {
        Box::pin(async { Ok(vec![self.spec.clone()]) })
    }

    fn read<'a>(&'a self, metric: &'a str) -> ScalerFuture<'a, Reading> {
        Box::pin(async move {
            let (value, newest) = self.predicted().await?;
            // As in KEDA, a prediction of 0 is no value, and the trigger is not active.
            if value == 0.0 {
                return Ok(Reading::default());
            }
            let active = newest > self.prometheus.parameters.activation;
            Ok(Reading::one(metric, milli(value), active))
        })
    }
}
