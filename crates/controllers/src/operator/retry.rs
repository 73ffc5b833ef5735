//! When a failed reconcile is tried again.

use std::time::Duration;

/// Delay before the first retry; it doubles with each further failure.
const MIN_RETRY_DELAY: Duration = Duration::from_millis(50);
const MAX_RETRY_DELAY: Duration = Duration::from_mins(5);

/// The delay after so many failures in a row.
pub(crate) fn retry_delay(failures: u32) -> Duration {
    MIN_RETRY_DELAY.saturating_mul(1 << failures.saturating_sub(1).min(20)).min(MAX_RETRY_DELAY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_delay_doubles_up_to_its_maximum() {
        assert_eq!(retry_delay(1), Duration::from_millis(50));
        assert_eq!(retry_delay(2), Duration::from_millis(100));
        assert_eq!(retry_delay(40), MAX_RETRY_DELAY);
    }
}
