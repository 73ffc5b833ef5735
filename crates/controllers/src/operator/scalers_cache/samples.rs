//! The last sample of each metric of a trigger. Most triggers have one metric, for which a list is smaller than a map.

use std::collections::BTreeMap;
use std::time::Duration;

use keda::activity::Reading;
use tokio::time::Instant;

use super::error::SampleError;

/// How old a sample may be that is used again because its source limits requests. Most limits are per minute; a source that limits
/// requests for longer fails, so that its fallback applies.
const MAX_STALE_AGE: Duration = Duration::from_mins(2);

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
    /// Why its source was not asked again since, and when it is.
    pub(crate) limit: Option<Box<str>>,
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
            limit: None,
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
    /// Why its source was not asked again since, and when it is.
    pub(crate) limit: Option<Box<str>>,
}

impl SampleOrigin {
    /// The type of the trigger, and whether its source is not asked now.
    pub(crate) fn source(&self) -> String {
        match &self.limit {
            Some(limit) => format!("{}, {limit}", self.type_),
            None => self.type_.clone(),
        }
    }
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

    /// The last sample of a metric, if its source limits requests and the sample is not too old.
    pub(super) fn stale(&mut self, metric: &str, error: &SampleError) -> Option<Reading> {
        let limit = error.limit()?;
        let (_, kept) = self.0.iter_mut().find(|(name, _)| **name == *metric)?;
        let reading = kept.reading.as_ref().ok().filter(|_| kept.at.elapsed() < MAX_STALE_AGE)?.clone();
        kept.limit = Some(limit.into());
        Some(reading)
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

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use scalers::ScalerError;
    use sources::http::{HttpError, HttpErrorCause};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn last_sample_stands_for_a_while_if_the_source_limits_requests() {
        let cause = HttpErrorCause::RateLimited { until: Timestamp::UNIX_EPOCH, header: "Retry-After" };
        let limited = HttpError { server: "https://source".to_owned(), cause };
        let limited = SampleError::Source(ScalerError::from(limited).inside("a trigger"));
        let failed = SampleError::Source(ScalerError::new("broken"));
        let now = Instant::now();
        let mut samples = Samples::default();
        assert!(samples.stale("m", &limited).is_none(), "there is no sample, and missing data is not zero");
        let good = Reading { values: Vec::new(), active: true };
        samples.insert("m", CachedSample::new(Ok(good.clone()), now, None));
        assert!(samples.stale("m", &failed).is_none());
        assert_eq!(samples.stale("m", &limited), Some(good));
        let limit = samples.get("m").and_then(|kept| kept.limit.as_deref());
        let text = "asked again at 1970-01-01T00:00:00Z because the source limits requests (Retry-After)";
        assert_eq!(limit, Some(text));
        tokio::time::advance(MAX_STALE_AGE).await;
        assert!(samples.stale("m", &limited).is_none(), "it is too old");
        samples.insert("m", CachedSample::new(Err(limited.clone()), now, None));
        assert!(samples.stale("m", &limited).is_none(), "a failure is no sample");
    }
}
