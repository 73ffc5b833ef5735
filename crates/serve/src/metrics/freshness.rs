//! How old what is answered is.

use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;

/// How many bounds there are.
const BOUNDS: usize = 20;

/// Notes the age of everything that is answered.
#[derive(Debug, Default)]
pub struct Freshness(Mutex<FreshnessHistogram>);

/// Ages in seconds, as a histogram.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FreshnessHistogram {
    /// How many were no older than each of the bounds.
    pub within: [u64; BOUNDS],
    /// How many there were.
    pub count: u64,
    /// All together.
    pub seconds: f64,
}

impl FreshnessHistogram {
    /// Seconds: 1, and each 1.364 times the one before.
    pub fn bounds() -> [f64; BOUNDS] {
        std::array::from_fn(|index| 1.364_f64.powi(index as i32))
    }
}

impl Freshness {
    /// What was noted so far.
    pub fn seen(&self) -> FreshnessHistogram {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes the age of each; what has no time has no age.
    pub(super) fn note(&self, now: Timestamp, times: impl Iterator<Item = Option<Timestamp>>) {
        let bounds = FreshnessHistogram::bounds();
        let mut new = FreshnessHistogram::default();
        for time in times.flatten() {
            // What was measured while a long list was sent is newer than the list.
            let age = now.duration_since(time).as_secs_f64().max(0.0);
            new.count += 1;
            new.seconds += age;
            let first = bounds.partition_point(|bound| *bound < age);
            if let Some(count) = new.within.get_mut(first) {
                *count += 1;
            }
        }
        // So far each was counted once.
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut sum = 0;
        for (total, count) in all.within.iter_mut().zip(new.within) {
            sum += count;
            *total += sum;
        }
        all.count += new.count;
        all.seconds += new.seconds;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_counted_by_bounds() {
        let freshness = Freshness::default();
        let at = |second| Timestamp::from_second(second).unwrap();
        freshness.note(at(100), [Some(at(100)), Some(at(90)), None, Some(at(-5000))].into_iter());
        freshness.note(at(100), [Some(at(99))].into_iter());
        let FreshnessHistogram { within, count, seconds } = freshness.seen();
        assert_eq!((count, seconds), (4, 0.0 + 10.0 + 5100.0 + 1.0));
        assert_eq!((within[0], within[7], within[8], within[19]), (2, 2, 3, 3));
        assert!(
            (FreshnessHistogram::bounds()[19] - 364.25).abs() < 1.0,
            "{:?}",
            FreshnessHistogram::bounds()
        );
    }
}
