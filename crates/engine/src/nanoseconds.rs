//! Times and durations as numbers, for the packed form of passes: each pass has about fifteen, and printing and reading them took
//! longer than anything else in it.

use jiff::{SignedDuration, Timestamp};
use serde::{Serialize, Serializer};

/// The name of the newtype with the nanoseconds since 1970 of a time.
pub const TIME: &str = "nanoseconds since 1970";
/// The name of the newtype with the nanoseconds of a duration.
pub const DURATION: &str = "nanoseconds";

/// A time or duration, which may be optional.
pub trait InNanoseconds: Serialize {
    /// The name of its newtype.
    const NAME: &'static str;

    /// The nanoseconds; none if there is no value or it does not fit.
    fn nanoseconds(&self) -> Option<i64>;
}

impl InNanoseconds for Timestamp {
    const NAME: &'static str = TIME;

    fn nanoseconds(&self) -> Option<i64> {
        i64::try_from(self.as_nanosecond()).ok()
    }
}

impl InNanoseconds for SignedDuration {
    const NAME: &'static str = DURATION;

    fn nanoseconds(&self) -> Option<i64> {
        i64::try_from(self.as_nanos()).ok()
    }
}

impl<T: InNanoseconds> InNanoseconds for Option<T> {
    const NAME: &'static str = T::NAME;

    fn nanoseconds(&self) -> Option<i64> {
        self.as_ref()?.nanoseconds()
    }
}

/// Serializes a number for a format that is not human-readable, and the text of the value for all others.
pub fn serialize<T: InNanoseconds, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    if !serializer.is_human_readable()
        && let Some(nanoseconds) = value.nanoseconds()
    {
        return serializer.serialize_newtype_struct(T::NAME, &nanoseconds);
    }
    value.serialize(serializer)
}
