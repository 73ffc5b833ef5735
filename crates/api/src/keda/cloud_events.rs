//! CloudEventSource and ClusterCloudEventSource: where events are told to.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{AuthenticationRef, Conditions};
use crate::meta::ObjectMeta;
use crate::wire::nullable;

/// Every type of event that is told (docs/spec/keda.md 9.4).
pub const EVENT_TYPES: [&str; 19] = [
    "keda.scaledobject.ready.v1",
    "keda.scaledobject.failed.v1",
    "keda.scaledobject.removed.v1",
    "keda.scaledobject.paused.v1",
    "keda.scaledobject.unpaused.v1",
    "keda.scaledjob.ready.v1",
    "keda.scaledjob.failed.v1",
    "keda.scaledjob.removed.v1",
    "keda.scaledjob.paused.v1",
    "keda.scaledjob.unpaused.v1",
    "keda.scaledjob.rolloutcleanup.started.v1",
    "keda.scaledjob.rolloutcleanup.completed.v1",
    "keda.scaledjob.rolloutcleanup.failed.v1",
    "keda.authentication.triggerauthentication.created.v1",
    "keda.authentication.triggerauthentication.updated.v1",
    "keda.authentication.triggerauthentication.removed.v1",
    "keda.authentication.clustertriggerauthentication.created.v1",
    "keda.authentication.clustertriggerauthentication.updated.v1",
    "keda.authentication.clustertriggerauthentication.removed.v1",
];

/// A CloudEventSource or ClusterCloudEventSource.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CloudEventSource {
    /// Its kind.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// `eventing.keda.sh/v1alpha1`.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// Name, namespace, labels and the like.
    #[serde(deserialize_with = "nullable")]
    pub metadata: ObjectMeta,
    /// What is wanted.
    #[serde(deserialize_with = "nullable")]
    pub spec: CloudEventSourceSpec,
    /// How it fares.
    #[serde(deserialize_with = "nullable")]
    pub status: CloudEventSourceStatus,
}

/// What is told, and to whom.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CloudEventSourceSpec {
    /// The cluster's name; empty means as the operator was told.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub cluster_name: String,
    /// To whom.
    #[serde(deserialize_with = "nullable")]
    pub destination: Destination,
    /// Where credentials are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authentication_ref: Option<AuthenticationRef>,
    /// What is told.
    #[serde(deserialize_with = "nullable")]
    pub event_subscription: EventSubscription,
}

/// To whom.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Destination {
    /// A server that takes events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<HttpDestination>,
    /// A topic of Azure; passed through.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub azure_event_grid_topic: Option<Value>,
}

/// A server that takes events.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HttpDestination {
    /// Where it is.
    #[serde(deserialize_with = "nullable")]
    pub uri: String,
}

/// What is told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct EventSubscription {
    /// These types.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub included_event_types: Vec<String>,
    /// All but these types.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub excluded_event_types: Vec<String>,
}

/// How it fares.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CloudEventSourceStatus {
    /// Conditions.
    #[serde(deserialize_with = "nullable")]
    pub conditions: Conditions,
}
