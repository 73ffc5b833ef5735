//! Helpers for reading and writing fields as Go's JSON does.

use serde::{Deserialize, Deserializer};

/// Reads `null` as the empty value, as Go does for every field.
pub fn nullable<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

/// Whether a number is left out under Go's `omitempty`.
// Serde hands a reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
pub(crate) fn is_zero<T: Default + PartialEq>(number: &T) -> bool {
    *number == T::default()
}

/// Whether a list that may be null is left out under Go's `omitempty`.
// Serde hands a reference.
#[allow(clippy::ref_option)]
pub(crate) fn is_empty_list<T>(list: &Option<Vec<T>>) -> bool {
    list.as_ref().is_none_or(Vec::is_empty)
}
