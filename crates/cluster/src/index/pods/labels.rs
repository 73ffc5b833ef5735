//! Label sets of pods, and an inverted index of labels to label sets and selectors.

use std::collections::BTreeMap;

use api::selector::{Operator, Requirement, Selector};

use super::posting::{Link, Posting};
use crate::index::pool::{Id, NONE, Pool};

/// Labels of all pods. Pods of one template share a label set, so selectors are matched with label sets, not with pods.
#[derive(Debug, Default)]
pub(super) struct Labels {
    namespaces: Pool<Namespace>,
    pairs: Pool<Label>,
    sets: Pool<LabelSet>,
}

/// A namespace with pods or autoscalers.
#[derive(Debug)]
struct Namespace {
    name: Box<str>,
    autoscalers: usize,
    /// All its label sets, and the selectors that require no particular label.
    posting: Posting,
}

/// One key and value in one namespace, kept while a pod has it or a selector requires it.
#[derive(Debug)]
struct Label {
    namespace: Id,
    key_length: u32,
    /// The key and the value, concatenated.
    text: Box<str>,
    posting: Posting,
}

/// The labels that some pods of a namespace have; never without pods.
#[derive(Debug)]
pub(super) struct LabelSet {
    namespace: Link,
    /// Sorted by key.
    labels: Box<[Link]>,
    /// The first and the last of its pods, a linked list in the order of their creation.
    pub(super) first: Id,
    pub(super) last: Id,
    /// The autoscalers that select them.
    pub(super) audience: Link,
}

/// Where a selector is listed, so that a new label set finds it.
#[derive(Debug, Default)]
pub(super) enum SelectorPosting {
    /// In no posting list, because it selects nothing.
    #[default]
    NotPosted,
    /// Every label set of the namespace may match.
    Namespace(Id),
    /// Only label sets with one of these labels may match.
    Labels(Box<[Id]>),
}

impl Label {
    fn key(&self) -> &str {
        self.text.get(..self.key_length as usize).unwrap_or_default()
    }

    fn value(&self) -> &str {
        self.text.get(self.key_length as usize..).unwrap_or_default()
    }

    fn is(&self, key: &str, value: &str) -> bool {
        self.key() == key && self.value() == value
    }
}

/// Namespaces.
impl Labels {
    pub(super) fn namespace(&self, name: &str) -> Option<Id> {
        self.namespaces.find(self.namespaces.hash(name), |known| &*known.name == name)
    }

    /// The namespace, inserted if it is missing; [`Labels::leave`] must follow if it stays empty.
    pub(super) fn enter(&mut self, name: &str) -> Id {
        self.namespace(name).unwrap_or_else(|| {
            let namespace = Namespace { name: name.into(), autoscalers: 0, posting: Posting::default() };
            self.namespaces.insert(self.namespaces.hash(name), namespace)
        })
    }

    fn leave(&mut self, id: Id) {
        if self.namespaces.get(id).is_some_and(|known| known.autoscalers == 0 && known.posting.is_empty()) {
            self.namespaces.remove(id);
        }
    }

    pub(super) fn autoscalers(&self, namespace: Id) -> usize {
        self.namespaces.get(namespace).map_or(0, |known| known.autoscalers)
    }

    pub(super) fn add_autoscaler(&mut self, namespace: Id) {
        if let Some(known) = self.namespaces.get_mut(namespace) {
            known.autoscalers += 1;
        }
    }

    pub(super) fn remove_autoscaler(&mut self, namespace: Id) {
        if let Some(known) = self.namespaces.get_mut(namespace) {
            known.autoscalers = known.autoscalers.saturating_sub(1);
        }
        self.leave(namespace);
    }
}

/// Label sets.
impl Labels {
    pub(super) fn set(&self, id: Id) -> Option<&LabelSet> {
        self.sets.get(id)
    }

    pub(super) fn set_mut(&mut self, id: Id) -> Option<&mut LabelSet> {
        self.sets.get_mut(id)
    }

