//! Our own providers and the upstreams as one provider.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use api::provider::{
    Answer, CustomMetric, CustomMetricQuery, CustomMetrics, CustomValue, ExternalMetricQuery,
    ExternalMetrics, ExternalValue, Failure,
};
use futures::future::join_all;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::config::Config;
use super::merge::{Merged, Part};
use super::report::UpstreamReport;
use super::turn::{self, Candidate, Claim, Tally};
use super::upstream::Upstream;
use super::{Own, hop, wire};

/// Those in our own process who have metrics, with names for logs, in the order in which they are asked.
#[derive(Clone, Default)]
pub struct Providers {
    /// Of `custom.metrics.k8s.io`.
    pub custom: Vec<(String, Arc<dyn CustomMetrics>)>,
    /// Of `external.metrics.k8s.io`.
    pub external: Vec<(String, Arc<dyn ExternalMetrics>)>,
}

/// Our own providers and the upstreams as one provider of both APIs. Cheap to clone; all clones are the same.
#[derive(Clone)]
pub struct Router(Arc<Inner>);

struct Inner {
    own: Own,
    providers: Providers,
    upstreams: Mutex<Arc<Vec<Upstream>>>,
    changed: Notify,
    problem: Mutex<Option<String>>,
    custom: Mutex<Merged<CustomMetric>>,
    external: Mutex<Merged<String>>,
}

impl Router {
    /// Asks these, and the upstreams of a configuration that was read.
    pub fn new(own: Own, providers: Providers, config: Config) -> Self {
        let upstreams = config.upstreams.into_iter().map(|one| Upstream::new(one, &own)).collect();
        Self(Arc::new(Inner {
            own,
            providers,
            upstreams: Mutex::new(Arc::new(upstreams)),
            changed: Notify::new(),
            problem: Mutex::default(),
            custom: Mutex::default(),
            external: Mutex::default(),
        }))
    }

    /// Asks the upstreams of another configuration from now on. Those that did not change keep what is known of them.
    pub fn configure(&self, config: Config) {
        let mut upstreams = locked(&self.0.upstreams);
        let keep = |wanted| match upstreams.iter().find(|known| *known.config() == wanted) {
            Some(known) => known.clone(),
            None => Upstream::new(wanted, &self.0.own),
        };
        *upstreams = Arc::new(config.upstreams.into_iter().map(keep).collect());
        drop(upstreams);
        self.0.changed.notify_one();
    }

    /// What is wrong with the file that is [followed](Self::follow), if something is.
    pub fn problem(&self) -> Option<String> {
        locked(&self.0.problem).clone()
    }

    pub(super) fn set_problem(&self, problem: Option<String>) {
        *locked(&self.0.problem) = problem;
    }

    pub(super) fn own(&self) -> &Own {
        &self.0.own
    }

    /// The configuration as it is now.
    pub(super) fn config(&self) -> Config {
        Config { upstreams: self.upstreams().iter().map(|one| one.config().clone()).collect() }
    }

    /// Looks from time to time what upstreams have; never ends.
    pub async fn run(&self) {
        loop {
            let upstreams = self.upstreams();
            let all = join_all(upstreams.iter().map(Upstream::keep_listing));
            tokio::select! {
                () = self.0.changed.notified() => {}
                // Without upstreams this ends at once.
                () = async { all.await; std::future::pending().await } => {}
            }
        }
    }

    /// Looks once what all upstreams have, as [`run`](Self::run) does.
    pub async fn relist(&self) {
        join_all(self.upstreams().iter().map(Upstream::relist)).await;
    }

    /// How all upstreams fare.
    pub fn report(&self) -> Vec<UpstreamReport> {
        let now = Instant::now();
        self.upstreams().iter().map(|upstream| UpstreamReport::of(upstream, now)).collect()
    }

    fn upstreams(&self) -> Arc<Vec<Upstream>> {
        Arc::clone(&locked(&self.0.upstreams))
    }

    /// Upstreams that may be asked now: none, if the question came from a server like us.
    fn askable(&self) -> Arc<Vec<Upstream>> {
        if hop::is_alone() { Arc::default() } else { self.upstreams() }
    }
}

