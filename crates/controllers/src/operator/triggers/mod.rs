//! The built triggers of each object, and what their sources last said.
//!
//! ```text
//! owner   whose triggers they are
//! make    from a trigger as written to a scaler: credentials, environment           needs a client
//! slot    one trigger: its scaler, its samples; builds it anew when it fails
//! push    triggers that tell of activity themselves
//! ```

mod make;
mod owner;
mod push;
mod slot;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api::autoscaling::v2::MetricSpec;
use api::provide::Compat;
use keda::activity::{self, Record};
use keda::environment::ObjectRef;
use keda::modifiers::Compiled;
use tokio::time::Instant;

pub use make::Build;
pub(crate) use make::{Maker, display};
pub(crate) use owner::{Owner, interval};
pub(crate) use push::{Pushed, Sender as PushSender};
pub(crate) use slot::Slot;

/// The triggers of an object in one generation.
pub(crate) struct Triggers {
    /// Whose they are, and in which generation.
    uid: String,
    generation: i64,
    slots: Vec<Slot>,
    formula: Option<Result<Compiled, String>>,
}

/// How a trigger is asked.
#[derive(Clone, Copy)]
pub(crate) struct How<'a> {
    /// Samples that are no older are as good as new ones.
    pub(crate) age: Duration,
    /// How long one question may take.
    pub(crate) deadline: Duration,
    /// Which metrics are asked for.
    pub(crate) wanted: &'a (dyn Fn(&str) -> bool + Send + Sync),
    /// What the last poll has found: triggers with `useCachedMetrics` are not asked if it is known.
    pub(crate) records: Option<&'a BTreeMap<String, Record>>,
}

/// What a trigger told.
#[derive(Debug)]
pub(crate) struct Heard {
    /// All its metrics, or why they are not known.
    pub(crate) specs: Result<Vec<MetricSpec>, String>,
    /// What was said of the external ones that were wanted.
    pub(crate) samples: Vec<activity::Sample>,
}

impl Heard {
    /// For the rules of ScaledObjects.
    pub(crate) fn told(self, trigger: usize) -> activity::Told {
        let resources = |specs: &[MetricSpec]| specs.iter().filter(|spec| spec.external.is_none()).count();
        let metrics = self.specs.map(|specs| {
            let resources = std::iter::repeat_n(activity::Metric::Resource, resources(&specs));
            resources.chain(self.samples.into_iter().map(activity::Metric::External)).collect()
        });
        activity::Told { trigger, metrics }
    }

    /// For the rules of ScaledJobs.
    pub(crate) fn answer(self) -> keda::jobs::Answer {
        let sample = |sample: activity::Sample| {
            let reading = sample.reading.map(|reading| keda::jobs::Sample {
                values: reading.values.into_iter().map(|value| (value.name, value.value)).collect(),
                active: reading.active,
            });
            (sample.name, reading)
        };
        keda::jobs::Answer { specs: self.specs, samples: self.samples.into_iter().map(sample).collect() }
    }
}

impl Triggers {
    /// Nothing is built yet.
    pub(crate) fn new(owner: &Owner, compat: Compat, push: Option<&push::Sender>) -> Arc<Self> {
        let slots = owner.triggers().iter().enumerate().map(|(index, trigger)| {
            Slot::new(index, trigger.clone(), push.map(|push| push.of(&owner.id(), index)))
        });
        Arc::new(Self {
            uid: owner.metadata().uid.clone(),
            generation: owner.metadata().generation,
            slots: slots.collect(),
            formula: owner.formula(compat),
        })
    }

    /// Whether they are those of the object as it is now.
    pub(crate) fn are_of(&self, owner: &Owner) -> bool {
        let metadata = owner.metadata();
        self.uid == metadata.uid && self.generation == metadata.generation
    }

    /// The formula over them, for the rules.
    pub(crate) fn formula(&self) -> activity::Formula<'_> {
        self.formula.as_ref().map(|formula| formula.as_ref().map_err(String::as_str))
    }

    /// All of them, in order.
    pub(crate) fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// Asks all of them at once for their metrics alone.
    pub(crate) async fn specs(
        &self,
        maker: &Maker,
        owner: &Owner,
        deadline: Duration,
    ) -> Vec<Result<Vec<MetricSpec>, String>> {
        let one = |slot: &'_ Slot| {
            let index = slot.index();
            async move {
                let Some(slot) = self.slots.get(index) else { return Ok(Vec::new()) };
                slot.specs(maker, owner, Duration::ZERO, deadline).await
            }
        };
        futures::future::join_all(self.slots.iter().map(one)).await
    }

    /// Asks all of them at once.
    pub(crate) async fn ask(&self, maker: &Maker, owner: &Owner, how: How<'_>) -> Vec<Heard> {
        futures::future::join_all(self.slots.iter().map(|slot| slot.ask(maker, owner, how))).await
    }

    /// The objects that credentials were read from, and their versions.
    pub(crate) fn used(&self) -> Vec<(ObjectRef, String)> {
        self.slots.iter().flat_map(Slot::used).collect()
    }

    /// Builds anew, before they are next asked, those that were made of an object that has another version by now.
    pub(crate) fn renew(&self, object: &ObjectRef, version: &str) {
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

    /// When one of them was last asked.
    pub(crate) fn last_used(&self) -> Option<Instant> {
        self.slots.iter().filter_map(Slot::last_asked).max()
    }
}
