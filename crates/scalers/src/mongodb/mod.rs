//! mongodb: the number of documents that match a filter.
//!
//! ```text
//! uri             connection strings
//! bson            documents on the wire
//! extended_json   filters
//! client          pooled connections, logins, the count
//! ```

mod bson;
mod client;
mod extended_json;
#[cfg(test)]
mod tests;
mod uri;

use client::{CountQuery, MongoServer};
use uri::MongoUri;

use crate::encrypted_key::opened;
use crate::pool::{Pool, Pools};
use crate::prelude::*;
use crate::tls::{CertificateCheck, TlsSettings};

/// The scaler type `mongodb`.
pub const TYPE: ScalerType = ScalerType {
    name: "mongodb",
    about: "How many documents of a MongoDB collection match a filter.",
    display: "mongoDBScaler",
    parameters: Parameters::PARAMETERS,
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
            if self.scheme != "mongodb+srv" && self.port.is_empty() {
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

/// A filter and its server.
struct MongoSource {
    /// The connections and the query; an error if the connection string or the filter is invalid.
    source: Result<(Arc<Pool<MongoServer>>, CountQuery), ScalerError>,
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    target_type(trigger)?;
    let parameters = Parameters::read(trigger)?;
    let name = format!("mongodb-{}", parameters.collection);
    let spec = external(trigger, &name, milli(parameters.target));
    let source = parameters.source(&trigger.owner.namespace, backends).map_err(ScalerError::new);
    SingleMetricScaler::build(spec, parameters.activation, MongoSource { source })
}

impl Parameters {
    fn uri(&self) -> Result<MongoUri, ParseError> {
        if !self.connection_string.reveal().is_empty() {
            return MongoUri::parse(self.connection_string.reveal());
        }
        if self.scheme != "mongodb" {
            return MongoUri::parse(&format!("{}://h", self.scheme));
        }
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        Ok(MongoUri {
            hosts: vec![uri::host(&format!("{host}:{}", self.port))?],
            user: self.username.clone(),
            password: self.password.clone(),
            // As in the connection string that KEDA makes of these parameters.
            auth_source: self.database.clone(),
            mechanism: String::new(),
            tls: false,
            insecure: false,
            direct: false,
        })
    }

    fn source(
        &self,
        namespace: &str,
        backends: &Backends,
    ) -> Result<(Arc<Pool<MongoServer>>, CountQuery), ParseError> {
        let uri = self.uri()?;
        let tls = (self.tls == "enable" || uri.tls).then(|| {
            let certificate_check =
                if uri.insecure { CertificateCheck::Anything } else { CertificateCheck::Full };
            let (authorities, certificate) = (self.ca.clone(), self.certificate.clone());
            let key = opened(&self.key, &self.key_password);
            let own = TlsSettings { authorities, certificate, key, certificate_check };
            own.trusting(&backends.web.settings().authorities)
        });
        let query = CountQuery {
            database: self.database.clone(),
            collection: self.collection.clone(),
            filter: extended_json::filter(&self.query)?,
        };
        let server = MongoServer { uri, tls, dialer: backends.dialer.clone() };
        Ok((backends.state::<Pools<MongoServer>>().of_namespace(namespace, &server), query))
    }
}

impl ValueSource for MongoSource {
    fn value(&self) -> ScalerFuture<'_, f64> {
        Box::pin(async {
            let failed = |error: ScalerError| error.inside("failed to inspect mongoDB");
            let (pool, query) = self.source.as_ref().map_err(|error| failed(error.clone()))?;
            pool.query(query).await.map_err(failed)
        })
    }
}

/// Decodes bytes of a server, for fuzzing; returns whether they are valid.
#[doc(hidden)]
pub fn is_response(bytes: &[u8]) -> bool {
    bson::decode(bytes).is_ok()
}
