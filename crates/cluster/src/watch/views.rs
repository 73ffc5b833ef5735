//! The views of autoscalers and pods. Who owns which field is cut away before they are read.

use api::autoscaling::v2::HorizontalPodAutoscaler;
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
