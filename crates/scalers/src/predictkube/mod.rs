//! predictkube: what PredictKube predicts for a query of Prometheus.

mod query;
mod rules;
#[cfg(test)]
mod tests;

use query::{GET_PREDICT_METRIC, PredictRequest, PredictResponse};
use rules::{check_duration, is_absolute_url, is_token};

use crate::grpc::{Channel, Channels, Destination};
use crate::parameters::InvalidParameters;
use crate::parameters::groups::HttpAuth;
use crate::prelude::*;
use crate::tls::TlsSettings;

/// The service of the vendor.
const PREDICTKUBE_ADDRESS: &str = "api.predictkube.com:443";

/// Prefix of errors that are found after the parameters were read.
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
        /// How to authenticate at Prometheus: `bearer`, `basic`, `custom` or `tls`, separated by commas.
        auth_modes: Vec<String> = "authModes" | "authMode" in [Metadata, Authentication];
        /// The token of `bearer`.
        bearer_token: Secret = "bearerToken" | "token" in [Authentication];
        /// The user of `basic`.
        username: String = "username" in [Authentication];
        /// The password of `basic`.
        password: Secret = "password" in [Authentication];
        /// Client certificate of `tls` (PEM).
        certificate: String = "cert" in [Authentication];
        /// Private key of the client certificate (PEM).
        private_key: Secret = "key" in [Authentication];
        /// CA certificate that must have signed the server certificate of Prometheus (PEM).
        authority: String = "ca" in [Authentication];
        /// Header name of `custom`.
        custom_header: String = "customAuthHeader" in [Authentication];
        /// Its value.
        custom_value: Secret = "customAuthValue" in [Authentication];
    }
    check Parameters::check
}

impl Parameters {
    fn check(&mut self, trigger: &Trigger) -> Result<(), ParseError> {
        // The group is not declared, because it has an `apiKey` of its own.
        let (_, mut problems) = HttpAuth::with_problems(trigger);
        problems.extend(self.check_values().err().map(Into::into));
        if problems.is_empty() { Ok(()) } else { Err(InvalidParameters(problems).to_string().into()) }
    }

    fn check_values(&self) -> Result<(), ParseError> {
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
    /// How to authenticate at Prometheus.
    auth: HttpAuth,
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
        let (auth, _) = HttpAuth::with_problems(trigger);
        let name = "predictkube-predictkube_metric";
        Ok(Arc::new(Self {
            spec: external(trigger, name, milli(parameters.threshold)),
            metric: trigger.metric_name(name),
            prometheus: HttpSource::new(parameters, trigger, backends),
            auth,
            channel: backends.state::<Channels>().of(destination),
        }))
    }

    /// The prediction, but not less than the newest sample; and that sample.
    async fn predicted(&self) -> Result<(f64, f64), ScalerError> {
        let HttpSource { parameters, within, web } = &self.prometheus;
        let call = self.auth.sign(HttpCall::get(parameters.history_url(web.now()), *within), false)?.alone();
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
