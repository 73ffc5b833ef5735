//! The handle that sets values, injects faults and counts requests.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use locks::MutexExt as _;

use super::contents::{DescribedObject, NodeUsage, PodUsage, Series, ServedMetrics};

/// One of the three metrics APIs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MetricsGroup {
    /// `metrics.k8s.io`
    Resource,
    /// `custom.metrics.k8s.io`
    Custom,
    /// `external.metrics.k8s.io`
    External,
}

/// A fault of an API. Discovery still responds, so the API stays available.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Outage {
    /// No fault.
    #[default]
    None,
    /// Responds with a Kubernetes `Status`.
    Status {
        /// The HTTP code.
        code: u16,
        /// The machine-readable reason.
        reason: &'static str,
        /// The message.
        message: String,
    },
    /// Responds with plain text, as an intermediate proxy does.
    Text {
        /// The HTTP code.
        code: u16,
        /// The response body.
        body: String,
    },
    /// Lists are empty.
    Empty,
    /// Does not respond.
    Hang,
    /// Responds with invalid JSON of media type JSON.
    Garbage,
    /// The connection breaks in the middle of the response.
    Cut,
}

/// Sets the served metrics; clones share them.
#[derive(Clone, Debug, Default)]
pub struct Script(Arc<Mutex<ScriptState>>);

#[derive(Debug, Default)]
pub(super) struct ScriptState {
    pub(super) contents: ServedMetrics,
    /// The usage of the simulated nodes; values set by the script take precedence.
    pub(super) measured: ServedMetrics,
    outages: BTreeMap<MetricsGroup, Outage>,
    requests: BTreeMap<String, u64>,
}

impl MetricsGroup {
    /// The name of the API group.
    pub fn name(self) -> &'static str {
        match self {
            Self::Resource => "metrics.k8s.io",
            Self::Custom => "custom.metrics.k8s.io",
            Self::External => "external.metrics.k8s.io",
        }
    }

    /// Its versions, the preferred one first.
    pub fn versions(self) -> &'static [&'static str] {
        match self {
            Self::Custom => &["v1beta2", "v1beta1"],
            Self::Resource | Self::External => &["v1beta1"],
        }
    }

    pub(super) const ALL: [Self; 3] = [Self::Resource, Self::Custom, Self::External];

    pub(super) fn find(name: &str, version: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|group| group.name() == name && group.versions().contains(&version))
    }
}

impl Script {
    pub(super) fn lock(&self) -> MutexGuard<'_, ScriptState> {
        // No code panics while holding this lock.
        self.0.locked()
    }

    /// Sets the usage of a pod.
    pub fn set_pod(&self, namespace: &str, pod: &str, usage: PodUsage) {
        self.lock().contents.pods.insert((namespace.to_owned(), pod.to_owned()), usage);
    }

    /// Removes the usage of a pod.
    pub fn remove_pod(&self, namespace: &str, pod: &str) {
        self.lock().contents.pods.remove(&(namespace.to_owned(), pod.to_owned()));
    }

    /// Removes the usage of all pods of a namespace.
    pub fn clear_pods(&self, namespace: &str) {
        self.lock().contents.pods.retain(|(other, _), _| other != namespace);
    }

    /// Sets the usage of a node.
    pub fn set_node(&self, node: &str, usage: NodeUsage) {
        self.lock().contents.nodes.insert(node.to_owned(), usage);
    }

    /// Sets a value of a custom metric; replaces the value with the same metric labels.
    pub fn set_custom(&self, object: DescribedObject, metric: &str, series: Series) {
        let mut play = self.lock();
        put(play.contents.custom.entry((metric.to_owned(), object)).or_default(), series);
    }

    /// Removes a custom metric of an object.
    pub fn remove_custom(&self, object: &DescribedObject, metric: &str) {
        self.lock().contents.custom.remove(&(metric.to_owned(), object.clone()));
    }

    /// Removes all custom metrics of a namespace and of the objects in it.
    pub fn clear_custom(&self, namespace: &str) {
        self.lock().contents.custom.retain(|(_, object), _| {
            object.namespace != namespace && *object != DescribedObject::namespace(namespace)
        });
    }

    /// Sets a value of an external metric; replaces the value with the same labels.
    pub fn set_external(&self, namespace: &str, metric: &str, series: Series) {
        let mut play = self.lock();
        put(play.contents.external.entry((namespace.to_owned(), metric.to_lowercase())).or_default(), series);
    }

    /// Removes an external metric.
    pub fn remove_external(&self, namespace: &str, metric: &str) {
        self.lock().contents.external.remove(&(namespace.to_owned(), metric.to_lowercase()));
    }

    /// Removes all values and faults; request counts stay.
    pub fn clear(&self) {
        let mut play = self.lock();
        play.contents = ServedMetrics::default();
        play.outages.clear();
    }

    /// Injects a fault into an API; [`Outage::None`] removes it.
    pub fn fail(&self, group: MetricsGroup, outage: Outage) {
        self.lock().outages.insert(group, outage);
    }

    /// How often each path was requested, without its query; includes discovery.
    pub fn requests(&self) -> BTreeMap<String, u64> {
        self.lock().requests.clone()
    }

    /// How often paths with this prefix were requested.
    pub fn count(&self, prefix: &str) -> u64 {
        let play = self.lock();
        play.requests.iter().filter(|(path, _)| path.starts_with(prefix)).map(|(_, count)| count).sum()
    }

    /// Resets the request counts.
    pub fn forget_requests(&self) {
        self.lock().requests.clear();
    }

    pub(super) fn outage(&self, group: MetricsGroup) -> Outage {
        self.lock().outages.get(&group).cloned().unwrap_or_default()
    }

    pub(super) fn note(&self, path: &str) {
        *self.lock().requests.entry(path.to_owned()).or_default() += 1;
    }
}

fn put(all: &mut Vec<Series>, series: Series) {
    match all.iter_mut().find(|other| other.labels == series.labels) {
        Some(other) => *other = series,
        None => all.push(series),
    }
}
