//! `metrics.k8s.io`: lists of whole namespaces shared by all who need them, or of selected pods.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use api::metrics::{PodMetricsList, Query, Versions, beside, resource_samples};
use api::selector::Selector;
use engine::observe::NamedSample;
use engine::spec::Metric;
use engine::{MetricSamples, Pod};
use futures::FutureExt as _;
use kube::Client;
use runtime::SingleFlight;
use runtime::single_flight::FlightRole;
use tokio::time::Instant;

use super::usage::Usage;
use super::{DEADLINE, LocalPodMetrics, Meter, MetricScope, uri, wire};
use crate::discovery::Discovery;
use crate::request::{ApiError, Request, decode, exchange};

const GROUP: &str = "metrics.k8s.io";

/// How long it is believed that a server leaves labels out, after it did.
const WITHOUT_LABELS: Duration = Duration::from_mins(5);

/// What Kubernetes asks for, and what takes its place where it is no longer served.
const VERSIONS: [&str; 2] = ["v1beta1", "v1"];

type Listed = Result<Arc<Usage>, ApiError>;

/// Lists of pods.
pub(super) struct Lists {
    pub(super) meter: Arc<Meter>,
    source: Arc<Source>,
    freshness: Duration,
    memory: Mutex<Memory>,
    flights: SingleFlight<Arc<str>, Listed>,
    store: Option<Arc<dyn LocalPodMetrics>>,
}

/// Whom to ask.
struct Source {
    client: Client,
    discovery: Discovery,
    version: Mutex<&'static str>,
}

#[derive(Default)]
struct Memory {
    /// By namespace, and since when.
    lists: HashMap<Arc<str>, (Instant, Arc<Usage>)>,
    /// What was made of a list of the store.
    stored: HashMap<Arc<str>, (Weak<PodMetricsList>, Arc<Usage>)>,
    /// When a server left all labels out.
    unlabelled: Option<Instant>,
}

impl Lists {
    pub(super) fn new(client: Client, discovery: Discovery, freshness: Duration) -> Self {
        let source = Source { client, discovery, version: Mutex::new(VERSIONS[0]) };
        Self {
            meter: Arc::default(),
            source: Arc::new(source),
            freshness,
            memory: Mutex::default(),
            flights: SingleFlight::default(),
            store: None,
        }
    }

    pub(super) fn with_store(&self, store: Arc<dyn LocalPodMetrics>) -> Self {
        Self {
            meter: Arc::clone(&self.meter),
            source: Arc::clone(&self.source),
            freshness: self.freshness,
            memory: Mutex::default(),
            flights: SingleFlight::default(),
            store: Some(store),
        }
    }

    pub(super) async fn samples(
        &self,
        asker: MetricScope<'_>,
        metric: &Metric,
        resource: &str,
        container: Option<&str>,
    ) -> Result<MetricSamples, String> {
        let part = |usage: &Usage, selector: &Selector| usage.selected(selector, resource, container);
        if let Some(store) = &self.store {
            let usage = self.stored(&**store, asker.namespace);
            return laid(asker.pods, part(&usage, &parsed(asker)?));
        }
        if asker.shared && !self.leaves_labels_out() {
            let usage = self.shared(asker.namespace, metric).await.map_err(failure)?;
            if usage.is_empty() || usage.has_labels() {
                return laid(asker.pods, part(&usage, &parsed(asker)?));
            }
            self.memory().unlabelled = Some(Instant::now());
        }
        let listed = self.source.list(asker.namespace, asker.selector, metric).await;
        self.meter.note(FlightRole::Started, &listed);
        let usage = listed.map_err(failure)?;
        laid(asker.pods, (!usage.is_empty()).then(|| usage.all(resource, container)))
    }

