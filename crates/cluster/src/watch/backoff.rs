//! Exponential backoff with jitter.

use std::time::Duration;

const MIN_RETRY_DELAY: Duration = Duration::from_millis(100);
const MAX_RETRY_DELAY: Duration = Duration::from_secs(10);

/// Delays that double from 0.1 s to 10 s, with jitter so that watches do not retry at the same time.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    tries: u32,
}

impl Backoff {
    pub(super) fn reset(&mut self) {
        self.tries = 0;
    }

    /// The next delay; `jitter` is a random number from 0 to 1.
    pub(super) fn next(&mut self, jitter: f64) -> Duration {
        let full = MIN_RETRY_DELAY.saturating_mul(1 << self.tries.min(16)).min(MAX_RETRY_DELAY);
        self.tries = self.tries.saturating_add(1);
        full.mul_f64(0.5 + 0.5 * jitter.clamp(0.0, 1.0)).max(MIN_RETRY_DELAY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_ten_seconds() {
        let mut backoff = Backoff::default();
        let waits: Vec<u128> = (0..9).map(|_| backoff.next(1.0).as_millis()).collect();
        assert_eq!(waits, [100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]);
        assert_eq!(backoff.next(0.0).as_millis(), 5000);
        backoff.reset();
        assert_eq!(backoff.next(0.0).as_millis(), 100);
    }
}
