//! The built triggers of each object, and what their sources last said.
//!
//! ```text
//! owner   whose triggers they are
//! make    from a trigger as written to a scaler: credentials, environment           needs a client
//! slot    one trigger: its scaler, its samples; builds it anew when it fails
//! metrics what one has told that it measures
//! samples what was last said of the metrics of one
//! push    triggers that tell of activity themselves
//! ```

mod builder;
mod cached_scaler;
mod metrics;
mod owner;
mod push;
mod samples;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api::autoscaling::v2::MetricSpec;
use api::provider::Compat;
use keda::activity::{self, CachedReading};
use keda::environment::SourceRef;
use keda::modifiers::{CompiledFormula, ModifiersError};
use tokio::time::Instant;

pub use builder::BuildScaler;
pub(crate) use builder::{ScalerBuilder, display};
pub(crate) use cached_scaler::CachedScaler;
pub(crate) use owner::{ScaledResource, group, interval};
pub(crate) use push::{PendingPush, PushNotification, Sender as PushSender};

/// The triggers of an object in one generation.
pub(crate) struct ScalersCache {
    /// Whose they are, and in which generation.
    uid: String,
    generation: i64,
    /// The same for all that ask the same.
    group: u64,
    slots: Vec<CachedScaler>,
    formula: Option<Result<CompiledFormula, ModifiersError>>,
}

/// SampleQuery a trigger is asked.
#[derive(Clone, Copy)]
pub(crate) struct SampleQuery<'a> {
    /// Samples that are no older are as good as new ones.
    pub(crate) age: Duration,
    /// The same of failures: whoever asks to notice that a source works again does not take old ones.
    pub(crate) failures: Duration,
    /// Answers that others got to the same question do as well if they are no older.
    pub(crate) others: Duration,
    /// SampleQuery long one question may take.
    pub(crate) deadline: Duration,
    /// Which metrics are asked for.
    pub(crate) wanted: &'a (dyn Fn(&str) -> bool + Send + Sync),
    /// What the last poll has found: triggers with `useCachedMetrics` are not asked if it is known.
    pub(crate) records: Option<&'a BTreeMap<String, CachedReading>>,
}

/// What a trigger told.
#[derive(Debug)]
pub(crate) struct TriggerSamples {
    /// All its metrics, or why they are not known.
    pub(crate) specs: Result<Vec<MetricSpec>, String>,
    /// What was said of the external ones that were wanted; if it does not say which it has, the same error of each that
    /// it had.
    pub(crate) samples: Vec<activity::MetricSample>,
    /// Whether there is a scaler, or was one before it failed.
    pub(crate) is_built: bool,
}

impl TriggerSamples {
    /// For the rules of ScaledObjects. A source that went away fails in the metrics it had, so that a fallback is there for
    /// it; to the original it has none, and there is no fallback.
    fn told(self, trigger: usize, compat: Compat) -> activity::TriggerResult {
        let resources = |specs: &[MetricSpec]| specs.iter().filter(|spec| spec.external.is_none()).count();
        if self.specs.is_err() && !self.samples.is_empty() && !compat.is_strict() {
            let metrics = self.samples.into_iter().map(activity::TriggerMetric::External).collect();
            return activity::TriggerResult { trigger, metrics: Ok(metrics) };
        }
        let metrics = self.specs.map(|specs| {
            let resources = std::iter::repeat_n(activity::TriggerMetric::Resource, resources(&specs));
            resources.chain(self.samples.into_iter().map(activity::TriggerMetric::External)).collect()
        });
        activity::TriggerResult { trigger, metrics }
    }

    /// For the rules of ScaledJobs. A source that does not say which metrics it has is no error to the original: it has none.
    pub(crate) fn answer(self, compat: Compat) -> keda::jobs::JobTriggerResult {
        let specs = match self.specs {
            Err(_) if self.is_built && compat.is_strict() => Ok(Vec::new()),
            specs => specs,
        };
        let silent = specs.as_ref().is_ok_and(Vec::is_empty);
        let sample = |sample: activity::MetricSample| {
            let reading = sample.reading.map(|reading| keda::jobs::JobReading {
                values: reading.values.into_iter().map(|value| (value.name, value.value)).collect(),
                active: reading.active,
            });
            (sample.name, reading)
        };
        let samples = self.samples.into_iter().filter(|_| !silent).map(sample).collect();
        keda::jobs::JobTriggerResult { specs, samples }
    }
}

