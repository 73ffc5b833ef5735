//! The answers of `metrics.k8s.io`.

use std::sync::Arc;

use api::provider::{
    Answer, Compat, ContainerUsage, Found, Labels, Listing, NodeUsage, Part, Parts, PodUsage,
    ResourceMetrics, Usage,
};
use api::selector::Selector;
use jiff::Timestamp;
use quantity::{Format, Quantity};

use super::pair::{Pair, Rate};
use super::sample::Sample;
use super::{Missing, Reason, Store, why};
use crate::inventory::{Inventory, Node, Pod};

/// What kubelets measured, for the nodes and pods that the API server knows.
#[derive(Clone, Debug)]
pub struct Served {
    store: Store,
    inventory: Inventory,
    /// Which nodes are listed.
    nodes: Selector,
}

/// The names of resources. Each list, or part of one, has its own: what counts their users is not shared between threads.
struct Names {
    cpu: Arc<str>,
    memory: Arc<str>,
}

impl Names {
    fn new() -> Self {
        Self { cpu: "cpu".into(), memory: "memory".into() }
    }
}

impl Served {
    /// From a store and an inventory; only nodes that the selector selects are listed.
    pub fn new(store: Store, inventory: Inventory, node_selector: Selector) -> Self {
        Self { store, inventory, nodes: node_selector }
    }

    /// What the running pods of a namespace use, ascending by name.
    pub fn namespace(&self, namespace: &str) -> Vec<PodUsage> {
        self.usage(&self.inventory.pods(Some(namespace)))
    }

    /// Why running pods have no metrics: how many for each reason, and at most `limit` of them by name.
    pub fn missing(&self, limit: usize) -> Missing {
        why::missing(&self.store, &self.inventory, limit)
    }

    /// Why a running pod has no metrics; none if it has, or if there is no such pod.
    pub fn why(&self, namespace: &str, name: &str) -> Option<Reason> {
        let pod = self.inventory.pod(namespace, name)?;
        why::of_pod(&self.store, &pod)
    }

    /// Those of these pods (in ascending order) of which enough is known.
    fn usage(&self, pods: &[Arc<Pod>]) -> Vec<PodUsage> {
        let (names, samples) = (Names::new(), self.store.samples(pods));
        let both = pods.iter().zip(&samples);
        both.filter_map(|(pod, sample)| self.pod_usage(pod, sample.as_deref()?, &names)).collect()
    }

    fn pod_usage(&self, pod: &Pod, sample: &Sample, names: &Names) -> Option<PodUsage> {
        let strict = self.compat().is_strict();
        let mut containers = Vec::with_capacity(sample.containers.len());
        let mut earliest: Option<(i64, i64)> = None;
        for (name, pair) in &sample.containers {
            let (nanocores, window) = match pair.rate() {
                Rate::Known { nanocores, window } => (nanocores, window),
                // A pod with less than it uses is worse than none; metrics-server does not mind.
                Rate::Backwards if strict => continue,
                Rate::Backwards | Rate::OnePoint => return None,
            };
            if earliest.is_none_or(|(time, _)| pair.time() < time) {
                earliest = Some((pair.time(), window));
            }
            let usage = usage(nanocores, pair.memory(), names);
            containers.push(ContainerUsage { name: Arc::clone(name), usage });
        }
        Some(PodUsage {
            namespace: Arc::clone(&pod.namespace),
            name: Arc::clone(&pod.name),
            labels: Arc::clone(&pod.labels),
            timestamp: earliest.and_then(|(time, _)| timestamp(time)),
            window: earliest.map_or(0, |(_, window)| window),
            containers,
        })
    }

    fn node_usage(&self, node: &Node) -> Option<NodeUsage> {
        let (pair, _) = self.store.reported(&node.name)?.node?;
        node_usage(node, &pair)
    }

    /// The pods that a listing selects.
    fn selected(&self, which: &Listing) -> Vec<Arc<Pod>> {
        let namespace = which.namespace.as_deref().or_else(|| which.fields.exact("metadata.namespace"));
        let name = which.fields.exact("metadata.name");
        let mut pods = match (namespace, name) {
            (Some(namespace), Some(name)) => self.inventory.pod(namespace, name).into_iter().collect(),
            (namespace, _) => self.inventory.pods(namespace),
        };
        let any_field = which.fields.terms().is_empty();
        let mut selected = Selected::new(&which.labels);
        pods.retain(|pod| {
            let field = |field: &str| match field {
                "metadata.name" => &*pod.name,
                "metadata.namespace" => &*pod.namespace,
                _ => "",
            };
            selected.are(&pod.labels) && (any_field || which.fields.matches(field))
        });
        pods
    }

