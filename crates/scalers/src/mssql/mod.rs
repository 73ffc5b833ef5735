//! mssql: the number returned by a query of Microsoft SQL Server.
//!
//! ```text
//! dsn              connection strings
//! wire             messages of a client
//! tokens           responses of a server
//! prelogin_stream  the TLS handshake inside of PRELOGIN packets
//! client           pooled connections
//! query            the number in a result
//! ```

mod client;
mod dsn;
mod prelogin_stream;
mod query;
#[cfg(test)]
mod tests;
mod tokens;
mod wire;

use std::sync::Mutex;

use client::MssqlServer;
use dsn::{MssqlDsn, MssqlEncryption};
use locks::MutexExt as _;

use crate::identity::{AzureIdentity, Identities};
use crate::pool::{Pool, Pools};
use crate::prelude::*;
use crate::tls::CertificateCheck;

/// The scaler type `mssql`.
pub const TYPE: ScalerType = ScalerType {
    name: "mssql",
    about: "The number in the first column of the first row of a Microsoft SQL Server query.",
    display: "mssqlScaler",
    parameters: Parameters::PARAMETERS,
    build,
    samples: &[Sample::tcp(
        &[
            ("query", "SELECT 1"),
            ("targetValue", "5"),
            ("host", "127.0.0.1"),
            ("port", "{port}"),
            ("username", "u"),
            ("database", "d"),
        ],
        sample::PASSWORD,
    )],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// The query and the connection.
    pub struct Parameters {
        /// `azuresql` understands `fedauth=ActiveDirectoryServicePrincipal` in connection strings, with `client@tenant` as the user.
        driver: String = "driverName" in [Metadata, Authentication], default "sqlserver",
            one_of ["sqlserver", "azuresql"], since_2_21;
        /// A connection string, `sqlserver://user:password@host:1433?database=db` or `server=host,1433;user id=…;password=…`; replaces
        /// the parameters below. Names of instances are not looked up: give the port.
        connection_string: Secret = "connectionString" in [Authentication, Environment];
        /// User name.
        username: String = "username" in [Authentication, Metadata];
        /// Password.
        password: Secret = "password" in [Authentication, Environment];
        /// Host.
        host: String = "host" in [Authentication, Metadata];
        /// Port.
        port: isize = "port" in [Authentication, Metadata];
        /// Database.
        database: String = "database" in [Authentication, Metadata];
        /// The query; the first column of its first row must be a number.
        query: String = "query" in [Metadata], required;
        /// Target value per replica.
        target: f64 = "targetValue" in [Metadata], required;
        /// The trigger is active above this value.
        activation: f64 = "activationTargetValue" in [Metadata], default "0";
        /// The resource of tokens with `azure-workload`: one of SQL Server in Azure's clouds.
        identity_resource: String = "workloadIdentityResource" in [Authentication, Metadata];
    }
    check Parameters::check
}

impl Parameters {
    fn check(&mut self, _: &Trigger) -> Result<(), ParseError> {
        if self.connection_string.reveal().is_empty() && self.host.is_empty() {
            return Err("must provide either connectionstring or host".into());
        }
        Ok(())
    }

    /// What KEDA checks once all parameters are valid.
    fn check_use(&self, trigger: &Trigger) -> Result<(), ScalerError> {
        if self.target == 0.0 && !trigger.feeds_formula {
            bail!("no targetValue given");
        }
        match &*trigger.identity.provider {
            "azure-workload" if trigger.behavior().mssql_has_driver_name && self.driver != "sqlserver" => {
                let driver = &self.driver;
                Err(scaler_error!("driverName {driver} cannot be combined with azure-workload pod identity"))
            }
            "" | "none" | "azure-workload" => Ok(()),
            other => Err(scaler_error!("pod identity {other} is not supported for mssql scaler")),
        }
    }
}

