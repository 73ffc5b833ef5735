//! One trigger: its scaler, and what it last said.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use api::autoscaling::v2::{MetricSpec, MetricTarget};
use api::keda::Trigger;
use api::map::StringMap;
use api::time::parse_go_duration;
use keda::activity::{MetricSample, MetricValue, Reading};
use keda::environment::SourceRef;
use scalers::Scaler;
use scalers::web::{RequestLog, with_max_age, with_request_log};
use tokio::time::{Instant, timeout};

use super::builder::{BuiltScaler, ScalerBuilder};
use super::metrics::Metrics;
use super::owner::ScaledResource;
use super::push::{Line, Stream};
use super::samples::Samples;
use super::{SampleQuery, TriggerSamples};

/// After a failure a scaler is not built anew before so much has passed; twice as long with each further one.
const PAUSE: Duration = Duration::from_secs(1);
/// But not longer than this, so that a secret that appears is noticed.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// A source that answers at the last moment is heard.
const MOMENT: Duration = Duration::from_secs(1);
/// Nobody waits longer, whatever a trigger says.
const LONGEST_PATIENCE: Duration = Duration::from_mins(2);
/// No more metrics of one trigger are remembered.
const MOST_METRICS: usize = 64;

/// One trigger.
pub(crate) struct CachedScaler {
    index: usize,
    /// Without its parameters, which are in the object.
    trigger: Trigger,
    /// SampleQuery long it says that it may take.
    timeout: Option<Duration>,
    line: Option<Line>,
    /// Held while it is built, so that it is built once.
    building: tokio::sync::Mutex<()>,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// Ready to be asked, or why not; none if it was never built or is to be built anew.
    scaler: Option<Result<Arc<dyn Scaler>, String>>,
    used: Vec<(SourceRef, String)>,
    specs: Option<(Instant, Metrics)>,
    samples: Samples,
    /// SampleQuery often in a row it was built in vain.
    failures: u32,
    /// Until when it is not built anew.
    pause: Option<Instant>,
    stream: Option<Stream>,
    asked: Option<Instant>,
    /// Whether it was told that it is built.
    announced: bool,
    /// SampleQuery often it failed, for figures.
    errors: u64,
    /// Requests that it has sent over HTTP, by the code of the answer (0: none), for figures.
    sent: Vec<(u16, u64)>,
    /// Answers in which there was nothing, for figures.
    empty: u64,
}

/// What was said of a metric.
#[derive(Clone, Debug)]
pub(crate) struct CachedSample {
    /// When.
    pub(crate) at: Instant,
    /// What, or why nothing.
    pub(crate) reading: Result<Reading, String>,
    /// SampleQuery long it took.
    pub(crate) latency: Duration,
}

impl CachedScaler {
    pub(super) fn new(index: usize, trigger: &Trigger, line: Option<Line>) -> Self {
        let (building, inner) = (tokio::sync::Mutex::default(), Mutex::default());
        let timeout = trigger.metadata.get("timeout").and_then(|text| match text.parse::<u64>() {
            Ok(milliseconds) => Some(Duration::from_millis(milliseconds)),
            Err(_) => parse_go_duration(text).and_then(|said| Duration::try_from(said).ok()),
        });
        let Trigger { type_, name, use_cached_metrics, authentication_ref, metric_type, .. } =
            trigger.clone();
        let metadata = StringMap::new();
        let trigger = Trigger { type_, name, metadata, use_cached_metrics, authentication_ref, metric_type };
        Self { index, trigger, timeout, line, building, inner }
    }

    pub(crate) fn index(&self) -> usize {
        self.index
    }

    /// The trigger without its parameters, which are in the object.
    pub(crate) fn trigger(&self) -> &Trigger {
        &self.trigger
    }

