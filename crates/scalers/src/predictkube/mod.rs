//! predictkube: what PredictKube predicts for a query of Prometheus.

mod rules;
#[cfg(test)]
mod tests;

use rules::{check_duration, is_absolute_url, is_token};

use crate::prelude::*;

/// What stands in front of errors that are found after the parameters were read.
const PREFIX: &str = "error parsing PredictKube metadata";

/// The scaler type `predictkube`.
pub const TYPE: ScalerType = ScalerType {
    name: "predictkube",
    about: "The value that PredictKube predicts for a query of Prometheus.",
    display: "PredictKubeScaler",
    parameters: Parameters::PARAMETERS,
    queried: false,
    build,
    samples: &[Sample::http(
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
        /// How far ahead the prediction looks, e.g. `2h`.
        horizon: String = "predictHorizon" in [Metadata], required;
        /// The query, in PromQL.
        query: String = "query" in [Metadata], required;
        /// Distance of the samples, e.g. `2m`.
        step: String = "queryStep" in [Metadata], required;
        /// How far back samples are read, e.g. `7d`.
        history: String = "historyTimeWindow" in [Metadata], required;
        /// Target value per replica.
        threshold: f64 = "threshold" in [Metadata];
        /// The trigger is active above this value.
        activation: f64 = "activationThreshold" in [Metadata], default "0";
        /// API key of PredictKube.
        key: Secret = "apiKey" in [Authentication], required;
    }
    check Parameters::check
}

impl Parameters {
    fn check(&mut self, _: &Trigger) -> Result<(), ParseError> {
        check_duration("predictHorizon", &self.horizon)?;
        check_duration("queryStep", &self.step)?;
        check_duration("historyTimeWindow", &self.history)?;
        if !is_absolute_url(&self.address) {
            return Err("invalid prometheusAddress".into());
        }
        if !is_token(self.key.reveal()) {
            return Err("invalid apiKey".into());
        }
        Ok(())
    }
}

fn build(trigger: &Trigger, _: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    target_type(trigger)?;
    let parameters = Parameters::read(trigger)?;
    if parameters.threshold == 0.0 && !trigger.feeds_formula {
        bail!("{PREFIX}: no threshold given");
    }
    let spec = external(trigger, "predictkube-predictkube_metric", milli(parameters.threshold));
    UnqueriedScaler::build(trigger, [spec])
}
