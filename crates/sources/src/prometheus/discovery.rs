//! Asks for series, selector by selector, without storms.
//!
//! Each distinct selector is asked once per round, few at a time and not all replicas at the same moment. What was found
//! is remembered per selector, so that one that fails, or a series that pauses, does not take metrics away.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::time::Duration;

use api::provider::Compat;
use futures::StreamExt as _;
use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use super::client::{Error, Found, Prometheus};
use super::registry::Series;

/// How series are looked for.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How long after the end of one round the next begins.
    pub interval: Duration,
    /// How far back series may have had their last sample.
    pub max_age: Duration,
    /// How long a metric is known after its series were last seen.
    pub grace: Duration,
    /// How many selectors are asked at once.
    pub parallel: usize,
    /// How many combinations of metric and label names are remembered per selector.
    pub most_remembered: usize,
}

impl Default for Plan {
    fn default() -> Self {
        let interval = Duration::from_mins(10);
        let grace = Duration::from_hours(1);
        Self { interval, max_age: interval, grace, parallel: 2, most_remembered: 500_000 }
    }
}

/// How asking for one selector went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectorStatus {
    /// The selector.
    pub selector: String,
    /// When it was last answered.
    pub last_success: Option<Timestamp>,
    /// How long the last attempt took.
    pub took: Duration,
    /// Why the last attempt failed, and what to do about it.
    pub error: Option<(String, &'static str)>,
    /// How many series it selected when it was last answered.
    pub series: u64,
    /// How many combinations of metric and label names are known.
    pub shapes: usize,
    /// What Prometheus warned of.
    pub warnings: Vec<String>,
}

/// What is known about all selectors of one kind of rules.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    selectors: BTreeMap<Arc<str>, Remembered>,
}

#[derive(Clone, Debug, Default)]
struct Remembered {
    /// Shapes and when they were last seen; those of the last answer are at the end, in its order.
    shapes: Vec<(Series, Timestamp)>,
    last_success: Option<Timestamp>,
    took: Duration,
    error: Option<(String, &'static str)>,
    series: u64,
    warnings: Vec<String>,
}

/// What came of asking for one selector.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// The selector.
    pub selector: Arc<str>,
    /// How long it took.
    pub took: Duration,
    /// What was found.
    pub result: Result<Found, Error>,
}

/// Asks for each selector once.
pub async fn survey(
    prometheus: &Prometheus,
    selectors: Vec<Arc<str>>,
    plan: &Plan,
    now: Timestamp,
) -> Vec<Attempt> {
    let start = plan.start(now);
    futures::stream::iter(selectors)
        .map(|selector| async move {
            let started = Instant::now();
            let result = prometheus.series(&selector, start, now).await;
            Attempt { selector, took: started.elapsed(), result }
        })
        .buffered(plan.parallel.max(1))
        .collect()
        .await
}

impl Plan {
    /// Since when series count in a round that begins now.
    pub fn start(&self, now: Timestamp) -> Timestamp {
        let age = SignedDuration::try_from(self.max_age).unwrap_or(SignedDuration::MAX);
        now.checked_sub(age).unwrap_or(Timestamp::UNIX_EPOCH)
    }

    /// How long to wait after a round. Unless servers are imitated, up to a tenth more or less, so that replicas that
    /// were started together do not ask together for ever.
    pub fn pause(&self, compat: Compat) -> Duration {
        if compat.is_strict() {
            return self.interval;
        }
        // A hasher with its own keys is as good as dice here.
        let dice = RandomState::new().hash_one(0) % 2001;
        self.interval.mul_f64(0.9 + dice as f64 / 10_000.0)
    }
}

impl Memory {
    /// Learns what a round found; says whether anything is known that was not, or the other way round. What is not
    /// `wanted` any more is forgotten.
    ///
    /// As recorded, a round of which any selector failed teaches nothing. Otherwise each selector is on its own, and
    /// what it does not select any more is remembered for a while.
    pub fn learn(
        &mut self,
        wanted: &[Arc<str>],
        round: Vec<Attempt>,
        now: Timestamp,
        compat: Compat,
        plan: &Plan,
    ) -> bool {
        let wanted: HashSet<&str> = wanted.iter().map(|selector| &**selector).collect();
        let known = self.selectors.len();
        self.selectors.retain(|selector, _| wanted.contains(&**selector));
        let mut changed = known != self.selectors.len();
        let failed = round.iter().any(|attempt| attempt.result.is_err());
        for attempt in round {
            let remembered = self.selectors.entry(attempt.selector).or_default();
            remembered.took = attempt.took;
            match attempt.result {
                Err(error) => remembered.error = Some((error.to_string(), error.remedy())),
                Ok(found) => {
                    remembered.error = None;
                    remembered.last_success = Some(now);
                    if !(failed && compat.is_strict()) {
                        let grace = if compat.is_strict() { Duration::ZERO } else { plan.grace };
                        changed |= remembered.replace(found, now, grace, plan.most_remembered);
                    }
                }
            }
        }
        changed
    }

    /// What a selector is known to select.
    pub fn shapes(&self, selector: &str) -> impl Iterator<Item = &Series> {
        self.selectors.get(selector).into_iter().flat_map(|known| known.shapes.iter().map(|(shape, _)| shape))
    }

    /// How asking for a selector went; none if it was never asked for.
    pub fn status(&self, selector: &str) -> Option<SelectorStatus> {
        let known = self.selectors.get(selector)?;
        Some(SelectorStatus {
            selector: selector.to_owned(),
            last_success: known.last_success,
            took: known.took,
            error: known.error.clone(),
            series: known.series,
            shapes: known.shapes.len(),
            warnings: known.warnings.clone(),
        })
    }

    /// Those of these selectors that were not asked for yet, or not answered last time.
    pub fn failed(&self, selectors: &[Arc<str>]) -> Vec<Arc<str>> {
        let answered =
            |selector: &str| self.selectors.get(selector).is_some_and(|known| known.error.is_none());
        selectors.iter().filter(|selector| !answered(selector)).cloned().collect()
    }
}

impl Remembered {
    fn replace(&mut self, found: Found, now: Timestamp, grace: Duration, most: usize) -> bool {
        let grace = SignedDuration::try_from(grace).unwrap_or(SignedDuration::MAX);
        let before: HashMap<Series, Timestamp> = std::mem::take(&mut self.shapes).into_iter().collect();
        let count = before.len();
        let mut fresh = 0;
        let mut missing = before;
        let mut shapes = Vec::with_capacity(found.shapes.len());
        for shape in found.shapes {
            fresh += usize::from(missing.remove(&shape).is_none());
            shapes.push((shape, now));
        }
        // What was seen last stays longest, and the newest is behind all others: of equals the last counts.
        let mut kept: Vec<(Series, Timestamp)> =
            missing.into_iter().filter(|(_, seen)| now.duration_since(*seen) < grace).collect();
        kept.sort_by(|a, b| (a.1, &a.0).cmp(&(b.1, &b.0)));
        let too_many = (kept.len() + shapes.len()).saturating_sub(most).min(kept.len());
        kept.drain(..too_many);
        kept.append(&mut shapes);
        self.shapes = kept;
        self.series = found.series;
        self.warnings = found.warnings;
        fresh > 0 || self.shapes.len() != count
    }
}
