//! Discovery of series, selector by selector.
//!
//! Each distinct selector is listed once per round, few at a time, and with jitter between replicas. Results are kept
//! per selector, so that a failed request or a paused series does not remove metrics.

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

use super::client::{PrometheusClient, PrometheusError, SeriesResult};
use super::registry::Series;

/// Settings of discovery.
#[derive(Clone, Debug)]
pub struct DiscoverySettings {
    /// Pause between two rounds.
    pub interval: Duration,
    /// Maximum age of the last sample of a series.
    pub max_age: Duration,
    /// How long a metric stays known after its series were last seen.
    pub grace: Duration,
    /// Concurrent series requests.
    pub parallel: usize,
    /// Maximum number of series shapes per selector.
    pub max_series_per_selector: usize,
}

impl Default for DiscoverySettings {
    fn default() -> Self {
        let interval = Duration::from_mins(10);
        let grace = Duration::from_hours(1);
        Self { interval, max_age: interval, grace, parallel: 2, max_series_per_selector: 500_000 }
    }
}

/// Status of one selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectorStatus {
    /// The selector.
    pub selector: String,
    /// Time of the last success.
    pub last_success: Option<Timestamp>,
    /// Duration of the last request.
    pub took: Duration,
    /// Last error and its remedy.
    pub error: Option<(String, &'static str)>,
    /// Number of series in the last response.
    pub series: u64,
    /// Number of known series shapes.
    pub shapes: usize,
    /// Warnings.
    pub warnings: Vec<String>,
}

/// Discovered series of all selectors of one rule family.
#[derive(Clone, Debug, Default)]
pub struct DiscoveryState {
    selectors: BTreeMap<Arc<str>, SelectorState>,
}

#[derive(Clone, Debug, Default)]
struct SelectorState {
    /// Shapes and when they were last seen; those of the last response are at the end, in its order.
    shapes: Vec<(Series, Timestamp)>,
    last_success: Option<Timestamp>,
    took: Duration,
    error: Option<(String, &'static str)>,
    series: u64,
    warnings: Vec<String>,
}

/// Result of listing one selector.
#[derive(Clone, Debug)]
pub struct DiscoveryAttempt {
    /// The selector.
    pub selector: Arc<str>,
    /// Duration.
    pub took: Duration,
    /// Result.
    pub result: Result<SeriesResult, PrometheusError>,
}

/// Lists the series of each selector once.
pub async fn list_series(
    prometheus: &PrometheusClient,
    selectors: Vec<Arc<str>>,
    plan: &DiscoverySettings,
    now: Timestamp,
) -> Vec<DiscoveryAttempt> {
    let start = plan.start(now);
    futures::stream::iter(selectors)
        .map(|selector| async move {
            let started = Instant::now();
            let result = prometheus.series(&selector, start, now).await;
            DiscoveryAttempt { selector, took: started.elapsed(), result }
        })
        .buffered(plan.parallel.max(1))
        .collect()
        .await
}

impl DiscoverySettings {
    /// Start of the series request of a round that begins now.
    pub fn start(&self, now: Timestamp) -> Timestamp {
        let age = SignedDuration::try_from(self.max_age).unwrap_or(SignedDuration::MAX);
        now.checked_sub(age).unwrap_or(Timestamp::UNIX_EPOCH)
    }

    /// Pause after a round. Outside strict mode with up to 10 % jitter, so that replicas started together drift
    /// apart.
    pub fn pause(&self, compat: Compat) -> Duration {
        if compat.is_strict() {
            return self.interval;
        }
        // A randomly seeded hasher is a sufficient source of jitter.
        let dice = RandomState::new().hash_one(0) % 2001;
        self.interval.mul_f64(0.9 + dice as f64 / 10_000.0)
    }
}

impl DiscoveryState {
    /// Applies the results of a round; whether the known series changed. Selectors that are not `wanted` are dropped.
    ///
    /// In strict mode a round with any failure changes nothing, as in prometheus-adapter. Otherwise each selector is
    /// independent, and missing series stay known for a grace period.
    pub fn update(
        &mut self,
        wanted: &[Arc<str>],
        round: Vec<DiscoveryAttempt>,
        now: Timestamp,
        compat: Compat,
        plan: &DiscoverySettings,
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
                        changed |= remembered.replace(found, now, grace, plan.max_series_per_selector);
                    }
                }
            }
        }
        changed
    }

    /// Known series of a selector.
    pub fn shapes(&self, selector: &str) -> impl Iterator<Item = &Series> {
        self.selectors.get(selector).into_iter().flat_map(|known| known.shapes.iter().map(|(shape, _)| shape))
    }

    /// Status of a selector; `None` before its first request.
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

    /// Selectors without a successful last request.
    pub fn failed(&self, selectors: &[Arc<str>]) -> Vec<Arc<str>> {
        let answered =
            |selector: &str| self.selectors.get(selector).is_some_and(|known| known.error.is_none());
        selectors.iter().filter(|selector| !answered(selector)).cloned().collect()
    }
}

impl SelectorState {
    fn replace(&mut self, found: SeriesResult, now: Timestamp, grace: Duration, max_series: usize) -> bool {
        let grace = SignedDuration::try_from(grace).unwrap_or(SignedDuration::MAX);
        let before = std::mem::take(&mut self.shapes);
        let mut missing: HashMap<&Series, Timestamp> =
            before.iter().map(|(shape, seen)| (shape, *seen)).collect();
        let mut shapes = Vec::with_capacity(found.shapes.len());
        for shape in found.shapes {
            missing.remove(&shape);
            shapes.push((shape, now));
        }
        // The most recently seen shapes are kept longest, and the newest come last, because the last of equal metrics
        // wins.
        let retained = missing.into_iter().filter(|(_, seen)| now.duration_since(*seen) < grace);
        let mut retained: Vec<(Series, Timestamp)> =
            retained.map(|(shape, seen)| (shape.clone(), seen)).collect();
        retained.sort_by(|a, b| (a.1, &a.0).cmp(&(b.1, &b.0)));
        let too_many = (retained.len() + shapes.len()).saturating_sub(max_series).min(retained.len());
        retained.drain(..too_many);
        retained.append(&mut shapes);
        self.shapes = retained;
        self.series = found.series;
        self.warnings = found.warnings;
        // The order counts too: a metric of two series changes to the other one when its series vanishes.
        !self.shapes.iter().map(|(shape, _)| shape).eq(before.iter().map(|(shape, _)| shape))
    }
}
