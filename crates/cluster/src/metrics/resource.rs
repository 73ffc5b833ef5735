//! `metrics.k8s.io`: lists of whole namespaces, shared by autoscalers, or of selected pods.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use api::metrics::{PodMetricsList, Query, Versions, join_samples, resource_samples};
use api::selector::Selector;
use engine::observe::NamedSample;
use engine::provenance::ResponseSharing;
use engine::spec::Metric;
use engine::{CowStr, MetricSamples, Pod, Provenance};
use futures::FutureExt as _;
use kube::Client;
use locks::MutexExt as _;
use runtime::SingleFlight;
use runtime::single_flight::FlightRole;
use tokio::time::Instant;

use super::local::{IN_PROCESS, LocalMetrics};
use super::usage::Usage;
use super::{MetricScope, QueryMeter, REQUEST_DEADLINE, SampleError, sharing, uri, wire};
use crate::discovery::Discovery;
use crate::request::{ApiError, Request, decode, exchange};

const GROUP: &str = "metrics.k8s.io";

/// After a list without labels, lists are not shared for this long.
const UNLABELLED_TTL: Duration = Duration::from_mins(5);

/// The version that Kubernetes uses, and its successor for servers without it.
const VERSIONS: [&str; 2] = ["v1beta1", "v1"];

type UsageResult = Result<Arc<Usage>, ApiError>;

/// The client of resource metrics.
pub(super) struct ResourceMetricsClient {
    pub(super) meter: Arc<QueryMeter>,
    source: Arc<PodMetricsLister>,
    freshness: Duration,
    cache: Mutex<PodMetricsCache>,
    flights: SingleFlight<Arc<str>, ListedUsage>,
}

/// The result of a list, and the API that returned it.
#[derive(Clone)]
struct ListedUsage {
    result: UsageResult,
    /// Group and version, or [`IN_PROCESS`].
    api: CowStr,
}

/// Lists pods of this process, or sends list requests.
struct PodMetricsLister {
    local: LocalMetrics,
    client: Client,
    discovery: Discovery,
    version: Mutex<&'static str>,
}

#[derive(Default)]
struct PodMetricsCache {
    /// Lists by namespace, with the time of their arrival and the API that they came from.
    lists: HashMap<Arc<str>, (Instant, Arc<Usage>, CowStr)>,
    /// When the server last sent a list without labels.
    unlabelled: Option<Instant>,
}

impl ResourceMetricsClient {
    pub(super) fn new(
        client: Client,
        discovery: Discovery,
        freshness: Duration,
        local: LocalMetrics,
    ) -> Self {
        let source = PodMetricsLister { local, client, discovery, version: Mutex::new(VERSIONS[0]) };
        Self {
            meter: Arc::default(),
            source: Arc::new(source),
            freshness,
            cache: Mutex::default(),
            flights: SingleFlight::default(),
        }
    }

    pub(super) async fn samples(
        &self,
        scope: MetricScope<'_>,
        metric: &Metric,
        resource: &str,
        container: Option<&str>,
        from: &mut Provenance,
    ) -> Result<MetricSamples, SampleError> {
        let part = |usage: &Usage, selector: &Selector| usage.selected(selector, resource, container);
        if scope.shared && !self.is_unlabelled() {
            let (listed, response) = self.shared(scope.namespace, metric).await;
            (from.api, from.response) = (listed.api, response);
            let usage = listed.result.map_err(failure)?;
            from.source.clone_from(&usage.source);
            if usage.is_empty() || usage.has_labels() {
                return in_pod_order(scope.pods, part(&usage, &parse_selector(scope)?));
            }
            self.cache().unlabelled = Some(Instant::now());
        }
        let listed = self.source.list(scope.namespace, scope.selector, metric).await;
        self.note(FlightRole::Started, &listed);
        (from.api, from.response) = (listed.api, ResponseSharing::Own);
        let usage = listed.result.map_err(failure)?;
        from.source.clone_from(&usage.source);
        in_pod_order(scope.pods, (!usage.is_empty()).then(|| usage.all(resource, container)))
    }

