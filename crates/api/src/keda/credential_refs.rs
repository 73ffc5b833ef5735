//! References to credentials: pod identities and keys of Secrets.

use serde::{Deserialize, Serialize};

use crate::wire::nullable;

/// Pod identity of a cloud provider.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodIdentity {
    /// `azure-workload`, `gcp`, `aws`, `aws-eks` or `none`.
    #[serde(deserialize_with = "nullable")]
    pub provider: String,
    /// Azure: client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity_id: Option<String>,
    /// Azure: tenant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity_tenant_id: Option<String>,
    /// Azure: authority.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity_authority_host: Option<String>,
    /// AWS: role.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role_arn: Option<String>,
    /// AWS: external id.
    #[serde(rename = "externalID", skip_serializing_if = "Option::is_none")]
    pub external_id: Option<String>,
    /// AWS: `keda` or `workload`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity_owner: Option<String>,
}

/// A value from a Secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ValueFromSecret {
    /// Its source.
    #[serde(deserialize_with = "nullable")]
    pub value_from: SecretKeySource,
}

/// The source of a value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SecretKeySource {
    /// The key of a secret.
    #[serde(deserialize_with = "nullable")]
    pub secret_key_ref: SecretKeyRef,
}

/// The key of a secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SecretKeyRef {
    /// The secret.
    #[serde(deserialize_with = "nullable")]
    pub name: String,
    /// The key in it.
    #[serde(deserialize_with = "nullable")]
    pub key: String,
}
