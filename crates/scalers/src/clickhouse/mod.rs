//! clickhouse: the number returned by a query of ClickHouse, over its HTTP interface.

mod query;
#[cfg(test)]
mod tests;

use query::ClickHouseServer;
use sources::http::{Auth, Endpoint};

use crate::encrypted_key::opened;
use crate::parameters::KedaProfile;
use crate::parameters::groups::tls_endpoint;
use crate::prelude::*;
use crate::urls::{host, is_url};

/// Prefix of errors that are found after the parameters were read.
const PREFIX: &str = "error parsing clickhouse metadata";

/// The scaler type `clickhouse`.
pub const TYPE: ScalerType = ScalerType {
    name: "clickhouse",
    about: "The number in the first column of the first row of a ClickHouse query.",
    display: "clickhouseScaler",
    parameters: Parameters::PARAMETERS,
    since: KedaProfile::V2_21,
    build,
    samples: &[Sample::http(
        &[("query", "SELECT 1"), ("targetQueryValue", "5"), ("host", "127.0.0.1"), ("port", "{port}")],
        sample::PASSWORD,
    )],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// The query and the connection.
    pub struct Parameters of "error parsing clickhouse metadata: error parsing clickhouse metadata" {
        /// A connection string, `clickhouse://user:password@host:9000/db` or `http://user:password@host:8123/db`; replaces host, port,
        /// username, password and database.
        connection_string: Secret = "connectionString" in [Authentication, Environment];
        /// Host.
        host: String = "host" in [Metadata, Authentication];
        /// Port. Queries are sent to the HTTP interface: the native ports 9000 and 9440 stand for 8123 and 8443 of the same host.
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
        /// Has no effect: connections are shared by all triggers of a server.
        max_idle_connections: isize = "maxIdleConns" in [Metadata, Authentication];
        /// Has no effect.
        max_open_connections: isize = "maxOpenConns" in [Metadata, Authentication];
        /// Has no effect.
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

    /// The server of the connection string, or else of host and port.
    fn server(&self) -> Result<ClickHouseServer, ParseError> {
        let given = self.connection_string.reveal();
        if !given.is_empty() {
            return ClickHouseServer::parse(given);
        }
        let server = ClickHouseServer::new(&self.host, &self.port, self.tls)?;
        let (user, password) = (self.username.clone(), self.password.clone());
        Ok(ClickHouseServer { user, password, database: self.database.clone(), ..server })
    }

    /// TLS settings and credentials.
    fn access(&self, server: &ClickHouseServer) -> Endpoint {
        let auth = Auth::Basic { user: server.user.clone(), password: server.password.clone() };
        let key = opened(&self.key, &self.key_password);
        let own = (self.tls && !self.certificate.is_empty()).then_some((&*self.certificate, &key));
        let authority = if self.tls { &*self.ca } else { "" };
        let insecure = server.insecure || (self.tls && self.unsafe_ssl);
        Endpoint { insecure, auth, ..tls_endpoint(authority, own) }
    }
}

/// A query and its server.
struct ClickHouseSource {
    query: String,
    /// The server with TLS settings and credentials, or why it is invalid.
    server: Result<(ClickHouseServer, Endpoint), ScalerError>,
    within: Duration,
    web: Arc<SharedHttpClient>,
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    target_type(trigger)?;
    let parameters = Parameters::read(trigger)?;
    parameters.check(trigger).map_err(|error| ScalerError::new(error).inside(PREFIX))?;
    let given = parameters.connection_string.reveal();
    if !given.is_empty() && !is_url(given) {
        // The string is not quoted, because it contains a password.
        bail!("error establishing clickhouse connection: failed to parse connection string: it is no URL");
    }
    if !given.is_empty() && host(given).is_empty() {
        bail!(
            "error establishing clickhouse connection: failed to parse connection string: parse dsn address failed"
        );
    }
    let spec = external(trigger, "clickhouse", milli(parameters.target));
    let server = parameters.server().map_err(ScalerError::new);
    let server = server.map(|server| {
        let access = parameters.access(&server);
        (server, access)
    });
    let Parameters { query, activation, .. } = parameters;
    let (within, web) = (trigger.http_timeout, Arc::clone(&backends.web));
    SingleMetricScaler::build(spec, activation, ClickHouseSource { query, server, within, web })
}

impl ClickHouseSource {
    async fn first_number(&self) -> Result<f64, ScalerError> {
        let (server, access) = self.server.as_ref().map_err(Clone::clone)?;
        let mut failed = scaler_error!("connectionString names no host");
        for url in &server.urls {
            let call = HttpCall::get(server.query_url(url, &self.query), self.within).access(access.clone());
            match send(&self.web, call).await {
                Ok((status, body)) => return query::value(status, &body),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }
}

impl ValueSource for ClickHouseSource {
    fn value(&self) -> ScalerFuture<'_, f64> {
        Box::pin(async {
            let value = self.first_number().await;
            value.map_err(|error| {
                error.inside("error inspecting ClickHouse: could not query ClickHouse database")
            })
        })
    }
}
