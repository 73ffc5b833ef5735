//! TriggerAuthentication and ClusterTriggerAuthentication (docs/spec/keda.md 8.4).

use api::keda::{AzureServicePrincipal, OAuth2, PodIdentity, TriggerAuthenticationSpec};

use super::{AdmissionKind, AdmissionRules, Denial, url};

/// The only text that does not begin with a field.
const NO_CREDENTIAL: &str = "azureServicePrincipal requires either clientSecret or clientCertificate";

pub(super) fn check(spec: &TriggerAuthenticationSpec, rules: &AdmissionRules<'_>) -> Result<(), Denial> {
    // KEDA has the field since 2.21; the definitions of 2.20 drop it before it is seen here.
    if let Some(principal) = &spec.azure_service_principal {
        service_principal(principal)?;
    }
    if let Some(identity) = &spec.pod_identity {
        match identity.provider.as_str() {
            "azure-workload" => azure(identity)?,
            "aws" => aws(identity)?,
            // KEDA skips the remaining checks here.
            _ if !rules.is_better() => return Ok(()),
            _ => {}
        }
    }
    spec.oauth2.as_ref().map_or(Ok(()), oauth2)
}

/// Warnings about settings that fail when they are used.
pub(super) fn warnings(
    kind: AdmissionKind,
    spec: &TriggerAuthenticationSpec,
    rules: &AdmissionRules<'_>,
) -> Vec<String> {
    let path = spec.file_path.as_str();
    if path.is_empty() || !rules.is_better() {
        return Vec::new();
    }
    if kind == AdmissionKind::TriggerAuthentication {
        let text =
            "filePath works only in a ClusterTriggerAuthentication; triggers that refer to this will fail";
        return vec![text.to_owned()];
    }
    if path.starts_with('/') || path.contains("..") {
        return vec![
            "filePath must be relative and not contain '..'; triggers that refer to this will fail"
                .to_owned(),
        ];
    }
    Vec::new()
}

fn is_given(field: Option<&String>) -> bool {
    field.is_some_and(|text| !text.is_empty())
}

fn is_empty(field: Option<&String>) -> bool {
    field.is_some_and(String::is_empty)
}

fn azure(identity: &PodIdentity) -> Result<(), Denial> {
    if is_empty(identity.identity_id.as_ref()) {
        return Err(Denial::uncounted(
            "identityId of PodIdentity should not be empty. If it's set, identityId has to be different than \"\"",
        ));
    }
    let tenant = identity.identity_tenant_id.as_ref();
    if is_given(identity.identity_authority_host.as_ref()) && !is_given(tenant) {
        return Err(Denial::uncounted(
            "identityTenantID of PodIdentity should not be nil or empty when identityAuthorityHost of PodIdentity is set",
        ));
    }
    if is_empty(tenant) {
        return Err(Denial::uncounted(
            "identityTenantId of PodIdentity should not be empty. If it's set, identityTenantId has to be different \
             than \"\"",
        ));
    }
    Ok(())
}

fn aws(identity: &PodIdentity) -> Result<(), Denial> {
    let has_role = is_given(identity.role_arn.as_ref());
    if has_role && identity.identity_owner.as_deref() == Some("workload") {
        return Err(Denial::uncounted("roleArn of PodIdentity can't be set if KEDA isn't identityOwner"));
    }
    if is_given(identity.external_id.as_ref()) && !has_role {
        return Err(Denial::uncounted("externalID of PodIdentity requires roleArn to be set"));
    }
    Ok(())
}

/// The rules for a service principal, in KEDA's order. Unknown clouds fail when the scaler is built.
fn service_principal(principal: &AzureServicePrincipal) -> Result<(), Denial> {
    let AzureServicePrincipal { client_secret, client_certificate, client_certificate_password, .. } =
        principal;
    let is_private = principal.cloud.eq_ignore_ascii_case("Private");
    let has_endpoint = !principal.active_directory_endpoint.is_empty();
    let faults = [
        (principal.tenant_id.is_empty(), "tenantId is required when azureServicePrincipal is configured"),
        (principal.client_id.is_empty(), "clientId is required when azureServicePrincipal is configured"),
        (
            client_secret.is_some() && client_certificate.is_some(),
            "clientSecret and azureServicePrincipal.clientCertificate are mutually exclusive",
        ),
        (client_secret.is_none() && client_certificate.is_none(), NO_CREDENTIAL),
        (
            client_certificate_password.is_some() && client_certificate.is_none(),
            "clientCertificatePassword requires clientCertificate",
        ),
        (is_private && !has_endpoint, "activeDirectoryEndpoint is required when cloud is Private"),
        (!is_private && has_endpoint, "activeDirectoryEndpoint can only be set when cloud is Private"),
    ];
    match faults.into_iter().find(|(is_found, _)| *is_found) {
        Some((_, NO_CREDENTIAL)) => Err(Denial::uncounted(NO_CREDENTIAL)),
        Some((_, fault)) => Err(Denial::uncounted(format!("azureServicePrincipal.{fault}"))),
        None => Ok(()),
    }
}

fn oauth2(oauth2: &OAuth2) -> Result<(), Denial> {
    let OAuth2 { type_, client_id, token_url, .. } = oauth2;
    if type_ != "clientCredentials" {
        return Err(Denial::uncounted(format!("oauth2.type must be 'clientCredentials', got '{type_}'")));
    }
    if client_id.is_empty() {
        return Err(Denial::uncounted("oauth2.clientId is required when oauth2 is configured"));
    }
    if token_url.is_empty() {
        return Err(Denial::uncounted("oauth2.tokenUrl is required when oauth2 is configured"));
    }
    if !url::is_http(token_url) {
        return Err(Denial::uncounted("oauth2.tokenUrl must be a valid http or https URL"));
    }
    Ok(())
}