/// What all triggers of a ScaledObject told, for its rules.
pub(crate) fn told(heard: Vec<TriggerSamples>, compat: Compat) -> Vec<activity::TriggerResult> {
    heard.into_iter().enumerate().map(|(trigger, heard)| heard.told(trigger, compat)).collect()
}

impl ScalersCache {
    /// Nothing is built yet.
    pub(crate) fn new(owner: &ScaledResource, compat: Compat, push: Option<&push::Sender>) -> Arc<Self> {
        let slots = owner.triggers().iter().enumerate().map(|(index, trigger)| {
            CachedScaler::new(index, trigger, push.map(|push| push.of(&owner.id(), index)))
        });
        Arc::new(Self {
            uid: owner.metadata().uid.clone(),
            generation: owner.metadata().generation,
            group: group(owner.triggers()),
            slots: slots.collect(),
            formula: owner.formula(compat),
        })
    }

    /// Whether they are those of the object as it is now.
    pub(crate) fn are_of(&self, owner: &ScaledResource) -> bool {
        let metadata = owner.metadata();
        self.uid == metadata.uid && self.generation == metadata.generation
    }

    /// Those who ask the same have the same.
    pub(crate) fn group(&self) -> u64 {
        self.group
    }

    /// The formula over them, for the rules.
    pub(crate) fn formula(&self) -> activity::Formula<'_> {
        self.formula.as_ref().map(Result::as_ref)
    }

    /// All of them, in order.
    pub(crate) fn slots(&self) -> &[CachedScaler] {
        &self.slots
    }

    /// Asks all of them at once for their metrics alone.
    pub(crate) async fn specs(
        &self,
        builder: &ScalerBuilder,
        owner: &ScaledResource,
        deadline: Duration,
    ) -> Vec<Result<Vec<MetricSpec>, String>> {
        let one = |slot: &'_ CachedScaler| {
            let index = slot.index();
            async move {
                let Some(slot) = self.slots.get(index) else { return Ok(Vec::new()) };
                slot.specs(builder, owner, Duration::ZERO, deadline).await
            }
        };
        futures::future::join_all(self.slots.iter().map(one)).await
    }

    /// Asks all of them at once.
    pub(crate) async fn ask(
        &self,
        builder: &ScalerBuilder,
        owner: &ScaledResource,
        how: SampleQuery<'_>,
    ) -> Vec<TriggerSamples> {
        futures::future::join_all(self.slots.iter().map(|slot| slot.ask(builder, owner, how))).await
    }

    /// The objects that credentials were read from, and their versions.
    pub(crate) fn used(&self) -> Vec<(SourceRef, String)> {
        self.slots.iter().flat_map(CachedScaler::used).collect()
    }

    /// Builds anew, before they are next asked, those that were made of an object that has another version by now.
    pub(crate) fn renew(&self, object: &SourceRef, version: &str) {
        for slot in &self.slots {
            if slot.used().iter().any(|(of, seen)| of == object && seen != version) {
                slot.renew();
            }
        }
    }

    /// Builds anew, before they are next asked, those that use a TriggerAuthentication.
    pub(crate) fn renew_users(&self, is_it: impl Fn(&api::keda::AuthenticationRef) -> bool) {
        for slot in
            self.slots.iter().filter(|slot| slot.trigger().authentication_ref.as_ref().is_some_and(&is_it))
        {
            slot.renew();
        }
    }

    /// Whether one of them tells of activity itself.
    pub(crate) fn are_pushed(&self) -> bool {
        self.slots.iter().any(CachedScaler::is_pushed)
    }

    /// When one of them was last asked.
    pub(crate) fn last_used(&self) -> Option<Instant> {
        self.slots.iter().filter_map(CachedScaler::last_asked).max()
    }
}
