//! couchdb: how many documents a query finds.

mod query;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use crate::backends::Backends;
use crate::metric::{external, target_type, whole};
use crate::parameters::Secret;
use crate::single::{Single, Source, ask};
use crate::table::Type;
use crate::urls::is_request_uri;
use crate::web::{Call, Web};
use crate::{Answer, Error, Scaler, Trigger};

/// couchdb.
pub const TYPE: Type = Type {
    name: "couchdb",
    about: "How many documents of a CouchDB database a query finds.",
    display: "couchDBScaler",
    parameters: Parameters::PARAMETERS,
    push: false,
    build,
};

crate::parameters! {
    /// What couchdb accepts.
    pub struct Parameters of "error parsing couchdb metadata" {
        /// The address with user and password, instead of host, port, username and password.
        connection_string: Secret = "connectionString" in [Authentication, Environment];
        /// The host, or its address if it is to be asked over HTTPS.
        host: String = "host" in [Metadata, Authentication];
        /// The port.
        port: String = "port" in [Metadata, Authentication];
        /// User.
        username: String = "username" in [Metadata, Authentication];
        /// Password.
        password: Secret = "password" in [Authentication, Environment];
        /// The database.
        db_name: String = "dbName" in [Metadata, Authentication];
        /// The query, e.g. `{"selector": {"feet": {"$gt": 0}}, "fields": ["_id"]}`.
        query: String = "query" in [Metadata];
        /// How many documents one replica is for.
        query_value: i64 = "queryValue" in [Metadata];
        /// The trigger is active above so many documents.
        activation_query_value: i64 = "activationQueryValue" in [Metadata], default "0";
    }
    check Parameters::check
}

impl Parameters {
    fn check(&mut self, _: &Trigger) -> Result<(), String> {
        if !self.connection_string.reveal().is_empty() {
            return Ok(());
        }
        let there = [
            (&*self.db_name, "no dbName given"),
            (&*self.host, "no host given"),
            (&*self.port, "no port given"),
            (&*self.username, "no username given"),
            (self.password.reveal(), "no password given"),
        ];
        match there.into_iter().find(|(value, _)| value.is_empty()) {
            Some((_, missing)) => Err(missing.to_owned()),
            None => Ok(()),
        }
    }
}

struct CouchDb {
    parameters: Parameters,
    first_page: bool,
    within: Duration,
    web: Arc<Web>,
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, Error> {
    target_type(trigger)?;
    let parameters =
        Parameters::read(trigger).map_err(|error| error.inside("error parsing couchdb metadata"))?;
    // The formula has a target of its own. The name is KEDA's.
    let target = if trigger.feeds_formula { 0 } else { parameters.query_value };
    let spec = external(trigger, &format!("coucdb-{}", parameters.db_name), whole(target));
    let activation = parameters.activation_query_value as f64;
    let (first_page, within) = (backends.compat.is_strict(), trigger.http_timeout);
    let source = CouchDb { parameters, first_page, within, web: Arc::clone(&backends.web) };
    Ok(Arc::new(Single { spec, activation, source }))
}

impl Source for CouchDb {
    fn value(&self) -> Answer<'_, f64> {
        Box::pin(async {
            let Parameters { connection_string, host, port, username, password, db_name, query, .. } =
                &self.parameters;
            let body = query::body(query, self.first_page)?;
            let call = match connection_string.reveal() {
                "" if host.contains("://") => {
                    Call::post(query::url(&format!("{host}:{port}"), db_name), body, self.within)
                }
                "" => Call::post(query::url(&format!("http://{host}:{port}"), db_name), body, self.within),
                given if given.starts_with("http") && is_request_uri(given) => {
                    Call::post(query::url(given, db_name), body, self.within)
                }
                // Not repeated: there is a password in it.
                _ => {
                    return Err(Error::new(
                        "connectionString is not a URL such as http://USER:PASSWORD@HOST:5984",
                    ));
                }
            };
            let call =
                if connection_string.reveal().is_empty() { call.basic(username, password) } else { call };
            let (status, body) = ask(&self.web, call.header("content-type", "application/json")?).await?;
            query::found(status, &body)
        })
    }
}
