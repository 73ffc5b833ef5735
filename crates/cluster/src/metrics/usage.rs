//! The usage of the pods of a namespace, compact and indexed by label, because it is cached and queried by many autoscalers.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use api::selector::{Operator, Selector};
use api::time::GO_ZERO;
use engine::Sample;
use engine::observe::NamedSample;
use jiff::{SignedDuration, Timestamp};
use quantity::Quantity;

use super::wire;

/// The usage of pods.
#[derive(Debug, Default)]
pub(super) struct Usage {
    pods: Box<[PodUsage]>,
    /// Pods by label and value.
    by_label: HashMap<Arc<str>, HashMap<Arc<str>, Vec<u32>>>,
    /// What took the samples, if the server states it.
    pub(super) source: Option<Arc<str>>,
}

#[derive(Debug)]
struct PodUsage {
    name: Arc<str>,
    labels: Box<[(Arc<str>, Arc<str>)]>,
    at: Timestamp,
    window: SignedDuration,
    containers: Box<[ContainerUsage]>,
}

/// The usage of a container in thousandths; none if it is unknown.
#[derive(Debug)]
struct ContainerUsage {
    name: Arc<str>,
    cpu: Option<i64>,
    memory: Option<i64>,
    others: Box<[(Arc<str>, i64)]>,
}

/// Interns strings.
#[derive(Default)]
struct Texts(HashSet<Arc<str>>);

impl Texts {
    fn keep(&mut self, text: &str) -> Arc<str> {
        if let Some(kept) = self.0.get(text) {
            return Arc::clone(kept);
        }
        let kept: Arc<str> = text.into();
        self.0.insert(Arc::clone(&kept));
        kept
    }
}

impl Usage {
    pub(super) fn is_empty(&self) -> bool {
        self.pods.is_empty()
    }

    /// Whether any pod has labels.
    pub(super) fn has_labels(&self) -> bool {
        !self.by_label.is_empty()
    }

    /// The samples of the selected pods; none if no pod is selected.
    pub(super) fn selected(
        &self,
        selector: &Selector,
        resource: &str,
        container: Option<&str>,
    ) -> Option<Vec<NamedSample>> {
        let mut some = false;
        let mut samples = Vec::new();
        let mut take = |pod: &PodUsage| {
            if selector.matches(|key| pod.label(key)) {
                some = true;
                samples.extend(pod.sample(resource, container).map(|sample| (Arc::clone(&pod.name), sample)));
            }
        };
        match self.candidates(selector) {
            Some(few) => few.iter().filter_map(|at| self.pods.get(*at as usize)).for_each(&mut take),
            None => self.pods.iter().for_each(&mut take),
        }
        some.then_some(samples)
    }

    /// The samples of all pods.
    pub(super) fn all(&self, resource: &str, container: Option<&str>) -> Vec<NamedSample> {
        let sample = |pod: &PodUsage| Some((Arc::clone(&pod.name), pod.sample(resource, container)?));
        self.pods.iter().filter_map(sample).collect()
    }

    /// The shortest posting list that contains all selected pods; none if all pods must be checked.
    fn candidates(&self, selector: &Selector) -> Option<&[u32]> {
        let exact = selector.requirements().iter().filter(|requirement| {
            matches!(requirement.operator(), Operator::Equals | Operator::DoubleEquals | Operator::In)
                && requirement.values().len() == 1
        });
        let lists = exact.map(|requirement| {
            let values = self.by_label.get(requirement.key());
            let value = requirement.values().first().copied().unwrap_or_default();
            values.and_then(|values| values.get(value)).map_or(&[][..], Vec::as_slice)
        });
        lists.min_by_key(|list| list.len())
    }

    fn of(pods: Vec<PodUsage>) -> Self {
        let mut by_label: HashMap<Arc<str>, HashMap<Arc<str>, Vec<u32>>> = HashMap::new();
        for (at, pod) in pods.iter().enumerate() {
            for (key, value) in &pod.labels {
                let values = by_label.entry(Arc::clone(key)).or_default();
                values.entry(Arc::clone(value)).or_default().push(at as u32);
            }
        }
        Self { pods: pods.into(), by_label, source: None }
    }
}

impl PodUsage {
    fn label(&self, key: &str) -> Option<&str> {
        self.labels.iter().find(|(known, _)| &**known == key).map(|(_, value)| &**value)
    }

    /// One pod's sample; none if a container lacks the resource (docs/spec/hpa.md 5.1).
    fn sample(&self, resource: &str, container: Option<&str>) -> Option<Sample> {
        let milli = match container {
            Some(name) => self.containers.iter().find(|c| &*c.name == name)?.usage(resource)?,
            None if self.containers.is_empty() => return None,
            None => self
                .containers
                .iter()
                .try_fold(0_i64, |sum, c| Some(sum.saturating_add(c.usage(resource)?)))?,
        };
        Some(Sample { at: self.at, window: self.window, milli: milli.into() })
    }
}

impl ContainerUsage {
    fn new<'a>(
        name: Arc<str>,
        usage: impl Iterator<Item = (&'a str, &'a Quantity)>,
        texts: &mut Texts,
    ) -> Self {
        let (mut cpu, mut memory, mut others) = (None, None, Vec::new());
        for (resource, quantity) in usage {
            let milli = quantity.milli_value();
            match resource {
                "cpu" => cpu = Some(milli),
                "memory" => memory = Some(milli),
                other => others.push((texts.keep(other), milli)),
            }
        }
        Self { name, cpu, memory, others: others.into() }
    }

    fn usage(&self, resource: &str) -> Option<i64> {
        match resource {
            "cpu" => self.cpu,
            "memory" => self.memory,
            other => self.others.iter().find(|(name, _)| &**name == other).map(|(_, milli)| *milli),
        }
    }
}

impl From<wire::WirePodList<'_>> for Usage {
    fn from(list: wire::WirePodList<'_>) -> Self {
        let mut texts = Texts::default();
        let pod = |pod: &wire::WirePod<'_>| PodUsage {
            name: pod.metadata.name.0.as_ref().into(),
            labels: pod
                .metadata
                .labels
                .iter()
                .map(|(key, value)| (texts.keep(&key.0), texts.keep(&value.0)))
                .collect(),
            at: pod.timestamp.unwrap_or(GO_ZERO),
            window: pod.window,
            containers: pod
                .containers
                .iter()
                .map(|c| {
                    let usage = c.usage.iter().filter_map(|(name, used)| Some((&*name.0, used.as_ref()?)));
                    ContainerUsage::new(texts.keep(&c.name.0), usage, &mut texts)
                })
                .collect(),
        };
        Self::of(list.items.iter().map(pod).collect())
    }
}

impl From<Vec<api::provider::PodUsage>> for Usage {
    fn from(pods: Vec<api::provider::PodUsage>) -> Self {
        let mut texts = Texts::default();
        let pod = |pod: api::provider::PodUsage| PodUsage {
            labels: pod.labels.iter().map(|(key, value)| (texts.keep(key), texts.keep(value))).collect(),
            at: pod.timestamp.unwrap_or(GO_ZERO),
            window: SignedDuration::from_nanos(pod.window),
            containers: pod
                .containers
                .into_iter()
                .map(|c| {
                    let usage = c.usage.iter().map(|(name, used)| (&**name, used));
                    ContainerUsage::new(c.name, usage, &mut texts)
                })
                .collect(),
            name: pod.name,
        };
        Self::of(pods.into_iter().map(pod).collect())
    }
}
