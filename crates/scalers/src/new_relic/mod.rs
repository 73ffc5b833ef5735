//! new-relic: the result of an NRQL query.

mod query;
#[cfg(test)]
mod tests;

use crate::prelude::*;

/// The scaler type `new-relic`.
pub const TYPE: ScalerType = ScalerType {
    name: "new-relic",
    about: "The result of an NRQL query to New Relic.",
    display: "newrelicScaler",
    parameters: Parameters::PARAMETERS,
    build,
    samples: &[Sample::fixed(
        &[("account", "1"), ("nrql", "SELECT 1"), ("threshold", "5")],
        &[("queryKey", sample::SECRET)],
    )],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// Parameters of new-relic.
    pub struct Parameters of "error parsing new-relic metadata: error parsing newrelic metadata" {
        /// The account.
        account: isize = "account" in [Authentication, Metadata], required;
        /// The region: `US`, `EU` or `STAGING`.
        region: String = "region" in [Authentication, Metadata], default "US";
        /// A user API key.
        query_key: Secret = "queryKey" in [Authentication, Metadata], required;
        /// Treats an empty result as an error instead of 0.
        no_data_error: bool = "noDataError" in [Metadata], default "false";
        /// The query, e.g. `SELECT average(duration) FROM Transaction`.
        nrql: String = "nrql" in [Metadata], required;
        /// Target value per replica.
        threshold: f64 = "threshold" in [Metadata], required;
        /// The trigger is active above this value.
        activation_threshold: f64 = "activationThreshold" in [Metadata], default "0";
    }
}

struct NewRelic {
    parameters: Parameters,
    url: String,
    within: Duration,
    web: Arc<SharedHttpClient>,
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    target_type(trigger)?;
    let parameters = Parameters::read(trigger)?;
    // A formula has its own target.
    let target = if trigger.feeds_formula { 0.0 } else { parameters.threshold };
    let spec = external(trigger, "new-relic", milli(target));
    let activation = parameters.activation_threshold;
    let url = query::url(&parameters.region).to_owned();
    let source = NewRelic { parameters, url, within: trigger.http_timeout, web: Arc::clone(&backends.web) };
    SingleMetricScaler::build(spec, activation, source)
}

impl ValueSource for NewRelic {
    fn value(&self) -> ScalerFuture<'_, f64> {
        Box::pin(async {
            let Parameters { account, query_key, nrql, no_data_error, .. } = &self.parameters;
            let call = HttpCall::post(&self.url, query::request_body(*account, nrql), self.within)
                .header("content-type", "application/json")?
                .header("api-key", query_key.reveal())?;
            let (status, body) = send(&self.web, call).await?;
            match query::value(status, &body)? {
                Some(value) => Ok(value),
                None if *no_data_error => Err(scaler_error!("query {nrql} returned no results")),
                None => Ok(0.0),
            }
        })
    }
}