    /// The list of a whole namespace: one that is fresh, the one that is under way, or a new one. Failures are told to
    /// all who wait, and not kept.
    async fn shared(&self, namespace: &str, metric: &Metric) -> Listed {
        if let Some((came, usage)) = self.memory().lists.get(namespace)
            && came.elapsed() < self.freshness
        {
            self.meter.note::<(), ()>(FlightRole::Joined, &Ok(()));
            return Ok(Arc::clone(usage));
        }
        let key: Arc<str> = namespace.into();
        let (source, metric) = (Arc::clone(&self.source), metric.clone());
        let place = Arc::clone(&key);
        let ask = || async move { source.list(&place, "", &metric).await }.boxed();
        let (listed, role) = self.flights.run_within(&key, Duration::MAX, ask).await;
        self.meter.note(role, &listed);
        if let Ok(usage) = &listed {
            let mut memory = self.memory();
            if memory.lists.get(&key).is_some_and(|(_, known)| Arc::ptr_eq(known, usage)) {
                return listed;
            }
            // Lists that nobody may use any more are not kept either.
            memory.lists.retain(|_, (came, _)| came.elapsed() < self.freshness);
            memory.lists.insert(key, (Instant::now(), Arc::clone(usage)));
        }
        listed
    }

    fn stored(&self, store: &dyn LocalPodMetrics, namespace: &str) -> Arc<Usage> {
        let list = store.pods(namespace);
        self.meter.note::<(), ()>(FlightRole::Joined, &Ok(()));
        let mut memory = self.memory();
        if let Some((known, usage)) = memory.stored.get(namespace)
            && Weak::ptr_eq(known, &Arc::downgrade(&list))
        {
            return Arc::clone(usage);
        }
        let usage = Arc::new(Usage::from(&*list));
        memory.stored.retain(|_, (list, _)| list.strong_count() > 0);
        memory.stored.insert(namespace.into(), (Arc::downgrade(&list), Arc::clone(&usage)));
        usage
    }

    fn leaves_labels_out(&self) -> bool {
        self.memory().unlabelled.is_some_and(|seen| seen.elapsed() < WITHOUT_LABELS)
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Source {
    /// Lists pods in the version that is served.
    async fn list(&self, namespace: &str, selector: &str, metric: &Metric) -> Listed {
        let version = self.version();
        let error = match self.list_in(version, namespace, selector, metric).await {
            Err(error) if error.is_not_found() => error,
            listed => return listed,
        };
        // Only now is it worth asking which versions there are; the answer is usually known.
        let served = self.discovery.versions(GROUP).await.unwrap_or_default();
        let Some(other) = VERSIONS.into_iter().find(|known| served.iter().any(|v| v == known)) else {
            return Err(error);
        };
        if other == version {
            return Err(error);
        }
        let listed = self.list_in(other, namespace, selector, metric).await;
        if listed.is_ok() {
            *self.version.lock().unwrap_or_else(PoisonError::into_inner) = other;
        }
        listed
    }

    fn version(&self) -> &'static str {
        *self.version.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn list_in(&self, version: &str, namespace: &str, selector: &str, metric: &Metric) -> Listed {
        let versions = Versions { resource: version, ..Versions::default() };
        let Some(query) = Query::in_versions(versions, namespace, selector, metric, "") else {
            return Ok(Arc::default());
        };
        let request = Request::get(uri(&query), "pods.metrics.k8s.io", DEADLINE);
        let answer = exchange(&self.client, &request).await?;
        Ok(Arc::new(decode::<wire::Pods<'_>>(&answer, &wire::PODS)?.into()))
    }
}

fn failure(error: ApiError) -> String {
    let words = resource_samples(Err(&error.message), "", None).err();
    words.unwrap_or(error.message)
}

fn parsed(asker: MetricScope<'_>) -> Result<Selector, String> {
    Selector::parse(asker.selector).map_err(|e| e.to_string())
}

/// Samples beside the pods, or Kubernetes' text for a list without items.
fn laid(pods: &[Pod], samples: Option<Vec<NamedSample>>) -> Result<MetricSamples, String> {
    match samples {
        Some(samples) => Ok(beside(pods, samples)),
        None => resource_samples(Ok(&PodMetricsList::default()), "", None).map(|none| beside(pods, none)),
    }
}
