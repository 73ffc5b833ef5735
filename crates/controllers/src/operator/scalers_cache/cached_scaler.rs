//! One trigger with its scaler and its last samples.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use api::autoscaling::v2::{MetricSpec, MetricTarget};
use api::keda::Trigger;
use api::map::StringMap;
use api::time::parse_go_duration;
use keda::OperationError;
use keda::activity::{MetricSample, Reading};
use keda::environment::SourceRef;
use locks::MutexExt as _;
use scalers::Scaler;
use scalers::web::{RequestLog, with_max_age_after, with_request_log};
use tokio::time::Instant;

use super::builder::{BuiltScaler, ScalerBuilder};
use super::error::{SampleError, ScalerBuildError};
use super::metrics::Metrics;
use super::push::{PushChannel, PushStream};
use super::query::{MAX_QUERY_DEADLINE, reading_of, specs_of};
use super::samples::{CachedSample, SampleOrigin, Samples};
use super::{SampleQuery, TriggerSamples};
use crate::operator::counters::{RequestPurpose, count_code};
use crate::operator::scaled_resource::ScaledResource;

/// Delay before a failed scaler is rebuilt; it doubles with each further failure. The maximum is short, so that a Secret that
/// appears is noticed.
const MIN_REBUILD_DELAY: Duration = Duration::from_secs(1);
const MAX_REBUILD_DELAY: Duration = Duration::from_secs(30);
/// A query may take this much longer than the trigger's own `timeout`, so that the source reports its own error.
const TIMEOUT_MARGIN: Duration = Duration::from_secs(1);
/// Metrics of one trigger that are queried.
const MAX_METRICS_PER_TRIGGER: usize = 64;

/// One trigger with its scaler and its last samples.
pub(crate) struct CachedScaler {
    index: usize,
    /// The trigger without its metadata, which the object holds.
    trigger: Trigger,
    /// The trigger's own `timeout`.
    timeout: Option<Duration>,
    /// The parsed `ignoreNullValues`, for exported metrics.
    ignores_null_values: bool,
    push: Option<PushChannel>,
    /// Held while the scaler is built, so that it is built once.
    building: tokio::sync::Mutex<()>,
    state: Mutex<ScalerState>,
}

/// A scaler, or why it could not be built.
type CachedBuild = Result<Arc<dyn Scaler>, Arc<ScalerBuildError>>;

#[derive(Default)]
struct ScalerState {
    /// The scaler, or why it could not be built; none if it is to be built.
    scaler: Option<CachedBuild>,
    used: Vec<(SourceRef, String)>,
    specs: Option<(Instant, Metrics)>,
    samples: Samples,
    /// Number of rebuilds in a row that did not help.
    failures: u32,
    /// The earliest time of the next rebuild.
    rebuild_after: Option<Instant>,
    stream: Option<PushStream>,
    last_queried: Option<Instant>,
    /// Whether the event that the scaler was built is recorded.
    announced: bool,
    /// Number of failures, for exported metrics.
    errors: u64,
    /// HTTP requests by status code (none: no response), for exported metrics.
    sent: Vec<(Option<u16>, u64)>,
    /// Empty responses, for exported metrics.
    empty: u64,
}

impl CachedScaler {
    pub(super) fn new(index: usize, trigger: &Trigger, push: Option<PushChannel>) -> Self {
        let (building, state) = (tokio::sync::Mutex::default(), Mutex::default());
        let timeout = trigger.metadata.get("timeout").and_then(|text| match text.parse::<u64>() {
            Ok(milliseconds) => Some(Duration::from_millis(milliseconds)),
            Err(_) => parse_go_duration(text).and_then(|timeout| Duration::try_from(timeout).ok()),
        });
        // The spellings that Go parses as true; the default is true.
        let is_true = |text: &String| matches!(text.as_str(), "1" | "t" | "T" | "true" | "TRUE" | "True");
        let ignores_null_values = trigger.metadata.get("ignoreNullValues").is_none_or(is_true);
        let Trigger { type_, name, use_cached_metrics, authentication_ref, metric_type, .. } =
            trigger.clone();
        let metadata = StringMap::new();
        let trigger = Trigger { type_, name, metadata, use_cached_metrics, authentication_ref, metric_type };
        Self { index, trigger, timeout, ignores_null_values, push, building, state }
    }

