//! CloudEventSource and ClusterCloudEventSource: destinations of cloud events.

use serde::{Deserialize, Serialize};

use super::{AuthenticationRef, Conditions};
use crate::meta::ObjectMeta;
use crate::wire::nullable;

/// All types of events (docs/spec/keda.md 9.4).
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
    /// Desired state.
    #[serde(deserialize_with = "nullable")]
    pub spec: CloudEventSourceSpec,
    /// Current status.
    #[serde(deserialize_with = "nullable")]
    pub status: CloudEventSourceStatus,
}

/// Events and their destination.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CloudEventSourceSpec {
    /// The cluster's name; empty means the operator's setting.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub cluster_name: String,
    /// Destination.
    #[serde(deserialize_with = "nullable")]
    pub destination: Destination,
    /// Source of credentials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authentication_ref: Option<AuthenticationRef>,
    /// Filter of event types.
    #[serde(deserialize_with = "nullable")]
    pub event_subscription: EventSubscription,
}

/// Destination of events.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Destination {
    /// An HTTP endpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<HttpDestination>,
    /// A topic of Azure Event Grid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub azure_event_grid_topic: Option<AzureEventGridTopic>,
}

/// An HTTP endpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HttpDestination {
    /// URI.
    #[serde(deserialize_with = "nullable")]
    pub uri: String,
}

/// A topic of Azure Event Grid.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AzureEventGridTopic {
    /// URL.
    #[serde(deserialize_with = "nullable")]
    pub endpoint: String,
}

/// Filter of event types.
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

/// Current status.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CloudEventSourceStatus {
    /// Conditions.
    #[serde(deserialize_with = "nullable")]
    pub conditions: Conditions,
}
