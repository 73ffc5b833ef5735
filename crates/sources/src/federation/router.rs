//! Local providers and upstreams as one provider.

use std::sync::{Arc, Mutex};

use api::provider::{
    CustomMetric, CustomMetricQuery, CustomMetricSample, CustomMetricsProvider, ExternalMetricQuery,
    ExternalMetricSample, ExternalMetricsProvider, MetricsError, ProviderFuture,
};
use futures::future::join_all;
use locks::MutexExt as _;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::config::{FederationConfig, UpstreamConfig};
use super::merge::{Merged, MetricList};
use super::report::UpstreamReport;
use super::routing::{self, Candidate, Claim, ResponseCollector};
use super::upstream::Upstream;
use super::{OwnService, hop, wire};

/// Local providers with names for logs, in query order.
#[derive(Clone, Default)]
pub struct LocalProviders {
    /// Of `custom.metrics.k8s.io`.
    pub custom: Vec<(String, Arc<dyn CustomMetricsProvider>)>,
    /// Of `external.metrics.k8s.io`.
    pub external: Vec<(String, Arc<dyn ExternalMetricsProvider>)>,
}

/// Local providers and upstreams as one provider of both APIs. Cheap to clone; clones share their data.
#[derive(Clone)]
pub struct Router(Arc<RouterInner>);

struct RouterInner {
    own: OwnService,
    providers: LocalProviders,
    /// Upstreams that no file names; they come first.
    built_in: Mutex<Vec<UpstreamConfig>>,
    upstreams: Mutex<Arc<Vec<Upstream>>>,
    changed: Notify,
    problem: Mutex<Option<String>>,
    custom: Mutex<Merged<CustomMetric>>,
    external: Mutex<Merged<String>>,
}

impl Router {
    /// Creates a router for local providers and the upstreams of a configuration.
    pub fn new(own: OwnService, providers: LocalProviders, config: FederationConfig) -> Self {
        let upstreams = config.upstreams.into_iter().map(|one| Upstream::new(one, &own)).collect();
        Self(Arc::new(RouterInner {
            own,
            providers,
            built_in: Mutex::default(),
            upstreams: Mutex::new(Arc::new(upstreams)),
            changed: Notify::new(),
            problem: Mutex::default(),
            custom: Mutex::default(),
            external: Mutex::default(),
        }))
    }

    /// Replaces the upstreams that no file names. Those of the file stay.
    pub fn set_built_in(&self, upstreams: Vec<UpstreamConfig>) {
        let config = self.config();
        *self.0.built_in.locked() = upstreams;
        self.configure(config);
    }

    /// Applies another configuration. Unchanged upstreams keep their state, and built-in ones stay.
    pub fn configure(&self, mut config: FederationConfig) {
        let built_in = self.0.built_in.locked().clone();
        config.upstreams.splice(0..0, built_in);
        let mut upstreams = self.0.upstreams.locked();
        let keep = |wanted| match upstreams.iter().find(|known| *known.config() == wanted) {
            Some(known) => known.clone(),
            None => Upstream::new(wanted, &self.0.own),
        };
        *upstreams = Arc::new(config.upstreams.into_iter().map(keep).collect());
        drop(upstreams);
        self.0.changed.notify_one();
    }

    /// Error of the [followed](Self::follow) file.
    pub fn problem(&self) -> Option<String> {
        self.0.problem.locked().clone()
    }

    pub(super) fn set_problem(&self, problem: Option<String>) {
        *self.0.problem.locked() = problem;
    }

    pub(super) fn own(&self) -> &OwnService {
        &self.0.own
    }

    /// Current configuration, without built-in upstreams.
    pub(super) fn config(&self) -> FederationConfig {
        let built_in = self.0.built_in.locked().clone();
        let upstreams = self.upstreams();
        let configured = upstreams.iter().map(Upstream::config).filter(|one| !built_in.contains(one));
        FederationConfig { upstreams: configured.cloned().collect() }
    }

    /// Runs discovery of all upstreams periodically; never returns.
    pub async fn run(&self) {
        loop {
            let upstreams = self.upstreams();
            let all = join_all(upstreams.iter().map(Upstream::keep_listing));
            tokio::select! {
                () = self.0.changed.notified() => {}
                // Without upstreams the future is ready immediately.
                () = async { all.await; std::future::pending().await } => {}
            }
        }
    }

    /// Runs discovery of all upstreams once.
    pub async fn relist(&self) {
        join_all(self.upstreams().iter().map(Upstream::relist)).await;
    }

    /// Status of all upstreams.
    pub fn report(&self) -> Vec<UpstreamReport> {
        let now = Instant::now();
        self.upstreams().iter().map(|upstream| UpstreamReport::of(upstream, now)).collect()
    }

    fn upstreams(&self) -> Arc<Vec<Upstream>> {
        Arc::clone(&self.0.upstreams.locked())
    }

