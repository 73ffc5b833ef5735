//! The metrics that are served.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use quantity::{Format, Quantity};

/// Labels of an object or of a series.
pub type Labels = BTreeMap<String, String>;

/// The timestamp of a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SampleTime {
    /// The time of the response.
    #[default]
    Now,
    /// A fixed time.
    At(Timestamp),
    /// No timestamp: null in JSON.
    Never,
}

/// The usage of a pod.
#[derive(Clone, Debug, PartialEq)]
pub struct PodUsage {
    /// Its labels, for label selectors.
    pub labels: Arc<Labels>,
    /// Its containers; an empty list is served as it is.
    pub containers: Vec<ContainerUsage>,
    /// The sample time.
    pub when: SampleTime,
    /// The sample window.
    pub window: Duration,
}

/// The usage of a container, by resource.
#[derive(Clone, Debug, PartialEq)]
pub struct ContainerUsage {
    /// Its name.
    pub name: String,
    /// `cpu`, `memory` and others; an absent resource is not served.
    pub usage: BTreeMap<String, Quantity>,
}

/// The usage of a node.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeUsage {
    /// Its labels.
    pub labels: Labels,
    /// Its usage by resource.
    pub usage: BTreeMap<String, Quantity>,
    /// The sample time.
    pub when: SampleTime,
    /// The sample window.
    pub window: Duration,
}

/// The object that a custom metric describes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DescribedObject {
    /// Its namespace; empty for cluster-scoped objects.
    pub namespace: String,
    /// Plural and group, such as `pods` or `deployments.apps`.
    pub resource: String,
    /// Its name.
    pub name: String,
}

/// One value of a custom or external metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// The value.
    pub value: Quantity,
    /// Labels of the metric, for the metric's selector.
    pub labels: Labels,
    /// Labels of the described object, for the pod selector.
    pub object_labels: Labels,
    /// The sample time.
    pub when: SampleTime,
    /// The sample window, if one is served.
    pub window: Option<Duration>,
}

/// All resources that are served.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServedMetrics {
    /// By namespace and name.
    pub(crate) pods: BTreeMap<(String, String), PodUsage>,
    pub(crate) nodes: BTreeMap<String, NodeUsage>,
    /// By metric and object.
    pub(crate) custom: BTreeMap<(String, DescribedObject), Vec<Series>>,
    /// By namespace and metric in lower case, as Kubernetes requests it.
    pub(crate) external: BTreeMap<(String, String), Vec<Series>>,
}

/// The default sample window: the usual scrape interval.
pub(crate) const DEFAULT_WINDOW: Duration = Duration::from_secs(15);

impl PodUsage {
    /// A pod with these labels and containers: name, millicores, bytes.
    pub fn new(labels: &[(&str, &str)], containers: &[(&str, i64, i64)]) -> Self {
        let containers =
            containers.iter().map(|(name, cpu, memory)| ContainerUsage::new(name, *cpu, *memory));
        Self {
            labels: Arc::new(owned(labels)),
            containers: containers.collect(),
            when: SampleTime::Now,
            window: DEFAULT_WINDOW,
        }
    }

    /// Sets the sample time.
    pub fn at(self, when: SampleTime) -> Self {
        Self { when, ..self }
    }

    /// Sets the sample window.
    pub fn over(self, window: Duration) -> Self {
        Self { window, ..self }
    }
}

impl ContainerUsage {
    /// The usage of a container in millicores and bytes.
    pub fn new(name: &str, cpu_milli: i64, memory_bytes: i64) -> Self {
        let cpu = Quantity::from_milli(cpu_milli, Format::DecimalSi);
        let usage = usage(cpu, Quantity::new(memory_bytes, Format::BinarySi));
        Self { name: name.to_owned(), usage }
    }
}

impl DescribedObject {
    /// An object of `resource` (plural and group) in a namespace; cluster-scoped if that is empty.
    pub fn new(namespace: &str, resource: &str, name: &str) -> Self {
        Self { namespace: namespace.to_owned(), resource: resource.to_owned(), name: name.to_owned() }
    }

    /// A pod.
    pub fn pod(namespace: &str, name: &str) -> Self {
        Self::new(namespace, "pods", name)
    }

    /// A namespace.
    pub fn namespace(name: &str) -> Self {
        Self::new("", "namespaces", name)
    }
}

impl Series {
    /// A value without labels, with the time of the response.
    pub fn new(value: Quantity) -> Self {
        Self {
            value,
            labels: Labels::new(),
            object_labels: Labels::new(),
            when: SampleTime::Now,
            window: None,
        }
    }

    /// A value in thousandths.
    pub fn milli(milli: i64) -> Self {
        Self::new(Quantity::from_milli(milli, Format::DecimalSi))
    }

    /// Sets the metric's labels.
    pub fn labelled(self, labels: &[(&str, &str)]) -> Self {
        Self { labels: owned(labels), ..self }
    }

    /// Sets the labels of the described object.
    pub fn of_object(self, labels: &[(&str, &str)]) -> Self {
        Self { object_labels: owned(labels), ..self }
    }

    /// Sets the sample time.
    pub fn at(self, when: SampleTime) -> Self {
        Self { when, ..self }
    }

    /// Sets the sample window.
    pub fn over(self, window: Duration) -> Self {
        Self { window: Some(window), ..self }
    }
}

pub(crate) fn usage(cpu: Quantity, memory: Quantity) -> BTreeMap<String, Quantity> {
    [("cpu".to_owned(), cpu), ("memory".to_owned(), memory)].into()
}

fn owned(labels: &[(&str, &str)]) -> Labels {
    labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}
