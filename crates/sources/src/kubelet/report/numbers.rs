//! Numbers of scraping, as plain data; whoever serves `/metrics` writes them down.

use std::sync::Arc;
use std::time::Duration;

/// The usual bounds of durations, in seconds.
pub const DURATIONS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// How often which durations occurred.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    bounds: Arc<[f64]>,
    /// One count per bound, not added up, and one for what is beyond.
    counts: Box<[u64]>,
    sum: f64,
}

impl Histogram {
    /// An empty one with these upper bounds, ascending.
    pub fn new(bounds: Arc<[f64]>) -> Self {
        let counts = vec![0; bounds.len() + 1].into();
        Self { bounds, counts, sum: 0.0 }
    }

    /// One more.
    pub fn observe(&mut self, value: Duration) {
        let seconds = value.as_secs_f64();
        let at = self.bounds.partition_point(|&bound| bound < seconds);
        if let Some(count) = self.counts.get_mut(at) {
            *count += 1;
        }
        self.sum += seconds;
    }

    /// How many there were up to each bound, as Prometheus wants them; the last is infinite.
    pub fn cumulative(&self) -> impl Iterator<Item = (f64, u64)> {
        let bounds = self.bounds.iter().copied().chain([f64::INFINITY]);
        bounds.zip(&self.counts).scan(0, |total, (bound, count)| {
            *total += count;
            Some((bound, *total))
        })
    }

    /// How many there were.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Their sum in seconds.
    pub fn sum(&self) -> f64 {
        self.sum
    }
}

/// The bounds for the duration of ticks: the usual ones, and some around the period if it is longer.
pub fn tick_bounds(period: Duration) -> Arc<[f64]> {
    let period = period.as_secs_f64();
    let mut bounds = DURATIONS.to_vec();
    if period > 10.0 {
        bounds.extend([f64::midpoint(10.0, period), period, 1.5 * period, 2.0 * period]);
    }
    bounds.into()
}

/// What there is to count about scraping.
#[derive(Clone, Debug, PartialEq)]
pub struct Numbers {
    /// Requests that were answered with metrics.
    pub good: u64,
    /// Requests that were not.
    pub failed: u64,
    /// Failed requests by cause ([`super::Cause::label`]).
    pub causes: Vec<(&'static str, u64)>,
    /// How long requests took, all nodes together.
    pub durations: Histogram,
    /// How long requests took, by node, if that is counted.
    pub by_node: Vec<(Arc<str>, Histogram)>,
    /// When each node was asked last, in whole seconds since the epoch.
    pub last_request: Vec<(Arc<str>, i64)>,
    /// How long a round over all nodes took. Without rounds (not in strict mode): the longest time, in each period,
    /// from when a node was to be asked until its answer was stored.
    pub ticks: Histogram,
    /// How much later than planned nodes were asked.
    pub lateness: Histogram,
    /// Nodes that are asked.
    pub nodes: u64,
    /// Of those, nodes whose last answer was good.
    pub well: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_on_a_bound_is_below_it() {
        let mut histogram = Histogram::new([0.5, 1.0].into());
        for millis in [500, 501, 1000, 5000] {
            histogram.observe(Duration::from_millis(millis));
        }
        let all: Vec<_> = histogram.cumulative().collect();
        assert_eq!(all, [(0.5, 1), (1.0, 3), (f64::INFINITY, 4)]);
        assert_eq!(histogram.count(), 4);
        assert!((histogram.sum() - 7.001).abs() < 1e-9);
    }

    #[test]
    fn ticks_are_counted_around_the_period() {
        let of = |seconds| tick_bounds(Duration::from_secs(seconds)).get(11..).map(<[f64]>::to_vec);
        assert_eq!(of(15), Some(vec![12.5, 15.0, 22.5, 30.0]));
        assert_eq!(of(60), Some(vec![35.0, 60.0, 90.0, 120.0]));
        assert_eq!(of(10), Some(vec![]));
    }
}
