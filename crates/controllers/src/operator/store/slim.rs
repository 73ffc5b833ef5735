//! Objects without the parts that the operator does not need, to save memory.

use api::keda::{ScaledJob, ScaledObject};

/// Drops `managedFields` and spare capacity of lists.
pub(crate) trait Slim: Sized {
    fn slim(self) -> Self;
}

impl Slim for ScaledObject {
    fn slim(mut self) -> Self {
        self.metadata.managed_fields = Vec::new();
        self.metadata.finalizers.shrink_to_fit();
        self.spec.triggers.shrink_to_fit();
        self.status.external_metric_names.shrink_to_fit();
        self
    }
}

impl Slim for ScaledJob {
    fn slim(mut self) -> Self {
        self.metadata.managed_fields = Vec::new();
        self.spec.triggers.shrink_to_fit();
        self
    }
}
