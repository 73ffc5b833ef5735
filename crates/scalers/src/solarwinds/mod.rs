//! solarwinds: the value of a metric of SolarWinds Observability.

mod query;
#[cfg(test)]
mod tests;

use sources::http::Auth;

use crate::prelude::*;
use crate::urls::is_request_uri;

/// Prefix of errors that are found after the parameters were read.
const PREFIX: &str = "error parsing SolarWinds metadata";

/// The scaler type `solarwinds`.
pub const TYPE: ScalerType = ScalerType {
    name: "solarwinds",
    about: "The value of a metric of SolarWinds Observability.",
    display: "solarWindsScaler",
    parameters: Parameters::PARAMETERS,
    build,
    samples: &[Sample::http(
        &[
            ("host", "http://{}"),
            ("metricName", "m"),
            ("aggregation", "AVG"),
            ("intervalS", "60"),
            ("targetValue", "5"),
            ("activationValue", "1"),
        ],
        &[("apiToken", sample::SECRET)],
    )],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// Parameters of solarwinds.
    pub struct Parameters of "error parsing SolarWinds metadata: error parsing solarwinds metadata" {
        /// API token.
        token: Secret = "apiToken" in [Authentication];
        /// URL of the API, e.g. `https://api.na-01.cloud.solarwinds.com`.
        host: String = "host" in [Metadata], required;
        /// Target value per replica.
        target: f64 = "targetValue" in [Metadata], required;
        /// The trigger is active above this value.
        activation: f64 = "activationValue" in [Metadata], default "0";
        /// The metric.
        metric_name: String = "metricName" in [Metadata], required;
        /// How values of the interval are aggregated.
        aggregation: String = "aggregation" in [Metadata], required,
            one_of ["COUNT", "MIN", "MAX", "AVG", "SUM", "LAST"];
        /// The interval, in seconds.
        interval: isize = "intervalS" in [Metadata], required;
        /// Filter of the metric.
        filter: String = "filter" in [Metadata];
    }
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    target_type(trigger)?;
    let parameters = Parameters::read(trigger)?;
    if !is_request_uri(&parameters.host) {
        bail!(
            "{PREFIX}: invalid value for host. Must be a valid URL such as \
             'https://api.na-01.cloud.solarwinds.com'"
        );
    }
    let spec = external(trigger, "solarwinds", milli(parameters.target));
    let activation = parameters.activation;
    SingleMetricScaler::build(spec, activation, HttpSource::new(parameters, trigger, backends))
}

impl ValueSource for HttpSource<Parameters> {
    fn value(&self) -> ScalerFuture<'_, f64> {
        Box::pin(async {
            let url = query::url(&self.parameters, self.web.now());
            let mut call = HttpCall::get(url, self.within).same_as(query::sharing_key(&self.parameters));
            call.access.auth = Auth::Token(self.parameters.token.clone());
            let (status, body) = send(&self.web, call).await?;
            query::value(status, &body)
        })
    }
}
