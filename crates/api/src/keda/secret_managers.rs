//! Secret managers of clouds in a TriggerAuthentication.

use serde::{Deserialize, Serialize};

use super::credential_refs::{PodIdentity, ValueFromSecret};
use crate::wire::nullable;

/// Secrets of Azure Key Vault.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AzureKeyVault {
    /// URL of the vault.
    #[serde(deserialize_with = "nullable")]
    pub vault_uri: String,
    /// The secrets.
    #[serde(deserialize_with = "nullable")]
    pub secrets: Vec<AzureKeyVaultSecret>,
    /// A service principal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credentials: Option<AzureKeyVaultCredentials>,
    /// Pod identity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_identity: Option<PodIdentity>,
    /// The cloud; the public one if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cloud: Option<AzureKeyVaultCloud>,
}

/// A parameter from a secret of Azure Key Vault.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AzureKeyVaultSecret {
    /// The parameter.
    #[serde(deserialize_with = "nullable")]
    pub parameter: String,
    /// Name of the secret.
    #[serde(deserialize_with = "nullable")]
    pub name: String,
    /// Its version; empty means the latest.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub version: String,
}

/// A service principal that reads secrets of Azure Key Vault.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AzureKeyVaultCredentials {
    /// Client.
    #[serde(deserialize_with = "nullable")]
    pub client_id: String,
    /// Tenant.
    #[serde(deserialize_with = "nullable")]
    pub tenant_id: String,
    /// The client secret.
    #[serde(deserialize_with = "nullable")]
    pub client_secret: ValueFromSecret,
}

/// The cloud of an Azure Key Vault.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AzureKeyVaultCloud {
    /// Its name, or `Private`.
    #[serde(rename = "type", deserialize_with = "nullable")]
    pub type_: String,
    /// `Private`: the resource that tokens are for.
    #[serde(
        rename = "keyVaultResourceURL",
        deserialize_with = "nullable",
        skip_serializing_if = "String::is_empty"
    )]
    pub key_vault_resource_url: String,
    /// `Private`: where tokens are requested.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub active_directory_endpoint: String,
}

/// Secrets of GCP Secret Manager.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct GcpSecretManager {
    /// The secrets.
    #[serde(deserialize_with = "nullable")]
    pub secrets: Vec<GcpSecretManagerSecret>,
    /// The key of a service account.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credentials: Option<GcpSecretManagerCredentials>,
    /// Pod identity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_identity: Option<PodIdentity>,
}

/// A parameter from a secret of GCP Secret Manager.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct GcpSecretManagerSecret {
    /// The parameter.
    #[serde(deserialize_with = "nullable")]
    pub parameter: String,
    /// Id of the secret.
    #[serde(deserialize_with = "nullable")]
    pub id: String,
    /// Its version; empty means the latest.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub version: String,
}

/// A service account that reads secrets of GCP Secret Manager.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct GcpSecretManagerCredentials {
    /// The key of the service account, as JSON.
    #[serde(deserialize_with = "nullable")]
    pub client_secret: ValueFromSecret,
}

/// Secrets of AWS Secrets Manager.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AwsSecretManager {
    /// The secrets.
    #[serde(deserialize_with = "nullable")]
    pub secrets: Vec<AwsSecretManagerSecret>,
    /// Static keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credentials: Option<AwsSecretManagerCredentials>,
    /// Pod identity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_identity: Option<PodIdentity>,
    /// The region; empty means that of the operator.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub region: String,
}

/// A parameter from a secret of AWS Secrets Manager.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AwsSecretManagerSecret {
    /// The parameter.
    #[serde(deserialize_with = "nullable")]
    pub parameter: String,
    /// Name or ARN of the secret.
    #[serde(deserialize_with = "nullable")]
    pub name: String,
    /// Its version.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub version_id: String,
    /// The stage of its version; `AWSCURRENT` if neither is given.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub version_stage: String,
    /// The key in it, if it is a JSON object.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub secret_key: String,
}

/// Static keys of AWS that read secrets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AwsSecretManagerCredentials {
    /// Access key.
    #[serde(deserialize_with = "nullable")]
    pub access_key: ValueFromSecret,
    /// Secret key.
    #[serde(deserialize_with = "nullable")]
    pub access_secret_key: ValueFromSecret,
    /// Session token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access_token: Option<ValueFromSecret>,
}
