//! Turns a scrape into samples, using the previous ones.

use std::sync::Arc;

use super::pair::PointPair;
use super::sample::{NodeReport, PodSample};
use super::{StoreInner, StoreState};
use crate::kubelet::{PodPoints, Scrape};

/// Builds the samples of one node.
pub(super) struct SampleBuilder<'a> {
    store: &'a StoreInner,
    node: &'a Arc<str>,
    now: i64,
}

impl<'a> SampleBuilder<'a> {
    pub(super) fn new(store: &'a StoreInner, node: &'a Arc<str>, now: i64) -> Self {
        Self { store, node, now }
    }

    /// Builds the report of a node after a scrape. A node or pod that became incomplete keeps its previous sample for
    /// a while.
    pub(super) fn reported(&self, mut scrape: Scrape, before: Option<&NodeReport>) -> NodeReport {
        scrape.incomplete.sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
        let mut at = 0;
        let mut known = |key| before.and_then(|before| before.pod(key, &mut at));
        let mut pods: Vec<Arc<PodSample>> = Vec::with_capacity(scrape.pods.len());
        pods.extend(scrape.pods.iter().map(|pod| {
            let known = known((&*pod.namespace, &*pod.name));
            Arc::new(self.sample(pod, known.map(|known| &**known)))
        }));
        let is_kept = |sample: &PodSample| !self.store.is_too_old(sample.taken, self.now);
        let incomplete = scrape.incomplete.iter().filter_map(|pod| known((&*pod.namespace, &*pod.name)));
        pods.extend(incomplete.filter(|sample| is_kept(sample)).cloned());

        let known = before.and_then(|before| before.node);
        let node = match &scrape.node {
            Some(point) => Some((
                PointPair::of_node(point, known.as_ref().map(|(pair, _)| pair), self.compat()),
                self.now,
            )),
            None => known.filter(|(_, taken)| !self.store.is_too_old(*taken, self.now)),
        };
        self.whole(node, pods, scrape)
    }

    /// Builds the report of a node for a tick; a pod that another node already reported in `next` is skipped.
    pub(super) fn tick(&self, scrape: Scrape, known: &StoreState, next: &StoreState) -> NodeReport {
        let reported = |pod: &PodPoints| next.sample(&pod.namespace, &pod.name).is_some();
        let before = |pod: &PodPoints| known.sample(&pod.namespace, &pod.name);
        let pods = scrape.pods.iter().filter(|pod| !reported(pod));
        let pods = pods.map(|pod| Arc::new(self.sample(pod, before(pod).as_deref()))).collect();
        let before = known.nodes.get(self.node).and_then(|before| before.node);
        let before = before.as_ref().map(|(pair, _)| pair);
        let node = scrape.node.map(|point| (PointPair::of_node(&point, before, self.compat()), self.now));
        self.whole(node, pods, scrape)
    }

    fn whole(
        &self,
        node: Option<(PointPair, i64)>,
        mut pods: Vec<Arc<PodSample>>,
        scrape: Scrape,
    ) -> NodeReport {
        pods.sort_by(|a, b| a.key().cmp(&b.key()));
        pods.dedup_by(|later, first| later.key() == first.key());
        NodeReport {
            node,
            pods: pods.into_boxed_slice(),
            slots: Arc::default(),
            incomplete: scrape.incomplete.into_boxed_slice(),
            lost: Box::default(),
            taken: self.now,
        }
    }

    fn sample(&self, pod: &PodPoints, known: Option<&PodSample>) -> PodSample {
        let (namespace, name) = match known {
            Some(known) => (Arc::clone(&known.namespace), Arc::clone(&known.name)),
            None => match self.store.inventory.pod(&pod.namespace, &pod.name) {
                Some(pod) => (Arc::clone(&pod.namespace), Arc::clone(&pod.name)),
                None => (self.store.names().share(&pod.namespace), (*pod.name).into()),
            },
        };
        let mut containers: Vec<(Arc<str>, PointPair)> = Vec::with_capacity(pod.containers.len());
        containers.extend(pod.containers.iter().enumerate().map(|(at, (name, point))| {
            let known = known.and_then(|known| known.container(name, at));
            let pair = known.map(|(_, pair)| pair);
            let pair = PointPair::of_container(point, pair, self.store.settings.resolution, self.compat());
            let name = known.map_or_else(|| self.store.names().share(name), |(name, _)| Arc::clone(name));
            (name, pair)
        }));
        containers.sort_by(|a, b| a.0.cmp(&b.0));
        containers.dedup_by(|later, first| later.0 == first.0);
        PodSample {
            namespace,
            name,
            node: Arc::clone(self.node),
            taken: self.now,
            containers: containers.into_boxed_slice(),
        }
    }

    fn compat(&self) -> api::provider::Compat {
        self.store.settings.compat
    }
}
