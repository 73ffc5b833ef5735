//! cassandra: the number returned by a query of Apache Cassandra.
//!
//! ```text
//! wire      frames of the native protocol
//! client    pooled connections
//! ```

mod client;
#[cfg(test)]
mod tests;
mod wire;

use client::{CassandraNode, CqlQuery};

use crate::pool::{Pool, Pools};
use crate::prelude::*;
use crate::tls::{CertificateCheck, TlsSettings};

/// The scaler type `cassandra`.
pub const TYPE: ScalerType = ScalerType {
    name: "cassandra",
    about: "The number in the first column of the first row of an Apache Cassandra query.",
    display: "cassandraScaler",
    parameters: Parameters::PARAMETERS,
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
        /// CA certificate (PEM) that must have signed the server's, together with those of the system. Without it any certificate is
        /// accepted, as in KEDA; the host name in it is never checked.
        ca: String = "ca" in [Authentication];
        /// Host of a node, or `host:port`.
        host: String = "clusterIPAddress" in [Metadata], required;
        /// Port.
        port: isize = "port" in [Metadata];
        /// Consistency level, e.g. `one` or `local_quorum`.
        consistency: String = "consistency" in [Metadata], default "one";
        /// Version of the protocol: 3 or 4.
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
        if self.tls == "enable" && (self.certificate.is_empty() || self.key.reveal().is_empty()) {
            return Err("both cert and key are required when TLS is enabled".into());
        }
        // Unlike in KEDA, a port behind an IPv6 address in brackets counts.
        let (_, port) = self.host.rsplit_once("]:").or_else(|| self.host.split_once(':')).unwrap_or_default();
        if self.port == 0 && port.parse::<i64>().is_err() {
            return Err("no port given".into());
        }
        Ok(())
    }
}

/// A query and its node.
struct CassandraSource {
    query: CqlQuery,
    pool: Arc<Pool<CassandraNode>>,
}

/// The source of a trigger, or why it cannot be queried.
struct CheckedSource(Result<CassandraSource, ScalerError>);

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    target_type(trigger)?;
    let parameters = Parameters::read(trigger)?;
    let name = format!("cassandra-{}", parameters.keyspace);
    // A formula has its own target.
    let target = if trigger.feeds_formula { 0 } else { parameters.target };
    let spec = external(trigger, &name, whole(target));
    let activation = parameters.activation as f64;
    let source = parameters.source(&trigger.owner.namespace, backends).map_err(ScalerError::new);
    SingleMetricScaler::build(spec, activation, CheckedSource(source))
}

impl Parameters {
    fn source(self, namespace: &str, backends: &Backends) -> Result<CassandraSource, ParseError> {
        let version = match self.protocol_version {
            version @ (3 | 4) => version as u8,
            _ => return Err("protocolVersion must be 3 or 4".into()),
        };
        let Some(consistency) = wire::consistency(&self.consistency) else {
            return Err("consistency must be the name of a level, e.g. one or local_quorum".into());
        };
        let (host, port) = node_address(&self.host, self.port)?;
        let tls = (self.tls == "enable").then(|| self.tls_settings(&backends.web.settings().authorities));
        let (user, password, dialer) = (self.username, self.password, backends.dialer.clone());
        let node = CassandraNode { host, port, user, password, version, tls, dialer };
        let pool = backends.state::<Pools<CassandraNode>>().of_namespace(namespace, &node);
        Ok(CassandraSource { query: CqlQuery { text: self.query, consistency }, pool })
    }

    fn tls_settings(&self, authorities: &[u8]) -> TlsSettings {
        let certificate_check = match self.ca.trim() {
            "" => CertificateCheck::Anything,
            _ => CertificateCheck::Authority,
        };
        let (certificate, key) = (self.certificate.clone(), self.key.clone());
        TlsSettings { authorities: self.ca.clone(), certificate, key, certificate_check }
            .trusting(authorities)
    }
}

/// Host and port of the node. Behind an IPv6 address a port needs brackets: the last part of the address may look like one.
fn node_address(host: &str, port: isize) -> Result<(String, u16), ParseError> {
    let given = host.rsplit_once(':').filter(|(host, _)| !host.contains(':') || host.ends_with(']'));
    let (host, port) = match given.map(|(host, port)| (host, port.parse::<u16>())) {
        Some((host, Ok(port))) => (host, port),
        _ => (host, u16::try_from(port).unwrap_or_default()),
    };
    if port == 0 {
        return Err("port must be a number from 1 to 65535".into());
    }
    Ok((host.trim_start_matches('[').trim_end_matches(']').to_owned(), port))
}

impl ValueSource for CheckedSource {
    fn value(&self) -> ScalerFuture<'_, f64> {
        Box::pin(async {
            let failed = |error: ScalerError| error.inside("error inspecting cassandra");
            let CassandraSource { query, pool } = self.0.as_ref().map_err(|error| failed(error.clone()))?;
            pool.query(query).await.map_err(failed)
        })
    }
}

/// Decodes bytes of a server, for fuzzing; returns whether they are valid.
#[doc(hidden)]
pub fn is_response(bytes: &[u8]) -> bool {
    let Some((header, content)) = bytes.split_first_chunk() else { return false };
    wire::content_bytes(*header, 4).is_ok() && wire::response(*header, content).is_ok()
}
