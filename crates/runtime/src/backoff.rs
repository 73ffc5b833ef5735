//! Exponential backoff without jitter: each user of it is alone with its key.

use std::time::Duration;

/// The first delay.
const INITIAL_DELAY: Duration = Duration::from_secs(1);
/// No delay is longer.
const MAX_DELAY: Duration = Duration::from_mins(5);

/// The delay before the retry that follows this many failures in a row: 1 s, 2 s, 4 s, up to 5 min.
pub(crate) fn delay_after(failures: u32) -> Duration {
    let doublings = failures.saturating_sub(1).min(16);
    (INITIAL_DELAY * 2_u32.pow(doublings)).min(MAX_DELAY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_five_minutes() {
        let seconds: Vec<u64> = [1, 2, 3, 9, 10, u32::MAX].map(|n| delay_after(n).as_secs()).to_vec();
        assert_eq!(seconds, [1, 2, 4, 256, 300, 300]);
    }
}
