//! solr: the number of documents that a query matches.

mod query;
#[cfg(test)]
mod tests;

use crate::prelude::*;

/// The scaler type `solr`.
pub const TYPE: ScalerType = ScalerType {
    name: "solr",
    about: "How many documents of a Solr collection a query finds.",
    display: "solrScaler",
    parameters: Parameters::PARAMETERS,
    build,
    samples: &[Sample::http(
        &[("host", "http://{}"), ("collection", "c"), ("targetQueryValue", "5")],
        sample::USER_AND_PASSWORD,
    )],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// Parameters of solr.
    pub struct Parameters of "error parsing Solr metadata: error parsing solr metadata" {
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

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    target_type(trigger)?;
    let parameters = Parameters::read(trigger)?;
    if parameters.target_query_value == 0.0 && !trigger.feeds_formula {
        bail!("error parsing Solr metadata: no targetQueryValue given");
    }
    let spec = external(trigger, "solr", milli(parameters.target_query_value));
    let activation = parameters.activation_target_query_value;
    let source = HttpSource::new(parameters, trigger, backends);
    SingleMetricScaler::build(spec, activation, source)
}

impl ValueSource for HttpSource<Parameters> {
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
