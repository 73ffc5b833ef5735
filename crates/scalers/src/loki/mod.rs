//! loki: the result of a LogQL query.

mod query;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use crate::backends::Backends;
use crate::metric::{external, milli, target_type};
use crate::parameters::groups::HttpAuth;
use crate::single::{Single, Source, ask};
use crate::table::Type;
use crate::web::{Call, Web};
use crate::{Answer, Error, Scaler, Trigger};

/// loki.
pub const TYPE: Type = Type {
    name: "loki",
    about: "The result of a LogQL query.",
    display: "lokiScaler",
    parameters: Parameters::PARAMETERS,
    push: false,
    build,
};

crate::parameters! {
    /// What loki accepts.
    pub struct Parameters of "error parsing loki metadata" {
        /// Where Loki is, e.g. `http://loki.monitoring.svc:3100`.
        server_address: String = "serverAddress" in [Metadata], required;
        /// The query; its result must be one element.
        query: String = "query" in [Metadata], required;
        /// The result that one replica is for.
        threshold: f64 = "threshold" in [Metadata], required;
        /// The trigger is active above it.
        activation_threshold: f64 = "activationThreshold" in [Metadata], default "0";
        /// The tenant whose logs are asked for.
        tenant_name: Option<String> = "tenantName" in [Metadata];
        /// Whether no result means 0; otherwise it is an error.
        ignore_null_values: bool = "ignoreNullValues" in [Metadata], default "true";
        /// Accepts any certificate of the server.
        unsafe_ssl: bool = "unsafeSsl" in [Metadata], default "false";
        /// How to show who we are.
        auth: HttpAuth;
    }
}

struct Loki {
    parameters: Parameters,
    within: Duration,
    web: Arc<Web>,
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, Error> {
    target_type(trigger)?;
    let parameters =
        Parameters::read(trigger).map_err(|error| error.inside("error parsing loki metadata"))?;
    // The formula has a target of its own.
    let target = if trigger.feeds_formula { 0.0 } else { parameters.threshold };
    let activation = parameters.activation_threshold;
    let source = Loki { parameters, within: trigger.http_timeout, web: Arc::clone(&backends.web) };
    Ok(Arc::new(Single { spec: external(trigger, "loki", milli(target)), activation, source }))
}

impl Source for Loki {
    fn value(&self) -> Answer<'_, f64> {
        Box::pin(async {
            let Parameters {
                server_address, query, tenant_name, ignore_null_values, unsafe_ssl, auth, ..
            } = &self.parameters;
            let mut call =
                auth.sign(Call::get(query::url(server_address, query), self.within), *unsafe_ssl)?;
            if let Some(tenant) = tenant_name {
                call = call.header("X-Scope-OrgID", tenant)?;
            }
            let (status, body) = ask(&self.web, call).await?;
            match query::value(status, &body, query)? {
                Some(value) => Ok(value),
                None if *ignore_null_values => Ok(0.0),
                None => Err(Error::new("loki metrics 'loki' target may be lost, the result is empty")),
            }
        })
    }
}
