//! What is measured.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use quantity::{Format, Quantity};

/// Labels of an object or of a series.
pub type Labels = BTreeMap<String, String>;

/// When something was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum When {
    /// At the moment of the answer: always fresh.
    #[default]
    Now,
    /// At this time, however often it is asked for.
    At(Timestamp),
    /// Nobody said: the time is null on the wire.
    Never,
}

/// What a pod uses.
#[derive(Clone, Debug, PartialEq)]
pub struct PodUsage {
    /// Its labels, which selectors look at.
    pub labels: Arc<Labels>,
    /// Its containers; an empty list is served as such.
    pub containers: Vec<ContainerUsage>,
    /// When it was measured.
    pub when: When,
    /// Over how long.
    pub window: Duration,
}

/// What a container uses, by resource.
#[derive(Clone, Debug, PartialEq)]
pub struct ContainerUsage {
    /// Its name.
    pub name: String,
    /// `cpu` and `memory`, and whatever else; what is not there is not served.
    pub usage: BTreeMap<String, Quantity>,
}

/// What a node uses.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeUsage {
    /// Its labels.
    pub labels: Labels,
    /// Its usage by resource.
    pub usage: BTreeMap<String, Quantity>,
    /// When it was measured.
    pub when: When,
    /// Over how long.
    pub window: Duration,
}

/// An object that a custom metric describes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Described {
    /// Its namespace; empty for objects outside of any, which namespaces themselves are.
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
    /// Its own labels, which the metric's selector looks at.
    pub labels: Labels,
    /// Labels of the described object, which the pods' selector looks at.
    pub object_labels: Labels,
    /// When it was measured.
    pub when: When,
    /// Over how long; mostly nobody says.
    pub window: Option<Duration>,
}

/// All that is served.
#[derive(Clone, Debug, Default)]
pub(crate) struct Contents {
    /// By namespace and name.
    pub(crate) pods: BTreeMap<(String, String), PodUsage>,
    pub(crate) nodes: BTreeMap<String, NodeUsage>,
    /// By metric and object.
    pub(crate) custom: BTreeMap<(String, Described), Vec<Series>>,
    /// By namespace and metric, which has no capitals here: Kubernetes asks so.
    pub(crate) external: BTreeMap<(String, String), Vec<Series>>,
}

/// The usual scrape interval.
pub(crate) const WINDOW: Duration = Duration::from_secs(15);

impl PodUsage {
    /// A pod with these labels and containers: name, thousandths of a core, bytes.
    pub fn new(labels: &[(&str, &str)], containers: &[(&str, i64, i64)]) -> Self {
        let containers =
            containers.iter().map(|(name, cpu, memory)| ContainerUsage::new(name, *cpu, *memory));
        Self {
            labels: Arc::new(owned(labels)),
            containers: containers.collect(),
            when: When::Now,
            window: WINDOW,
        }
    }

    /// Measured at another time than now.
    pub fn at(self, when: When) -> Self {
        Self { when, ..self }
    }

    /// Measured over another time than 15 seconds.
    pub fn over(self, window: Duration) -> Self {
        Self { window, ..self }
    }
}

impl ContainerUsage {
    /// A container that uses so many thousandths of a core and bytes.
    pub fn new(name: &str, cpu_milli: i64, memory_bytes: i64) -> Self {
        let cpu = Quantity::from_milli(cpu_milli, Format::DecimalSi);
        let usage = usage(cpu, Quantity::new(memory_bytes, Format::BinarySi));
        Self { name: name.to_owned(), usage }
    }
}

impl Described {
    /// An object of `resource` (plural and group) in a namespace, or in none if that is empty.
    pub fn new(namespace: &str, resource: &str, name: &str) -> Self {
        Self { namespace: namespace.to_owned(), resource: resource.to_owned(), name: name.to_owned() }
    }

    /// A pod.
    pub fn pod(namespace: &str, name: &str) -> Self {
        Self::new(namespace, "pods", name)
    }

    /// A namespace itself.
    pub fn namespace(name: &str) -> Self {
        Self::new("", "namespaces", name)
    }
}

impl Series {
    /// A value without labels, always fresh.
    pub fn new(value: Quantity) -> Self {
        Self { value, labels: Labels::new(), object_labels: Labels::new(), when: When::Now, window: None }
    }

    /// A value in thousandths.
    pub fn milli(milli: i64) -> Self {
        Self::new(Quantity::from_milli(milli, Format::DecimalSi))
    }

    /// With labels of its own.
    pub fn labelled(self, labels: &[(&str, &str)]) -> Self {
        Self { labels: owned(labels), ..self }
    }

    /// Of an object with these labels.
    pub fn of_object(self, labels: &[(&str, &str)]) -> Self {
        Self { object_labels: owned(labels), ..self }
    }

    /// Measured at another time than now.
    pub fn at(self, when: When) -> Self {
        Self { when, ..self }
    }

    /// Measured over some time.
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
