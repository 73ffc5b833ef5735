//! The number in a result, and which hosts get a token of the operator, without IO.

use super::tokens::MssqlField;
use crate::ParseError;

/// Suffixes of the hosts of SQL Server in Azure's clouds.
const AZURE_SUFFIXES: [&str; 4] = [
    ".database.windows.net",
    ".sql.azuresynapse.net",
    ".database.usgovcloudapi.net",
    ".database.chinacloudapi.cn",
];

/// Resources of tokens for SQL Server in Azure's clouds.
const AZURE_RESOURCES: [&str; 4] = [
    "https://database.windows.net",
    "https://sql.azuresynapse.net",
    "https://database.usgovcloudapi.net",
    "https://database.chinacloudapi.cn",
];

/// The authority and the resource of tokens for a host: those of its cloud, or of the public one, whose authority is the default.
pub(super) fn cloud(host: &str) -> (&'static str, &'static str) {
    match host.to_ascii_lowercase() {
        host if host.ends_with(".database.usgovcloudapi.net") => {
            ("https://login.microsoftonline.us", "https://database.usgovcloudapi.net")
        }
        host if host.ends_with(".database.chinacloudapi.cn") => {
            ("https://login.chinacloudapi.cn", "https://database.chinacloudapi.cn")
        }
        _ => ("", "https://database.windows.net"),
    }
}

/// The number in the field. No row is 0, as in KEDA.
pub(super) fn number(field: MssqlField) -> Result<f64, ParseError> {
    let number = match field {
        MssqlField::NoRow => return Ok(0.0),
        MssqlField::Null => return Err("the first field of the first row is NULL".into()),
        MssqlField::Number(number) => Some(number),
        MssqlField::Text(text) => text.trim().parse().ok(),
        MssqlField::Other => None,
    };
    // An error and not 0, because 0 would scale the target in.
    number
        .filter(|number| number.is_finite())
        .ok_or_else(|| "the first field of the first row is no number".into())
}

/// Checks that a token of the operator may be sent to a host: only hosts of Azure get one.
pub(super) fn check_workload_host(host: &str) -> Result<(), ParseError> {
    let small = host.to_ascii_lowercase();
    let is_name = |name: &str| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.'))
    };
    if AZURE_SUFFIXES.iter().any(|suffix| small.strip_suffix(suffix).is_some_and(is_name)) {
        return Ok(());
    }
    Err(format!("azure-workload can be used with hosts of Azure SQL (SERVER.database.windows.net) only, not with {host:?}").into())
}

/// Checks that a token of the operator is one for SQL Server.
pub(super) fn check_workload_resource(resource: &str) -> Result<(), ParseError> {
    if AZURE_RESOURCES.contains(&resource) {
        return Ok(());
    }
    Err(format!("workloadIdentityResource must be one of {} with azure-workload", AZURE_RESOURCES.join(", "))
        .into())
}
