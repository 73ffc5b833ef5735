//! The scalers of each object, and their last samples.
//!
//! ```text
//! query          queries a scaler, within a deadline
//! builder        from a trigger to a scaler: credentials, environment          needs a client
//! cached_scaler  one scaler with its samples; rebuilds it when it fails
//! error          why a trigger has no scaler or no sample
//! metrics        the metrics that a trigger listed last
//! samples        the last sample of each metric of a trigger
//! push           triggers that report activity themselves
//! ```

mod builder;
mod cached_scaler;
mod error;
mod metrics;
mod push;
mod query;
mod samples;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api::autoscaling::v2::MetricSpec;
use api::provider::Compat;
use keda::OperationError;
use keda::activity::{self, CachedReading, HpaObservations};
use keda::environment::SourceRef;
use keda::modifiers::{CompiledFormula, ModifiersError};
use scalers::table::WakeMode;
use tokio::time::Instant;

pub use builder::BuildScaler;
pub(crate) use builder::{ScalerBuilder, display_name};
pub(crate) use cached_scaler::CachedScaler;
pub(crate) use error::{SampleError, ScalerBuildError};
pub(crate) use push::{MIN_WAKE_INTERVAL, PendingPush, PushNotification, PushReport, PushSender};
pub(crate) use samples::SampleOrigin;

use super::scaled_resource::{ScaledResource, query_group};

/// The scalers of one object in one generation.
pub(crate) struct ScalersCache {
    uid: String,
    generation: i64,
    /// Whether sources may wake the object.
    wakes: bool,
    /// The same for all objects that send the same query.
    group: u64,
    scalers: Vec<CachedScaler>,
    formula: Option<Result<CompiledFormula, ModifiersError>>,
}

/// How triggers are queried.
#[derive(Clone, Copy)]
pub(crate) struct SampleQuery<'a> {
    /// Maximum age of a sample that is used again.
    pub(crate) max_age: Duration,
    /// The same for failures. A caller that must notice a recovery sets it to zero.
    pub(crate) max_failure_age: Duration,
    /// Maximum age of a response to the same query of another object.
    pub(crate) max_shared_age: Duration,
    /// Requests that began earlier are not joined.
    pub(crate) not_before: Option<Instant>,
    /// Time limit of one query.
    pub(crate) deadline: Duration,
    /// Selects metrics by name.
    pub(crate) wanted: &'a (dyn Fn(&str) -> bool + Send + Sync),
    /// Samples of the last poll: triggers with `useCachedMetrics` are not queried if theirs is there.
    pub(crate) records: Option<&'a BTreeMap<String, CachedReading>>,
    /// What requests of the HPA found out: metrics that are there are not queried.
    pub(crate) observed: Option<&'a HpaObservations>,
    /// Triggers that are queried again, whatever samples of them are cached.
    pub(crate) woken: WokenTriggers,
}

/// Triggers that woke their object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WokenTriggers {
    /// One bit for each of the first 63 triggers, and one for all others.
    bits: u64,
    /// The last wake-up.
    at: Option<Instant>,
}

impl WokenTriggers {
    pub(crate) fn insert(&mut self, trigger: usize, at: Instant) {
        self.bits |= 1 << trigger.min(63);
        self.at = Some(at);
    }

    pub(crate) fn is_empty(self) -> bool {
        self.bits == 0
    }

    fn contains(self, trigger: usize) -> bool {
        self.bits & (1 << trigger.min(63)) != 0
    }
}

impl SampleQuery<'_> {
    /// The same for one trigger.
    fn of_trigger(self, trigger: usize) -> Self {
        if !self.woken.contains(trigger) {
            return self;
        }
        let (max_age, max_failure_age, max_shared_age) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
        Self { max_age, max_failure_age, max_shared_age, not_before: self.woken.at, ..self }
    }
}

/// The samples of one trigger.
#[derive(Debug)]
pub(crate) struct TriggerSamples {
    /// All metrics of the trigger, or why it did not list them.
    pub(crate) specs: Result<Vec<MetricSpec>, SampleError>,
    /// Samples of the external metrics that were wanted. If the trigger did not list its metrics, those it had fail with the same
    /// error.
    pub(crate) samples: Vec<activity::MetricSample>,
    /// Whether there is a scaler, or was one before it failed.
    pub(crate) is_built: bool,
}