    /// Whether empty responses count as zero.
    pub(crate) fn ignores_null_values(&self) -> bool {
        self.ignores_null_values
    }

    pub(crate) fn index(&self) -> usize {
        self.index
    }

    /// The trigger without its metadata, which the object holds.
    pub(crate) fn trigger(&self) -> &Trigger {
        &self.trigger
    }

    /// The deadline of a query: the trigger's own `timeout` and a margin, if that is longer than the default.
    fn query_deadline(&self, deadline: Duration) -> Duration {
        self.timeout.map_or(deadline, |timeout| {
            deadline.max(timeout.saturating_add(TIMEOUT_MARGIN)).min(MAX_QUERY_DEADLINE)
        })
    }

    fn state(&self) -> MutexGuard<'_, ScalerState> {
        self.state.locked()
    }

    pub(super) fn used(&self) -> Vec<(SourceRef, String)> {
        self.state().used.clone()
    }

    pub(super) fn last_queried(&self) -> Option<Instant> {
        self.state().last_queried
    }

    /// Whether the trigger is a push trigger.
    pub(super) fn is_pushed(&self) -> bool {
        self.state().stream.is_some()
    }

    /// When and how a metric, or any metric, was last read.
    pub(crate) fn origin(&self, metric: Option<&str>) -> Option<SampleOrigin> {
        let state = self.state();
        let kept = state.samples.oldest(metric)?;
        Some(SampleOrigin {
            type_: self.trigger.type_.clone(),
            age: kept.at.elapsed(),
            latency: kept.latency,
            is_shared: kept.is_shared,
            limit: kept.limit.clone(),
        })
    }

    /// The last samples, and the number of failures.
    pub(crate) fn samples(&self) -> (BTreeMap<String, CachedSample>, u64) {
        let state = self.state();
        (state.samples.all(), state.errors)
    }

    /// HTTP requests by status code (none: no response), and the number of empty responses.
    pub(crate) fn sent(&self) -> (Vec<(Option<u16>, u64)>, u64) {
        let state = self.state();
        (state.sent.clone(), state.empty)
    }

    /// The metrics that it listed last, if it did.
    pub(crate) fn last_specs(&self) -> Vec<MetricSpec> {
        self.state().specs.as_ref().map(|(_, metrics)| metrics.specs()).unwrap_or_default()
    }

    /// Rebuilds the scaler before its next query.
    pub(super) fn rebuild(&self) {
        let mut state = self.state();
        state.scaler = None;
        state.rebuild_after = None;
    }

    /// Lists the metrics; a list that is at most `age` old is reused.
    pub(super) async fn specs(
        &self,
        builder: &ScalerBuilder,
        owner: &ScaledResource,
        age: Duration,
        deadline: Duration,
    ) -> Result<Vec<MetricSpec>, SampleError> {
        let deadline = self.query_deadline(deadline);
        {
            let mut state = self.state();
            state.last_queried = Some(Instant::now());
            if let Some((at, specs)) = &state.specs
                && at.elapsed() < age
            {
                return Ok(specs.specs());
            }
        }
        let namespace = &owner.metadata().namespace;
        let scaler = self.scaler(builder, owner).await.map_err(SampleError::Build)?;
        let mut listed = specs_of(namespace, &scaler, deadline).await;
        if !matches!(listed, Ok(_) | Err(SampleError::TimedOut(_)))
            && let Some(scaler) = self.rebuilt(builder, owner, &scaler).await
        {
            listed = specs_of(namespace, &scaler, deadline).await;
        }
        let mut state = self.state();
        match &listed {
            Ok(specs) => {
                state.specs = Some((Instant::now(), Metrics::of(specs)));
                let names: Vec<&str> = specs.iter().filter_map(external).map(|(name, _)| name).collect();
                state.samples.only(|name| names.contains(&name));
            }
            Err(_) => state.errors += 1,
        }
        listed
    }

    /// Queries all wanted metrics.
    pub(super) async fn query(
        &self,
        builder: &ScalerBuilder,
        owner: &ScaledResource,
        query: SampleQuery<'_>,
    ) -> TriggerSamples {
        let was_built = self.is_built();
        let specs = match self.specs(builder, owner, query.max_age, query.deadline).await {
            Ok(specs) => specs,
            Err(error) => {
                let samples = self.failed_samples(&error, query);
                return TriggerSamples { specs: Err(error), samples, is_built: was_built || self.is_built() };
            }
        };
        let wanted = specs.iter().filter_map(external).filter(|(name, _)| (query.wanted)(name));
        let queries = wanted
            .take(MAX_METRICS_PER_TRIGGER)
            .map(|(name, target)| self.sample(builder, owner, name, target, query));
        let samples = futures::future::join_all(queries).await;
        TriggerSamples { specs: Ok(specs), samples, is_built: true }
    }

    /// Marks the event that the scaler was built as recorded; returns whether it was not before.
    pub(crate) fn mark_announced(&self) -> bool {
        !std::mem::replace(&mut self.state().announced, true)
    }

    /// Whether the scaler was built, even if its source fails.
    pub(crate) fn is_built(&self) -> bool {
        matches!(self.state().scaler, Some(Ok(_)))
    }

    /// Failed samples of the metrics that the trigger had, because it does not list them now.
    fn failed_samples(&self, error: &SampleError, query: SampleQuery<'_>) -> Vec<MetricSample> {
        let specs = self.last_specs();
        let wanted = specs.iter().filter_map(external).filter(|(name, _)| (query.wanted)(name));
        let mut state = self.state();
        let one = |(name, target): (&str, &MetricTarget)| {
            let kept = state.samples.get(name);
            let is_remembered =
                kept.is_some_and(|kept| kept.reading.is_err() && kept.at.elapsed() < query.max_failure_age);
            if !is_remembered {
                let reading = Err(error.clone());
                let kept = CachedSample::new(reading, Instant::now(), None);
                state.samples.insert(name, kept);
            }
            let (name, target) = (name.to_owned(), target.clone());
            MetricSample {
                name,
                target,
                reading: Err(OperationError::from_error(error.clone())),
                is_remembered,
                is_ignored: false,
            }
        };
        wanted.take(MAX_METRICS_PER_TRIGGER).map(one).collect()
    }

    async fn sample(
        &self,
        builder: &ScalerBuilder,
        owner: &ScaledResource,
        name: &str,
        target: &MetricTarget,
        query: SampleQuery<'_>,
    ) -> MetricSample {
        let sample = |reading, is_remembered| MetricSample {
            name: name.to_owned(),
            target: target.clone(),
            reading,
            is_remembered,
            is_ignored: false,
        };
        let record = query.records.filter(|_| self.trigger.use_cached_metrics).and_then(|all| all.get(name));
        if let Some(record) = record {
            return sample(record.clone(), true);
        }
        if let Some(observation) = query.observed.and_then(|all| all.get(name)) {
            return sample(observation.reading.clone(), true);
        }
        if let Some(kept) = self.state().samples.get(name)
            && kept.at.elapsed() < if kept.reading.is_err() { query.max_failure_age } else { query.max_age }
        {
            return sample(kept.reading.clone().map_err(OperationError::from_error), true);
        }
        let began = Instant::now();
        // In a box, because each of the functions around it keeps it several times.
        let reading = Box::pin(self.read(builder, owner, name, query.deadline));
        let reading = with_max_age_after(query.max_shared_age, query.not_before, reading);
        let ((reading, since), log) = with_request_log(reading).await;
        let metadata = owner.metadata();
        let purpose = RequestPurpose {
            scaler: &self.trigger.type_,
            namespace: &metadata.namespace,
            object: &metadata.name,
            trigger_name: &self.trigger.name,
            metric: name,
        };
        builder.durations.observe(purpose, &log);
        // In KEDA a source that limits requests fails.
        let refused = reading.as_ref().err().filter(|_| !builder.backends.compat.is_strict());
        let stale = refused.and_then(|error| self.state().samples.stale(name, error));
        if let Some(stale) = stale {
            self.state().count(&log);
            return sample(Ok(stale), true);
        }
        let kept = CachedSample::new(reading.clone(), began, since);
        let mut state = self.state();
        if reading.is_err() {
            state.errors += 1;
        } else {
            (state.failures, state.rebuild_after) = (0, None);
        }
        state.samples.insert(name, kept);
        state.count(&log);
        drop(state);
        sample(reading.map_err(OperationError::from_error), false)
    }

    async fn read(
        &self,
        builder: &ScalerBuilder,
        owner: &ScaledResource,
        name: &str,
        deadline: Duration,
    ) -> Result<Reading, SampleError> {
        let (deadline, namespace) = (self.query_deadline(deadline), &owner.metadata().namespace);
        let scaler = self.scaler(builder, owner).await.map_err(SampleError::Build)?;
        match reading_of(namespace, &scaler, name, deadline).await {
            // A new scaler does not change that a source limits requests.
            Err(error @ SampleError::Source(_)) if error.limit().is_none() => {
                match self.rebuilt(builder, owner, &scaler).await {
                    Some(scaler) => reading_of(namespace, &scaler, name, deadline).await,
                    None => Err(error),
                }
            }
            reading => reading,
        }
    }

    /// The scaler, built if it is not. A failed build is not retried for a while.
    async fn scaler(&self, builder: &ScalerBuilder, owner: &ScaledResource) -> CachedBuild {
        if let Some(known) = self.cached() {
            return known;
        }
        let _lock = self.building.lock().await;
        match self.cached() {
            Some(known) => known,
            // In a box, because it is rare and much larger than the rest of the future.
            None => Box::pin(self.build(builder, owner)).await,
        }
    }

    fn cached(&self) -> Option<CachedBuild> {
        let state = self.state();
        match &state.scaler {
            Some(Err(_)) if state.rebuild_after.is_none_or(|at| at <= Instant::now()) => None,
            known => known.clone(),
        }
    }

    /// The scaler, rebuilt because `failed` failed; none if it was rebuilt a moment ago.
    async fn rebuilt(
        &self,
        builder: &ScalerBuilder,
        owner: &ScaledResource,
        failed: &Arc<dyn Scaler>,
    ) -> Option<Arc<dyn Scaler>> {
        let _lock = self.building.lock().await;
        if let Some(Ok(known)) = &self.state().scaler
            && !Arc::ptr_eq(known, failed)
        {
            // Another query has rebuilt it.
            return Some(Arc::clone(known));
        }
        {
            let mut state = self.state();
            if state.rebuild_after.is_some_and(|at| at > Instant::now()) {
                return None;
            }
            state.delay_rebuild();
        }
        Box::pin(self.build(builder, owner)).await.ok()
    }

    async fn build(&self, builder: &ScalerBuilder, owner: &ScaledResource) -> CachedBuild {
        let Some(trigger) = owner.triggers().get(self.index) else {
            return Err(Arc::new(ScalerBuildError::Edited));
        };
        let BuiltScaler { scaler, used } = builder.build_scaler(owner, self.index, trigger).await;
        let scaler = scaler.map_err(Arc::new);
        let stream = match (&scaler, &self.push) {
            (Ok(scaler), Some(push)) => push.open(scaler),
            _ => None,
        };
        let mut state = self.state();
        if scaler.is_err() {
            state.delay_rebuild();
        }
        (state.scaler, state.used, state.stream) = (Some(scaler.clone()), used, stream);
        scaler
    }
}

impl ScalerState {
    fn count(&mut self, log: &RequestLog) {
        self.empty += u64::from(log.empty);
        for sent in &log.sent {
            count_code(&mut self.sent, sent.code);
        }
    }

    /// Delays the next rebuild after one more failure.
    fn delay_rebuild(&mut self) {
        let pause = MIN_REBUILD_DELAY.saturating_mul(1 << self.failures.min(10)).min(MAX_REBUILD_DELAY);
        self.rebuild_after = Some(Instant::now() + pause);
        self.failures = self.failures.saturating_add(1);
    }
}

/// Name and target of an external metric.
pub(super) fn external(spec: &MetricSpec) -> Option<(&str, &MetricTarget)> {
    spec.external.as_ref().map(|external| (external.metric.name.as_str(), &external.target))
}

#[cfg(test)]
mod tests;