/// Our own: they know at once what they do not have.
const OWN: Candidate = Candidate { claim: Claim::Open, announced: true, priority: 0 };

impl CustomMetrics for Router {
    fn values<'a>(&'a self, question: &'a CustomMetricQuery) -> Answer<'a, Vec<CustomValue>> {
        Box::pin(async move {
            let (own, upstreams) = (&self.0.providers.custom, self.askable());
            let others = upstreams.iter().map(|one| Candidate {
                claim: if one.config().group.custom() {
                    one.scope().claim(&question.metric, wire::place(question))
                } else {
                    Claim::Foreign
                },
                announced: one.announced_custom(&question.metric),
                priority: one.scope().priority,
            });
            let candidates: Vec<Candidate> = own.iter().map(|_| OWN).chain(others).collect();
            let missing = || Failure::no_metric(&question.metric, &question.resource);
            let ask = |place: usize| -> Answer<'_, _> {
                match (own.get(place), upstreams.get(place.wrapping_sub(own.len()))) {
                    (Some((_, provider)), _) => provider.values(question),
                    (None, Some(upstream)) => {
                        Box::pin(async { upstream.custom(question).await.map(Arc::unwrap_or_clone) })
                    }
                    (None, None) => Box::pin(async { Err(missing()) }),
                }
            };
            in_turn(&candidates, ask, missing).await
        })
    }

    fn known(&self) -> Arc<Vec<CustomMetric>> {
        let own = self.0.providers.custom.iter().map(|(_, provider)| Part::Own(provider.known()));
        let upstreams = self.askable();
        let others = upstreams.iter().map(|one| Part::Other(one.announced().custom));
        list(&self.0.custom, own.chain(others).collect())
    }
}

impl ExternalMetrics for Router {
    fn values<'a>(&'a self, question: &'a ExternalMetricQuery) -> Answer<'a, Vec<ExternalValue>> {
        Box::pin(async move {
            let (own, upstreams) = (&self.0.providers.external, self.askable());
            let others = upstreams.iter().map(|one| Candidate {
                claim: if one.config().group.external() {
                    one.scope().claim(&question.metric, Some(&question.namespace))
                } else {
                    Claim::Foreign
                },
                announced: one.announced_external(&question.metric),
                priority: one.scope().priority,
            });
            let candidates: Vec<Candidate> = own.iter().map(|_| OWN).chain(others).collect();
            let missing = || Failure::no_metric(&question.metric, "namespaces");
            let ask = |place: usize| -> Answer<'_, _> {
                match (own.get(place), upstreams.get(place.wrapping_sub(own.len()))) {
                    (Some((_, provider)), _) => provider.values(question),
                    (None, Some(upstream)) => {
                        Box::pin(async { upstream.external(question).await.map(Arc::unwrap_or_clone) })
                    }
                    (None, None) => Box::pin(async { Err(missing()) }),
                }
            };
            in_turn(&candidates, ask, missing).await
        })
    }

    fn known(&self) -> Arc<Vec<String>> {
        let own = self.0.providers.external.iter().map(|(_, provider)| Part::Own(provider.known()));
        let upstreams = self.askable();
        let others = upstreams.iter().map(|one| Part::Other(one.announced().external));
        list(&self.0.external, own.chain(others).collect())
    }
}

/// Asks one after the other until one has it.
async fn in_turn<'a, T>(
    candidates: &[Candidate],
    ask: impl Fn(usize) -> Answer<'a, Vec<T>>,
    missing: impl FnOnce() -> Failure,
) -> Result<Vec<T>, Failure> {
    let mut tally = Tally::new();
    for place in turn::order(candidates) {
        let announced = candidates.get(place).is_some_and(|one| one.announced);
        if let Some(values) = tally.hear(ask(place).await, announced) {
            return Ok(values);
        }
    }
    tally.close(missing)
}

/// All metrics. What we tell others like us is not kept: it is asked for seldom.
fn list<T: Clone + Ord>(kept: &Mutex<Merged<T>>, parts: Vec<Part<T>>) -> Arc<Vec<T>> {
    if hop::is_alone() { Merged::default().of(parts) } else { locked(kept).of(parts) }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