    /// SampleQuery long it may take: as long as it says itself, and a moment more, if that is longer.
    fn patience(&self, deadline: Duration) -> Duration {
        self.timeout.map_or(deadline, |said| deadline.max(said.saturating_add(MOMENT)).min(LONGEST_PATIENCE))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn used(&self) -> Vec<(SourceRef, String)> {
        self.inner().used.clone()
    }

    pub(super) fn last_asked(&self) -> Option<Instant> {
        self.inner().asked
    }

    /// Whether it tells of activity itself.
    pub(super) fn is_pushed(&self) -> bool {
        self.inner().stream.is_some()
    }

    /// What was last said of its metrics, and how often it failed.
    pub(crate) fn samples(&self) -> (BTreeMap<String, CachedSample>, u64) {
        let inner = self.inner();
        (inner.samples.all(), inner.errors)
    }

    /// Requests that it has sent over HTTP by the code of their answers (0: none), and how many of those were empty.
    pub(crate) fn sent(&self) -> (Vec<(u16, u64)>, u64) {
        let inner = self.inner();
        (inner.sent.clone(), inner.empty)
    }

    /// The metrics it last told, if it did.
    pub(crate) fn last_specs(&self) -> Vec<MetricSpec> {
        self.inner().specs.as_ref().map(|(_, metrics)| metrics.specs()).unwrap_or_default()
    }

    /// Builds it anew before it is next asked.
    pub(super) fn renew(&self) {
        let mut inner = self.inner();
        inner.scaler = None;
        inner.pause = None;
    }

    /// Its metrics; what was said no longer than `age` ago is good enough.
    pub(super) async fn specs(
        &self,
        builder: &ScalerBuilder,
        owner: &ScaledResource,
        age: Duration,
        deadline: Duration,
    ) -> Result<Vec<MetricSpec>, String> {
        let deadline = self.patience(deadline);
        {
            let mut inner = self.inner();
            inner.asked = Some(Instant::now());
            if let Some((at, specs)) = &inner.specs
                && at.elapsed() < age
            {
                return Ok(specs.specs());
            }
        }
        let scaler = self.scaler(builder, owner).await?;
        let mut told = specs_of(&scaler, deadline).await;
        if !matches!(&told, Ok(specs) if !specs.is_empty())
            && !matches!(told, Err(Refusal::Late(_)))
            && let Some(scaler) = self.again(builder, owner, &scaler).await
        {
            told = specs_of(&scaler, deadline).await;
        }
        let told = match told {
            Ok(specs) if specs.is_empty() => Err("got empty metric spec".to_owned()),
            Ok(specs) => Ok(specs),
            Err(refusal) => Err(refusal.text()),
        };
        let mut inner = self.inner();
        match &told {
            Ok(specs) => {
                inner.specs = Some((Instant::now(), Metrics::of(specs)));
                let names: Vec<&str> = specs.iter().filter_map(external).map(|(name, _)| name).collect();
                inner.samples.only(|name| names.contains(&name));
            }
            Err(_) => inner.errors += 1,
        }
        told
    }

    /// What it says.
    pub(super) async fn ask(
        &self,
        builder: &ScalerBuilder,
        owner: &ScaledResource,
        how: SampleQuery<'_>,
    ) -> TriggerSamples {
        let was_built = self.is_built();
        let specs = match self.specs(builder, owner, how.age, how.deadline).await {
            Ok(specs) => specs,
            Err(error) => {
                let samples = self.silent(&error, how);
                return TriggerSamples { specs: Err(error), samples, is_built: was_built || self.is_built() };
            }
        };
        let wanted = specs.iter().filter_map(external).filter(|(name, _)| (how.wanted)(name));
        let asked =
            wanted.take(MOST_METRICS).map(|(name, target)| self.sample(builder, owner, name, target, how));
        let samples = futures::future::join_all(asked).await;
        TriggerSamples { specs: Ok(specs), samples, is_built: true }
    }

    /// Whether it is to be told that it is built: once.
    pub(crate) fn is_news(&self) -> bool {
        !std::mem::replace(&mut self.inner().announced, true)
    }

    /// Whether there is a scaler, whatever it says.
    pub(crate) fn is_built(&self) -> bool {
        matches!(self.inner().scaler, Some(Ok(_)))
    }

    /// The metrics it had fail, since it does not even say which it has.
    fn silent(&self, error: &str, how: SampleQuery<'_>) -> Vec<MetricSample> {
        let specs = self.last_specs();
        let wanted = specs.iter().filter_map(external).filter(|(name, _)| (how.wanted)(name));
        let mut inner = self.inner();
        let one = |(name, target): (&str, &MetricTarget)| {
            let kept = inner.samples.get(name);
            let is_remembered =
                kept.is_some_and(|kept| kept.reading.is_err() && kept.at.elapsed() < how.failures);
            if !is_remembered {
                let reading = Err(error.to_owned());
                let kept = CachedSample { at: Instant::now(), reading, latency: Duration::ZERO };
                inner.samples.insert(name, kept);
            }
            let (name, target) = (name.to_owned(), target.clone());
            MetricSample { name, target, reading: Err(error.to_owned()), is_remembered }
        };
        wanted.take(MOST_METRICS).map(one).collect()
    }

    async fn sample(
        &self,
        builder: &ScalerBuilder,
        owner: &ScaledResource,
        name: &str,
        target: &MetricTarget,
        how: SampleQuery<'_>,
    ) -> MetricSample {
        let told = |reading, is_remembered| MetricSample {
            name: name.to_owned(),
            target: target.clone(),
            reading,
            is_remembered,
        };
        let record = how.records.filter(|_| self.trigger.use_cached_metrics).and_then(|all| all.get(name));
        if let Some(record) = record {
            return told(record.clone(), true);
        }
        if let Some(kept) = self.inner().samples.get(name)
            && kept.at.elapsed() < if kept.reading.is_err() { how.failures } else { how.age }
        {
            return told(kept.reading.clone(), true);
        }
        let began = Instant::now();
        let reading = with_max_age(how.others, self.read(builder, owner, name, how.deadline));
        let ((reading, since), account) = Box::pin(with_request_log(reading)).await;
        builder.durations.count(&self.trigger.type_, &account);
        let now = Instant::now();
        // What somebody else asked for is as old as it is.
        let kept = CachedSample { at: since.unwrap_or(now), reading: reading.clone(), latency: now - began };
        let mut inner = self.inner();
        if reading.is_err() {
            inner.errors += 1;
        } else {
            (inner.failures, inner.pause) = (0, None);
        }
        inner.samples.insert(name, kept);
        inner.count(&account);
        drop(inner);
        told(reading, false)
    }

    async fn read(
        &self,
        builder: &ScalerBuilder,
        owner: &ScaledResource,
        name: &str,
        deadline: Duration,
    ) -> Result<Reading, String> {
        let deadline = self.patience(deadline);
        let scaler = self.scaler(builder, owner).await?;
        match reading_of(&scaler, name, deadline).await {
            Err(Refusal::Said(error)) => match self.again(builder, owner, &scaler).await {
                Some(scaler) => reading_of(&scaler, name, deadline).await.map_err(Refusal::text),
                None => Err(error),
            },
            told => told.map_err(Refusal::text),
        }
    }

    /// The scaler, built if it is not; one that could not be built is not tried again for a while.
    async fn scaler(
        &self,
        builder: &ScalerBuilder,
        owner: &ScaledResource,
    ) -> Result<Arc<dyn Scaler>, String> {
        if let Some(known) = self.known() {
            return known;
        }
        let _alone = self.building.lock().await;
        match self.known() {
            Some(known) => known,
            // Rare, and as large as the largest of all types: not a part of every question.
            None => Box::pin(self.build(builder, owner)).await,
        }
    }

    fn known(&self) -> Option<Result<Arc<dyn Scaler>, String>> {
        let inner = self.inner();
        match &inner.scaler {
            Some(Err(_)) if inner.pause.is_none_or(|pause| pause <= Instant::now()) => None,
            known => known.clone(),
        }
    }

    /// The scaler, built anew because `failed` did; none if that was tried a moment ago.
    async fn again(
        &self,
        builder: &ScalerBuilder,
        owner: &ScaledResource,
        failed: &Arc<dyn Scaler>,
    ) -> Option<Arc<dyn Scaler>> {
        let _alone = self.building.lock().await;
        if let Some(Ok(known)) = &self.inner().scaler
            && !Arc::ptr_eq(known, failed)
        {
            // Somebody else was faster.
            return Some(Arc::clone(known));
        }
        {
            let mut inner = self.inner();
            if inner.pause.is_some_and(|pause| pause > Instant::now()) {
                return None;
            }
            inner.rest();
        }
        Box::pin(self.build(builder, owner)).await.ok()
    }

    async fn build(
        &self,
        builder: &ScalerBuilder,
        owner: &ScaledResource,
    ) -> Result<Arc<dyn Scaler>, String> {
        let Some(trigger) = owner.triggers().get(self.index) else {
            return Err("the object was edited meanwhile".to_owned());
        };
        let BuiltScaler { scaler, used } = builder.build_scaler(owner, self.index, trigger).await;
        let stream = match (&scaler, &self.line) {
            (Ok(scaler), Some(line)) => line.listen(scaler),
            _ => None,
        };
        let mut inner = self.inner();
        if scaler.is_err() {
            inner.rest();
        }
        (inner.scaler, inner.used, inner.stream) = (Some(scaler.clone()), used, stream);
        scaler
    }
}

impl Inner {
    fn count(&mut self, account: &RequestLog) {
        self.empty += u64::from(account.empty);
        for code in account.sent.iter().map(|sent| sent.code.unwrap_or(0)) {
            match self.sent.iter_mut().find(|(own, _)| *own == code) {
                Some((_, count)) => *count += 1,
                None => {
                    self.sent.reserve_exact(1);
                    self.sent.push((code, 1));
                }
            }
        }
    }

