//! Step 1: observe. The scale comes from the watch of its kind where there is one, else from the API server.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use api::selector::Selector;
use cluster::index::TargetKind;
use cluster::metrics::{MetricScope, MetricsClient};
use cluster::scale::{ScaleClient, ScaleObject};
use cluster::watch::WatchHealth;
use engine::spec::Metric;
use engine::{MetricSamples, Observation, PodSelection, Provenance, RecordedError, Scale, ScaleReadError};
use futures::future::join_all;
use locks::MutexExt as _;
use tokio::time::Instant;

use super::autoscaler::AutoscalerEntry;
use super::settings::HpaSettings;
use super::store::{AutoscalerStore, target_kind};

/// Builds observations from the store and, where it has to, from the API server and the metrics APIs.
pub(crate) struct Observer {
    pub(crate) store: Arc<Mutex<AutoscalerStore>>,
    pub(crate) scales: ScaleClient,
    pub(crate) metrics: MetricsClient,
    /// The health of the watches of targets.
    pub(crate) targets: Mutex<HashMap<TargetKind, WatchHealth>>,
}

/// Where the scale of an observation comes from.
pub(crate) enum ScaleOrigin {
    /// From the watch. It is current enough for a decision that writes nothing.
    Watched,
    /// From the API server during this reconcile. It can be written back.
    Fetched(Box<Result<ScaleObject, ScaleReadError>>),
}

/// An observation and how it was made.
pub(crate) struct Observed {
    pub(crate) observation: Observation,
    pub(crate) origin: ScaleOrigin,
    /// How the samples of each metric were fetched, by its index; empty if none were fetched.
    pub(crate) fetches: Vec<MetricFetch>,
}

/// How the samples of one metric were fetched.
pub(crate) struct MetricFetch {
    /// How long it took.
    pub(crate) took: Duration,
    /// Where the samples came from.
    pub(crate) from: Provenance,
}

impl Observer {
    pub(crate) fn store(&self) -> std::sync::MutexGuard<'_, AutoscalerStore> {
        self.store.locked()
    }

    /// Observes an autoscaler. `version` is the oldest `resourceVersion` of the target that may be used: that of our last write.
    pub(crate) async fn observe(
        &self,
        entry: &AutoscalerEntry,
        settings: &HpaSettings,
        version: Option<u64>,
    ) -> Observed {
        match self.watched(entry, version) {
            Some(scale) => {
                let (observation, fetches) = self.complete(entry, settings, Ok(scale)).await;
                Observed { observation, origin: ScaleOrigin::Watched, fetches }
            }
            None => self.observe_with(entry, settings, self.fetch_scale(entry).await).await,
        }
    }

    /// Reads the scale from the API server.
    pub(crate) async fn fetch_scale(&self, entry: &AutoscalerEntry) -> Result<ScaleObject, ScaleReadError> {
        let target = entry.object.target();
        let namespace = &entry.object.metadata().namespace;
        self.scales.get(namespace, &target.api_version, &target.kind, &target.name).await
    }

    /// Observes an autoscaler whose scale was read from the API server.
    pub(crate) async fn observe_with(
        &self,
        entry: &AutoscalerEntry,
        settings: &HpaSettings,
        fetched: Result<ScaleObject, ScaleReadError>,
    ) -> Observed {
        let scale = fetched.as_ref().map(|object| object.scale.clone()).map_err(Clone::clone);
        let (observation, fetches) = self.complete(entry, settings, scale).await;
        Observed { observation, origin: ScaleOrigin::Fetched(Box::new(fetched)), fetches }
    }

    /// The watched scale, if its watch is connected and has seen our own last write.
    fn watched(&self, entry: &AutoscalerEntry, version: Option<u64>) -> Option<Scale> {
        let kind = target_kind(&entry.object)?;
        let targets = self.targets.locked();
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

    /// Adds pods and samples if the step needs them, and how the samples of each metric were fetched.
    async fn complete(
        &self,
        entry: &AutoscalerEntry,
        settings: &HpaSettings,
        scale: Result<Scale, ScaleReadError>,
    ) -> (Observation, Vec<MetricFetch>) {
        let mut seen = Observation {
            config: settings.config.clone(),
            spec: entry.spec.clone(),
            status: entry.status(),
            scale,
            selection: PodSelection::Ours,
            pods: Vec::new(),
            samples: Vec::new(),
        };
        let Ok(scale) = &seen.scale else { return (seen, Vec::new()) };
        if !Observation::needs_metrics(&seen.config, &seen.spec, &seen.status, scale) {
            return (seen, Vec::new());
        }
        let selector = match Selector::parse(&scale.selector) {
            Ok(selector) => selector,
            Err(error) => {
                seen.selection = PodSelection::Invalid(error.to_string());
                return (seen, Vec::new());
            }
        };
        let shared = {
            let mut store = self.store();
            if settings.config.profile().notices_deletion && store.get(&entry.key).is_none() {
                seen.selection = PodSelection::Deleted;
                return (seen, Vec::new());
            }
            store.pods.select(&entry.key, &selector);
            let sharing = store.conflicts(entry, settings);
            if sharing.len() > 1 {
                seen.selection = PodSelection::Shared(sharing.iter().map(ToString::to_string).collect());
                return (seen, Vec::new());
            }
            seen.pods = store.pods.selected(&entry.key);
            store.has_shared_metrics(&entry.key.namespace)
        };
        let scope = MetricScope {
            namespace: &entry.key.namespace,
            selector: &scale.selector,
            pods: &seen.pods,
            shared,
        };
        let (samples, fetches) = self.samples(scope, &seen.spec.metrics).await;
        seen.samples = samples;
        (seen, fetches)
    }

    /// Fetches the samples of all metrics at the same time, and measures each.
    async fn samples(
        &self,
        scope: MetricScope<'_>,
        metrics: &[Metric],
    ) -> (Vec<Result<MetricSamples, RecordedError>>, Vec<MetricFetch>) {
        let fetch = async |metric: &Metric| {
            let began = Instant::now();
            let mut from = Provenance::default();
            let samples = self.metrics.samples_from(scope, metric, &mut from).await;
            (samples.map_err(Into::into), MetricFetch { took: began.elapsed(), from })
        };
        match metrics {
            [only] => {
                let (samples, fetched) = fetch(only).await;
                (vec![samples], vec![fetched])
            }
            several => join_all(several.iter().map(fetch)).await.into_iter().unzip(),
        }
    }
}
