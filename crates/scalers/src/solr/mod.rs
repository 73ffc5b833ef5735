//! solr: the number of documents that a query matches.

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

/// The scaler type `solr`.
pub const TYPE: ScalerType = ScalerType {
    name: "solr",
    about: "How many documents of a Solr collection a query finds.",
    display: "solrScaler",
    parameters: Parameters::PARAMETERS,
    push: false,
    build,
};

crate::parameters! {
    /// Parameters of solr.
    pub struct Parameters of "error parsing solr metadata" {
        /// URL of Solr, e.g. `http://solr.search:8983`.
        host: String = "host" in [Metadata], required;
        /// The collection.
        collection: String = "collection" in [Metadata], required;
        /// The query.
        query: String = "query" in [Metadata], default "*:*";
        /// Target number of documents per replica.
        target_query_value: f64 = "targetQueryValue" in [Metadata], required;
        /// The trigger is active above this number of documents.
        activation_target_query_value: f64 = "activationTargetQueryValue" in [Metadata], default "0";
        /// User name.
        username: String = "username" in [Authentication, Metadata], required;
        /// Password.
        password: Secret = "password" in [Authentication, Metadata], required;
    }
}

struct Solr {
    parameters: Parameters,
    within: Duration,
    web: Arc<SharedHttpClient>,
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    target_type(trigger)?;
    let parameters =
        Parameters::read(trigger).map_err(|error| error.inside("error parsing Solr metadata"))?;
    let spec = external(trigger, "solr", milli(parameters.target_query_value));
    let activation = parameters.activation_target_query_value;
    let source = Solr { parameters, within: trigger.http_timeout, web: Arc::clone(&backends.web) };
    Ok(Arc::new(SingleMetricScaler { spec, activation, source }))
}

impl ValueSource for Solr {
    fn value(&self) -> ScalerFuture<'_, f64> {
        Box::pin(async {
            let Parameters { host, collection, query, username, password, .. } = &self.parameters;
            let call =
                HttpCall::get(query::url(host, collection, query), self.within).basic(username, password);
            let (status, body) = send(&self.web, call).await?;
            query::found(status, &body)
        })
    }
}