/// The metrics of one trigger.
#[derive(Debug)]
pub(crate) struct TriggerMetrics {
    pub(crate) index: usize,
    /// The metrics, or why the trigger does not list them.
    pub(crate) specs: Result<Vec<MetricSpec>, SampleError>,
    pub(crate) is_built: bool,
    /// The metrics that it listed last, if it does not list them now.
    pub(crate) last: Vec<MetricSpec>,
}

impl TriggerSamples {
    /// Samples for the rules of ScaledObjects. A source that went away fails in the metrics it had, so that its fallback applies;
    /// in KEDA it has no metrics, and no fallback applies.
    fn for_object(self, trigger: usize, compat: Compat) -> activity::TriggerResult {
        let resources = |specs: &[MetricSpec]| specs.iter().filter(|spec| spec.external.is_none()).count();
        if self.specs.is_err() && !self.samples.is_empty() && !compat.is_strict() {
            let metrics = self.samples.into_iter().map(activity::TriggerMetric::External).collect();
            return activity::TriggerResult { trigger, metrics: Ok(metrics) };
        }
        let specs = self.specs.map_err(OperationError::from_error);
        let metrics = specs.map(|specs| {
            let resources = std::iter::repeat_n(activity::TriggerMetric::Resource, resources(&specs));
            resources.chain(self.samples.into_iter().map(activity::TriggerMetric::External)).collect()
        });
        activity::TriggerResult { trigger, metrics }
    }

    /// Samples for the rules of ScaledJobs. In KEDA a source that does not list its metrics has none, which is no error.
    pub(crate) fn for_job(self, compat: Compat) -> keda::jobs::JobTriggerResult {
        let specs = match self.specs {
            Err(_) if self.is_built && compat.is_strict() => Ok(Vec::new()),
            specs => specs.map_err(OperationError::from_error),
        };
        let has_none = specs.as_ref().is_ok_and(Vec::is_empty);
        let sample = |sample: activity::MetricSample| {
            let reading = sample.reading.map(|reading| keda::jobs::JobReading {
                values: reading.values.into_iter().map(|value| (value.name, value.value)).collect(),
                active: reading.active,
            });
            (sample.name, reading)
        };
        let samples = self.samples.into_iter().filter(|_| !has_none).map(sample).collect();
        keda::jobs::JobTriggerResult { specs, samples }
    }
}

/// The samples of all triggers of a ScaledObject, for its rules.
pub(crate) fn object_samples(samples: Vec<TriggerSamples>, compat: Compat) -> Vec<activity::TriggerResult> {
    samples.into_iter().enumerate().map(|(trigger, samples)| samples.for_object(trigger, compat)).collect()
}

/// The error of the first scaler that could not be built.
pub(crate) fn build_error(samples: &[TriggerSamples]) -> Option<OperationError> {
    let unbuilt = samples.iter().filter(|samples| !samples.is_built);
    unbuilt.filter_map(|samples| samples.specs.clone().err()).map(OperationError::from_error).next()
}

impl ScalersCache {
    /// Scalers that are built when they are first queried.
    pub(crate) fn new(owner: &ScaledResource, compat: Compat, push: Option<&PushSender>) -> Arc<Self> {
        let wakes = owner.wakes();
        let scalers = owner.triggers().iter().enumerate().map(|(index, trigger)| {
            let known = scalers::table::find(&trigger.type_);
            let wakes = wakes || known.is_some_and(|known| known.wakes == WakeMode::Always);
            CachedScaler::new(index, trigger, push.map(|push| push.channel(&owner.id(), index, wakes)))
        });
        Arc::new(Self {
            uid: owner.metadata().uid.clone(),
            generation: owner.metadata().generation,
            wakes,
            group: query_group(owner.triggers()),
            scalers: scalers.collect(),
            formula: owner.formula(compat),
        })
    }

    /// Whether these are the scalers of this object in this generation.
    pub(crate) fn are_of(&self, owner: &ScaledResource) -> bool {
        let metadata = owner.metadata();
        // Annotations do not change the generation.
        self.uid == metadata.uid && self.generation == metadata.generation && self.wakes == owner.wakes()
    }

    /// The same for all objects that send the same query.
    pub(crate) fn group(&self) -> u64 {
        self.group
    }