/// A query and its server.
struct MssqlSource {
    query: String,
    /// The server; an error if the connection string is invalid.
    server: Result<MssqlServer, ScalerError>,
    /// Whose token replaces user and password, and its scope; none for a login of SQL Server.
    identity: Option<(AzureIdentity, String)>,
    identities: Arc<Identities>,
    /// The namespace of the object with the trigger.
    namespace: String,
    pools: Arc<Pools<MssqlServer>>,
    /// The pool of the last read, so that its connections stay open. Another token has another pool.
    pool: Mutex<Option<Arc<Pool<MssqlServer>>>>,
    web: Arc<SharedHttpClient>,
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    target_type(trigger)?;
    let parameters = Parameters::read(trigger)?;
    parameters.check_use(trigger)?;
    let spec = external(trigger, "mssql", milli(parameters.target));
    let (server, identity) = match parameters.access(trigger) {
        Ok((dsn, identity)) => {
            let authorities = backends.web.settings().authorities.clone();
            let is_operators = matches!(identity, Some((AzureIdentity::Workload { .. }, _)));
            let dialer = backends.dialer.clone();
            (Ok(MssqlServer { dsn, token: None, is_operators, authorities, dialer }), identity)
        }
        Err(error) => (Err(ScalerError::new(error)), None),
    };
    let source = MssqlSource {
        query: parameters.query,
        server,
        identity,
        identities: backends.state(),
        namespace: trigger.owner.namespace.clone(),
        pools: backends.state(),
        pool: Mutex::default(),
        web: Arc::clone(&backends.web),
    };
    SingleMetricScaler::build(spec, parameters.activation, source)
}

impl Parameters {
    /// Where and as whom to connect.
    fn access(&self, trigger: &Trigger) -> Result<(MssqlDsn, Option<(AzureIdentity, String)>), ParseError> {
        // Ports that are not positive count as missing, as in KEDA.
        let port = if self.port > 0 { self.port.to_string() } else { String::new() };
        let mut dsn = match self.connection_string.reveal() {
            "" => MssqlDsn {
                user: self.username.clone(),
                password: self.password.clone(),
                database: self.database.clone(),
                ..MssqlDsn::new(&self.host, &port)?
            },
            text => MssqlDsn::parse(text)?,
        };
        let (authority, resource) = query::cloud(&dsn.host);
        let resource = match &*self.identity_resource {
            "" => resource,
            given => given.trim_end_matches('/'),
        };
        let scope = format!("{resource}/.default");
        if trigger.identity.provider == "azure-workload" {
            // The token of the operator is sent to checked servers only, whatever the connection string says.
            dsn.encryption = MssqlEncryption::Required(CertificateCheck::Full);
            dsn.certificate_name.clear();
            query::check_workload_host(&dsn.host)?;
            query::check_workload_resource(resource)?;
            return Ok((dsn, Some((AzureIdentity::of(&trigger.identity), scope))));
        }
        let has_driver = trigger.behavior().mssql_has_driver_name && self.driver == "azuresql";
        match &*dsn.federated.to_ascii_lowercase() {
            "" => Ok((dsn, None)),
            "activedirectoryserviceprincipal" | "activedirectoryapplication" if has_driver => {
                let (client, tenant) = dsn
                    .user
                    .split_once('@')
                    .ok_or("fedauth in the connection string needs CLIENT@TENANT as the user".to_owned())?;
                let identity = AzureIdentity::ClientSecret {
                    client: client.to_owned(),
                    tenant: tenant.to_owned(),
                    secret: dsn.password.clone(),
                    authority: authority.to_owned(),
                };
                Ok((dsn, Some((identity, scope))))
            }
            _ if has_driver => {
                Err("of the values of fedauth only ActiveDirectoryServicePrincipal is supported: \
                                    for the identity of the operator use podIdentity azure-workload"
                    .into())
            }
            _ => Err("fedauth in the connection string needs driverName azuresql".into()),
        }
    }
}

impl MssqlSource {
    async fn read_value(&self) -> Result<f64, ScalerError> {
        let mut server = self.server.clone()?;
        if let Some((identity, scope)) = &self.identity {
            server.token = Some(self.identities.azure(identity, scope, &self.web).await?);
        }
        let pool = self.pools.of_namespace(&self.namespace, &server);
        *self.pool.locked() = Some(Arc::clone(&pool));
        pool.query(&self.query).await
    }
}

impl ValueSource for MssqlSource {
    fn value(&self) -> ScalerFuture<'_, f64> {
        Box::pin(async { self.read_value().await.map_err(|error| error.inside("error inspecting mssql")) })
    }
}

/// Decodes bytes of a server, for fuzzing; returns whether they are valid.
#[doc(hidden)]
pub fn is_response(bytes: &[u8]) -> bool {
    let _ = wire::prelogin_answer(bytes);
    tokens::response(bytes).is_ok()
}
