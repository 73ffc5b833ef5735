//! Step 5: the scale write as a small machine. Whoever holds a client carries out each [`Move`] and tells how it went.

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

/// How often a conflicting write is tried (docs/spec/hpa.md 3.7).
const ATTEMPTS: u32 = 5;

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Move {
    /// Put the count on the scale object that is held.
    Put,
    /// Read the scale again; if that works it replaces the one held.
    Refetch,
    /// Wait so long (and up to a tenth more), then [`Write::waited`].
    Wait(SignedDuration),
    /// It is over.
    Done(Result<(), WriteError>),
}

/// Why a write failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WriteError {
    /// Text of the client.
    pub text: String,
    /// Whether somebody else wrote in between (409 `Conflict`).
    pub conflict: bool,
}

/// One scale write and its retries.
#[derive(Clone, Debug, Default)]
pub struct Write {
    attempts: u32,
    last: Option<WriteError>,
}

impl Write {
    /// The first move.
    pub fn start() -> (Self, Move) {
        (Self::default(), Move::Put)
    }

    /// After [`Move::Put`].
    pub fn put(&mut self, result: Result<(), WriteError>) -> Move {
        self.attempts += 1;
        match result {
            Ok(()) => Move::Done(Ok(())),
            Err(error) => {
                self.last = Some(error);
                // Whatever the failure, Kubernetes reads once more (T43).
                Move::Refetch
            }
        }
    }

    /// After [`Move::Refetch`], whether it worked or not: a failed read is only logged.
    pub fn refetched(&mut self) -> Move {
        match self.last.take() {
            Some(error) if error.conflict && self.attempts < ATTEMPTS => {
                Move::Wait(SignedDuration::from_millis(10))
            }
            Some(error) => Move::Done(Err(error)),
            None => Move::Done(Ok(())),
        }
    }

    /// After [`Move::Wait`].
    pub fn waited(&mut self) -> Move {
        Move::Put
    }
}
