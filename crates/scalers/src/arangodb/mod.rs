//! arangodb: the result of an AQL query.

mod query;
#[cfg(test)]
mod tests;

use crate::parameters::groups::HttpAuth;
use crate::prelude::*;

/// The scaler type `arangodb`.
pub const TYPE: ScalerType = ScalerType {
    name: "arangodb",
    about: "The result of an AQL query to ArangoDB.",
    display: "arangoDBScaler",
    parameters: Parameters::PARAMETERS,
    build,
    samples: &[Sample::http(
        &[
            ("endpoints", "http://{}"),
            ("collection", "c"),
            ("query", "RETURN 1"),
            ("queryValue", "1"),
            ("dbName", "d"),
        ],
        &[],
    )],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// Parameters of arangodb.
    pub struct Parameters of "error parsing arango metadata" {
        /// URLs of ArangoDB, e.g. `http://arangodb.shop:8529`, separated by commas; the first that responds is
        /// used.
        endpoints: Vec<String> = "endpoints" in [Authentication, Metadata], required;
        /// The database.
        db_name: String = "dbName" in [Metadata, Authentication], required;
        /// The collection. Has no effect: the query names its collections.
        collection: String = "collection" in [Metadata], required;
        /// The query. Its only result must be a number, or an object with a number `value`.
        query: String = "query" in [Metadata], required;
        /// Target value per replica.
        query_value: f64 = "queryValue" in [Metadata], default "0";
        /// The trigger is active above this value.
        activation_query_value: f64 = "activationQueryValue" in [Metadata], default "0";
        /// Accepts any server certificate.
        unsafe_ssl: bool = "unsafeSsl" in [Metadata], default "false";
        /// Has no effect: connections are shared by all triggers and limited for each server.
        connection_limit: i64 = "connectionLimit" in [Metadata];
        /// HTTP authentication.
        auth: HttpAuth;
    }
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    const PREFIX: &str = "error parsing arangoDB metadata";
    target_type(trigger)?;
    let parameters = Parameters::read(trigger).map_err(|error| error.inside(PREFIX))?;
    if parameters.query_value == 0.0 && !trigger.feeds_formula {
        return Err(scaler_error!("no QueryValue given").inside(PREFIX));
    }
    let spec = external(trigger, "arangodb", milli(parameters.query_value));
    let activation = parameters.activation_query_value;
    let source = HttpSource::new(parameters, trigger, backends);
    SingleMetricScaler::build(spec, activation, source)
}

impl ValueSource for HttpSource<Parameters> {
    fn value(&self) -> ScalerFuture<'_, f64> {
        Box::pin(async {
            let Parameters { endpoints, db_name, query, auth, unsafe_ssl, .. } = &self.parameters;
            let mut failed = scaler_error!("no endpoints are given");
            for endpoint in endpoints {
                let call =
                    HttpCall::post_query(query::url(endpoint, db_name), query::body(query), self.within);
                let call = auth.sign(call, *unsafe_ssl)?.header("content-type", "application/json")?;
                match send(&self.web, call).await {
                    Ok((status, body)) => return query::value(status, &body),
                    Err(error) => failed = error,
                }
            }
            Err(failed)
        })
    }
}
