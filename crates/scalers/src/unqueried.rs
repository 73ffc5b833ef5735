//! Scalers whose source is not queried yet: triggers are checked and named as in KEDA, and reading them is an error.

use std::sync::Arc;

use api::autoscaling::v2::MetricSpec;

use crate::{Reading, Scaler, ScalerError, ScalerFuture, Trigger};

/// A scaler without values. Its errors keep the replica count, because missing data is never zero.
pub(crate) struct UnqueriedScaler {
    type_: String,
    specs: Vec<MetricSpec>,
}

impl UnqueriedScaler {
    /// Builds the scaler, with the result type of [`crate::table::BuildScaler`], so that constructors can return it.
    #[allow(clippy::unnecessary_wraps)]
    pub(crate) fn build(
        trigger: &Trigger,
        specs: impl Into<Vec<MetricSpec>>,
    ) -> Result<Arc<dyn Scaler>, ScalerError> {
        Ok(Arc::new(Self { type_: trigger.type_.clone(), specs: specs.into() }))
    }
}

/// The error of every read of a type that is not queried.
pub(crate) fn unqueried(type_: &str) -> ScalerError {
    scaler_error!(
        "the source of {type_} is not queried yet: this version checks the parameters of the trigger and names its \
         metric, but never scales by it"
    )
}

impl Scaler for UnqueriedScaler {
    fn specs(&self) -> ScalerFuture<'_, Vec<MetricSpec>> {
        Box::pin(async { Ok(self.specs.clone()) })
    }

    fn read<'a>(&'a self, _: &'a str) -> ScalerFuture<'a, Reading> {
        Box::pin(async { Err(unqueried(&self.type_)) })
    }
}
