//! TriggerAuthentication and ClusterTriggerAuthentication: sources of credentials.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::credential_refs::{PodIdentity, ValueFromSecret};
use super::secret_managers::{AwsSecretManager, AzureKeyVault, GcpSecretManager};
use crate::meta::ObjectMeta;
use crate::wire::nullable;

/// A TriggerAuthentication or ClusterTriggerAuthentication.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct TriggerAuthentication {
    /// Its kind.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// `keda.sh/v1alpha1`.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// Name, namespace, labels and the like.
    #[serde(deserialize_with = "nullable")]
    pub metadata: ObjectMeta,
    /// Source of credentials.
    #[serde(deserialize_with = "nullable")]
    pub spec: TriggerAuthenticationSpec,
    /// Objects that use it.
    #[serde(deserialize_with = "nullable")]
    pub status: TriggerAuthenticationStatus,
}

/// Sources of credentials. Later fields overwrite the parameters of earlier ones.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct TriggerAuthenticationSpec {
    /// Pod identity of a cloud provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_identity: Option<PodIdentity>,
    /// Environment variables of the target.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<AuthEnvironment>,
    /// A file of the operator (ClusterTriggerAuthentication only).
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub file_path: String,
    /// Keys of config maps.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub config_map_target_ref: Vec<KeyTarget>,
    /// Keys of secrets.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub secret_target_ref: Vec<KeyTarget>,
    /// Secrets of HashiCorp Vault.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hashi_corp_vault: Option<HashiCorpVault>,
    /// Secrets of Azure Key Vault.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub azure_key_vault: Option<AzureKeyVault>,
    /// Secrets of GCP Secret Manager.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gcp_secret_manager: Option<GcpSecretManager>,
    /// Secrets of AWS Secrets Manager.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aws_secret_manager: Option<AwsSecretManager>,
    /// Tokens of service accounts.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub bound_service_account_token: Vec<BoundServiceAccountToken>,
    /// OAuth 2 client credentials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oauth2: Option<OAuth2>,
    /// An Azure service principal, since KEDA 2.21.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub azure_service_principal: Option<AzureServicePrincipal>,
}

/// A parameter from an environment variable of the target.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AuthEnvironment {
    /// The parameter.
    #[serde(deserialize_with = "nullable")]
    pub parameter: String,
    /// The variable.
    #[serde(deserialize_with = "nullable")]
    pub name: String,
    /// The container; empty means the one of the ScaledObject.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub container_name: String,
}

/// A parameter from a key of a Secret or ConfigMap.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct KeyTarget {
    /// The parameter.
    #[serde(deserialize_with = "nullable")]
    pub parameter: String,
    /// The Secret or ConfigMap.
    #[serde(deserialize_with = "nullable")]
    pub name: String,
    /// The key in it.
    #[serde(deserialize_with = "nullable")]
    pub key: String,
}

/// Secrets of HashiCorp Vault.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct HashiCorpVault {
    /// Address of Vault.
    #[serde(deserialize_with = "nullable")]
    pub address: String,
    /// `token` or `kubernetes`.
    #[serde(deserialize_with = "nullable")]
    pub authentication: String,
    /// Vault namespace.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Mount of the login.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub mount: String,
    /// Role of the login.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub role: String,
    /// Credential of the login.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credential: Option<VaultCredential>,
    /// The secrets.
    #[serde(deserialize_with = "nullable")]
    pub secrets: Vec<VaultSecret>,
}

impl std::fmt::Debug for HashiCorpVault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HashiCorpVault").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Credential of the login to Vault.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct VaultCredential {
    /// A token.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub token: String,
    /// Path of a file with a service account's token.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub service_account: String,
    /// A service account for which a token is requested.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub service_account_name: String,
}

/// A parameter from a secret of Vault.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct VaultSecret {
    /// The parameter.
    #[serde(deserialize_with = "nullable")]
    pub parameter: String,
    /// Path of the secret.
    #[serde(deserialize_with = "nullable")]
    pub path: String,
    /// The key in it.
    #[serde(deserialize_with = "nullable")]
    pub key: String,
    /// Empty, `secretV2`, `secret` or `pki`.
    #[serde(rename = "type", deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub type_: String,
    /// Parameters of a certificate request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pki_data: Option<VaultPki>,
}

/// Parameters of a certificate request.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct VaultPki {
    /// Common name.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub common_name: String,
    /// Other names.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub alt_names: String,
    /// Addresses.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub ip_sans: String,
    /// URIs.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub uri_sans: String,
    /// Other subject alternative names.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub other_sans: String,
    /// Life time.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub ttl: String,
    /// Format.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub format: String,
}

/// A parameter from a token of a service account.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct BoundServiceAccountToken {
    /// The parameter.
    #[serde(deserialize_with = "nullable")]
    pub parameter: String,
    /// The service account.
    #[serde(deserialize_with = "nullable")]
    pub service_account_name: String,
}

/// OAuth 2 client credentials.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct OAuth2 {
    /// `clientCredentials`.
    #[serde(rename = "type", deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub type_: String,
    /// Client.
    #[serde(deserialize_with = "nullable")]
    pub client_id: String,
    /// The client secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<ValueFromSecret>,
    /// Token URL.
    #[serde(deserialize_with = "nullable")]
    pub token_url: String,
    /// Scopes.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    /// Further parameters of the request.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "BTreeMap::is_empty")]
    pub token_url_params: BTreeMap<String, String>,
}

/// An Azure service principal. The two secrets exclude each other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AzureServicePrincipal {
    /// Tenant.
    #[serde(deserialize_with = "nullable")]
    pub tenant_id: String,
    /// Client.
    #[serde(deserialize_with = "nullable")]
    pub client_id: String,
    /// The cloud; empty means the public one.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub cloud: String,
    /// Where tokens are requested, in a private cloud.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub active_directory_endpoint: String,
    /// The client secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<ValueFromSecret>,
    /// The client certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_certificate: Option<ValueFromSecret>,
    /// The password of the certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_certificate_password: Option<ValueFromSecret>,
}

/// Objects that use an authentication.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TriggerAuthenticationStatus {
    /// Names of ScaledObjects, separated by commas.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub scaledobjects: String,
    /// Names of ScaledJobs, separated by commas.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub scaledjobs: String,
}
