//! Implements `metrics.k8s.io`.

use std::sync::Arc;

use api::provider::{
    Compat, ContainerUsage, Labels, ListFilter, Lookup, NodeUsage, ObjectChunk, ObjectChunks, PodUsage,
    ProviderFuture, ResourceMetricsProvider, ResourceUsage,
};
use api::selector::Selector;
use jiff::Timestamp;
use quantity::{Format, Quantity};

use super::pair::{CpuRate, PointPair};
use super::sample::PodSample;
use super::{MissingPods, Store, missing};
use crate::inventory::{Inventory, Node, Pod};

/// Resource metrics from kubelet scrapes, for the nodes and pods of the API server.
#[derive(Clone, Debug)]
pub struct KubeletProvider {
    store: Store,
    inventory: Inventory,
    /// Selector of listed nodes.
    nodes: Selector,
}

/// Resource names. Each list or part has its own copy, so that threads do not share reference counts.
struct ResourceNames {
    cpu: Arc<str>,
    memory: Arc<str>,
}

impl ResourceNames {
    fn new() -> Self {
        Self { cpu: "cpu".into(), memory: "memory".into() }
    }
}

impl KubeletProvider {
    /// Creates a provider; only nodes that the selector selects are listed.
    pub fn new(store: Store, inventory: Inventory, node_selector: Selector) -> Self {
        Self { store, inventory, nodes: node_selector }
    }

    /// Usage of the running pods of a namespace, ascending by name.
    pub fn namespace(&self, namespace: &str) -> Vec<PodUsage> {
        self.usage(&self.inventory.pods(Some(namespace)))
    }

    /// Counts running pods without metrics by reason; at most `limit` of them by name.
    pub fn missing(&self, limit: usize) -> MissingPods {
        missing::missing(&self.store, &self.inventory, limit)
    }

    /// Usage of those pods (in ascending order) that have complete samples.
    fn usage(&self, pods: &[Arc<Pod>]) -> Vec<PodUsage> {
        let (names, samples) = (ResourceNames::new(), self.store.samples(pods));
        let both = pods.iter().zip(&samples);
        both.filter_map(|(pod, sample)| self.pod_usage(pod, sample.as_deref()?, &names)).collect()
    }

    fn pod_usage(&self, pod: &Pod, sample: &PodSample, names: &ResourceNames) -> Option<PodUsage> {
        let strict = self.compat().is_strict();
        let mut containers = Vec::with_capacity(sample.containers.len());
        let mut earliest: Option<(i64, i64)> = None;
        for (name, pair) in &sample.containers {
            let (nanocores, window) = match pair.rate() {
                CpuRate::Known { nanocores, window } => (nanocores, window),
                // Outside strict mode a pod is omitted rather than reported with too little usage, as metrics-server
                // does.
                CpuRate::Backwards if strict => continue,
                CpuRate::Backwards | CpuRate::OnePoint => return None,
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

    /// Pods that a listing selects.
    fn selected(&self, which: &ListFilter) -> Vec<Arc<Pod>> {
        let namespace = which.namespace.as_deref().or_else(|| which.fields.exact("metadata.namespace"));
        let name = which.fields.exact("metadata.name");
        let mut pods = match (namespace, name) {
            (Some(namespace), Some(name)) => self.inventory.pod(namespace, name).into_iter().collect(),
            (namespace, _) => self.inventory.pods(namespace),
        };
        let any_field = which.fields.terms().is_empty();
        let mut selected = SelectorCache::new(&which.labels);
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

impl ResourceMetricsProvider for KubeletProvider {
    fn source(&self) -> Option<&'static str> {
        Some("kubelets")
    }

    fn pods<'a>(&'a self, which: &'a ListFilter) -> ProviderFuture<'a, Vec<PodUsage>> {
        /// The task yields after this many pods.
        const PODS_PER_BATCH: usize = 4096;
        Box::pin(async move {
            let selected = self.selected(which);
            let mut found = Vec::with_capacity(selected.len());
            for some in selected.chunks(PODS_PER_BATCH) {
                found.extend(self.usage(some));
                if some.len() == PODS_PER_BATCH {
                    tokio::task::yield_now().await;
                }
            }
            Ok(found)
        })
    }

    fn pods_in_parts<'a>(&'a self, which: &'a ListFilter) -> ProviderFuture<'a, ObjectChunks<PodUsage>> {
        /// Pods per part; about one network write.
        const PODS_PER_PART: usize = 512;
        Box::pin(async move {
            let (provider, mut left) = (self.clone(), self.selected(which).into_iter());
            let parts: ObjectChunks<PodUsage> = Box::new(std::iter::from_fn(move || {
                let some: Vec<Arc<Pod>> = left.by_ref().take(PODS_PER_PART).collect();
                let provider = provider.clone();
                (!some.is_empty()).then(|| Box::new(move || provider.usage(&some)) as ObjectChunk<PodUsage>)
            }));
            Ok(parts)
        })
    }

    fn pod<'a>(&'a self, namespace: &'a str, name: &'a str) -> ProviderFuture<'a, Lookup<PodUsage>> {
        Box::pin(async move {
            let Some(pod) = self.inventory.pod(namespace, name) else { return Ok(Lookup::NotFound) };
            let sample = self.store.sample(namespace, name);
            let usage = sample.and_then(|sample| self.pod_usage(&pod, &sample, &ResourceNames::new()));
            Ok(usage.map_or(Lookup::NoSamples, Lookup::Found))
        })
    }

    fn nodes<'a>(&'a self, which: &'a ListFilter) -> ProviderFuture<'a, Vec<NodeUsage>> {
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

    fn node<'a>(&'a self, name: &'a str) -> ProviderFuture<'a, Lookup<NodeUsage>> {
        Box::pin(async move {
            let Some(node) = self.inventory.node(name) else { return Ok(Lookup::NotFound) };
            Ok(self.node_usage(&node).map_or(Lookup::NoSamples, Lookup::Found))
        })
    }
}

/// Evaluates a selector with a cache of the last label set, because neighbouring pods often share it.
struct SelectorCache<'a> {
    by: &'a Selector,
    last: Option<(Arc<Labels>, bool)>,
}

impl<'a> SelectorCache<'a> {
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

fn node_usage(node: &Node, pair: &PointPair) -> Option<NodeUsage> {
    let CpuRate::Known { nanocores, window } = pair.rate() else { return None };
    Some(NodeUsage {
        name: Arc::clone(&node.name),
        labels: Arc::clone(&node.labels),
        timestamp: timestamp(pair.time()),
        window,
        usage: usage(nanocores, pair.memory(), &ResourceNames::new()),
    })
}

fn usage(nanocores: u64, memory: u64, names: &ResourceNames) -> ResourceUsage {
    vec![
        (Arc::clone(&names.cpu), quantity(nanocores, -9, Format::DecimalSi)),
        (Arc::clone(&names.memory), quantity(memory, 0, Format::BinarySi)),
    ]
}

/// Converts a value; one that exceeds 63 bits loses its last digit.
fn quantity(value: u64, scale: i32, format: Format) -> Quantity {
    match i64::try_from(value) {
        Ok(value) => Quantity::from_scaled(value, scale, format),
        Err(_) => Quantity::from_scaled((value / 10) as i64, scale + 1, format),
    }
}

fn timestamp(nanos: i64) -> Option<Timestamp> {
    Timestamp::from_nanosecond(i128::from(nanos)).ok()
}