    fn compat(&self) -> Compat {
        self.store.0.settings.compat
    }
}

impl ResourceMetrics for Served {
    fn pods<'a>(&'a self, which: &'a Listing) -> Answer<'a, Vec<PodUsage>> {
        /// Others get their turn after this many.
        const AT_ONCE: usize = 4096;
        Box::pin(async move {
            let selected = self.selected(which);
            let mut found = Vec::with_capacity(selected.len());
            for some in selected.chunks(AT_ONCE) {
                found.extend(self.usage(some));
                if some.len() == AT_ONCE {
                    tokio::task::yield_now().await;
                }
            }
            Ok(found)
        })
    }

    fn pods_in_parts<'a>(&'a self, which: &'a Listing) -> Answer<'a, Parts<PodUsage>> {
        /// About as many as are sent at once.
        const AT_ONCE: usize = 512;
        Box::pin(async move {
            let (served, mut left) = (self.clone(), self.selected(which).into_iter());
            let parts: Parts<PodUsage> = Box::new(std::iter::from_fn(move || {
                let some: Vec<Arc<Pod>> = left.by_ref().take(AT_ONCE).collect();
                let served = served.clone();
                (!some.is_empty()).then(|| Box::new(move || served.usage(&some)) as Part<PodUsage>)
            }));
            Ok(parts)
        })
    }

    fn pod<'a>(&'a self, namespace: &'a str, name: &'a str) -> Answer<'a, Found<PodUsage>> {
        Box::pin(async move {
            let Some(pod) = self.inventory.pod(namespace, name) else { return Ok(Found::Unknown) };
            let sample = self.store.sample(namespace, name);
            let usage = sample.and_then(|sample| self.pod_usage(&pod, &sample, &Names::new()));
            Ok(usage.map_or(Found::NoSamples, Found::Here))
        })
    }

    fn nodes<'a>(&'a self, which: &'a Listing) -> Answer<'a, Vec<NodeUsage>> {
        Box::pin(async move {
            let mut nodes = self.inventory.nodes();
            nodes.retain(|node| {
                let field = |field: &str| if field == "metadata.name" { &*node.name } else { "" };
                node.labels.are_selected(&self.nodes)
                    && node.labels.are_selected(&which.labels)
                    && which.fields.matches(field)
            });
            Ok(nodes.iter().filter_map(|node| self.node_usage(node)).collect())
        })
    }

    fn node<'a>(&'a self, name: &'a str) -> Answer<'a, Found<NodeUsage>> {
        Box::pin(async move {
            let Some(node) = self.inventory.node(name) else { return Ok(Found::Unknown) };
            Ok(self.node_usage(&node).map_or(Found::NoSamples, Found::Here))
        })
    }
}

/// Which labels are selected. Neighbours often have the same labels, which are then looked at once.
struct Selected<'a> {
    by: &'a Selector,
    last: Option<(Arc<Labels>, bool)>,
}

impl<'a> Selected<'a> {
    fn new(by: &'a Selector) -> Self {
        Self { by, last: None }
    }

    fn are(&mut self, labels: &Arc<Labels>) -> bool {
        match &self.last {
            Some((last, answer)) if Arc::ptr_eq(last, labels) => *answer,
            _ => {
                let answer = labels.are_selected(self.by);
                self.last = Some((Arc::clone(labels), answer));
                answer
            }
        }
    }
}

fn node_usage(node: &Node, pair: &Pair) -> Option<NodeUsage> {
    let Rate::Known { nanocores, window } = pair.rate() else { return None };
    Some(NodeUsage {
        name: Arc::clone(&node.name),
        labels: Arc::clone(&node.labels),
        timestamp: timestamp(pair.time()),
        window,
        usage: usage(nanocores, pair.memory(), &Names::new()),
    })
}

fn usage(nanocores: u64, memory: u64, names: &Names) -> Usage {
    vec![
        (Arc::clone(&names.cpu), quantity(nanocores, -9, Format::DecimalSi)),
        (Arc::clone(&names.memory), quantity(memory, 0, Format::BinarySi)),
    ]
}

/// Numbers that are too large for a quantity lose their last digit.
fn quantity(value: u64, scale: i32, format: Format) -> Quantity {
    match i64::try_from(value) {
        Ok(value) => Quantity::from_scaled(value, scale, format),
        Err(_) => Quantity::from_scaled((value / 10) as i64, scale + 1, format),
    }
}

fn timestamp(nanos: i64) -> Option<Timestamp> {
    Timestamp::from_nanosecond(i128::from(nanos)).ok()
}
