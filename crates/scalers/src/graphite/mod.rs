//! graphite: the newest value of a series.

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

/// graphite.
pub const TYPE: Type = Type {
    name: "graphite",
    about: "The newest value that Graphite renders for a query.",
    display: "graphiteScaler",
    parameters: Parameters::PARAMETERS,
    push: false,
    build,
};

crate::parameters! {
    /// What graphite accepts.
    pub struct Parameters of "error parsing graphite metadata" {
        /// Where Graphite is, e.g. `http://graphite.monitoring.svc`.
        server_address: String = "serverAddress" in [Metadata], required;
        /// The target to render, e.g. `stats.counters.http.hello.rate`; it must be one series.
        query: String = "query" in [Metadata], required;
        /// Since when values count, e.g. `-10Minutes`. If there is none since then, the value is 0.
        query_time: String = "queryTime" in [Metadata], required;
        /// The value that one replica is for.
        threshold: f64 = "threshold" in [Metadata], default "100";
        /// The trigger is active above it.
        activation_threshold: f64 = "activationThreshold" in [Metadata], default "0";
        /// How to show who we are.
        auth_mode: Option<String> = "authMode" in [Metadata], one_of ["basic"];
        /// User.
        username: Option<String> = "username" in [Authentication];
        /// Password.
        password: Secret = "password" in [Authentication];
    }
}

struct Graphite {
    parameters: Parameters,
    within: Duration,
    web: Arc<Web>,
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, Error> {
    target_type(trigger)?;
    let parameters =
        Parameters::read(trigger).map_err(|error| error.inside("error parsing graphite metadata"))?;
    let spec = external(trigger, "graphite", milli(parameters.threshold));
    let activation = parameters.activation_threshold;
    let source = Graphite { parameters, within: trigger.http_timeout, web: Arc::clone(&backends.web) };
    Ok(Arc::new(Single { spec, activation, source }))
}

impl Source for Graphite {
    fn value(&self) -> Answer<'_, f64> {
        Box::pin(async {
            let Parameters { server_address, query, query_time, username, password, .. } = &self.parameters;
            let mut call = Call::get(query::url(server_address, query, query_time), self.within);
            if let Some(user) = username {
                call = call.basic(user, password);
            }
            let (status, body) = ask(&self.web, call).await?;
            Ok(query::value(status, &body)?.unwrap_or(0.0))
        })
    }
}
