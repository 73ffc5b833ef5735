//! What all parts of the operator share: the world, the hand, and what is remembered of each object.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use api::keda::{ScaledJob, ScaledObject};
use cluster::Clock;
use cluster::request::ApiError;
use jiff::Timestamp;
use keda::activity::Record;
use serde_json::Value;
use tokio::time::Instant;

use super::ears::Ears;
use super::eyes::Eyes;
use super::figures::Counters;
use super::hand::{Hand, Place};
use super::id::{Id, Kind};
use super::settings::Settings;
use super::tell::Tell;
use super::triggers::{Maker, Owner, PushSender, Triggers};
use super::world::World;
use crate::hpa::Records;

/// What all parts share.
pub(crate) struct Core {
    pub(crate) world: Arc<Mutex<World>>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) clock: Clock,
    pub(crate) hand: Hand,
    pub(crate) eyes: Eyes,
    pub(crate) maker: Maker,
    /// Whom to ask for metrics of pods, where we act ourselves.
    pub(crate) samples: Option<cluster::metrics::Metrics>,
    pub(crate) tell: Tell,
    pub(crate) push: PushSender,
    pub(crate) ears: Ears,
    pub(crate) counters: Counters,
    /// What was decided, for people who ask why.
    pub(crate) records: Records,
    pub(crate) items: Mutex<HashMap<Id, Arc<Item>>>,
}

/// What is remembered of one object.
#[derive(Default)]
pub(crate) struct Item {
    /// Held while something is decided and written about the object.
    pub(crate) gate: tokio::sync::Mutex<()>,
    triggers: Mutex<Option<Arc<Triggers>>>,
    notes: Mutex<Notes>,
}

/// Whether a source that told of activity by itself is asked how much there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Pushing {
    /// Not now.
    #[default]
    Idle,
    /// It is.
    Asking,
    /// It is, and has told again since.
    Again,
}

/// Small things that are remembered of one object.
#[derive(Default)]
pub(crate) struct Notes {
    /// Whether it was reconciled since we lead.
    pub(crate) known: bool,
    /// Whether it was reconciled, and nothing has changed since.
    pub(crate) settled: bool,
    /// How often in a row that failed.
    pub(crate) failures: u32,
    /// Whether it is polled.
    pub(crate) polled: bool,
    /// The HPA that was last found right: what was wanted, what was found.
    pub(crate) hpa: Option<(u64, u64)>,
    /// What the last poll has found, for triggers with `useCachedMetrics`.
    pub(crate) records: BTreeMap<String, Record>,
    /// When it was last active, as far as we have seen.
    pub(crate) last_active: Option<Timestamp>,
    /// Whether it acts on what was pushed.
    pub(crate) pushing: Pushing,
    /// When its sources were last asked because of that.
    pub(crate) pushed: Option<Instant>,
    /// When its triggers were last asked by a poll.
    pub(crate) asked: Option<Instant>,
    /// The generation in which it was last polled.
    pub(crate) generation: Option<i64>,
    /// How late the last poll began.
    pub(crate) late: Option<Duration>,
    /// How often something failed.
    pub(crate) errors: Option<u64>,
    /// Whether its formula was active in the last poll, if it has one.
    pub(crate) composite: Option<bool>,
    /// What its formula last yielded.
    pub(crate) yielded: Option<f64>,
    /// What our own engine remembers of it.
    pub(crate) direct: Option<Box<super::direct::Memory>>,
}

impl Item {
    pub(crate) fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its triggers, if they are built.
    pub(crate) fn triggers(&self) -> Option<Arc<Triggers>> {
        self.triggers.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Forgets its triggers; streams of them end.
    pub(crate) fn drop_triggers(&self) -> bool {
        self.triggers.lock().unwrap_or_else(PoisonError::into_inner).take().is_some()
    }
}

impl Core {
    pub(crate) fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn items(&self) -> MutexGuard<'_, HashMap<Id, Arc<Item>>> {
        self.items.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is remembered of an object.
    pub(crate) fn item(&self, id: &Id) -> Arc<Item> {
        Arc::clone(self.items().entry(id.clone()).or_default())
    }

    /// What is remembered of an object, if anything is.
    pub(crate) fn known_item(&self, id: &Id) -> Option<Arc<Item>> {
        self.items().get(id).cloned()
    }

    /// What is remembered of all objects.
    pub(crate) fn all_items(&self) -> Vec<(Id, Arc<Item>)> {
        self.items().iter().map(|(id, item)| (id.clone(), Arc::clone(item))).collect()
    }

    /// An object is gone.
    pub(crate) fn forget(&self, id: &Id) {
        self.items().remove(id);
    }

    /// Another term begins or ends: what others did meanwhile is not known.
    pub(crate) fn forget_all(&self) {
        self.items().clear();
        self.records.forget_all();
    }

    /// An object as it was last seen.
    pub(crate) fn owner(&self, id: &Id) -> Option<Owner> {
        let world = self.world();
        match id.kind {
            Kind::Object => world.object(id).map(Owner::Object),
            Kind::Job => world.scaled_job(id).map(Owner::Job),
        }
    }

    /// The triggers of an object in its generation; those of an older one are dropped.
    pub(crate) fn triggers(&self, item: &Item, owner: &Owner) -> Arc<Triggers> {
        let mut held = item.triggers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = held.as_ref().filter(|known| known.are_of(owner)) {
            return Arc::clone(known);
        }
        // Only who leads acts on what is pushed.
        let push = self.hand.leadership.leads().then_some(&self.push);
        let new = Triggers::new(owner, self.settings.compat, push);
        *held = Some(Arc::clone(&new));
        new
    }

    /// Merges into the status of a ScaledObject; the world knows it at once.
    pub(crate) async fn write_object(&self, id: &Id, patch: &Value, of: &str) -> Result<(), ApiError> {
        let place = Place::keda(Kind::Object.plural(), &id.namespace, &id.name);
        let written: ScaledObject = self.hand.merge(place, of, patch).await?;
        self.world().wrote_object(&id.full_name(), written.small());
        Ok(())
    }

    /// Merges into the status of a ScaledJob; the world knows it at once.
    pub(crate) async fn write_job(&self, id: &Id, patch: &Value, of: &str) -> Result<(), ApiError> {
        let place = Place::keda(Kind::Job.plural(), &id.namespace, &id.name);
        let written: ScaledJob = self.hand.merge(place, of, patch).await?;
        self.world().wrote_scaled_job(&id.full_name(), Arc::new(written.small()));
        Ok(())
    }
}

/// Objects as they are kept: without the record of who owns which field, and without room for more.
pub(crate) trait Small: Sized {
    fn small(self) -> Self;
}

impl Small for ScaledObject {
    fn small(mut self) -> Self {
        self.metadata.managed_fields = Vec::new();
        self.metadata.finalizers.shrink_to_fit();
        self.spec.triggers.shrink_to_fit();
        self.status.external_metric_names.shrink_to_fit();
        self
    }
}

impl Small for ScaledJob {
    fn small(mut self) -> Self {
        self.metadata.managed_fields = Vec::new();
        self.spec.triggers.shrink_to_fit();
        self
    }
}
