//! Step 5: the scale write as a small machine. Whoever holds a client carries out each [`ScaleWriteAction`] and tells how it went.

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

/// How often a conflicting write is tried (docs/spec/hpa.md 3.7).
const ATTEMPTS: u32 = 5;

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScaleWriteAction {
    /// Put the count on the scale object that is held.
    Put,
    /// Read the scale again; if that works it replaces the one held.
    Refetch,
    /// Wait so long (and up to a tenth more), then [`ScaleWrite::waited`].
    Wait(SignedDuration),
    /// It is over.
    Done(Result<(), ScaleWriteError>),
}

/// Why a write failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScaleWriteError {
    /// Text of the client.
    pub text: String,
    /// Whether somebody else wrote in between (409 `Conflict`).
    pub conflict: bool,
}

/// One scale write and its retries.
#[derive(Clone, Debug, Default)]
pub struct ScaleWrite {
    attempts: u32,
    last: Option<ScaleWriteError>,
}

impl ScaleWrite {
    /// The first move.
    pub fn start() -> (Self, ScaleWriteAction) {
        (Self::default(), ScaleWriteAction::Put)
    }

    /// After [`ScaleWriteAction::Put`].
    pub fn put(&mut self, result: Result<(), ScaleWriteError>) -> ScaleWriteAction {
        self.attempts += 1;
        match result {
            Ok(()) => ScaleWriteAction::Done(Ok(())),
            Err(error) => {
                self.last = Some(error);
                // Whatever the failure, Kubernetes reads once more (T43).
                ScaleWriteAction::Refetch
            }
        }
    }

    /// After [`ScaleWriteAction::Refetch`], whether it worked or not: a failed read is only logged.
    pub fn refetched(&mut self) -> ScaleWriteAction {
        match self.last.take() {
            Some(error) if error.conflict && self.attempts < ATTEMPTS => {
                ScaleWriteAction::Wait(SignedDuration::from_millis(10))
            }
            Some(error) => ScaleWriteAction::Done(Err(error)),
            None => ScaleWriteAction::Done(Ok(())),
        }
    }

    /// After [`ScaleWriteAction::Wait`].
    pub fn waited(&mut self) -> ScaleWriteAction {
        ScaleWriteAction::Put
    }
}
