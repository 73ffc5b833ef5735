//! cassandra: the number returned by a query of Apache Cassandra.

use crate::prelude::*;

/// The scaler type `cassandra`.
pub const TYPE: ScalerType = ScalerType {
    name: "cassandra",
    about: "The number in the first column of the first row of an Apache Cassandra query.",
    display: "cassandraScaler",
    parameters: Parameters::PARAMETERS,
    queried: false,
    build,
    samples: &[Sample::tcp(
        &[
            ("clusterIPAddress", "127.0.0.1"),
            ("port", "{port}"),
            ("username", "u"),
            ("keyspace", "k"),
            ("query", "SELECT COUNT(*) FROM t"),
            ("targetQueryValue", "5"),
        ],
        sample::PASSWORD,
    )],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// The query and the connection.
    pub struct Parameters of "error parsing cassandra metadata: error parsing cassandra metadata" {
        /// User name.
        username: String = "username" in [Metadata], required;
        /// Password.
        password: Secret = "password" in [Authentication], required;
        /// Whether TLS is used.
        tls: String = "tls" in [Authentication], default "disable", one_of ["enable", "disable"];
        /// Client certificate (PEM).
        certificate: String = "cert" in [Authentication];
        /// Private key of the client certificate (PEM).
        key: Secret = "key" in [Authentication];
        /// CA certificate that is trusted in addition to the system's (PEM).
        ca: String = "ca" in [Authentication];
        /// Host of a node, or `host:port`.
        host: String = "clusterIPAddress" in [Metadata], required;
        /// Port.
        port: isize = "port" in [Metadata];
        /// Consistency level.
        consistency: String = "consistency" in [Metadata], default "one";
        /// Version of the protocol.
        protocol_version: isize = "protocolVersion" in [Metadata], default "4";
        /// Keyspace.
        keyspace: String = "keyspace" in [Metadata], required;
        /// The query; the first column of its first row must be a whole number.
        query: String = "query" in [Metadata], required;
        /// Target value per replica.
        target: i64 = "targetQueryValue" in [Metadata], required;
        /// The trigger is active above this value.
        activation: i64 = "activationTargetQueryValue" in [Metadata], default "0";
    }
    check Parameters::check
}

impl Parameters {
    fn check(&mut self, _: &Trigger) -> Result<(), ParseError> {
        let port = self.host.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
        if self.port == 0 && port.is_none() && !self.host.is_empty() {
            return Err("no port given".into());
        }
        Ok(())
    }
}

fn build(trigger: &Trigger, _: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    target_type(trigger)?;
    let parameters = Parameters::read(trigger)?;
    let name = format!("cassandra-{}", parameters.keyspace);
    UnqueriedScaler::build(trigger, [external(trigger, &name, whole(parameters.target))])
}
