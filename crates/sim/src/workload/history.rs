//! Scrapes of the metrics pipeline: one per interval, kept as long as a metric with delay can read them.

use std::collections::VecDeque;

use super::flow::FlowTotals;
use crate::time::Millis;

/// One scrape of a workload.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScrapedTotals {
    /// Time of the scrape.
    pub at: Millis,
    /// Sums since the start.
    pub totals: FlowTotals,
    /// Units that wait.
    pub backlog: f64,
    /// Ready pods.
    pub ready: usize,
}

/// The time between two scrapes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScrapeWindow {
    /// Start.
    pub from: ScrapedTotals,
    /// End.
    pub to: ScrapedTotals,
}

/// The latest scrapes.
#[derive(Clone, Debug)]
pub struct ScrapeHistory {
    every: Millis,
    keep: usize,
    scrapes: VecDeque<ScrapedTotals>,
}

impl ScrapeHistory {
    /// A history with windows up to `oldest` ago. Before the start, totals grew with the constant `rates` up to `now`.
    pub fn new(every: Millis, oldest: Millis, now: ScrapedTotals, rates: &FlowTotals) -> Self {
        let every = Millis(every.0.max(1));
        let keep = usize::try_from(oldest.0 / every.0).unwrap_or_default() + 3;
        let past = |back: usize| {
            let at = every * -(back as i64);
            ScrapedTotals { at, totals: FlowTotals::steady(rates, at.as_secs_f64()), ..now }
        };
        Self { every, keep, scrapes: (0..keep).rev().map(past).collect() }
    }

    /// When the next scrape is due.
    pub fn next(&self) -> Millis {
        self.scrapes.back().map_or(Millis::ZERO, |last| last.at + self.every)
    }

    /// Adds a scrape.
    pub fn push(&mut self, scrape: ScrapedTotals) {
        if self.scrapes.len() >= self.keep {
            self.scrapes.pop_front();
        }
        self.scrapes.push_back(scrape);
    }

    /// The latest window that had ended at `at`.
    pub fn window(&self, at: Millis) -> Option<ScrapeWindow> {
        let newest = self.scrapes.back()?;
        let late = (newest.at.0 - at.0 + self.every.0 - 1).div_euclid(self.every.0).max(0);
        let to = self.scrapes.len().checked_sub(1 + usize::try_from(late).ok()?)?;
        Some(ScrapeWindow { from: *self.scrapes.get(to.checked_sub(1)?)?, to: *self.scrapes.get(to)? })
    }
}

impl ScrapeWindow {
    /// Its length.
    pub fn length(&self) -> Millis {
        self.to.at - self.from.at
    }

    /// Mean rates over it.
    pub fn rates(&self) -> FlowTotals {
        self.to.totals.rates_since(&self.from.totals, self.length().as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_end_at_the_last_scrape_that_was_due() {
        let now = ScrapedTotals { at: Millis::ZERO, totals: FlowTotals::default(), backlog: 0.0, ready: 1 };
        let rates = FlowTotals { offered: 4.0, served: 4.0, lost: 0.0, per_pod: 4.0 };
        let mut history = ScrapeHistory::new(Millis::from_secs(15), Millis::from_secs(30), now, &rates);
        let window = history.window(Millis(-1)).unwrap();
        assert_eq!((window.from.at, window.to.at), (Millis::from_secs(-30), Millis::from_secs(-15)));
        assert_eq!(window.rates(), rates);
        for k in 1..=10 {
            assert_eq!(history.next(), Millis::from_secs(15 * k));
            history.push(ScrapedTotals { at: Millis::from_secs(15 * k), ..now });
        }
        for (at, end) in [(150_000, 150), (149_999, 135), (135_000, 135), (200_000, 150), (120_000, 120)] {
            assert_eq!(history.window(Millis(at)).unwrap().to.at, Millis::from_secs(end), "{at}");
        }
        assert_eq!(history.window(Millis::ZERO), None);
    }
}