    /// Upstreams to query: none if another plimsoll server sent the request.
    fn reachable_upstreams(&self) -> Arc<Vec<Upstream>> {
        if hop::is_local_only() { Arc::default() } else { self.upstreams() }
    }
}

/// A local provider knows exactly which metrics it has.
const LOCAL_PROVIDER: Candidate = Candidate { claim: Claim::Open, announced: true, priority: 0 };

impl CustomMetricsProvider for Router {
    fn values<'a>(&'a self, query: &'a CustomMetricQuery) -> ProviderFuture<'a, Vec<CustomMetricSample>> {
        Box::pin(async move {
            let (own, upstreams) = (&self.0.providers.custom, self.reachable_upstreams());
            let others = upstreams.iter().map(|one| Candidate {
                claim: if one.config().group.custom() {
                    one.scope().claim(&query.metric, wire::query_namespace(query))
                } else {
                    Claim::Foreign
                },
                announced: one.announced_custom(&query.metric),
                priority: one.scope().priority,
            });
            let candidates: Vec<Candidate> = own.iter().map(|_| LOCAL_PROVIDER).chain(others).collect();
            let missing = || MetricsError::no_metric(&query.metric, &query.resource);
            let query_source = |index: usize| -> ProviderFuture<'_, _> {
                match (own.get(index), upstreams.get(index.wrapping_sub(own.len()))) {
                    (Some((_, provider)), _) => provider.values(query),
                    (None, Some(upstream)) => Box::pin(async {
                        let values = upstream.custom(query).await?;
                        query.source.state(format!("upstream {}", upstream.config().name));
                        Ok(Arc::unwrap_or_clone(values))
                    }),
                    (None, None) => Box::pin(async { Err(missing()) }),
                }
            };
            query_in_order(&candidates, query_source, missing).await
        })
    }

    fn known(&self) -> Arc<Vec<CustomMetric>> {
        let own = self.0.providers.custom.iter().map(|(_, provider)| MetricList::Own(provider.known()));
        let upstreams = self.reachable_upstreams();
        let others = upstreams.iter().map(|one| MetricList::Other(one.announced().custom));
        list(&self.0.custom, own.chain(others).collect())
    }
}

impl ExternalMetricsProvider for Router {
    fn values<'a>(&'a self, query: &'a ExternalMetricQuery) -> ProviderFuture<'a, Vec<ExternalMetricSample>> {
        Box::pin(async move {
            let (own, upstreams) = (&self.0.providers.external, self.reachable_upstreams());
            let others = upstreams.iter().map(|one| Candidate {
                claim: if one.config().group.external() {
                    one.scope().claim(&query.metric, Some(&query.namespace))
                } else {
                    Claim::Foreign
                },
                announced: one.announced_external(&query.metric),
                priority: one.scope().priority,
            });
            let candidates: Vec<Candidate> = own.iter().map(|_| LOCAL_PROVIDER).chain(others).collect();
            let missing = || MetricsError::no_metric(&query.metric, "namespaces");
            let query_source = |index: usize| -> ProviderFuture<'_, _> {
                match (own.get(index), upstreams.get(index.wrapping_sub(own.len()))) {
                    (Some((_, provider)), _) => provider.values(query),
                    (None, Some(upstream)) => Box::pin(async {
                        let values = upstream.external(query).await?;
                        query.source.state(format!("upstream {}", upstream.config().name));
                        Ok(Arc::unwrap_or_clone(values))
                    }),
                    (None, None) => Box::pin(async { Err(missing()) }),
                }
            };
            query_in_order(&candidates, query_source, missing).await
        })
    }

    fn known(&self) -> Arc<Vec<String>> {
        let own = self.0.providers.external.iter().map(|(_, provider)| MetricList::Own(provider.known()));
        let upstreams = self.reachable_upstreams();
        let others = upstreams.iter().map(|one| MetricList::Other(one.announced().external));
        list(&self.0.external, own.chain(others).collect())
    }
}

/// Queries one provider after the other until one has values.
async fn query_in_order<'a, T>(
    candidates: &[Candidate],
    query_source: impl Fn(usize) -> ProviderFuture<'a, Vec<T>>,
    missing: impl FnOnce() -> MetricsError,
) -> Result<Vec<T>, MetricsError> {
    let mut collector = ResponseCollector::new();
    for index in routing::order(candidates) {
        let announced = candidates.get(index).is_some_and(|one| one.announced);
        if let Some(values) = collector.add(query_source(index).await, announced) {
            return Ok(values);
        }
    }
    collector.finish(missing)
}

/// Merged list; not cached for requests of other plimsoll servers, which are rare.
fn list<T: Clone + Ord>(kept: &Mutex<Merged<T>>, parts: Vec<MetricList<T>>) -> Arc<Vec<T>> {
    if hop::is_local_only() { Merged::default().of(parts) } else { kept.locked().of(parts) }
}
