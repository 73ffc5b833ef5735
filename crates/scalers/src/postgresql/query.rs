//! What answers mean, without IO.

/// The number in a field.
pub(super) fn number(field: Option<&str>) -> Result<f64, String> {
    let Some(text) = field else { return Err("the first field of the first row is NULL".to_owned()) };
    match text.trim().parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(number),
        // Never zero: something would be scaled away.
        _ => Err(format!("{:?} is no number", shortened(text))),
    }
}

/// A text that fits into an event.
fn shortened(text: &str) -> String {
    text.chars().take(60).collect()
}

/// What there is if there is no row.
pub(super) const NO_ROWS: &str = "no rows in result set";
