//! Decoding of results, without IO.

use crate::ParseError;

/// The number in a field.
pub(super) fn number(field: Option<&str>) -> Result<f64, ParseError> {
    let Some(text) = field else { return Err("the first field of the first row is NULL".into()) };
    match text.trim().parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(number),
        // An error and not 0, because 0 would scale the target in.
        _ => Err("the first field of the first row is no number".into()),
    }
}

/// The error of a query without rows.
pub(super) const NO_ROWS: &str = "no rows in result set";
