//! mysql: the number returned by a query.

#[cfg(test)]
mod tests;

use crate::prelude::*;

/// The scaler type `mysql`.
pub const TYPE: ScalerType = ScalerType {
    name: "mysql",
    about: "The number in the first column of the first row of a MySQL or MariaDB query.",
    display: "mySQLScaler",
    parameters: Parameters::PARAMETERS,
    queried: false,
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

fn build(trigger: &Trigger, _: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    target_type(trigger)?;
    let parameters = Parameters::read(trigger)?;
    let name = format!("mysql-{}", parameters.named_database());
    UnqueriedScaler::build(trigger, [external(trigger, &name, milli(parameters.target))])
}
