//! Decoding of results, without IO.

use crate::ParseError;

/// The first field of the first row of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FirstField {
    /// There is no row.
    NoRow,
    /// It is NULL.
    Null,
    /// Its text.
    Text(String),
}

/// The number in the field.
pub(super) fn number(field: FirstField) -> Result<f64, ParseError> {
    let text = match field {
        FirstField::NoRow => return Err("sql: no rows in result set".into()),
        FirstField::Null => return Err("the first field of the first row is NULL".into()),
        FirstField::Text(text) => text,
    };
    match text.trim().parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(number),
        // An error and not 0, because 0 would scale the target in.
        _ => Err("the first field of the first row is no number".into()),
    }
}
