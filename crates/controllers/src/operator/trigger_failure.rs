//! The class of a trigger's error, from the errors that caused it.

use std::error::Error;
use std::sync::Arc;

use cluster::request::ApiError;
use engine::failure::TriggerFailure;
use keda::OperationError;
use scalers::{HttpStatusError, SourceRefusal};
use sources::dial::DialError;
use sources::http::{HttpError, HttpErrorCause};

use super::auth::{AuthFailure, FetchError};
use super::scalers_cache::{SampleError, ScalerBuildError};

/// Classifies the error of a trigger; an error without a known cause is one of its source.
pub(crate) fn classify(error: &OperationError) -> TriggerFailure {
    find(error).unwrap_or(TriggerFailure::Source)
}

fn find(error: &(dyn Error + 'static)) -> Option<TriggerFailure> {
    // The cause of a `ScalerError` is shared, and an `Arc` is an error of its own type.
    if let Some(shared) = error.downcast_ref::<Arc<dyn Error + Send + Sync>>() {
        return find(shared.as_ref());
    }
    class_of(error).or_else(|| find(error.source()?))
}

fn class_of(error: &(dyn Error + 'static)) -> Option<TriggerFailure> {
    if let Some(sample) = error.downcast_ref::<SampleError>() {
        return match sample {
            SampleError::Build(build) => Some(match &**build {
                build if request_of(build).is_some_and(is_unavailable) => TriggerFailure::ApiServer,
                ScalerBuildError::Auth(_) => TriggerFailure::Authentication,
                ScalerBuildError::TimedOut(_) => TriggerFailure::Timeout,
                _ => TriggerFailure::Parameters,
            }),
            SampleError::TimedOut(_) => Some(TriggerFailure::Timeout),
            SampleError::NoMetrics => Some(TriggerFailure::UnknownName),
            SampleError::Source(_) => None,
        };
    }
    if let Some(HttpStatusError(status)) = error.downcast_ref() {
        return Some(match status {
            401 | 403 => TriggerFailure::Authentication,
            404 => TriggerFailure::UnknownName,
            _ => TriggerFailure::Source,
        });
    }
    if let Some(refusal) = error.downcast_ref::<SourceRefusal>() {
        return Some(match refusal {
            SourceRefusal::Credentials => TriggerFailure::Authentication,
            SourceRefusal::UnknownName => TriggerFailure::UnknownName,
        });
    }
    let cause = if let Some(http) = error.downcast_ref::<HttpError>() {
        http.cause.clone()
    } else if let Some(cause) = error.downcast_ref::<HttpErrorCause>() {
        cause.clone()
    } else if error.is::<DialError>() || error.is::<std::io::Error>() {
        HttpErrorCause::classify(error)
    } else {
        return None;
    };
    Some(match cause {
        HttpErrorCause::Refused => TriggerFailure::Refused,
        HttpErrorCause::UnknownHost(_) => TriggerFailure::UnknownHost,
        HttpErrorCause::TimedOut(_) | HttpErrorCause::Unreachable(_) => TriggerFailure::Timeout,
        HttpErrorCause::ClientCertificateRejected(_) => TriggerFailure::Authentication,
        HttpErrorCause::Url { .. } | HttpErrorCause::Invalid(_) | HttpErrorCause::NotAllowed(_) => {
            TriggerFailure::Parameters
        }
        _ => TriggerFailure::Source,
    })
}

/// The request to the API server that failed, if that is why a scaler was not built.
fn request_of(error: &ScalerBuildError) -> Option<&ApiError> {
    match error {
        ScalerBuildError::Auth(error) => unread(&error.cause),
        ScalerBuildError::Workload(error) => Some(error),
        _ => None,
    }
}

fn unread(failure: &AuthFailure) -> Option<&ApiError> {
    let fetch = match failure {
        AuthFailure::Of { source, .. } => return unread(source),
        AuthFailure::Unread { source, .. } | AuthFailure::NoToken { source, .. } => &**source,
        AuthFailure::ServiceAccount(source) => source,
        _ => return None,
    };
    match fetch {
        FetchError::Request(error) => Some(error),
        _ => None,
    }
}

fn is_unavailable(error: &ApiError) -> bool {
    !error.is_not_leading() && error.failure().is_unavailable()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use scalers::ScalerError;

    use super::*;
    use crate::operator::auth::{AuthError, SourceKind, SourceRef};

    #[test]
    fn class_comes_from_the_cause_and_not_from_the_text() {
        let of = |error: SampleError| classify(&OperationError::from_error(error));
        let io =
            |kind: std::io::ErrorKind| SampleError::Source(ScalerError::from(std::io::Error::from(kind)));
        assert_eq!(of(io(std::io::ErrorKind::ConnectionRefused)), TriggerFailure::Refused);
        assert_eq!(of(SampleError::TimedOut(Duration::from_secs(3))), TriggerFailure::Timeout);
        assert_eq!(of(SampleError::Source(ScalerError::new("connection refused"))), TriggerFailure::Source);
        let answered =
            |status| SampleError::Source(ScalerError::caused_by("refused", HttpStatusError(status)));
        assert_eq!(of(answered(401)), TriggerFailure::Authentication);
        assert_eq!(of(answered(403)), TriggerFailure::Authentication);
        assert_eq!(of(answered(404)), TriggerFailure::UnknownName);
        assert_eq!(of(answered(500)), TriggerFailure::Source);
        let refused = |refusal| SampleError::Source(ScalerError::new("refused").with_refusal(Some(refusal)));
        assert_eq!(of(refused(SourceRefusal::Credentials)), TriggerFailure::Authentication);
        assert_eq!(of(refused(SourceRefusal::UnknownName)), TriggerFailure::UnknownName);
        let unread = |error| {
            let source = Box::new(FetchError::Request(error));
            let object =
                SourceRef { kind: SourceKind::Secret, namespace: "shop".into(), name: "login".into() };
            let cause = AuthFailure::Unread { object, source };
            SampleError::Build(Arc::new(AuthError { cause, seen: Vec::new() }.into()))
        };
        let gone = ApiError::unanswered("connection refused".to_owned());
        assert_eq!(of(unread(gone.clone())), TriggerFailure::ApiServer);
        let denied = ApiError { code: Some(403), ..gone };
        assert_eq!(of(unread(denied)), TriggerFailure::Authentication);
        let late = HttpErrorCause::TimedOut(Duration::from_secs(3));
        assert_eq!(of(SampleError::Source(ScalerError::caused_by("late", late))), TriggerFailure::Timeout);
    }
}
