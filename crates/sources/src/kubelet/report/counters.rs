//! Counters and histograms of scraping, as plain data; the `/metrics` endpoint formats them.

use std::sync::Arc;
use std::time::Duration;

/// Default histogram bounds in seconds.
pub const DURATION_BOUNDS_SECONDS: [f64; 11] =
    [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// A histogram of durations.
#[derive(Clone, Debug, PartialEq)]
pub struct DurationHistogram {
    bounds: Arc<[f64]>,
    /// One count per bucket, not cumulative; the last one is the overflow bucket.
    counts: Box<[u64]>,
    sum: f64,
}

impl DurationHistogram {
    /// An empty histogram with these upper bounds, ascending.
    pub fn new(bounds: Arc<[f64]>) -> Self {
        let counts = vec![0; bounds.len() + 1].into();
        Self { bounds, counts, sum: 0.0 }
    }

    /// Adds an observation.
    pub fn observe(&mut self, value: Duration) {
        let seconds = value.as_secs_f64();
        let at = self.bounds.partition_point(|&bound| bound < seconds);
        if let Some(count) = self.counts.get_mut(at) {
            *count += 1;
        }
        self.sum += seconds;
    }

    /// Cumulative counts per upper bound, as Prometheus expects them; the last bound is infinite.
    pub fn cumulative(&self) -> impl Iterator<Item = (f64, u64)> {
        let bounds = self.bounds.iter().copied().chain([f64::INFINITY]);
        bounds.zip(&self.counts).scan(0, |total, (bound, count)| {
            *total += count;
            Some((bound, *total))
        })
    }

    /// Number of observations.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Mean of the observations, if there are any.
    pub fn mean(&self) -> Option<Duration> {
        Duration::try_from_secs_f64(self.sum / self.count() as f64).ok()
    }

    /// Sum of observations in seconds.
    pub fn sum(&self) -> f64 {
        self.sum
    }
}

/// Histogram bounds of tick durations: the default ones, and four around the period if it is longer.
pub fn tick_bounds(period: Duration) -> Arc<[f64]> {
    let period = period.as_secs_f64();
    let mut bounds = DURATION_BOUNDS_SECONDS.to_vec();
    if period > 10.0 {
        bounds.extend([f64::midpoint(10.0, period), period, 1.5 * period, 2.0 * period]);
    }
    bounds.into()
}

/// Snapshot of the counters of scraping.
#[derive(Clone, Debug, PartialEq)]
pub struct ScrapeCounters {
    /// Successful scrapes.
    pub good: u64,
    /// Failed scrapes.
    pub failed: u64,
    /// Failed scrapes by cause ([`super::ScrapeErrorCause::label`]).
    pub causes: Vec<(&'static str, u64)>,
    /// Scrape durations, all nodes together.
    pub durations: DurationHistogram,
    /// Scrape durations by node, if counted.
    pub by_node: Vec<(Arc<str>, DurationHistogram)>,
    /// Time of the last scrape by node, in whole seconds since the epoch.
    pub last_request: Vec<(Arc<str>, i64)>,
    /// Durations of rounds over all nodes. Outside strict mode there are no rounds: per period, the longest time from
    /// the due time of a scrape until its result was stored.
    pub ticks: DurationHistogram,
    /// Delays between the due time and the start of scrapes.
    pub lateness: DurationHistogram,
    /// Number of scraped nodes.
    pub nodes: u64,
    /// Number of nodes whose last scrape succeeded.
    pub healthy: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bucket_bounds_are_inclusive() {
        let mut histogram = DurationHistogram::new([0.5, 1.0].into());
        for millis in [500, 501, 1000, 5000] {
            histogram.observe(Duration::from_millis(millis));
        }
        let all: Vec<_> = histogram.cumulative().collect();
        assert_eq!(all, [(0.5, 1), (1.0, 3), (f64::INFINITY, 4)]);
        assert_eq!(histogram.count(), 4);
        assert!((histogram.sum() - 7.001).abs() < 1e-9);
        assert_eq!(histogram.mean().map(|mean| mean.as_millis()), Some(1750));
        assert_eq!(DurationHistogram::new([0.5].into()).mean(), None);
    }

    #[test]
    fn tick_bounds_surround_the_period() {
        let of = |seconds| tick_bounds(Duration::from_secs(seconds)).get(11..).map(<[f64]>::to_vec);
        assert_eq!(of(15), Some(vec![12.5, 15.0, 22.5, 30.0]));
        assert_eq!(of(60), Some(vec![35.0, 60.0, 90.0, 120.0]));
        assert_eq!(of(10), Some(vec![]));
    }
}
