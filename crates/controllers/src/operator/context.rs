//! What all parts of the operator share: the store, the client, and what is remembered of each object.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use api::keda::{ScaledJob, ScaledObject};
use cluster::Clock;
use cluster::request::ApiError;
use jiff::Timestamp;
use keda::activity::CachedReading;
use serde_json::Value;
use tokio::time::Instant;

use super::cluster_reader::ClusterReader;
use super::event_recorder::OperatorEventRecorder;
use super::exported_metrics::OperatorCounters;
use super::id::{Id, Kind};
use super::leader_client::{LeaderClient, ResourcePath};
use super::raw_metrics::RawMetricsSubscribers;
use super::scalers_cache::{PushSender, ScaledResource, ScalerBuilder, ScalersCache};
use super::settings::OperatorSettings;
use super::store::Store;
use crate::hpa::Records;

/// What all parts share.
pub(crate) struct OperatorContext {
    pub(crate) store: Arc<Mutex<Store>>,
    pub(crate) settings: Arc<OperatorSettings>,
    pub(crate) clock: Clock,
    pub(crate) client: LeaderClient,
    pub(crate) reader: ClusterReader,
    pub(crate) builder: ScalerBuilder,
    /// Whom to ask for metrics of pods, where we act ourselves.
    pub(crate) samples: Option<cluster::metrics::MetricsClient>,
    pub(crate) events: OperatorEventRecorder,
    pub(crate) push: PushSender,
    pub(crate) raw_metrics: RawMetricsSubscribers,
    pub(crate) counters: OperatorCounters,
    /// What was decided, for people who ask why.
    pub(crate) records: Records,
    pub(crate) entries: Mutex<HashMap<Id, Arc<ObjectEntry>>>,
}

/// What is remembered of one object.
#[derive(Default)]
pub(crate) struct ObjectEntry {
    /// Held while something is decided and written about the object.
    pub(crate) gate: tokio::sync::Mutex<()>,
    triggers: Mutex<Option<Arc<ScalersCache>>>,
    object_state: Mutex<ObjectState>,
}

/// Whether a source that told of activity by itself is asked how much there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum PushState {
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
pub(crate) struct ObjectState {
    /// Whether it was reconciled since we lead.
    pub(crate) known: bool,
    /// Whether it was reconciled, and nothing has changed since.
    pub(crate) settled: bool,
    /// SampleQuery often in a row that failed.
    pub(crate) failures: u32,
    /// Whether it is polled.
    pub(crate) polled: bool,
    /// The HPA that was last found right: what was wanted, what was found.
    pub(crate) hpa: Option<(u64, u64)>,
    /// What the last poll has found, for triggers with `useCachedMetrics`.
    pub(crate) records: BTreeMap<String, CachedReading>,
    /// When it was last active, as far as we have seen.
    pub(crate) last_active: Option<Timestamp>,
    /// Whether it acts on what was pushed.
    pub(crate) pushing: PushState,
    /// When its sources were last asked because of that.
    pub(crate) pushed: Option<Instant>,
    /// When its triggers were last asked by a poll.
    pub(crate) asked: Option<Instant>,
    /// The generation in which it was last polled.
    pub(crate) generation: Option<i64>,
    /// SampleQuery late the last poll began.
    pub(crate) late: Option<Duration>,
    /// SampleQuery often something failed.
    pub(crate) errors: Option<u64>,
    /// Whether its formula was active in the last poll, if it has one.
    pub(crate) composite: Option<bool>,
    /// What its formula last yielded.
    pub(crate) yielded: Option<f64>,
    /// What our own engine remembers of it.
    pub(crate) direct: Option<Box<super::direct::Memory>>,
}

impl ObjectEntry {
    pub(crate) fn state(&self) -> MutexGuard<'_, ObjectState> {
        self.object_state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its triggers, if they are built.
    pub(crate) fn triggers(&self) -> Option<Arc<ScalersCache>> {
        self.triggers.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Forgets its triggers; streams of them end.
    pub(crate) fn drop_triggers(&self) -> bool {
        self.triggers.lock().unwrap_or_else(PoisonError::into_inner).take().is_some()
    }
}

impl OperatorContext {
    pub(crate) fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<Id, Arc<ObjectEntry>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is remembered of an object.
    pub(crate) fn entry(&self, id: &Id) -> Arc<ObjectEntry> {
        Arc::clone(self.entries().entry(id.clone()).or_default())
    }

    /// What is remembered of an object, if anything is.
    pub(crate) fn known_entry(&self, id: &Id) -> Option<Arc<ObjectEntry>> {
        self.entries().get(id).cloned()
    }

    /// What is remembered of all objects.
    pub(crate) fn all_entries(&self) -> Vec<(Id, Arc<ObjectEntry>)> {
        self.entries().iter().map(|(id, entry)| (id.clone(), Arc::clone(entry))).collect()
    }

    /// An object is gone.
    pub(crate) fn forget(&self, id: &Id) {
        self.entries().remove(id);
    }

    /// Another term begins or ends: what others did meanwhile is not known.
    pub(crate) fn forget_all(&self) {
        self.entries().clear();
        self.records.forget_all();
    }

    /// An object as it was last seen.
    pub(crate) fn owner(&self, id: &Id) -> Option<ScaledResource> {
        let store = self.store();
        match id.kind {
            Kind::Object => store.object(id).map(ScaledResource::Object),
            Kind::Job => store.scaled_job(id).map(ScaledResource::Job),
        }
    }

    /// The triggers of an object in its generation; those of an older one are dropped.
    pub(crate) fn triggers(&self, entry: &ObjectEntry, owner: &ScaledResource) -> Arc<ScalersCache> {
        let mut held = entry.triggers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = held.as_ref().filter(|known| known.are_of(owner)) {
            return Arc::clone(known);
        }
        // Only who leads acts on what is pushed.
        let push = self.client.leadership.is_leader().then_some(&self.push);
        let new = ScalersCache::new(owner, self.settings.compat, push);
        *held = Some(Arc::clone(&new));
        new
    }

    /// Merges into the status of a ScaledObject; the store knows it at once.
    pub(crate) async fn write_object(&self, id: &Id, patch: &Value, of: &str) -> Result<(), ApiError> {
        let path = ResourcePath::keda(Kind::Object.plural(), &id.namespace, &id.name);
        let written: ScaledObject = self.client.merge(path, of, patch).await?;
        self.store().wrote_object(&id.full_name(), written.small());
        Ok(())
    }

    /// Merges into the status of a ScaledJob; the store knows it at once.
    pub(crate) async fn write_job(&self, id: &Id, patch: &Value, of: &str) -> Result<(), ApiError> {
        let path = ResourcePath::keda(Kind::Job.plural(), &id.namespace, &id.name);
        let written: ScaledJob = self.client.merge(path, of, patch).await?;
        self.store().wrote_scaled_job(&id.full_name(), Arc::new(written.small()));
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
