//! Applies effects on CloudEventSources and ClusterCloudEventSources. Their deliveries belong to no scaled resource, so that this
//! needs none of [`super::apply`].

use api::keda::EVENTING_GROUP;
use cluster::request::ApiError;
use serde_json::{Value, json};

use super::effect::DestinationEffect;
use super::leader_client::{LeaderClient, ResourcePath};

/// Writes the condition of a destination of CloudEvents.
pub(crate) async fn write_destination(
    client: &LeaderClient,
    effect: &DestinationEffect,
) -> Result<(), ApiError> {
    let DestinationEffect { destination, condition } = effect;
    let path = ResourcePath {
        group: EVENTING_GROUP,
        version: "v1alpha1",
        plural: if destination.of_cluster { "clustercloudeventsources" } else { "cloudeventsources" },
        namespace: &destination.name.namespace,
        name: &destination.name.name,
    };
    let patch = json!({"status": {"conditions": [condition]}});
    client.merge::<Value>(path, "status", &patch).await.map(drop)
}
