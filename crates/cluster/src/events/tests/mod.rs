//! The correlation alone, bodies as Kubernetes writes them, and delivery on a cluster.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

mod body;
mod correlate;
mod deliver;

use engine::Event;
use engine::report::EventKind;

use super::ObjectReference;

fn about(name: &str) -> ObjectReference {
    ObjectReference {
        api_version: "autoscaling/v2",
        kind: "HorizontalPodAutoscaler",
        namespace: "hc".to_owned(),
        name: name.to_owned(),
        uid: "65302fb4-9841-4118-9eda-c3bfc75774b9".to_owned(),
        resource_version: "586".to_owned(),
    }
}

fn warning(message: &str) -> Event {
    Event { kind: EventKind::Warning, reason: "FailedGetScale".into(), message: message.to_owned() }
}
