//! The scaler interface.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use api::autoscaling::v2::MetricSpec;
use api::reading::Reading;
use sources::dial::DialError;
use sources::http::{HttpError, HttpErrorCause};

/// A pending result of a scaler. The caller sets the deadline; the future can be dropped at any time.
pub type ScalerFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, ScalerError>> + Send + 'a>>;

/// Forwards wake-ups until it is dropped.
pub type WakeFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Maximum length of an error message, in bytes.
const MAX_ERROR_BYTES: usize = 1_500;

/// Why a scaler failed: a message for events and conditions, without secrets and of bounded length. The message is what users
/// see, so it is kept byte for byte; the cause is only for callers that inspect it.
#[derive(Clone, thiserror::Error)]
#[error("{message}")]
pub struct ScalerError {
    pub(crate) message: String,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

/// The status of the response after which a scaler failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the last response had status {0}")]
pub struct HttpStatusError(pub u16);

/// What a source means that refuses a request by a code of a protocol other than HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SourceRefusal {
    /// It does not accept the credentials, or they lack a right.
    #[error("the source does not accept the credentials")]
    Credentials,
    /// It does not know the object that the request names.
    #[error("the source does not know the name")]
    UnknownName,
}

impl ScalerError {
    /// Creates an error with this message; a long message is cut off.
    pub fn new(message: impl Into<String>) -> Self {
        let mut message = message.into();
        if message.len() > MAX_ERROR_BYTES {
            message.truncate(message.floor_char_boundary(MAX_ERROR_BYTES));
            message.push('…');
        }
        Self { message, source: None }
    }

    /// Creates an error with this message and cause.
    pub fn caused_by(
        message: impl Into<String>,
        source: impl std::error::Error + Send + Sync + 'static,
    ) -> Self {
        Self { source: Some(Arc::new(source)), ..Self::new(message) }
    }

    /// The cause, if it is an error of this type.
    pub fn cause<E: std::error::Error + 'static>(&self) -> Option<&E> {
        self.source.as_deref().and_then(|source| source.downcast_ref())
    }

    /// With this status of a response as the cause, if none is known.
    #[must_use]
    pub(crate) fn with_status(self, status: Option<u16>) -> Self {
        match status {
            Some(status) if self.source.is_none() => {
                Self { source: Some(Arc::new(HttpStatusError(status))), ..self }
            }
            _ => self,
        }
    }

    /// With the meaning of the source's error code as the cause, if it is known.
    #[must_use]
    pub fn with_refusal(self, refusal: Option<SourceRefusal>) -> Self {
        match refusal {
            Some(refusal) => Self { source: Some(Arc::new(refusal)), ..self },
            None => self,
        }
    }

    /// `{what}: {self}`.
    pub fn inside(self, what: impl std::fmt::Display) -> Self {
        Self { source: self.source, ..Self::new(format!("{what}: {}", self.message)) }
    }
}

/// Creates a [`ScalerError`] with a formatted message.
macro_rules! scaler_error {
    ($($message:tt)+) => { $crate::ScalerError::new(format!($($message)+)) };
}

/// Returns a [`ScalerError`] with a formatted message.
macro_rules! bail {
    ($($message:tt)+) => { return Err(scaler_error!($($message)+)) };
}

impl std::fmt::Debug for ScalerError {
    /// Prints only the message: causes may contain credentials.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("ScalerError").field(&self.message).finish()
    }
}

impl PartialEq for ScalerError {
    fn eq(&self, other: &Self) -> bool {
        self.message == other.message
    }
}

impl Eq for ScalerError {}

impl From<ScalerError> for String {
    fn from(error: ScalerError) -> Self {
        error.message
    }
}

impl From<HttpError> for ScalerError {
    fn from(error: HttpError) -> Self {
        Self::caused_by(error.to_string(), error)
    }
}

impl From<DialError> for ScalerError {
    fn from(error: DialError) -> Self {
        let message = match &error {
            DialError::TimedOut(_) | DialError::Invalid(_) => error.to_string(),
            other => HttpErrorCause::classify(other).to_string(),
        };
        Self::caused_by(message, error)
    }
}

impl From<std::io::Error> for ScalerError {
    fn from(error: std::io::Error) -> Self {
        Self::caused_by(error.to_string(), error)
    }
}

/// The scaler of one trigger. It is cheap to build: connections are made on first use and shared
/// ([`crate::backends`]).
pub trait Scaler: Send + Sync {
    /// The metric specs for the HPA, without selectors: `s{index}-{name}` and target.
    fn specs(&self) -> ScalerFuture<'_, Vec<MetricSpec>>;

    /// The values of one metric, and whether the trigger is active.
    fn read<'a>(&'a self, metric: &'a str) -> ScalerFuture<'a, Reading>;

    /// Push scalers: sends activity changes until the returned future is dropped. `None` for all other scalers.
    /// The future reconnects after failures and never ends.
    fn push(
        self: Arc<Self>,
        _sender: tokio::sync::mpsc::Sender<bool>,
    ) -> Option<Pin<Box<dyn Future<Output = ()> + Send>>> {
        None
    }

    /// Push scalers whose metrics may change: reports that [`specs`](Self::specs) returns others than before, until the returned
    /// future is dropped. The future reconnects after failures; it ends if the source cannot report its metrics. `None` for all
    /// other scalers.
    fn push_specs(
        self: Arc<Self>,
        _changed: tokio::sync::mpsc::Sender<()>,
    ) -> Option<Pin<Box<dyn Future<Output = ()> + Send>>> {
        None
    }

    /// Sources that can report that they are to be queried: does so until the returned future is dropped. The value always comes from
    /// [`read`](Self::read). `None` for all other scalers.
    fn wake(self: Arc<Self>, _query_now: tokio::sync::mpsc::Sender<()>) -> Option<WakeFuture> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_length_is_limited() {
        assert_eq!(ScalerError::new("short").to_string(), "short");
        // Also if the limit is within a multi-byte character.
        for letter in ["x", "ä", "日"] {
            let long = ScalerError::new(letter.repeat(5_000)).inside("a scaler").inside("a trigger");
            assert!(long.message.len() <= MAX_ERROR_BYTES + '…'.len_utf8(), "{}", long.message.len());
            assert!(
                long.message.starts_with("a trigger: a scaler: ") && long.message.ends_with('…'),
                "{long}"
            );
        }
    }
}
