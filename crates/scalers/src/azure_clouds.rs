//! Checks of the names of Azure's clouds, of tenants and of service principals, without IO.

use crate::parameters::Secret;
use crate::{ParseError, Trigger};

/// The error of tenants that Azure's identity library refuses.
const INVALID_TENANT: &str = "invalid tenantID. You can locate your tenantID by following the instructions listed here: \
                              https://learn.microsoft.com/partner-center/find-ids-and-domain-names";

/// Checks the name of a cloud; `Private` needs the parameter `key`, whose value is `given`.
pub(crate) fn check_cloud(cloud: &str, key: &str, given: &str) -> Result<(), ParseError> {
    match &*cloud.to_ascii_uppercase() {
        "PRIVATE" if given.is_empty() => Err(format!("{key} must be provided for Private cloud type").into()),
        ""
        | "PRIVATE"
        | "AZURECLOUD"
        | "AZUREPUBLICCLOUD"
        | "AZUREUSGOVERNMENT"
        | "AZUREUSGOVERNMENTCLOUD"
        | "AZURECHINACLOUD"
        | "AZUREGERMANCLOUD" => Ok(()),
        _ => Err(format!("invalid cloud environment {cloud}").into()),
    }
}

/// Checks the cloud in the metadata of a trigger; `Private` needs the metadata `key`. Like KEDA, blanks are not trimmed.
pub(crate) fn check_cloud_of(trigger: &Trigger, key: &str) -> Result<(), ParseError> {
    let text = |key: &str| trigger.metadata.get(key).map_or("", String::as_str);
    check_cloud(text("cloud"), key, text(key))
}

/// Checks the name of a cloud that Azure's SDK must know; `Private` needs the parameter `key`, whose value is `given`.
pub(crate) fn check_sdk_cloud(cloud: &str, key: &str, given: &str) -> Result<(), ParseError> {
    match &*cloud.to_ascii_uppercase() {
        "" | "AZUREPUBLICCLOUD" | "AZUREUSGOVERNMENTCLOUD" | "AZURECHINACLOUD" => Ok(()),
        "PRIVATE" => check_cloud(cloud, key, given),
        _ => Err(format!("there is no cloud environment matching the name {cloud}").into()),
    }
}

