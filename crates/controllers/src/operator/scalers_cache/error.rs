//! Why a trigger has no scaler or no sample.

use std::sync::Arc;
use std::time::Duration;

use cluster::request::ApiError;
use keda::executor::TARGET_NOT_RESOLVED;
use scalers::ScalerError;
use sources::http::{HttpError, HttpErrorCause};

use crate::operator::auth::AuthError;

/// Why a scaler could not be built.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ScalerBuildError {
    /// Credentials or environment variables could not be resolved.
    #[error(transparent)]
    Auth(#[from] AuthError),
    /// The trigger is invalid.
    #[error(transparent)]
    Trigger(#[from] ScalerError),
    /// The target is not resolved yet.
    #[error("{TARGET_NOT_RESOLVED}")]
    TargetNotResolved,
    /// The workload was not read.
    #[error(transparent)]
    Workload(#[from] ApiError),
    /// Parameters and variables are too large.
    #[error(
        "the parameters and variables of the trigger are larger than {0} bytes, its part of 16 MiB of all triggers of the object: \
         use fewer triggers, or smaller Secrets and ConfigMaps"
    )]
    LargeCredentials(usize),
    /// It took too long.
    #[error(
        "the scaler was not built within {0:?}: check that the API server responds, or name fewer Secrets and ConfigMaps in the \
         container of the scale target and in the TriggerAuthentication"
    )]
    TimedOut(Duration),
    /// The trigger is no longer there.
    #[error("the object was edited meanwhile")]
    Edited,
}

/// Why a trigger has no sample. Cheap to clone.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum SampleError {
    /// There is no scaler.
    #[error(transparent)]
    Build(Arc<ScalerBuildError>),
    /// The source reported this error.
    #[error(transparent)]
    Source(ScalerError),
    /// The source lists no metrics.
    #[error("got empty metric spec")]
    NoMetrics,
    /// The deadline passed.
    #[error("no answer within {} s", .0.as_secs_f64())]
    TimedOut(Duration),
}

impl SampleError {
    /// When the source is asked again, if it limits requests.
    pub(crate) fn limit(&self) -> Option<String> {
        let Self::Source(error) = self else { return None };
        let cause = &error.cause::<HttpError>()?.cause;
        matches!(cause, HttpErrorCause::RateLimited { .. }).then(|| cause.to_string())
    }
}
