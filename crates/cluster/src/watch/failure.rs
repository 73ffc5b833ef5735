//! Failures of list and watch requests, and how the watch recovers.

use std::time::Duration;

use serde::Deserialize;

/// The maximum size of one object, in bytes.
pub(super) const MAX_OBJECT_BYTES: usize = 32 << 20;
/// A longer `Retry-After` is cut to this.
const MAX_RETRY_AFTER: Duration = Duration::from_mins(1);

/// A failed list or watch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub(super) struct WatchFailure {
    pub(super) text: String,
    pub(super) recovery: Recovery,
    /// The `Retry-After` of the response.
    pub(super) pause: Option<Duration>,
    /// HTTP status; none if there was no response.
    pub(super) code: Option<u16>,
    /// Whether the server has not yet reached the requested version.
    too_new: bool,
}

/// How to recover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Recovery {
    /// Repeat the request.
    Again,
    /// List again, because changes may have been missed.
    Relist,
    /// List with a quorum read, because the server's cache is older than our data.
    QuorumRelist,
}

/// The `Status` of the API server.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WatchStatus {
    message: Option<String>,
    reason: Option<String>,
    code: Option<u16>,
    details: Option<WatchStatusDetails>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct WatchStatusDetails {
    retry_after_seconds: Option<u64>,
    causes: Option<Vec<WatchStatusCause>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct WatchStatusCause {
    reason: Option<String>,
}

impl WatchFailure {
    fn new(text: impl Into<String>, recovery: Recovery) -> Self {
        Self { text: text.into(), recovery, pause: None, code: None, too_new: false }
    }

    /// There was no response, or it was cut off.
    pub(super) fn broken(text: impl Into<String>) -> Self {
        Self::new(text, Recovery::Again)
    }

    /// The server sent nothing within the timeout.
    pub(super) fn silent(after: Duration) -> Self {
        Self::new(format!("no data was received for {} s", after.as_secs()), Recovery::Again)
    }

    /// The response cannot be decoded.
    pub(super) fn undecodable(why: &str) -> Self {
        Self::new(format!("the answer cannot be read: {why}"), Recovery::Relist)
    }

    pub(super) fn too_long() -> Self {
        Self::undecodable(&format!("an object is longer than {} MiB", MAX_OBJECT_BYTES >> 20))
    }

    /// The server's version is older than our data.
    pub(super) fn stale(found: &str, known: &str) -> Self {
        Self::new(format!("the server is at version {found}, behind {known}"), Recovery::QuorumRelist)
    }

    /// The watch sent an error event: it has ended, and changes may have been missed.
    pub(super) fn error_event(status: WatchStatus) -> Self {
        let code = status.code;
        Self { recovery: Recovery::Relist, ..Self::refused(code, status, None) }
    }

    /// The server answered with an error.
    pub(super) fn refused(code: Option<u16>, status: WatchStatus, pause: Option<Duration>) -> Self {
        let details = status.details.unwrap_or_default();
        let requested = pause.or(details.retry_after_seconds.map(Duration::from_secs));
        let too_new = details
            .causes
            .unwrap_or_default()
            .iter()
            .any(|cause| cause.reason.as_deref() == Some("ResourceVersionTooLarge"));
        let number = code.unwrap_or_default();
        let text = match (status.message.filter(|m| !m.is_empty()), status.reason.filter(|r| !r.is_empty())) {
            (Some(message), _) => format!("{message} ({number})"),
            (None, Some(reason)) => format!("{reason} ({number})"),
            (None, None) => format!("the server answered {number}"),
        };
        // The version is invalid, expired or not yet reached, or the collection does not exist: list again.
        let recovery =
            if too_new || matches!(code, Some(400 | 404 | 410)) { Recovery::Relist } else { Recovery::Again };
        let pause = requested.map(|requested| requested.min(MAX_RETRY_AFTER));
        Self { text, recovery, pause, code, too_new }
    }

    /// The recovery if this is the answer to a list with `resourceVersionMatch=NotOlderThan`.
    pub(super) fn of_relist(mut self) -> Self {
        if self.too_new || matches!(self.code, Some(400 | 410 | 422)) {
            self.recovery = Recovery::QuorumRelist;
            self.pause = None;
        }
        self
    }
}
