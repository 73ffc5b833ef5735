//! What a kubelet says becomes samples, beside what is known already.

use std::sync::Arc;

use super::pair::Pair;
use super::sample::{Reported, Sample};
use super::{Inner, State};
use crate::kubelet::{PodPoints, Scrape};

/// Makes samples of one node.
pub(super) struct Builder<'a> {
    store: &'a Inner,
    node: &'a Arc<str>,
    now: i64,
}

impl<'a> Builder<'a> {
    pub(super) fn new(store: &'a Inner, node: &'a Arc<str>, now: i64) -> Self {
        Self { store, node, now }
    }

    /// What the node told, after what it told before. A node or pod that was complete before and is not now stays as it
    /// was, for a while.
    pub(super) fn reported(&self, mut scrape: Scrape, before: Option<&Reported>) -> Reported {
        scrape.left_out.sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
        let mut at = 0;
        let mut known = |key| before.and_then(|before| before.pod(key, &mut at));
        let mut pods: Vec<Arc<Sample>> = Vec::with_capacity(scrape.pods.len());
        pods.extend(scrape.pods.iter().map(|pod| {
            let known = known((&*pod.namespace, &*pod.name));
            Arc::new(self.sample(pod, known.map(|known| &**known)))
        }));
        let is_kept = |sample: &Sample| !self.store.is_too_old(sample.taken, self.now);
        let left_out = scrape.left_out.iter().filter_map(|pod| known((&*pod.namespace, &*pod.name)));
        pods.extend(left_out.filter(|sample| is_kept(sample)).cloned());

        let known = before.and_then(|before| before.node);
        let node = match &scrape.node {
            Some(point) => {
                Some((Pair::of_node(point, known.as_ref().map(|(pair, _)| pair), self.compat()), self.now))
            }
            None => known.filter(|(_, taken)| !self.store.is_too_old(*taken, self.now)),
        };
        self.whole(node, pods, scrape)
    }

    /// What the node told in a tick, in which others told `next` already: who tells of a pod first is believed.
    pub(super) fn tick(&self, scrape: Scrape, known: &State, next: &State) -> Reported {
        let told = |pod: &PodPoints| next.sample(&pod.namespace, &pod.name).is_some();
        let before = |pod: &PodPoints| known.sample(&pod.namespace, &pod.name);
        let pods = scrape.pods.iter().filter(|pod| !told(pod));
        let pods = pods.map(|pod| Arc::new(self.sample(pod, before(pod).as_deref()))).collect();
        let before = known.nodes.get(self.node).and_then(|before| before.node);
        let before = before.as_ref().map(|(pair, _)| pair);
        let node = scrape.node.map(|point| (Pair::of_node(&point, before, self.compat()), self.now));
        self.whole(node, pods, scrape)
    }

    fn whole(&self, node: Option<(Pair, i64)>, mut pods: Vec<Arc<Sample>>, scrape: Scrape) -> Reported {
        pods.sort_by(|a, b| a.key().cmp(&b.key()));
        pods.dedup_by(|later, first| later.key() == first.key());
        Reported {
            node,
            pods: pods.into_boxed_slice(),
            slots: Arc::default(),
            left_out: scrape.left_out.into_boxed_slice(),
            lost: Box::default(),
            taken: self.now,
        }
    }

    fn sample(&self, pod: &PodPoints, known: Option<&Sample>) -> Sample {
        let (namespace, name) = match known {
            Some(known) => (Arc::clone(&known.namespace), Arc::clone(&known.name)),
            None => match self.store.inventory.pod(&pod.namespace, &pod.name) {
                Some(pod) => (Arc::clone(&pod.namespace), Arc::clone(&pod.name)),
                None => (self.store.names().share(&pod.namespace), (*pod.name).into()),
            },
        };
        let mut containers: Vec<(Arc<str>, Pair)> = Vec::with_capacity(pod.containers.len());
        containers.extend(pod.containers.iter().enumerate().map(|(at, (name, point))| {
            let known = known.and_then(|known| known.container(name, at));
            let pair = known.map(|(_, pair)| pair);
            let pair = Pair::of_container(point, pair, self.store.settings.resolution, self.compat());
            let name = known.map_or_else(|| self.store.names().share(name), |(name, _)| Arc::clone(name));
            (name, pair)
        }));
        containers.sort_by(|a, b| a.0.cmp(&b.0));
        containers.dedup_by(|later, first| later.0 == first.0);
        Sample {
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
