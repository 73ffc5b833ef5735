//! The metadata every Kubernetes object has.

pub mod validation;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::map::StringMap;
use crate::wire::{is_zero, nullable};

/// Identity and description of an object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ObjectMeta {
    /// Unique within the namespace.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Prefix from which the server makes a name.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub generate_name: String,
    /// The namespace; empty for cluster-scoped objects.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Deprecated; the server no longer sets it.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub self_link: String,
    /// Unique over time and space.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// Changes with every write; opaque.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub resource_version: String,
    /// Counts changes of the desired state; never assigned for autoscalers.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_zero")]
    pub generation: i64,
    /// When the object was created.
    #[serde(with = "crate::instant", skip_serializing_if = "Option::is_none")]
    pub creation_timestamp: Option<Timestamp>,
    /// When the object will be deleted.
    #[serde(with = "crate::instant", skip_serializing_if = "Option::is_none")]
    pub deletion_timestamp: Option<Timestamp>,
    /// Grace period of the deletion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_grace_period_seconds: Option<i64>,
    /// Labels, for selecting.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "StringMap::is_empty")]
    pub labels: StringMap,
    /// Annotations, for tools.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "StringMap::is_empty")]
    pub annotations: StringMap,
    /// The objects this one depends on.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub owner_references: Vec<OwnerReference>,
    /// Finalizers.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub finalizers: Vec<String>,
    /// Owners of the fields (server-side apply).
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub managed_fields: Vec<ManagedFieldsEntry>,
}

/// The fields one manager owns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ManagedFieldsEntry {
    /// The manager's name.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub manager: String,
    /// `Apply` or `Update`.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub operation: String,
    /// Group and version the fields are named by.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// When the entry was last changed.
    #[serde(with = "crate::instant", skip_serializing_if = "Option::is_none")]
    pub time: Option<Timestamp>,
    /// `FieldsV1`.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub fields_type: String,
    /// The fields; passed through unread.
    #[serde(rename = "fieldsV1", skip_serializing_if = "Option::is_none")]
    pub fields_v1: Option<serde_json::Value>,
    /// The subresource written through.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub subresource: String,
}

/// An object that another one depends on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct OwnerReference {
    /// Group and version of the owner.
    #[serde(deserialize_with = "nullable")]
    pub api_version: String,
    /// Kind of the owner.
    #[serde(deserialize_with = "nullable")]
    pub kind: String,
    /// Name of the owner.
    #[serde(deserialize_with = "nullable")]
    pub name: String,
    /// The owner's unique id.
    #[serde(deserialize_with = "nullable")]
    pub uid: String,
    /// Whether the owner manages the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controller: Option<bool>,
    /// Whether the owner's deletion waits for this object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_owner_deletion: Option<bool>,
}
