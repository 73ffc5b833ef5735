//! mssql: the number returned by a query of Microsoft SQL Server.

use crate::prelude::*;

/// The scaler type `mssql`.
pub const TYPE: ScalerType = ScalerType {
    name: "mssql",
    about: "The number in the first column of the first row of a Microsoft SQL Server query.",
    display: "mssqlScaler",
    parameters: Parameters::PARAMETERS,
    queried: false,
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
        /// A connection string, `sqlserver://user:password@host:1433?database=db`; replaces the parameters below.
        connection_string: Secret = "connectionString" in [Authentication, Environment];
        /// User name.
        username: String = "username" in [Authentication, Metadata];
        /// Password.
        password: Secret = "password" in [Authentication, Environment];
        /// Host.
        host: String = "host" in [Authentication, Metadata];
        /// Port.
        port: String = "port" in [Authentication, Metadata];
        /// Database.
        database: String = "database" in [Authentication, Metadata];
        /// The query; the first column of its first row must be a number.
        query: String = "query" in [Metadata], required;
        /// Target value per replica.
        target: f64 = "targetValue" in [Metadata], required;
        /// The trigger is active above this value.
        activation: f64 = "activationTargetValue" in [Metadata], default "0";
        /// `azuresql` understands `fedauth` in connection strings.
        driver: String = "driverName" in [Metadata, Authentication], default "sqlserver",
            one_of ["sqlserver", "azuresql"], since_2_21;
        /// The resource of tokens with `azure-workload`.
        identity_resource: String = "workloadIdentityResource" in [Authentication, Metadata];
    }
    check Parameters::check
}

impl Parameters {
    fn check(&mut self, trigger: &Trigger) -> Result<(), ParseError> {
        if self.connection_string.reveal().is_empty() && self.host.is_empty() {
            return Err("must provide either connectionstring or host".into());
        }
        let has_driver = trigger.behavior().mssql_has_driver_name;
        if has_driver && self.driver == "azuresql" && trigger.identity.provider == "azure-workload" {
            return Err("driverName azuresql cannot be combined with azure-workload pod identity".into());
        }
        Ok(())
    }
}

fn build(trigger: &Trigger, _: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    target_type(trigger)?;
    let parameters = Parameters::read(trigger)?;
    UnqueriedScaler::build(trigger, [external(trigger, "mssql", milli(parameters.target))])
}
