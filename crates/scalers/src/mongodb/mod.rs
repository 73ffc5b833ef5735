//! mongodb: the number of documents that match a filter.

#[cfg(test)]
mod tests;

use crate::prelude::*;

/// The scaler type `mongodb`.
pub const TYPE: ScalerType = ScalerType {
    name: "mongodb",
    about: "How many documents of a MongoDB collection match a filter.",
    display: "mongoDBScaler",
    parameters: Parameters::PARAMETERS,
    queried: false,
    unit: |_| "documents",
    build,
    samples: &[Sample::tcp(
        &[
            ("dbName", "d"),
            ("collection", "c"),
            ("query", r#"{"a": 1}"#),
            ("queryValue", "5"),
            ("host", "127.0.0.1"),
            ("port", "{port}"),
            ("username", "u"),
        ],
        sample::PASSWORD,
    )],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// The filter and the connection.
    pub struct Parameters of "error parsing mongodb metadata: error parsing mongodb metadata" {
        /// A connection string, `mongodb://user:password@host:27017`; replaces scheme, host, port, username and password.
        connection_string: Secret = "connectionString" in [Authentication, Metadata, Environment];
        /// `mongodb`, or `mongodb+srv` for servers that DNS lists.
        scheme: String = "scheme" in [Authentication, Metadata], default "mongodb";
        /// Host.
        host: String = "host" in [Authentication, Metadata];
        /// Port; not used with `mongodb+srv`.
        port: String = "port" in [Authentication, Metadata];
        /// User name.
        username: String = "username" in [Authentication, Metadata];
        /// Password.
        password: Secret = "password" in [Authentication, Metadata, Environment];
        /// Database.
        database: String = "dbName" in [Authentication, Metadata], required;
        /// Collection.
        collection: String = "collection" in [Metadata], required;
        /// The filter, in MongoDB Extended JSON.
        query: String = "query" in [Metadata], required;
        /// Target number of documents per replica.
        target: f64 = "queryValue" in [Metadata], required;
        /// The trigger is active above this number of documents.
        activation: f64 = "activationQueryValue" in [Metadata], default "0";
        /// Whether TLS is used.
        tls: String = "tls" in [Authentication], default "disable", one_of ["enable", "disable"];
        /// Client certificate (PEM).
        certificate: String = "cert" in [Authentication];
        /// Private key of the client certificate (PEM).
        key: Secret = "key" in [Authentication];
        /// Password of the private key.
        key_password: Secret = "keyPassword" in [Authentication];
        /// CA certificate that is trusted in addition to the system's (PEM).
        ca: String = "ca" in [Authentication];
    }
    check Parameters::check
}

impl Parameters {
    fn check(&mut self, _: &Trigger) -> Result<(), ParseError> {
        if self.connection_string.reveal().is_empty() {
            if self.host.is_empty() {
                return Err("no host given".into());
            }
            if !self.scheme.contains("srv") && self.port.is_empty() {
                return Err("no port given".into());
            }
            if self.username.is_empty() {
                return Err("no username given".into());
            }
            if self.password.reveal().is_empty() {
                return Err("no password given".into());
            }
        }
        if self.tls != "enable" {
            return Ok(());
        }
        let (certificate, key) = (!self.certificate.is_empty(), !self.key.reveal().is_empty());
        if !certificate && !key && self.ca.is_empty() {
            return Err("at least one of cert, key, or ca must be provided when TLS is enabled".into());
        }
        if certificate != key {
            return Err("both cert and key must be provided when using client certificates".into());
        }
        Ok(())
    }
}

fn build(trigger: &Trigger, _: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    target_type(trigger)?;
    let parameters = Parameters::read(trigger)?;
    let name = format!("mongodb-{}", parameters.collection);
    UnqueriedScaler::build(trigger, [external(trigger, &name, milli(parameters.target))])
}
