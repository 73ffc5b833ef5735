//! The wall clock of scalers, which tests replace.

use jiff::Timestamp;

/// A function that returns the current time.
pub type Clock = fn() -> Timestamp;

/// The current time of this machine.
#[expect(clippy::disallowed_methods, reason = "this is the clock of the machine that others are given")]
pub fn system() -> Timestamp {
    Timestamp::now()
}
