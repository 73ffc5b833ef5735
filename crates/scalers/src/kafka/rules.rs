//! Checks of Kafka's parameters, without IO.

use crate::ParseError;

/// Maximum number of partitions in a list with ranges; more than any topic has.
const MAX_PARTITIONS: usize = 100_000;

/// The partitions of `partitionLimitation`, e.g. `1,2-5`; none if all count.
pub(super) fn partitions(limitation: &str) -> Result<Option<Vec<i32>>, ParseError> {
    if limitation.is_empty() {
        return Ok(None);
    }
    let mut all = Vec::new();
    for item in limitation.split(',').map(str::trim) {
        let number = |text: &str| {
            let wrong = || ParseError::from(format!("invalid partition limitation: {item}"));
            text.parse::<i32>().map_err(|_| wrong())
        };
        let (first, last) = match item.split('-').collect::<Vec<_>>()[..] {
            [one] => (number(one)?, number(one)?),
            [first, last] => (number(first)?, number(last)?),
            _ => return Err(format!("invalid partition limitation range: {item}").into()),
        };
        let count = usize::try_from(i64::from(last) - i64::from(first)).unwrap_or_default();
        if all.len() + count > MAX_PARTITIONS {
            return Err(format!("invalid partition limitation range: {item}").into());
        }
        all.extend(first..=last);
    }
    Ok(Some(all))
}

/// Whether a text is a version of Kafka's protocol: `0.10.2.0` with four numbers, later ones with three.
pub(super) fn is_version(text: &str) -> bool {
    let numbers: Vec<&str> = text.split('.').collect();
    let digits = |number: &&str| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let count = if numbers.first() == Some(&"0") { 4 } else { 3 };
    numbers.len() == count && numbers.iter().all(digits)
}
