//! The parts that all modules of the operator share, and the in-memory entries of all objects.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use api::keda::{ScaledObject, annotations};
use api::meta::ObjectMeta;
use locks::MutexExt as _;

use super::cluster_reader::ClusterReader;
use super::counters::OperatorCounters;
use super::decision_clock::DecisionClock;
use super::event_recorder::OperatorEventRecorder;
use super::id::{EventSubject, NamespacedName, ResourceId, ResourceKind};
use super::leader_client::LeaderClient;
use super::object_state::ObjectEntry;
use super::queue_metrics::QueueMetrics;
use super::raw_metrics::RawMetricsSubscribers;
use super::scaled_resource::ScaledResource;
use super::scalers_cache::{PushSender, ScalerBuilder, ScalersCache};
use super::settings::{OperatorSettings, ScalingMode};
use super::store::Store;
use crate::hpa::Records;

/// The shared parts of the operator.
pub(crate) struct OperatorContext {
    pub(crate) store: Arc<Mutex<Store>>,
    pub(crate) settings: Arc<OperatorSettings>,
    pub(crate) clock: DecisionClock,
    pub(crate) client: LeaderClient,
    pub(crate) reader: ClusterReader,
    pub(crate) builder: ScalerBuilder,
    /// Source of pod metrics (`cpu`, `memory`) for scaling mode `direct`.
    pub(crate) samples: Option<cluster::metrics::MetricsClient>,
    pub(crate) events: OperatorEventRecorder,
    pub(crate) push: PushSender,
    pub(crate) raw_metrics: RawMetricsSubscribers,
    pub(crate) counters: OperatorCounters,
    pub(crate) queue_metrics: QueueMetrics,
    /// Decision records, for `plimsoll why`.
    pub(crate) records: Records,
    pub(crate) entries: Mutex<HashMap<ResourceId, Arc<ObjectEntry>>>,
}

impl OperatorContext {
    pub(crate) fn store(&self) -> MutexGuard<'_, Store> {
        self.store.locked()
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<ResourceId, Arc<ObjectEntry>>> {
        self.entries.locked()
    }

    /// The entry of an object; a new one if there is none.
    pub(crate) fn entry(&self, id: &ResourceId) -> Arc<ObjectEntry> {
        Arc::clone(self.entries().entry(id.clone()).or_default())
    }

    /// The entry of an object, if there is one.
    pub(crate) fn known_entry(&self, id: &ResourceId) -> Option<Arc<ObjectEntry>> {
        self.entries().get(id).cloned()
    }

    /// The entries of all objects.
    pub(crate) fn all_entries(&self) -> Vec<(ResourceId, Arc<ObjectEntry>)> {
        self.entries().iter().map(|(id, entry)| (id.clone(), Arc::clone(entry))).collect()
    }

    /// Drops the entry of a deleted object.
    pub(crate) fn forget(&self, id: &ResourceId) {
        self.entries().remove(id);
    }

    /// Drops everything that is remembered of objects. Called when leadership begins or ends, because another replica may have
    /// changed them meanwhile. Their history is kept: what was decided does not change.
    pub(crate) fn forget_all(&self) {
        self.entries().clear();
        self.queue_metrics.forget_running();
    }

    /// The object as it was last seen.
    pub(crate) fn owner(&self, id: &ResourceId) -> Option<ScaledResource> {
        let store = self.store();
        match id.kind {
            ResourceKind::Object => store.object(id).map(ScaledResource::Object),
            ResourceKind::Job => store.scaled_job(id).map(ScaledResource::Job),
        }
    }

    /// The scalers of an object in its current generation.
    pub(crate) fn scalers(&self, entry: &ObjectEntry, owner: &ScaledResource) -> Arc<ScalersCache> {
        entry.scalers_of(owner, || {
            // Only the leader acts on what push triggers report.
            let push = self.client.leadership.is_leader().then_some(&self.push);
            ScalersCache::new(owner, self.settings.compat, push)
        })
    }

    /// Whether an HPA scales the target of this object, or the operator itself.
    pub(crate) fn scaling_mode(&self, object: &ScaledObject) -> ScalingMode {
        let annotated = object.metadata.annotations.get(annotations::ACT);
        annotated.and_then(|text| ScalingMode::parse(text)).unwrap_or(self.settings.scaling_mode)
    }

    /// Reports that something that belongs to an object panicked: `what` is `reconcile` or the like.
    pub(crate) fn report_panic(&self, id: &ResourceId, what: &str, message: &str, retry_after: Duration) {
        tracing::error!(
            namespace = &*id.namespace,
            name = id.record_name(),
            error = message,
            ?retry_after,
            "{what} panicked"
        );
        let metadata = match self.owner(id) {
            Some(owner) => owner.metadata().clone(),
            None => named(&id.namespace, &id.name),
        };
        self.events.record_panic(id.kind.into(), &metadata, what, message, retry_after);
    }

    /// Reports that the reconcile of a TriggerAuthentication panicked.
    pub(crate) fn report_authentication_panic(
        &self,
        name: &NamespacedName,
        message: &str,
        retry_after: Duration,
    ) {
        let subject = EventSubject::authentication(name);
        tracing::error!(
            kind = subject.kind(),
            name = &*name.name,
            error = message,
            ?retry_after,
            "reconcile panicked"
        );
        let metadata = named(&name.namespace, &name.name);
        self.events.record_panic(subject, &metadata, "reconcile", message, retry_after);
    }

    /// Follows the machine's clock. If that clock has jumped, all remembered times move with it, so that cooldowns and
    /// stabilization windows keep their length.
    pub(crate) fn resync_clock(&self) {
        let Some(step) = self.clock.resync() else { return };
        tracing::warn!(
            seconds = step.as_secs_f64(),
            "the machine's clock has jumped; cooldowns and windows keep their length"
        );
        for (id, entry) in self.all_entries() {
            let object = self.store().object(&id);
            entry.shift(step, object.as_deref());
        }
    }
}

/// The metadata of an object of which only the name is known.
pub(crate) fn named(namespace: &str, name: &str) -> ObjectMeta {
    ObjectMeta { namespace: namespace.to_owned(), name: name.to_owned(), ..ObjectMeta::default() }
}
