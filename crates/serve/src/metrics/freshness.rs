//! Ages of the samples in responses.

use std::sync::Mutex;

use jiff::Timestamp;
use locks::MutexExt as _;

/// The number of buckets.
const AGE_BUCKETS: usize = 20;

/// Records the age of every sample in a response.
#[derive(Debug, Default)]
pub struct Freshness(Mutex<FreshnessHistogram>);

/// A histogram of ages in seconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FreshnessHistogram {
    /// The cumulative counts of the buckets.
    pub within: [u64; AGE_BUCKETS],
    /// The number of samples.
    pub count: u64,
    /// The sum of all ages, in seconds.
    pub seconds: f64,
}

impl FreshnessHistogram {
    /// The upper bounds of the buckets in seconds: 1, and each 1.364 times the one before.
    pub fn bounds() -> [f64; AGE_BUCKETS] {
        std::array::from_fn(|index| 1.364_f64.powi(index as i32))
    }
}

impl Freshness {
    /// The current histogram.
    pub fn seen(&self) -> FreshnessHistogram {
        self.0.locked().clone()
    }

    /// Records the age of each sample that has a timestamp.
    pub(super) fn note(&self, now: Timestamp, times: impl Iterator<Item = Option<Timestamp>>) {
        let bounds = FreshnessHistogram::bounds();
        let mut new = FreshnessHistogram::default();
        for time in times.flatten() {
            // A sample may be newer than the list that is being sent.
            let age = now.duration_since(time).as_secs_f64().max(0.0);
            new.count += 1;
            new.seconds += age;
            let first = bounds.partition_point(|bound| *bound < age);
            if let Some(count) = new.within.get_mut(first) {
                *count += 1;
            }
        }
        // The new counts are per bucket; the stored ones are cumulative.
        let mut all = self.0.locked();
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
