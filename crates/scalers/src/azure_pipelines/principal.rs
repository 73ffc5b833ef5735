//! An Azure service principal in the parameters of a TriggerAuthentication, without IO (docs/spec/keda.md 1.3).

use crate::azure_clouds::check_cloud;
use crate::{ParseError, Trigger};

/// Whether the TriggerAuthentication has a service principal.
pub(super) fn is_given(trigger: &Trigger) -> bool {
    trigger.auth.get("azureServicePrincipal").is_some_and(|given| given.trim() == "true")
}

/// Checks that a service principal is complete.
pub(super) fn check(trigger: &Trigger) -> Result<(), ParseError> {
    let text = |name: &str| trigger.auth.get(&format!("azureServicePrincipal{name}")).map(|text| text.trim());
    let value = |name: &str| text(name).unwrap_or_default();
    for (name, shown) in [("TenantId", "tenantId"), ("ClientId", "clientId")] {
        if value(name).is_empty() {
            return Err(format!("azure service principal {shown} is required").into());
        }
    }
    for (name, shown) in [("ClientSecret", "clientSecret"), ("ClientCertificate", "clientCertificate")] {
        if text(name) == Some("") {
            return Err(format!(
                "azure service principal {shown} is configured but resolved to an empty value; check the referenced \
                 secret name and key"
            )
            .into());
        }
    }
    let (secret, certificate) = (!value("ClientSecret").is_empty(), !value("ClientCertificate").is_empty());
    if secret && certificate {
        return Err(
            "azure service principal clientSecret and clientCertificate are mutually exclusive".into()
        );
    }
    if !secret && !certificate {
        return Err("azure service principal requires either clientSecret or clientCertificate".into());
    }
    if !certificate && text("ClientCertificatePassword").is_some() {
        return Err("azure service principal clientCertificatePassword requires clientCertificate".into());
    }
    let (cloud, endpoint) = (value("Cloud"), value("ActiveDirectoryEndpoint"));
    if !endpoint.is_empty() && !cloud.eq_ignore_ascii_case("Private") {
        return Err(
            "azure service principal activeDirectoryEndpoint can only be set when cloud is Private".into()
        );
    }
    check_cloud(cloud, "activeDirectoryEndpoint", endpoint)
        .map_err(|error| format!("failed to resolve azure service principal cloud: {error}"))?;
    if certificate && !value("ClientCertificate").contains("-----BEGIN ") {
        return Err(
            "failed to parse azure service principal clientCertificate: pkcs12: it is neither PEM nor a \
                    readable PKCS #12 file"
                .into(),
        );
    }
    Ok(())
}
