//! Step 5: the scale write as a state machine. The caller, which holds a client, carries out each
//! [`ScaleWriteAction`] and reports its result.

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

/// Attempts of a write that conflicts (docs/spec/hpa.md 3.7).
const MAX_WRITE_ATTEMPTS: u32 = 5;

/// What the caller does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScaleWriteAction {
    /// Write the replica count with the scale object at hand.
    Put,
    /// Read the scale again; a successful read replaces the object at hand.
    Refetch,
    /// Wait this long plus up to 10 % jitter, then call [`ScaleWrite::waited`].
    Wait(SignedDuration),
    /// The write has ended.
    Done(Result<(), ScaleWriteError>),
}

/// Why a write failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScaleWriteError {
    /// Error text of the client.
    pub text: String,
    /// Whether another client wrote in between (409 `Conflict`).
    pub conflict: bool,
}

/// One scale write and its retries.
#[derive(Clone, Debug, Default)]
pub struct ScaleWrite {
    attempts: u32,
    last: Option<ScaleWriteError>,
}

impl ScaleWrite {
    /// Starts a write: the first action.
    pub fn start() -> (Self, ScaleWriteAction) {
        (Self::default(), ScaleWriteAction::Put)
    }

    /// Reports the result of [`ScaleWriteAction::Put`].
    pub fn put(&mut self, result: Result<(), ScaleWriteError>) -> ScaleWriteAction {
        self.attempts += 1;
        match result {
            Ok(()) => ScaleWriteAction::Done(Ok(())),
            Err(error) => {
                self.last = Some(error);
                // Kubernetes reads the scale once more after any failure (T43).
                ScaleWriteAction::Refetch
            }
        }
    }

    /// Reports that [`ScaleWriteAction::Refetch`] was done. A failed read is only logged.
    pub fn refetched(&mut self) -> ScaleWriteAction {
        match self.last.take() {
            Some(error) if error.conflict && self.attempts < MAX_WRITE_ATTEMPTS => {
                ScaleWriteAction::Wait(SignedDuration::from_millis(10))
            }
            Some(error) => ScaleWriteAction::Done(Err(error)),
            None => ScaleWriteAction::Done(Ok(())),
        }
    }

    /// Reports that [`ScaleWriteAction::Wait`] is over.
    pub fn waited(&mut self) -> ScaleWriteAction {
        ScaleWriteAction::Put
    }
}
