//! mysql: the number returned by a query.
//!
//! ```text
//! dsn       connection strings
//! wire      packets of the protocol
//! client    pooled connections
//! query     decoding of results
//! ```

mod client;
mod dsn;
mod query;
#[cfg(test)]
mod tests;
mod wire;

use client::MysqlServer;
use dsn::{MysqlDsn, TlsMode, host_and_port};

use crate::pool::{Pool, Pools};
use crate::prelude::*;

/// The scaler type `mysql`.
pub const TYPE: ScalerType = ScalerType {
    name: "mysql",
    about: "The number in the first column of the first row of a MySQL or MariaDB query.",
    display: "mySQLScaler",
    parameters: Parameters::PARAMETERS,
    build,
    samples: &[Sample::tcp(
        &[
            ("query", "SELECT 1"),
            ("queryValue", "5"),
            ("host", "127.0.0.1"),
            ("port", "{port}"),
            ("username", "u"),
            ("dbName", "d"),
        ],
        sample::PASSWORD,
    )],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// The query and the connection.
    pub struct Parameters of "error parsing MySQL metadata: error parsing mysql metadata" {
        /// A connection string, `user:password@tcp(host:3306)/db`; replaces the parameters below.
        connection_string: Secret = "connectionString" in [Authentication, Environment];
        /// User name.
        username: String = "username" in [Metadata, Authentication, Environment];
        /// Password.
        password: Secret = "password" in [Authentication, Environment];
        /// Host.
        host: String = "host" in [Metadata, Authentication];
        /// Port.
        port: String = "port" in [Metadata, Authentication];
        /// Database.
        database: String = "dbName" in [Metadata, Authentication];
        /// The query; the first column of its first row must be a number.
        query: String = "query" in [Metadata], required;
        /// Target value per replica.
        target: f64 = "queryValue" in [Metadata], required;
        /// The trigger is active above this value.
        activation: f64 = "activationQueryValue" in [Metadata], default "0";
        /// Accepted and ignored.
        metric_name: String = "metricName" in [Metadata];
    }
}

impl Parameters {
    /// The database as in the metric name: with a connection string, everything after its last slash, as in KEDA.
    fn named_database(&self) -> &str {
        match self.connection_string.reveal() {
            "" => &self.database,
            given => given.rsplit_once('/').map_or(given, |(_, database)| database),
        }
    }
}

/// A query and its server.
struct MysqlSource {
    query: String,
    /// The connections; an error if the connection string is invalid.
    pool: Result<Arc<Pool<MysqlServer>>, ScalerError>,
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    target_type(trigger)?;
    let parameters = Parameters::read(trigger)?;
    let name = format!("mysql-{}", parameters.named_database());
    let spec = external(trigger, &name, milli(parameters.target));
    let authorities = backends.web.settings().authorities.clone();
    let dialer = backends.dialer.clone();
    let pools = backends.state::<Pools<MysqlServer>>();
    let pool = parameters
        .dsn()
        .map(|dsn| pools.of_namespace(&trigger.owner.namespace, &MysqlServer { dsn, authorities, dialer }));
    let pool = pool.map_err(ScalerError::new);
    SingleMetricScaler::build(spec, parameters.activation, MysqlSource { query: parameters.query, pool })
}

impl Parameters {
    fn dsn(&self) -> Result<MysqlDsn, ParseError> {
        if !self.connection_string.reveal().is_empty() {
            return MysqlDsn::parse(self.connection_string.reveal());
        }
        let (host, _) = host_and_port(&self.host)?;
        let (_, port) = host_and_port(&format!(":{}", self.port))?;
        Ok(MysqlDsn {
            host,
            port,
            user: self.username.clone(),
            password: self.password.clone(),
            database: self.database.clone(),
            tls: TlsMode::Off,
        })
    }
}

impl ValueSource for MysqlSource {
    fn value(&self) -> ScalerFuture<'_, f64> {
        Box::pin(async {
            let failed = |error: ScalerError| error.inside("error inspecting MySQL: could not query MySQL");
            let pool = self.pool.as_ref().map_err(|error| failed(error.clone()))?;
            pool.query(&self.query).await.map_err(failed)
        })
    }
}

/// Decodes bytes of a server, for fuzzing; returns whether they are valid.
#[doc(hidden)]
pub fn is_response(bytes: &[u8]) -> bool {
    let _ = (wire::greeting(bytes), wire::first_field(bytes), wire::is_end(bytes));
    wire::reply(bytes).is_ok()
}
