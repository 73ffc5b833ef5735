//! The handle with which values are set, faults are made and requests are counted.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::contents::{Contents, Described, NodeUsage, PodUsage, Series};

/// One of the three APIs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// `metrics.k8s.io`
    Resource,
    /// `custom.metrics.k8s.io`
    Custom,
    /// `external.metrics.k8s.io`
    External,
}

/// What is wrong with an API. Discovery still answers, so that the API counts as available.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Outage {
    /// Nothing.
    #[default]
    None,
    /// It answers with a Kubernetes `Status`.
    Status {
        /// The HTTP code.
        code: u16,
        /// One word for programs.
        reason: &'static str,
        /// A sentence for people.
        message: String,
    },
    /// It answers with something else than JSON, as a proxy in between does.
    Text {
        /// The HTTP code.
        code: u16,
        /// The answer.
        body: String,
    },
    /// Lists are empty.
    Empty,
    /// It does not answer.
    Hang,
    /// It answers with nonsense that says it is JSON.
    Garbage,
    /// The connection breaks in the middle of the answer.
    Cut,
}

/// Sets what is served. Clones set the same.
#[derive(Clone, Debug, Default)]
pub struct Script(Arc<Mutex<Play>>);

#[derive(Debug, Default)]
pub(super) struct Play {
    pub(super) contents: Contents,
    /// What the simulated nodes use; what is set by hand goes before it.
    pub(super) measured: Contents,
    outages: BTreeMap<Group, Outage>,
    requests: BTreeMap<String, u64>,
}

impl Group {
    /// The API group's name.
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
    pub(super) fn lock(&self) -> MutexGuard<'_, Play> {
        // Nobody panics while holding it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets what a pod uses.
    pub fn set_pod(&self, namespace: &str, pod: &str, usage: PodUsage) {
        self.lock().contents.pods.insert((namespace.to_owned(), pod.to_owned()), usage);
    }

    /// Forgets what a pod uses.
    pub fn remove_pod(&self, namespace: &str, pod: &str) {
        self.lock().contents.pods.remove(&(namespace.to_owned(), pod.to_owned()));
    }

    /// Forgets what all pods of a namespace use.
    pub fn clear_pods(&self, namespace: &str) {
        self.lock().contents.pods.retain(|(other, _), _| other != namespace);
    }

    /// Sets what a node uses.
    pub fn set_node(&self, node: &str, usage: NodeUsage) {
        self.lock().contents.nodes.insert(node.to_owned(), usage);
    }

    /// Sets a value of a custom metric, in the place of that with the same labels of its own.
    pub fn set_custom(&self, object: Described, metric: &str, series: Series) {
        let mut play = self.lock();
        put(play.contents.custom.entry((metric.to_owned(), object)).or_default(), series);
    }

    /// Forgets a custom metric of an object.
    pub fn remove_custom(&self, object: &Described, metric: &str) {
        self.lock().contents.custom.remove(&(metric.to_owned(), object.clone()));
    }

    /// Forgets all custom metrics of objects in a namespace, and of that namespace.
    pub fn clear_custom(&self, namespace: &str) {
        self.lock().contents.custom.retain(|(_, object), _| {
            object.namespace != namespace && *object != Described::namespace(namespace)
        });
    }

    /// Sets a value of an external metric, in the place of that with the same labels.
    pub fn set_external(&self, namespace: &str, metric: &str, series: Series) {
        let mut play = self.lock();
        put(play.contents.external.entry((namespace.to_owned(), metric.to_lowercase())).or_default(), series);
    }

    /// Forgets an external metric.
    pub fn remove_external(&self, namespace: &str, metric: &str) {
        self.lock().contents.external.remove(&(namespace.to_owned(), metric.to_lowercase()));
    }

    /// Forgets all external metrics of a namespace.
    pub fn clear_external(&self, namespace: &str) {
        self.lock().contents.external.retain(|(other, _), _| other != namespace);
    }

    /// Forgets all that was set, and mends all faults; requests stay counted.
    pub fn clear(&self) {
        let mut play = self.lock();
        play.contents = Contents::default();
        play.outages.clear();
    }

    /// From now on this is wrong with an API; [`Outage::None`] mends it.
    pub fn fail(&self, group: Group, outage: Outage) {
        self.lock().outages.insert(group, outage);
    }

    /// How often each path was asked for, without its query; discovery included.
    pub fn requests(&self) -> BTreeMap<String, u64> {
        self.lock().requests.clone()
    }

    /// How often paths that begin so were asked for.
    pub fn count(&self, prefix: &str) -> u64 {
        let play = self.lock();
        play.requests.iter().filter(|(path, _)| path.starts_with(prefix)).map(|(_, count)| count).sum()
    }

    /// Counts from zero again.
    pub fn forget_requests(&self) {
        self.lock().requests.clear();
    }

    pub(super) fn outage(&self, group: Group) -> Outage {
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