/// The value for one of Azure's own clouds, of the values for the public cloud, that of the US government and that of China; none
/// for others.
pub(crate) fn of_cloud(cloud: &str, values: [&'static str; 3]) -> Option<&'static str> {
    let [public, government, china] = values;
    match &*cloud.to_ascii_uppercase() {
        "" | "AZUREPUBLICCLOUD" | "AZURECLOUD" => Some(public),
        "AZUREUSGOVERNMENTCLOUD" | "AZUREUSGOVERNMENT" => Some(government),
        "AZURECHINACLOUD" => Some(china),
        _ => None,
    }
}

/// A URL of a server without user, path or trailing slash; none if it is something else.
pub(crate) fn origin(url: &str) -> Option<&str> {
    let url = url.trim().trim_end_matches('/');
    let host = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"))?;
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-._:[]".contains(c);
    (!host.is_empty() && host.chars().all(allowed)).then_some(url)
}

/// Whether an [`origin`] is a host of one of these domains, with TLS at the usual port: only such hosts get tokens of the operator.
pub(crate) fn is_of_domains(origin: &str, domains: &[&str]) -> bool {
    let host = origin.strip_prefix("https://").unwrap_or_default().to_ascii_lowercase();
    !host.contains([':', '[']) && domains.iter().any(|domain| host.ends_with(domain))
}

/// Checks that there is a service principal, unless the trigger has a workload identity.
pub(crate) fn check_principal(
    trigger: &Trigger,
    client_id: &str,
    client_password: &Secret,
) -> Result<(), ParseError> {
    match &*trigger.identity.provider {
        "" | "none" if client_id.is_empty() => Err("no activeDirectoryClientId given".into()),
        "" | "none" if client_password.reveal().is_empty() => {
            Err("no activeDirectoryClientPassword given".into())
        }
        "" | "none" | "azure-workload" => Ok(()),
        // All scalers that use this have the same text in KEDA.
        other => Err(format!("azure Monitor doesn't support pod identity {other}").into()),
    }
}

/// Checks the id of a tenant.
pub(crate) fn check_tenant(tenant: &str) -> Result<(), ParseError> {
    let known = |c: char| c.is_ascii_alphanumeric() || "-.".contains(c);
    if !tenant.is_empty() && tenant.chars().all(known) { Ok(()) } else { Err(INVALID_TENANT.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clouds_have_names() {
        for good in ["", "AzurePublicCloud", "azurechinacloud", "AzureUSGovernmentCloud"] {
            assert_eq!(check_cloud(good, "endpointSuffix", ""), Ok(()));
        }
        let error = check_cloud("Private", "endpointSuffix", "").unwrap_err().to_string();
        assert_eq!(error, "endpointSuffix must be provided for Private cloud type");
        assert_eq!(check_cloud("private", "endpointSuffix", "x"), Ok(()));
        assert_eq!(check_cloud("nope", "x", "").unwrap_err().to_string(), "invalid cloud environment nope");
        assert_eq!(check_cloud("AzureUSGovernment", "x", ""), Ok(()));
        assert_eq!(check_sdk_cloud("azurechinacloud", "x", ""), Ok(()));
        assert_eq!(check_sdk_cloud("PRIVATE", "x", "y"), Ok(()));
        let error = check_sdk_cloud("Private", "x", "").unwrap_err().to_string();
        assert_eq!(error, "x must be provided for Private cloud type");
        for bad in ["nope", "AzureUSGovernment"] {
            let error = check_sdk_cloud(bad, "x", "").unwrap_err().to_string();
            assert_eq!(error, format!("there is no cloud environment matching the name {bad}"));
        }
        let mut trigger = Trigger::default();
        assert_eq!(check_cloud_of(&trigger, "endpointSuffix"), Ok(()));
        trigger.metadata.insert("cloud".into(), " ".into());
        let error = check_cloud_of(&trigger, "endpointSuffix").unwrap_err().to_string();
        assert_eq!(error, "invalid cloud environment  ");
        trigger.metadata.insert("cloud".into(), "private".into());
        let error = check_cloud_of(&trigger, "endpointSuffix").unwrap_err().to_string();
        assert_eq!(error, "endpointSuffix must be provided for Private cloud type");
        trigger.metadata.insert("endpointSuffix".into(), "x".into());
        assert_eq!(check_cloud_of(&trigger, "endpointSuffix"), Ok(()));
        let values = ["public", "government", "china"];
        assert_eq!(of_cloud("", values), Some("public"));
        assert_eq!(of_cloud("azureUSGovernmentCloud", values), Some("government"));
        assert_eq!(of_cloud("AzureChinaCloud", values), Some("china"));
        assert_eq!(of_cloud("Private", values), None);
    }

    #[test]
    fn hosts_of_the_vendor() {
        assert_eq!(origin(" https://n.vault.azure.net/ "), Some("https://n.vault.azure.net"));
        assert_eq!(origin("http://[::1]:80"), Some("http://[::1]:80"));
        for bad in
            ["", "https://", "n.vault.azure.net", "https://u@h", "https://h/p", "https://h?q", "https://h#f"]
        {
            assert_eq!(origin(bad), None, "{bad}");
        }
        let domains = [".vault.azure.net"];
        assert!(is_of_domains("https://N.Vault.Azure.Net", &domains));
        for other in [
            "http://n.vault.azure.net",
            "https://n.vault.azure.net:8443",
            "https://vault.azure.net",
            "https://evilvault.azure.net",
            "https://n.vault.azure.net.example",
        ] {
            assert!(!is_of_domains(other, &domains), "{other}");
        }
    }

    #[test]
    fn tenants_are_ids_or_domains() {
        assert!(check_tenant("11111111-1111-1111-1111-111111111111").is_ok());
        assert!(check_tenant("example.onmicrosoft.com").is_ok());
        assert!(check_tenant("a/b").is_err() && check_tenant("").is_err());
    }
}