    pub(super) fn find_set(&self, namespace: Id, labels: &BTreeMap<String, String>) -> Option<Id> {
        let is_it = |set: &LabelSet| set.namespace.to == namespace && self.set_has(set, labels);
        self.sets.find(self.sets.hash((namespace, labels)), is_it)
    }

    pub(super) fn add_set(&mut self, namespace: Id, labels: &BTreeMap<String, String>) -> Id {
        let labels_of_set =
            labels.iter().map(|(key, value)| Link { to: self.label(namespace, key, value), at: 0 });
        let set = LabelSet {
            namespace: Link { to: namespace, at: 0 },
            labels: labels_of_set.collect(),
            first: NONE,
            last: NONE,
            audience: Link::NOWHERE,
        };
        let id = self.sets.insert(self.sets.hash((namespace, labels)), set);
        let Some(set) = self.sets.get_mut(id) else { return id };
        if let Some(known) = self.namespaces.get_mut(namespace) {
            set.namespace.at = known.posting.sets.insert(id);
        }
        for link in &mut set.labels {
            if let Some(label) = self.pairs.get_mut(link.to) {
                link.at = label.posting.sets.insert(id);
            }
        }
        id
    }

    /// Drops a label set without pods, and its labels that nothing else uses.
    pub(super) fn remove_set(&mut self, id: Id) {
        let Some(set) = self.sets.remove(id) else { return };
        for link in &set.labels {
            let Some(label) = self.pairs.get_mut(link.to) else { continue };
            let moved = label.posting.sets.remove_at(link.at);
            if let Some(moved) = moved.and_then(|moved| self.sets.get_mut(moved)) {
                for back in moved.labels.iter_mut().filter(|back| back.to == link.to) {
                    back.at = link.at;
                }
            }
            self.drop_label(link.to);
        }
        let Link { to, at } = set.namespace;
        if let Some(known) = self.namespaces.get_mut(to)
            && let Some(moved) = known.posting.sets.remove_at(at)
            && let Some(moved) = self.sets.get_mut(moved)
        {
            moved.namespace.at = at;
        }
        self.leave(to);
    }

    /// Whether these are exactly the labels of the set.
    fn set_has(&self, set: &LabelSet, labels: &BTreeMap<String, String>) -> bool {
        let is =
            |link: &Link, key: &str, value: &str| self.pairs.get(link.to).is_some_and(|l| l.is(key, value));
        set.labels.len() == labels.len() && set.labels.iter().zip(labels).all(|(link, (k, v))| is(link, k, v))
    }

    pub(super) fn matches(&self, set: Id, selector: &Selector) -> bool {
        let Some(set) = self.sets.get(set) else { return false };
        let labels = || set.labels.iter().filter_map(|link| self.pairs.get(link.to));
        selector.matches(|key| labels().find(|label| label.key() == key).map(Label::value))
    }
}

/// Single labels.
impl Labels {
    fn find_label(&self, namespace: Id, key: &str, value: &str) -> Option<Id> {
        let is_it = |label: &Label| label.namespace == namespace && label.is(key, value);
        self.pairs.find(self.pairs.hash((namespace, key, value)), is_it)
    }

    fn label(&mut self, namespace: Id, key: &str, value: &str) -> Id {
        self.find_label(namespace, key, value).unwrap_or_else(|| {
            let label = Label {
                namespace,
                key_length: key.len() as u32,
                text: [key, value].concat().into(),
                posting: Posting::default(),
            };
            self.pairs.insert(self.pairs.hash((namespace, key, value)), label)
        })
    }

    fn drop_label(&mut self, id: Id) {
        if self.pairs.get(id).is_some_and(|label| label.posting.is_empty()) {
            self.pairs.remove(id);
        }
    }
}

