//! The last sample of each metric of a trigger. Most triggers have one metric, for which a list is smaller than a map.

use std::collections::BTreeMap;
use std::time::Duration;

use keda::activity::Reading;
use tokio::time::Instant;

use super::error::SampleError;

/// The last sample of a metric.
#[derive(Clone, Debug)]
pub(crate) struct CachedSample {
    pub(crate) at: Instant,
    /// The values, or why there are none.
    pub(crate) reading: Result<Reading, SampleError>,
    /// How long the query took.
    pub(crate) latency: Duration,
    /// Whether the response of an earlier query was used.
    pub(crate) is_shared: bool,
}

impl CachedSample {
    /// The sample of a query that ends now. `since` is the time of its oldest response: a shared response is as old as the query that got it.
    pub(super) fn new(reading: Result<Reading, SampleError>, began: Instant, since: Option<Instant>) -> Self {
        let now = Instant::now();
        Self {
            at: since.unwrap_or(now),
            reading,
            latency: now - began,
            is_shared: since.is_some_and(|since| since < began),
        }
    }
}

/// When and how a metric was last read from its trigger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SampleOrigin {
    /// The type of the trigger.
    pub(crate) type_: String,
    /// How long ago it was read.
    pub(crate) age: Duration,
    /// How long the query took.
    pub(crate) latency: Duration,
    /// Whether the response of an earlier query was used.
    pub(crate) is_shared: bool,
}

/// The last samples, by metric.
#[derive(Debug, Default)]
pub(super) struct Samples(Vec<(Box<str>, CachedSample)>);

impl Samples {
    pub(super) fn get(&self, metric: &str) -> Option<&CachedSample> {
        self.0.iter().find(|(name, _)| **name == *metric).map(|(_, kept)| kept)
    }

    /// The last good sample of a metric, or of any metric; the oldest of several. Names of metrics are compared without case.
    pub(super) fn oldest(&self, metric: Option<&str>) -> Option<&CachedSample> {
        let wanted = |name: &str| metric.is_none_or(|metric| metric.eq_ignore_ascii_case(name));
        let good = self.0.iter().filter(|(name, kept)| wanted(name) && kept.reading.is_ok());
        good.map(|(_, kept)| kept).min_by_key(|kept| kept.at)
    }

    pub(super) fn insert(&mut self, metric: &str, kept: CachedSample) {
        match self.0.iter_mut().find(|(name, _)| **name == *metric) {
            Some((_, old)) => *old = kept,
            None => {
                self.0.reserve_exact(1);
                self.0.push((metric.into(), kept));
            }
        }
    }

    /// Drops the samples of other metrics.
    pub(super) fn only(&mut self, is_known: impl Fn(&str) -> bool) {
        self.0.retain(|(name, _)| is_known(name));
    }

    /// All samples, sorted by metric.
    pub(super) fn all(&self) -> BTreeMap<String, CachedSample> {
        self.0.iter().map(|(name, kept)| (name.to_string(), kept.clone())).collect()
    }
}
