//! arangodb: the result of an AQL query.

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

/// arangodb.
pub const TYPE: Type = Type {
    name: "arangodb",
    about: "The result of an AQL query to ArangoDB.",
    display: "arangoDBScaler",
    parameters: Parameters::PARAMETERS,
    push: false,
    build,
};

crate::parameters! {
    /// What arangodb accepts.
    pub struct Parameters of "error parsing arango metadata" {
        /// Where ArangoDB is, e.g. `http://arangodb.shop:8529`; of several with commas between them, the first that answers
        /// counts.
        endpoints: Vec<String> = "endpoints" in [Authentication, Metadata], required;
        /// The collection; has no effect, the query names its own.
        collection: String = "collection" in [Authentication, Metadata], required;
        /// The query; its first result must be a number, or an object with a number `value`.
        query: String = "query" in [Metadata], required;
        /// The number that one replica is for.
        query_value: f64 = "queryValue" in [Metadata], default "0";
        /// The trigger is active above it.
        activation_query_value: f64 = "activationQueryValue" in [Metadata], default "0";
        /// The database.
        db_name: String = "dbName" in [Authentication, Metadata], required;
        /// Accepts any certificate of the server.
        unsafe_ssl: bool = "unsafeSsl" in [Metadata], default "false";
        /// How to show who we are.
        auth: HttpAuth;
    }
}

struct ArangoDb {
    parameters: Parameters,
    within: Duration,
    web: Arc<Web>,
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, Error> {
    const PREFIX: &str = "error parsing arangoDB metadata";
    target_type(trigger)?;
    let parameters = Parameters::read(trigger).map_err(|error| error.inside(PREFIX))?;
    if parameters.query_value == 0.0 && !trigger.feeds_formula {
        return Err(Error::new("no QueryValue given").inside(PREFIX));
    }
    let spec = external(trigger, "arangodb", milli(parameters.query_value));
    let activation = parameters.activation_query_value;
    let source = ArangoDb { parameters, within: trigger.http_timeout, web: Arc::clone(&backends.web) };
    Ok(Arc::new(Single { spec, activation, source }))
}

impl Source for ArangoDb {
    fn value(&self) -> Answer<'_, f64> {
        Box::pin(async {
            let Parameters { endpoints, db_name, query, auth, unsafe_ssl, .. } = &self.parameters;
            let mut failed = Error::new("no endpoints are given");
            for endpoint in endpoints {
                let call = Call::post(query::url(endpoint, db_name), query::body(query), self.within);
                let call = auth.sign(call, *unsafe_ssl)?.header("content-type", "application/json")?;
                match ask(&self.web, call).await {
                    Ok((status, body)) => return query::value(status, &body),
                    Err(error) => failed = error,
                }
            }
            Err(failed)
        })
    }
}
