//! Step 1: what is seen. The scale comes from what was watched where that is possible, else from the server.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use api::selector::Selector;
use cluster::index::TargetKind;
use cluster::metrics::{MetricScope, MetricsClient};
use cluster::scale::{ScaleClient, ScaleObject};
use cluster::watch::WatchHealth;
use engine::spec::Metric;
use engine::{MetricSamples, Observation, PodSelection, Scale, ScaleReadError};
use futures::future::join_all;

use super::autoscaler::AutoscalerEntry;
use super::settings::HpaSettings;
use super::store::{AutoscalerStore, target_kind};

/// Sees: what was watched, and whom to ask for the rest.
pub(crate) struct Observer {
    pub(crate) store: Arc<Mutex<AutoscalerStore>>,
    pub(crate) scales: ScaleClient,
    pub(crate) metrics: MetricsClient,
    /// How the watches of targets fare.
    pub(crate) targets: Mutex<HashMap<TargetKind, WatchHealth>>,
}

/// Where the scale of an observation comes from.
pub(crate) enum ScaleOrigin {
    /// From the watch: good enough to decide that nothing is to be done.
    Watched,
    /// From the server just now: can be written back.
    Fetched(Box<Result<ScaleObject, ScaleReadError>>),
}

/// What was seen.
pub(crate) struct Observed {
    pub(crate) observation: Observation,
    pub(crate) origin: ScaleOrigin,
}

impl Observer {
    pub(crate) fn store(&self) -> std::sync::MutexGuard<'_, AutoscalerStore> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All that a step needs. `version` is the oldest version of the target that may be used: that of our last write.
    pub(crate) async fn observe(
        &self,
        entry: &AutoscalerEntry,
        settings: &HpaSettings,
        version: Option<u64>,
    ) -> Observed {
        match self.watched(entry, version) {
            Some(scale) => {
                let observation = self.complete(entry, settings, Ok(scale)).await;
                Observed { observation, origin: ScaleOrigin::Watched }
            }
            None => self.observe_with(entry, settings, self.ask(entry).await).await,
        }
    }

    /// The scale as the server says it now.
    pub(crate) async fn ask(&self, entry: &AutoscalerEntry) -> Result<ScaleObject, ScaleReadError> {
        let target = entry.object.target();
        let namespace = &entry.object.metadata().namespace;
        self.scales.get(namespace, &target.api_version, &target.kind, &target.name).await
    }

    /// All that a step needs, with the scale as the server said it.
    pub(crate) async fn observe_with(
        &self,
        entry: &AutoscalerEntry,
        settings: &HpaSettings,
        answer: Result<ScaleObject, ScaleReadError>,
    ) -> Observed {
        let scale = answer.as_ref().map(|object| object.scale.clone()).map_err(Clone::clone);
        let observation = self.complete(entry, settings, scale).await;
        Observed { observation, origin: ScaleOrigin::Fetched(Box::new(answer)) }
    }

    /// The scale as it was last watched, if that watch is alive and has seen our own last write.
    fn watched(&self, entry: &AutoscalerEntry, version: Option<u64>) -> Option<Scale> {
        let kind = target_kind(&entry.object)?;
        let targets = self.targets.lock().unwrap_or_else(PoisonError::into_inner);
        if !targets.get(&kind).is_some_and(WatchHealth::is_connected) {
            return None;
        }
        drop(targets);
        let meta = entry.object.metadata();
        let cached = self.store().scale(kind, &meta.namespace, &entry.object.target().name)?;
        match version {
            Some(oldest) if cached.resource_version.parse::<u64>().ok()? < oldest => None,
            _ => Some(cached.scale),
        }
    }

    /// Pods and samples, if the step will look at them.
    async fn complete(
        &self,
        entry: &AutoscalerEntry,
        settings: &HpaSettings,
        scale: Result<Scale, ScaleReadError>,
    ) -> Observation {
        let mut seen = Observation {
            config: settings.config.clone(),
            spec: entry.spec.clone(),
            status: entry.status(),
            scale,
            selection: PodSelection::Ours,
            pods: Vec::new(),
            samples: Vec::new(),
        };
        let Ok(scale) = &seen.scale else { return seen };
        if !Observation::needs_metrics(&seen.config, &seen.spec, &seen.status, scale) {
            return seen;
        }
        let selector = match Selector::parse(&scale.selector) {
            Ok(selector) => selector,
            Err(error) => {
                seen.selection = PodSelection::Invalid(error.to_string());
                return seen;
            }
        };
        let shared = {
            let mut store = self.store();
            store.pods.select(&entry.key, &selector);
            let sharing = store.pods.sharing(&entry.key);
            if sharing.len() > 1 {
                seen.selection = PodSelection::Shared(sharing.iter().map(ToString::to_string).collect());
                return seen;
            }
            seen.pods = store.pods.selected(&entry.key);
            store.share_metrics(&entry.key.namespace)
        };
        let asker = MetricScope {
            namespace: &entry.key.namespace,
            selector: &scale.selector,
            pods: &seen.pods,
            shared,
        };
        seen.samples = self.samples(asker, &seen.spec.metrics).await;
        seen
    }

    async fn samples(
        &self,
        asker: MetricScope<'_>,
        metrics: &[Metric],
    ) -> Vec<Result<MetricSamples, String>> {
        match metrics {
            [only] => vec![self.metrics.samples(asker, only).await],
            several => join_all(several.iter().map(|metric| self.metrics.samples(asker, metric))).await,
        }
    }
}
