//! What can go wrong, and what follows from it.

use std::time::Duration;

use serde::Deserialize;

/// An object whose text is longer than this is not read.
pub(super) const LONGEST: usize = 32 << 20;
/// Nobody may make us wait longer than this.
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WatchFailure {
    pub(super) text: String,
    pub(super) cure: Recovery,
    /// How long the server asks to be left alone.
    pub(super) pause: Option<Duration>,
    /// HTTP status; 0 if there is none.
    pub(super) code: u16,
    /// Whether the server has not seen the version yet that we ask for.
    too_new: bool,
}

/// What to do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Recovery {
    /// The same again.
    Again,
    /// A list, because something may have been missed.
    Relist,
    /// A list that the server takes from where the truth is, because what it has at hand is older than what we know.
    Truth,
}

/// An error as the API server words it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Status {
    message: Option<String>,
    reason: Option<String>,
    code: Option<u16>,
    details: Option<Details>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Details {
    retry_after_seconds: Option<u64>,
    causes: Option<Vec<Cause>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Cause {
    reason: Option<String>,
}

impl WatchFailure {
    fn new(text: impl Into<String>, cure: Recovery) -> Self {
        Self { text: text.into(), cure, pause: None, code: 0, too_new: false }
    }

    /// The request was not answered, or the answer was cut off.
    pub(super) fn broken(text: impl Into<String>) -> Self {
        Self::new(text, Recovery::Again)
    }

    /// Nothing was heard for so long that nobody can be there.
    pub(super) fn silent(after: Duration) -> Self {
        Self::new(format!("nothing was heard for {} s", after.as_secs()), Recovery::Again)
    }

    /// What was sent cannot be understood.
    pub(super) fn garbage(why: &str) -> Self {
        Self::new(format!("the answer cannot be read: {why}"), Recovery::Relist)
    }

    pub(super) fn too_long() -> Self {
        Self::garbage(&format!("an object is longer than {} MiB", LONGEST >> 20))
    }

    /// The server is behind of what we have seen.
    pub(super) fn stale(found: &str, known: &str) -> Self {
        Self::new(format!("the server is at version {found}, behind {known}"), Recovery::Truth)
    }

    /// The watch itself reports an error: it is over, and what it missed is unknown.
    pub(super) fn error_event(status: Status) -> Self {
        let code = status.code.unwrap_or_default();
        Self { cure: Recovery::Relist, ..Self::refused(code, status, None) }
    }

    /// The request was refused.
    pub(super) fn refused(code: u16, status: Status, pause: Option<Duration>) -> Self {
        let details = status.details.unwrap_or_default();
        let asked = pause.or(details.retry_after_seconds.map(Duration::from_secs));
        let too_new = details
            .causes
            .unwrap_or_default()
            .iter()
            .any(|cause| cause.reason.as_deref() == Some("ResourceVersionTooLarge"));
        let text = match (status.message.filter(|m| !m.is_empty()), status.reason.filter(|r| !r.is_empty())) {
            (Some(message), _) => format!("{message} ({code})"),
            (None, Some(reason)) => format!("{reason} ({code})"),
            (None, None) => format!("the server answered {code}"),
        };
        // A version that is refused, forgotten or not yet known, and a collection that is gone: begin anew.
        let cure =
            if too_new || matches!(code, 400 | 404 | 410) { Recovery::Relist } else { Recovery::Again };
        let pause = asked.map(|asked| asked.min(LONGEST_PAUSE));
        Self { text, cure, pause, code, too_new }
    }

    /// What to do when a list that must not be older than some version is answered so.
    pub(super) fn of_relist(mut self) -> Self {
        if self.too_new || matches!(self.code, 400 | 410 | 422) {
            self.cure = Recovery::Truth;
            self.pause = None;
        }
        self
    }
}