/// Selectors.
impl Labels {
    /// Lists the selector of an autoscaler where label sets that it may match will find it.
    pub(super) fn post(&mut self, namespace: Id, autoscaler: Id, selector: &Selector) -> SelectorPosting {
        if selector.is_nothing() {
            return SelectorPosting::NotPosted;
        }
        // A label that many selectors require, such as `app.kubernetes.io/part-of=shop`, is a bad discriminator.
        let usage = |requirement: &&Requirement| {
            let postings = self.postings(namespace, requirement);
            postings.fold((0, 0), |(selectors, label_sets), p| {
                (selectors + p.selectors.all().len(), label_sets + p.sets.all().len())
            })
        };
        let Some(rarest) = selector.requirements().iter().filter(|r| names_values(r)).min_by_key(usage)
        else {
            if let Some(known) = self.namespaces.get_mut(namespace) {
                known.posting.selectors.insert(autoscaler);
            }
            return SelectorPosting::Namespace(namespace);
        };
        let ids = rarest.values().into_iter().map(|value| {
            let id = self.label(namespace, rarest.key(), value);
            if let Some(label) = self.pairs.get_mut(id) {
                label.posting.selectors.insert(autoscaler);
            }
            id
        });
        SelectorPosting::Labels(ids.collect())
    }

    /// Undoes [`Labels::post`].
    pub(super) fn unpost(&mut self, posting: SelectorPosting, autoscaler: Id) {
        match posting {
            SelectorPosting::NotPosted => {}
            SelectorPosting::Namespace(namespace) => {
                if let Some(known) = self.namespaces.get_mut(namespace) {
                    known.posting.selectors.remove(autoscaler);
                }
            }
            SelectorPosting::Labels(labels) => {
                for id in labels {
                    if let Some(label) = self.pairs.get_mut(id) {
                        label.posting.selectors.remove(autoscaler);
                    }
                    self.drop_label(id);
                }
            }
        }
    }

    /// The autoscalers whose selector may match a label set, each once.
    pub(super) fn candidates(&self, set: Id) -> impl Iterator<Item = Id> {
        let set = self.sets.get(set);
        let namespace = set.and_then(|set| self.namespaces.get(set.namespace.to)).map(|known| &known.posting);
        let links = set.into_iter().flat_map(|set| set.labels.iter());
        let labels = links.filter_map(|link| self.pairs.get(link.to)).map(|label| &label.posting);
        namespace.into_iter().chain(labels).flat_map(|posting| posting.selectors.all().iter().copied())
    }

    /// The label sets of a namespace that a selector matches.
    pub(super) fn matching(&self, namespace: Id, selector: &Selector) -> Vec<Id> {
        if selector.is_nothing() {
            return Vec::new();
        }
        let having =
            |r: &&Requirement| self.postings(namespace, r).map(|p| p.sets.all().len()).sum::<usize>();
        let rarest = selector.requirements().iter().filter(|r| names_values(r)).min_by_key(having);
        let named = rarest.into_iter().flat_map(|requirement| self.postings(namespace, requirement));
        let all = self.namespaces.get(namespace).filter(|_| rarest.is_none()).map(|known| &known.posting);
        let candidates = named.chain(all).flat_map(|posting| posting.sets.all().iter().copied());
        candidates.filter(|set| self.matches(*set, selector)).collect()
    }

    /// The postings of the labels that satisfy a requirement that names them.
    fn postings<'a>(
        &'a self,
        namespace: Id,
        requirement: &'a Requirement,
    ) -> impl Iterator<Item = &'a Posting> {
        let values = requirement.values().into_iter();
        let ids = values.filter_map(move |value| self.find_label(namespace, requirement.key(), value));
        ids.filter_map(|id| self.pairs.get(id)).map(|label| &label.posting)
    }
}

/// Whether only labels with certain values satisfy a requirement.
fn names_values(requirement: &Requirement) -> bool {
    matches!(requirement.operator(), Operator::Equals | Operator::DoubleEquals | Operator::In)
}

#[cfg(test)]
impl Labels {
    /// The numbers of namespaces, labels and label sets.
    pub(super) fn counts(&self) -> [usize; 3] {
        [self.namespaces.len(), self.pairs.len(), self.sets.len()]
    }
}
