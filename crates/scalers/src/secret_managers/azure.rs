//! Azure Key Vault: the secrets of one vault.

use std::sync::Arc;

use api::keda::{AzureKeyVault, AzureKeyVaultSecret};
use serde_json::Value;
use sources::http::Secret;

use super::{REQUEST_TIMEOUT, SecretManagers};
use crate::ScalerError;
use crate::azure_client::{AzurePrincipal, azure_answer};
use crate::azure_clouds::{is_of_domains, of_cloud, origin};
use crate::identity::{AzureIdentity, Identities};
use crate::single::send;
use crate::web::{HttpCall, SharedHttpClient};

/// The resources that tokens are for, in the clouds of [`of_cloud`].
const KEY_VAULT_RESOURCES: [&str; 3] =
    ["https://vault.azure.net", "https://vault.usgovcloudapi.net", "https://vault.azure.cn"];
/// Domains of the vaults of Azure. Only their hosts get tokens of the operator.
const KEY_VAULT_DOMAINS: [&str; 3] = [".vault.azure.net", ".vault.usgovcloudapi.net", ".vault.azure.cn"];
const API_VERSION: &str = "7.4";

/// Reads secrets of one vault.
pub struct KeyVaultClient {
    /// URL of the vault without a trailing slash.
    url: String,
    scope: String,
    identity: AzureIdentity,
    identities: Arc<Identities>,
    web: Arc<SharedHttpClient>,
}

impl SecretManagers {
    /// The secrets of a vault. It is asked with its pod identity, which is checked already, or else with its service principal,
    /// whose secret is `client_secret`.
    pub fn key_vault(
        &self,
        vault: &AzureKeyVault,
        client_secret: &Secret,
    ) -> Result<KeyVaultClient, ScalerError> {
        let cloud = vault.cloud.clone().unwrap_or_default();
        let is_private = cloud.type_.eq_ignore_ascii_case("private");
        let resource = match of_cloud(&cloud.type_, KEY_VAULT_RESOURCES) {
            Some(resource) => resource,
            None if !is_private => bail!("there is no environment matching the name {:?}", cloud.type_),
            None if cloud.key_vault_resource_url.is_empty() || cloud.active_directory_endpoint.is_empty() => {
                bail!("keyVaultResourceURL and activeDirectoryEndpoint must be provided for cloud Private")
            }
            None => cloud.key_vault_resource_url.trim_end_matches('/'),
        };
        let Some(url) = origin(&vault.vault_uri) else {
            bail!("vaultUri must be the URL of a vault, such as https://NAME.vault.azure.net");
        };
        if !url.starts_with("https://") && !is_private {
            bail!("vaultUri must begin with https://");
        }
        let identity = match &vault.pod_identity {
            Some(identity) if identity.provider == "azure-workload" => {
                if is_private || !is_of_domains(url, &KEY_VAULT_DOMAINS) {
                    bail!(
                        "azure-workload can be used with vaults of Azure (*.vault.azure.net) only, not with {url}: give \
                         credentials"
                    );
                }
                AzureIdentity::of(identity)
            }
            _ => {
                let given = vault.credentials.clone().unwrap_or_default();
                if given.client_id.is_empty()
                    || given.tenant_id.is_empty()
                    || client_secret.reveal().is_empty()
                {
                    bail!(
                        "clientID, tenantID and clientSecret are expected when not using a pod identity provider"
                    );
                }
                let principal = AzurePrincipal {
                    client: &given.client_id,
                    tenant: &given.tenant_id,
                    secret: client_secret,
                    cloud: &cloud.type_,
                    authority: &cloud.active_directory_endpoint,
                };
                principal.client_secret()
            }
        };
        Ok(KeyVaultClient {
            url: url.to_owned(),
            scope: format!("{resource}/.default"),
            identity,
            identities: Arc::clone(&self.identities),
            web: Arc::clone(&self.web),
        })
    }
}

impl KeyVaultClient {
    /// The value of a secret.
    pub async fn read(&self, secret: &AzureKeyVaultSecret) -> Result<Secret, ScalerError> {
        let call = HttpCall::get(format!("{}{}", self.url, path(secret)?), REQUEST_TIMEOUT);
        let token = self.identities.azure(&self.identity, &self.scope, &self.web).await?;
        let call = call.header("authorization", &format!("Bearer {}", token.reveal()))?;
        let (status, body) = send(&self.web, call.alone()).await?;
        let answer = azure_answer("Azure Key Vault", status, &body)?;
        match answer.get("value").and_then(Value::as_str) {
            Some(text) => Ok(Secret::new(text)),
            None => Err(scaler_error!("Azure Key Vault answered without a value")),
        }
    }
}

fn path(secret: &AzureKeyVaultSecret) -> Result<String, ScalerError> {
    let is_name = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    let AzureKeyVaultSecret { name, version, .. } = secret;
    if name.is_empty() || !is_name(name) || !is_name(version) {
        bail!("name and version of a secret have only letters, digits and hyphens");
    }
    let slash = if version.is_empty() { "" } else { "/" };
    Ok(format!("/secrets/{name}{slash}{version}?api-version={API_VERSION}"))
}
