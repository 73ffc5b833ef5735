//! couchdb: the number of documents that a query returns.

mod query;
#[cfg(test)]
mod tests;

use crate::prelude::*;
use crate::urls::{has_user, is_request_uri};

/// The scaler type `couchdb`.
pub const TYPE: ScalerType = ScalerType {
    name: "couchdb",
    about: "How many documents of a CouchDB database a query finds.",
    display: "couchDBScaler",
    parameters: Parameters::PARAMETERS,
    build,
    samples: &[Sample::http(
        &[
            ("host", "127.0.0.1"),
            ("port", "{port}"),
            ("dbName", "d"),
            ("query", r#"{"selector": {}}"#),
            ("queryValue", "1"),
            ("username", "u"),
        ],
        sample::PASSWORD,
    )],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// Parameters of couchdb.
    pub struct Parameters of "error parsing couchdb metadata: error parsing couchdb metadata" {
        /// The URL; replaces host and port. A login in it replaces username and password; without a username, `admin` is used.
        connection_string: Secret = "connectionString" in [Authentication, Metadata, Environment];
        /// The host; as a URL for HTTPS.
        host: String = "host" in [Authentication, Metadata];
        /// The port.
        port: String = "port" in [Authentication, Metadata];
        /// User name.
        username: String = "username" in [Authentication, Metadata];
        /// Password.
        password: Secret = "password" in [Authentication, Metadata, Environment];
        /// The database.
        db_name: String = "dbName" in [Authentication, Metadata];
        /// The query, e.g. `{"selector": {"feet": {"$gt": 0}}, "fields": ["_id"]}`.
        query: String = "query" in [Metadata];
        /// Target number of documents per replica; required unless a formula uses the value.
        query_value: i64 = "queryValue" in [Metadata];
        /// The trigger is active above this number of documents.
        activation_query_value: i64 = "activationQueryValue" in [Metadata], default "0";
    }
    check Parameters::check
}

impl Parameters {
    fn check(&mut self, _: &Trigger) -> Result<(), ParseError> {
        if !self.connection_string.reveal().is_empty() {
            return Ok(());
        }
        let there = [
            (&*self.host, "no host given"),
            (&*self.port, "no port given"),
            (&*self.username, "no username given"),
            (self.password.reveal(), "no password given"),
            (&*self.db_name, "no dbName given"),
        ];
        match there.into_iter().find(|(value, _)| value.is_empty()) {
            Some((_, missing)) => Err(missing.into()),
            None => Ok(()),
        }
    }
}

struct CouchDb {
    parameters: Parameters,
    first_page: bool,
    within: Duration,
    web: Arc<SharedHttpClient>,
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    target_type(trigger)?;
    let parameters = Parameters::read(trigger)?;
    if parameters.query_value == 0 && !trigger.feeds_formula {
        bail!("error parsing couchdb metadata: no queryValue given");
    }
    // A formula has its own target. The spelling of the metric name is KEDA's.
    let target = if trigger.feeds_formula { 0 } else { parameters.query_value };
    let spec = external(trigger, &format!("coucdb-{}", parameters.db_name), whole(target));
    let activation = parameters.activation_query_value as f64;
    let (first_page, within) = (backends.compat.is_strict(), trigger.http_timeout);
    let source = CouchDb { parameters, first_page, within, web: Arc::clone(&backends.web) };
    SingleMetricScaler::build(spec, activation, source)
}

impl ValueSource for CouchDb {
    fn value(&self) -> ScalerFuture<'_, f64> {
        Box::pin(async {
            let Parameters { connection_string, host, port, username, password, db_name, query, .. } =
                &self.parameters;
            let body = query::body(query, self.first_page)?;
            let call = match connection_string.reveal() {
                "" if host.contains("://") => {
                    HttpCall::post_query(query::url(&format!("{host}:{port}"), db_name), body, self.within)
                }
                "" => HttpCall::post_query(
                    query::url(&format!("http://{host}:{port}"), db_name),
                    body,
                    self.within,
                ),
                given if given.starts_with("http") && is_request_uri(given) => {
                    HttpCall::post_query(query::url(given, db_name), body, self.within)
                }
                // The value is not quoted, because it contains a password.
                _ => {
                    bail!("connectionString is not a URL such as http://USER:PASSWORD@HOST:5984");
                }
            };
            let given = connection_string.reveal();
            let call = if given.is_empty() {
                call.basic(username, password)
            } else if !has_user(given) && !password.reveal().is_empty() {
                // KEDA logs in as admin then.
                call.basic(if username.is_empty() { "admin" } else { username.as_str() }, password)
            } else {
                call
            };
            let (status, body) = send(&self.web, call.header("content-type", "application/json")?).await?;
            query::found(status, &body)
        })
    }
}