    /// The list of a whole namespace: cached, under way, or new. A failure is returned to all callers that share it, and not
    /// cached.
    async fn shared(&self, namespace: &str, metric: &Metric) -> (ListedUsage, ResponseSharing) {
        if let Some((came, usage, api)) = self.cache().lists.get(namespace)
            && came.elapsed() < self.freshness
        {
            self.meter.note::<(), ()>(FlightRole::Joined, &Ok(()));
            let listed = ListedUsage { result: Ok(Arc::clone(usage)), api: api.clone() };
            return (listed, ResponseSharing::Cached);
        }
        let key: Arc<str> = namespace.into();
        let (source, metric) = (Arc::clone(&self.source), metric.clone());
        let place = Arc::clone(&key);
        let fetch = || async move { source.list(&place, "", &metric).await }.boxed();
        let (listed, role) = self.flights.run_within(&key, Duration::MAX, fetch).await;
        self.note(role, &listed);
        if let Ok(usage) = &listed.result {
            let mut cache = self.cache();
            if cache.lists.get(&key).is_some_and(|(_, known, _)| Arc::ptr_eq(known, usage)) {
                return (listed, sharing(role));
            }
            // Expired lists are dropped.
            cache.lists.retain(|_, (came, ..)| came.elapsed() < self.freshness);
            cache.lists.insert(key, (Instant::now(), Arc::clone(usage), listed.api.clone()));
        }
        (listed, sharing(role))
    }

    /// Counts a list.
    fn note(&self, role: FlightRole, listed: &ListedUsage) {
        if listed.api == IN_PROCESS {
            self.meter.note_local(role, &listed.result);
        } else {
            self.meter.note(role, &listed.result);
        }
    }

    fn is_unlabelled(&self) -> bool {
        self.cache().unlabelled.is_some_and(|seen| seen.elapsed() < UNLABELLED_TTL)
    }

    fn cache(&self) -> MutexGuard<'_, PodMetricsCache> {
        self.cache.locked()
    }
}

impl PodMetricsLister {
    /// Lists pods of this process, or over the API.
    async fn list(&self, namespace: &str, selector: &str, metric: &Metric) -> ListedUsage {
        if let Some(listed) = self.local.pods(namespace, selector).await {
            return ListedUsage { result: listed.map(Arc::new), api: IN_PROCESS.into() };
        }
        let result = self.request(namespace, selector, metric).await;
        ListedUsage { result, api: self.api() }
    }

    /// Lists pods in the version that is served.
    async fn request(&self, namespace: &str, selector: &str, metric: &Metric) -> UsageResult {
        let version = self.version();
        let error = match self.list_in(version, namespace, selector, metric).await {
            Err(error) if error.is_not_found() => error,
            listed => return listed,
        };
        // Discovery is usually cached; it is needed only after a 404.
        let served = self.discovery.versions(GROUP).await.unwrap_or_default();
        let Some(other) = VERSIONS.into_iter().find(|known| served.iter().any(|v| v == known)) else {
            return Err(error);
        };
        if other == version {
            return Err(error);
        }
        let listed = self.list_in(other, namespace, selector, metric).await;
        if listed.is_ok() {
            *self.version.locked() = other;
        }
        listed
    }

    /// Group and version of the last list over the API.
    fn api(&self) -> CowStr {
        match self.version() {
            "v1beta1" => "metrics.k8s.io/v1beta1".into(),
            other => format!("{GROUP}/{other}").into(),
        }
    }

    fn version(&self) -> &'static str {
        *self.version.locked()
    }

    async fn list_in(&self, version: &str, namespace: &str, selector: &str, metric: &Metric) -> UsageResult {
        let versions = Versions { resource: version, ..Versions::default() };
        let Some(query) = Query::in_versions(versions, namespace, selector, metric, "") else {
            return Ok(Arc::default());
        };
        let request = Request::get(uri(&query), "pods.metrics.k8s.io", REQUEST_DEADLINE);
        let answer = exchange(&self.client, &request).await?;
        let mut usage = Usage::from(decode::<wire::WirePodList<'_>>(&answer, &wire::PODS)?);
        usage.source = answer.source.map(Into::into);
        Ok(Arc::new(usage))
    }
}

fn failure(error: ApiError) -> SampleError {
    let text = resource_samples(Err(&error.message), "", None).err();
    let text = text.map_or_else(|| error.message.clone(), |text| text.to_string());
    SampleError { text, ..SampleError::request(error) }
}

fn parse_selector(scope: MetricScope<'_>) -> Result<Selector, SampleError> {
    Selector::parse(scope.selector).map_err(|error| SampleError::new(error.to_string()))
}

/// The samples in the order of the pods, or Kubernetes' text for a list without items.
fn in_pod_order(pods: &[Pod], samples: Option<Vec<NamedSample>>) -> Result<MetricSamples, SampleError> {
    match samples {
        Some(samples) => Ok(join_samples(pods, samples)),
        None => {
            let none = resource_samples(Ok(&PodMetricsList::default()), "", None);
            none.map(|none| join_samples(pods, none)).map_err(|error| SampleError::of_response(&error, None))
        }
    }
}
