//! The views of autoscalers, pods and KEDA's resources. `managedFields` are removed before an object is decoded.

use api::autoscaling::v2::HorizontalPodAutoscaler;
use api::keda::{CloudEventSource, ScaledJob, ScaledObject, TriggerAuthentication};
use api::plimsoll::Autoscaler;
use api::pod::Pod;

use super::View;

impl View for Pod {
    fn key(&self) -> (&str, &str) {
        (&self.metadata.namespace, &self.metadata.name)
    }
}

impl View for HorizontalPodAutoscaler {
    fn key(&self) -> (&str, &str) {
        (&self.metadata.namespace, &self.metadata.name)
    }
}

impl View for Autoscaler {
    fn key(&self) -> (&str, &str) {
        (&self.metadata.namespace, &self.metadata.name)
    }
}

impl View for ScaledObject {
    fn key(&self) -> (&str, &str) {
        (&self.metadata.namespace, &self.metadata.name)
    }
}

impl View for ScaledJob {
    fn key(&self) -> (&str, &str) {
        (&self.metadata.namespace, &self.metadata.name)
    }
}

impl View for TriggerAuthentication {
    fn key(&self) -> (&str, &str) {
        (&self.metadata.namespace, &self.metadata.name)
    }
}

impl View for CloudEventSource {
    fn key(&self) -> (&str, &str) {
        (&self.metadata.namespace, &self.metadata.name)
    }
}