    /// After one more failure it is left alone for a while.
    fn rest(&mut self) {
        let pause = PAUSE.saturating_mul(1 << self.failures.min(10)).min(LONGEST_PAUSE);
        self.pause = Some(Instant::now() + pause);
        self.failures = self.failures.saturating_add(1);
    }
}

/// Why there is no answer.
enum Refusal {
    /// In its own words.
    Said(String),
    /// It took too long.
    Late(Duration),
}

impl Refusal {
    fn text(self) -> String {
        match self {
            Self::Said(text) => text,
            Self::Late(after) => format!("no answer within {} s", after.as_secs_f64()),
        }
    }
}

async fn specs_of(scaler: &Arc<dyn Scaler>, deadline: Duration) -> Result<Vec<MetricSpec>, Refusal> {
    let told = timeout(deadline, scaler.specs()).await.map_err(|_| Refusal::Late(deadline))?;
    told.map_err(|error| Refusal::Said(error.into()))
}

async fn reading_of(scaler: &Arc<dyn Scaler>, name: &str, deadline: Duration) -> Result<Reading, Refusal> {
    let told = timeout(deadline, scaler.read(name)).await.map_err(|_| Refusal::Late(deadline))?;
    let told = told.map_err(|error| Refusal::Said(error.into()))?;
    let value = |value: scalers::MetricValue| MetricValue { name: value.name, value: value.value };
    Ok(Reading { values: told.values.into_iter().map(value).collect(), active: told.active })
}

/// Name and target of an external metric.
pub(super) fn external(spec: &MetricSpec) -> Option<(&str, &MetricTarget)> {
    spec.external.as_ref().map(|external| (external.metric.name.as_str(), &external.target))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It is moved a few times before it is awaited: as large as the largest of all types, that was a third of a poll.
    #[test]
    fn what_asks_a_source_is_small() {
        fn size<A, B, C, D, E, F>(_: impl FnOnce(A, B, C, D, E) -> F) -> usize {
            size_of::<F>()
        }
        let size = size(CachedScaler::read);
        assert!(size < 2048, "{size}");
    }

    #[test]
    fn a_trigger_that_asks_for_more_time_gets_it_within_reason() {
        let deadline = Duration::from_secs(10);
        for (said, expected) in
            [("", 10), ("500", 10), ("20000", 21), ("30s", 31), ("1h", 120), ("soon", 10), ("-5s", 10)]
        {
            let mut trigger = Trigger::default();
            if !said.is_empty() {
                trigger.metadata.insert("timeout".to_owned(), said.to_owned());
            }
            let slot = CachedScaler::new(0, &trigger, None);
            assert_eq!(slot.patience(deadline), Duration::from_secs(expected), "{said}");
        }
    }
}