    /// The compiled formula, or why it does not compile.
    pub(crate) fn formula(&self) -> activity::Formula<'_> {
        self.formula.as_ref().map(Result::as_ref)
    }

    /// All scalers, in the order of the triggers.
    pub(crate) fn scalers(&self) -> &[CachedScaler] {
        &self.scalers
    }

    /// Lists the metrics of all triggers, concurrently.
    pub(crate) async fn list_metrics(
        &self,
        builder: &ScalerBuilder,
        owner: &ScaledResource,
        deadline: Duration,
    ) -> Vec<TriggerMetrics> {
        // By index: a closure over references would not be general enough for a future that is sent between threads.
        let list = |index: usize| async move {
            let scaler = self.scalers.get(index)?;
            let specs = scaler.specs(builder, owner, Duration::ZERO, deadline).await;
            let last = if specs.is_err() { scaler.last_specs() } else { Vec::new() };
            Some(TriggerMetrics { index, specs, is_built: scaler.is_built(), last })
        };
        let listed = futures::future::join_all((0..self.scalers.len()).map(list)).await;
        listed.into_iter().flatten().collect()
    }

    /// Queries all triggers concurrently.
    pub(crate) async fn query(
        &self,
        builder: &ScalerBuilder,
        owner: &ScaledResource,
        query: SampleQuery<'_>,
    ) -> Vec<TriggerSamples> {
        let queries = self.scalers.iter().map(|scaler| {
            let query = query.of_trigger(scaler.index());
            scaler.query(builder, owner, query)
        });
        futures::future::join_all(queries).await
    }

    /// The objects that credentials were read from, and their versions.
    pub(crate) fn used(&self) -> Vec<(SourceRef, String)> {
        self.scalers.iter().flat_map(CachedScaler::used).collect()
    }

    /// Rebuilds, before their next query, the scalers that were built from another version of this object.
    pub(crate) fn rebuild_after_change(&self, object: &SourceRef, version: &str) {
        for scaler in &self.scalers {
            if scaler.used().iter().any(|(of, seen)| of == object && seen != version) {
                scaler.rebuild();
            }
        }
    }

    /// Rebuilds, before their next query, the scalers whose trigger has a matching `authenticationRef`.
    pub(crate) fn rebuild_users(&self, is_it: impl Fn(&api::keda::AuthenticationRef) -> bool) {
        let uses_it =
            |scaler: &&CachedScaler| scaler.trigger().authentication_ref.as_ref().is_some_and(&is_it);
        self.scalers.iter().filter(uses_it).for_each(CachedScaler::rebuild);
    }

    /// Whether one of the triggers is a push trigger.
    pub(crate) fn are_pushed(&self) -> bool {
        self.scalers.iter().any(CachedScaler::is_pushed)
    }

    /// When and how a metric was last read from its trigger; for the metric of a formula, that of the oldest sample. None if a
    /// fallback replaced it.
    pub(crate) fn origin(&self, metric: &str) -> Option<SampleOrigin> {
        let own = self.scalers.iter().find_map(|scaler| scaler.origin(Some(metric)));
        let all = || self.scalers.iter().filter_map(|scaler| scaler.origin(None));
        own.or_else(|| self.formula.as_ref().and_then(|_| all().max_by_key(|origin| origin.age)))
    }

    /// When one of them was last queried.
    pub(crate) fn last_used(&self) -> Option<Instant> {
        self.scalers.iter().filter_map(CachedScaler::last_queried).max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_triggers_that_woke_the_object_are_queried_again() {
        let age = Duration::from_secs(5);
        let mut woken = WokenTriggers::default();
        assert!(woken.is_empty());
        let at = Instant::now();
        woken.insert(1, at);
        woken.insert(70, at);
        let query = SampleQuery {
            max_age: age,
            max_failure_age: age,
            max_shared_age: age,
            not_before: None,
            deadline: age,
            wanted: &|_| true,
            records: None,
            observed: None,
            woken,
        };
        for (trigger, is_woken) in [(0, false), (1, true), (2, false), (63, true), (64, true)] {
            let query = query.of_trigger(trigger);
            let ages = [query.max_age, query.max_failure_age, query.max_shared_age];
            assert_eq!(ages, [if is_woken { Duration::ZERO } else { age }; 3], "{trigger}");
            assert_eq!(query.not_before, is_woken.then_some(at), "{trigger}");
        }
    }
}
