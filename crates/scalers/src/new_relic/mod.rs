//! new-relic: the result of an NRQL query.

mod query;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use crate::backends::Backends;
use crate::metric::{external, milli, target_type};
use crate::parameters::Secret;
use crate::single::{Single, Source, ask};
use crate::table::Type;
use crate::web::{Call, Web};
use crate::{Answer, Error, Scaler, Trigger};

/// new-relic.
pub const TYPE: Type = Type {
    name: "new-relic",
    about: "The result of an NRQL query to New Relic.",
    display: "newrelicScaler",
    parameters: Parameters::PARAMETERS,
    push: false,
    build,
};

crate::parameters! {
    /// What new-relic accepts.
    pub struct Parameters of "error parsing newrelic metadata" {
        /// The account.
        account: isize = "account" in [Authentication, Metadata], required;
        /// The region: `US`, `EU` or `STAGING`.
        region: String = "region" in [Authentication, Metadata], default "US";
        /// The API key of a user.
        query_key: Secret = "queryKey" in [Authentication, Metadata], required;
        /// Whether no result is an error; otherwise it means 0.
        no_data_error: bool = "noDataError" in [Metadata], default "false";
        /// The query, e.g. `SELECT average(duration) FROM Transaction`.
        nrql: String = "nrql" in [Metadata], required;
        /// The result that one replica is for.
        threshold: f64 = "threshold" in [Metadata], required;
        /// The trigger is active above it.
        activation_threshold: f64 = "activationThreshold" in [Metadata], default "0";
    }
}

struct NewRelic {
    parameters: Parameters,
    url: String,
    within: Duration,
    web: Arc<Web>,
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, Error> {
    target_type(trigger)?;
    let parameters =
        Parameters::read(trigger).map_err(|error| error.inside("error parsing new-relic metadata"))?;
    let spec = external(trigger, "new-relic", milli(parameters.threshold));
    let activation = parameters.activation_threshold;
    let url = query::url(&parameters.region).to_owned();
    let source = NewRelic { parameters, url, within: trigger.http_timeout, web: Arc::clone(&backends.web) };
    Ok(Arc::new(Single { spec, activation, source }))
}

impl Source for NewRelic {
    fn value(&self) -> Answer<'_, f64> {
        Box::pin(async {
            let Parameters { account, query_key, nrql, no_data_error, .. } = &self.parameters;
            let call = Call::post(&self.url, query::question(*account, nrql), self.within)
                .header("content-type", "application/json")?
                .header("api-key", query_key.reveal())?;
            let (status, body) = ask(&self.web, call).await?;
            match query::value(status, &body)? {
                Some(value) => Ok(value),
                None if *no_data_error => Err(Error::new(format!("query {nrql} returned no results"))),
                None => Ok(0.0),
            }
        })
    }
}
