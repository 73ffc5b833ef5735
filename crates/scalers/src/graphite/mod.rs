//! graphite: the newest value of a series.

mod query;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use crate::backends::Backends;
use crate::metric::{external, milli, target_type};
use crate::parameters::Secret;
use crate::single::{SingleMetricScaler, ValueSource, send};
use crate::table::ScalerType;
use crate::web::{HttpCall, SharedHttpClient};
use crate::{Scaler, ScalerError, ScalerFuture, Trigger};

/// The scaler type `graphite`.
pub const TYPE: ScalerType = ScalerType {
    name: "graphite",
    about: "The newest value that Graphite renders for a query.",
    display: "graphiteScaler",
    parameters: Parameters::PARAMETERS,
    push: false,
    build,
};

crate::parameters! {
    /// Parameters of graphite.
    pub struct Parameters of "error parsing graphite metadata" {
        /// URL of Graphite, e.g. `http://graphite.monitoring.svc`.
        server_address: String = "serverAddress" in [Metadata], required;
        /// The target to render, e.g. `stats.counters.http.hello.rate`; it must return one series.
        query: String = "query" in [Metadata], required;
        /// Start of the time range, e.g. `-10Minutes`. The value is 0 if there is none in it.
        query_time: String = "queryTime" in [Metadata], required;
        /// Target value per replica.
        threshold: f64 = "threshold" in [Metadata], default "100";
        /// The trigger is active above this value.
        activation_threshold: f64 = "activationThreshold" in [Metadata], default "0";
        /// HTTP authentication.
        auth_mode: Option<String> = "authMode" in [Metadata], one_of ["basic"];
        /// User name.
        username: Option<String> = "username" in [Authentication];
        /// Password.
        password: Secret = "password" in [Authentication];
    }
}

struct Graphite {
    parameters: Parameters,
    within: Duration,
    web: Arc<SharedHttpClient>,
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    target_type(trigger)?;
    let parameters =
        Parameters::read(trigger).map_err(|error| error.inside("error parsing graphite metadata"))?;
    let spec = external(trigger, "graphite", milli(parameters.threshold));
    let activation = parameters.activation_threshold;
    let source = Graphite { parameters, within: trigger.http_timeout, web: Arc::clone(&backends.web) };
    Ok(Arc::new(SingleMetricScaler { spec, activation, source }))
}

impl ValueSource for Graphite {
    fn value(&self) -> ScalerFuture<'_, f64> {
        Box::pin(async {
            let Parameters { server_address, query, query_time, username, password, .. } = &self.parameters;
            let mut call = HttpCall::get(query::url(server_address, query, query_time), self.within);
            if let Some(user) = username {
                call = call.basic(user, password);
            }
            let (status, body) = send(&self.web, call).await?;
            Ok(query::value(status, &body)?.unwrap_or(0.0))
        })
    }
}
