//! solr: how many documents a query finds.

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

/// solr.
pub const TYPE: Type = Type {
    name: "solr",
    about: "How many documents of a Solr collection a query finds.",
    display: "solrScaler",
    parameters: Parameters::PARAMETERS,
    push: false,
    build,
};

crate::parameters! {
    /// What solr accepts.
    pub struct Parameters of "error parsing solr metadata" {
        /// Where Solr is, e.g. `http://solr.search:8983`.
        host: String = "host" in [Metadata], required;
        /// The collection.
        collection: String = "collection" in [Metadata], required;
        /// The query.
        query: String = "query" in [Metadata], default "*:*";
        /// How many documents one replica is for.
        target_query_value: f64 = "targetQueryValue" in [Metadata], required;
        /// The trigger is active above so many documents.
        activation_target_query_value: f64 = "activationTargetQueryValue" in [Metadata], default "0";
        /// User.
        username: String = "username" in [Authentication, Metadata], required;
        /// Password.
        password: Secret = "password" in [Authentication, Metadata], required;
    }
}

struct Solr {
    parameters: Parameters,
    within: Duration,
    web: Arc<Web>,
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, Error> {
    target_type(trigger)?;
    let parameters =
        Parameters::read(trigger).map_err(|error| error.inside("error parsing Solr metadata"))?;
    let spec = external(trigger, "solr", milli(parameters.target_query_value));
    let activation = parameters.activation_target_query_value;
    let source = Solr { parameters, within: trigger.http_timeout, web: Arc::clone(&backends.web) };
    Ok(Arc::new(Single { spec, activation, source }))
}

impl Source for Solr {
    fn value(&self) -> Answer<'_, f64> {
        Box::pin(async {
            let Parameters { host, collection, query, username, password, .. } = &self.parameters;
            let call = Call::get(query::url(host, collection, query), self.within).basic(username, password);
            let (status, body) = ask(&self.web, call).await?;
            query::found(status, &body)
        })
    }
}
