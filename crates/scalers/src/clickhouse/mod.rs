//! clickhouse: the number returned by a query of ClickHouse.

use crate::parameters::KedaProfile;
use crate::prelude::*;
use crate::urls::is_url;

/// What stands in front of errors that are found after the parameters were read.
const PREFIX: &str = "error parsing clickhouse metadata";

/// The scaler type `clickhouse`.
pub const TYPE: ScalerType = ScalerType {
    name: "clickhouse",
    about: "The number in the first column of the first row of a ClickHouse query.",
    display: "clickhouseScaler",
    parameters: Parameters::PARAMETERS,
    queried: false,
    since: KedaProfile::V2_21,
    build,
    samples: &[Sample::tcp(
        &[("query", "SELECT 1"), ("targetQueryValue", "5"), ("host", "127.0.0.1"), ("port", "{port}")],
        sample::PASSWORD,
    )],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// The query and the connection.
    pub struct Parameters of "error parsing clickhouse metadata: error parsing clickhouse metadata" {
        /// A connection string, `clickhouse://user:password@host:9000/db`; replaces host, port, username, password and database.
        connection_string: Secret = "connectionString" in [Authentication, Environment];
        /// Host.
        host: String = "host" in [Metadata, Authentication];
        /// Port.
        port: String = "port" in [Metadata, Authentication], default "9000";
        /// User name.
        username: String = "username" in [Metadata, Authentication, Environment], default "default";
        /// Password.
        password: Secret = "password" in [Authentication, Environment];
        /// Database.
        database: String = "database" in [Metadata, Authentication], default "default";
        /// The query; the first column of its first row must be a number.
        query: String = "query" in [Metadata], required;
        /// Target value per replica.
        target: f64 = "targetQueryValue" in [Metadata], required;
        /// The trigger is active above this value.
        activation: f64 = "activationTargetQueryValue" in [Metadata], default "0";
        /// Maximum number of unused connections.
        max_idle_connections: isize = "maxIdleConns" in [Metadata, Authentication];
        /// Maximum number of connections.
        max_open_connections: isize = "maxOpenConns" in [Metadata, Authentication];
        /// Maximum age of a connection.
        connection_lifetime: Option<Duration> = "connMaxLifetime" in [Metadata, Authentication];
        /// Uses TLS.
        tls: bool = "tls" in [Authentication], default "false";
        /// Client certificate (PEM).
        certificate: String = "cert" in [Authentication];
        /// Private key of the client certificate (PEM).
        key: Secret = "key" in [Authentication];
        /// Password of the private key.
        key_password: Secret = "keyPassword" in [Authentication];
        /// CA certificate that is trusted in addition to the system's (PEM).
        ca: String = "ca" in [Authentication];
        /// Accepts any server certificate.
        unsafe_ssl: bool = "unsafeSsl" in [Authentication], default "false";
    }
}

impl Parameters {
    fn check(&self, trigger: &Trigger) -> Result<(), ParseError> {
        if self.target == 0.0 && !trigger.feeds_formula {
            return Err("targetQueryValue is required when not using scaler as metric source".into());
        }
        if self.connection_string.reveal().is_empty() && self.host.is_empty() {
            return Err("either connectionString or host must be set".into());
        }
        if self.tls && self.certificate.is_empty() != self.key.reveal().is_empty() {
            return Err("both cert and key must be provided when TLS is enabled".into());
        }
        Ok(())
    }
}

fn build(trigger: &Trigger, _: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    target_type(trigger)?;
    let parameters = Parameters::read(trigger)?;
    parameters.check(trigger).map_err(|error| ScalerError::new(error).inside(PREFIX))?;
    let given = parameters.connection_string.reveal();
    if !given.is_empty() && !is_url(given) {
        // The string is not quoted, because it contains a password.
        bail!("error establishing clickhouse connection: failed to parse connection string: it is no URL");
    }
    UnqueriedScaler::build(trigger, [external(trigger, "clickhouse", milli(parameters.target))])
}
