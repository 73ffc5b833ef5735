//! The index of pods and of the autoscalers that select them.

mod labels;
#[cfg(test)]
mod model;
mod posting;
mod selections;
mod templates;
#[cfg(test)]
mod tests;

use api::selector::Selector;

use self::labels::Labels;
use self::selections::Selections;
use self::templates::PodTemplates;
use super::pool::{Id, NONE, Pool};
use crate::key::AutoscalerKey;

/// All pods, and for each autoscaler the pods that its selector matches, updated with each change.
///
/// ```text
/// Record ─► LabelSet ─► Audience ◄─► Autoscaler
///   │          └─► Label, Namespace ◄─ Selector
///   └─► PodTemplate
/// ```
#[derive(Debug, Default)]
pub struct PodIndex {
    records: Pool<PodRecord>,
    templates: PodTemplates,
    labels: Labels,
    selections: Selections,
    /// The number of the last list.
    generation: u32,
    /// Whether that list is incomplete.
    listing: bool,
}

/// One pod.
#[derive(Debug)]
struct PodRecord {
    pod: engine::Pod,
    namespace: Id,
    set: Id,
    /// The previous and next pod of its label set.
    previous: Id,
    next: Id,
    shape: Id,
    /// The number of the list that last contained it, or after which it was created.
    generation: u32,
}

/// Events of the watch.
impl PodIndex {
    /// A pod was created or has changed.
    pub fn apply(&mut self, pod: &api::pod::Pod) {
        let meta = &pod.metadata;
        let namespace = self.labels.enter(&meta.namespace);
        let (shape, shared) = self.templates.take(pod.spec.shape());
        let seen = pod.view(shared);
        let set = self.labels.find_set(namespace, &meta.labels).unwrap_or_else(|| {
            let set = self.labels.add_set(namespace, &meta.labels);
            self.selections.enter(&mut self.labels, set);
            set
        });
        match self.find(namespace, &meta.name) {
            Some(id) => self.change(id, seen, shape, set),
            None => {
                let hash = self.records.hash((namespace, &*seen.name));
                let generation = self.generation;
                let record = PodRecord {
                    pod: seen,
                    namespace,
                    set: NONE,
                    previous: NONE,
                    next: NONE,
                    shape,
                    generation,
                };
                let id = self.records.insert(hash, record);
                self.link(id, set);
            }
        }
    }

    fn change(&mut self, id: Id, seen: engine::Pod, shape: Id, set: Id) {
        let Some(record) = self.records.get_mut(id) else { return };
        record.generation = self.generation;
        let changed = record.pod != seen;
        if changed {
            // The name is shared, so it keeps its allocation.
            let name = std::sync::Arc::clone(&record.pod.name);
            record.pod = engine::Pod { name, ..seen };
        }
        self.templates.release(std::mem::replace(&mut record.shape, shape));
        if record.set != set {
            self.unlink(id);
            self.link(id, set);
        } else if changed {
            self.selections.touch(&self.labels, set);
        }
    }

    /// A pod was deleted.
    pub fn remove(&mut self, namespace: &str, name: &str) {
        let id = self.labels.namespace(namespace).and_then(|namespace| self.find(namespace, name));
        if let Some(id) = id {
            self.delete(id);
        }
    }

    fn delete(&mut self, id: Id) {
        self.unlink(id);
        if let Some(record) = self.records.remove(id) {
            self.templates.release(record.shape);
        }
    }

    /// A list begins: pods that are not applied before [`PodIndex::listed`] are removed.
    pub fn listing(&mut self) {
        self.generation = self.generation.wrapping_add(1);
        self.listing = true;
    }

    /// The list is complete.
    pub fn listed(&mut self) {
        if !std::mem::take(&mut self.listing) {
            return;
        }
        let unseen = self.records.iter().filter(|(_, record)| record.generation != self.generation);
        let gone: Vec<Id> = unseen.map(|(id, _)| id).collect();
        for id in gone {
            self.delete(id);
        }
    }

    fn find(&self, namespace: Id, name: &str) -> Option<Id> {
        let is_it = |record: &PodRecord| record.namespace == namespace && &*record.pod.name == name;
        self.records.find(self.records.hash((namespace, name)), is_it)
    }

    /// Appends a pod to a label set.
    fn link(&mut self, id: Id, to: Id) {
        let Some(set) = self.labels.set_mut(to) else { return };
        let last = std::mem::replace(&mut set.last, id);
        match self.records.get_mut(last) {
            Some(last) => last.next = id,
            None => set.first = id,
        }
        if let Some(record) = self.records.get_mut(id) {
            (record.set, record.previous, record.next) = (to, last, NONE);
        }
        self.selections.touch(&self.labels, to);
    }

    /// Removes a pod from its label set, and drops the set with its last pod.
    fn unlink(&mut self, id: Id) {
        let Some(&PodRecord { set: from, previous, next, .. }) = self.records.get(id) else { return };
        self.selections.touch(&self.labels, from);
        let Some(set) = self.labels.set_mut(from) else { return };
        match self.records.get_mut(previous) {
            Some(previous) => previous.next = next,
            None => set.first = next,
        }
        match self.records.get_mut(next) {
            Some(next) => next.previous = previous,
            None => set.last = previous,
        }
        if set.first == NONE {
            self.selections.leave(&mut self.labels, from);
            self.labels.remove_set(from);
        }
    }
}

/// Autoscalers and their selections.
impl PodIndex {
    /// Registers an autoscaler. Until [`PodIndex::select`], it selects nothing.
    pub fn register(&mut self, key: &AutoscalerKey) {
        if self.selections.find(key).is_none() {
            let namespace = self.labels.enter(&key.namespace);
            self.labels.add_autoscaler(namespace);
            self.selections.register(key, namespace);
        }
    }

    /// Sets the selector of a registered autoscaler.
    pub fn select(&mut self, key: &AutoscalerKey, selector: &Selector) {
        if let Some(id) = self.selections.find(key) {
            self.selections.select(&mut self.labels, id, selector);
        }
    }

    /// Forgets an autoscaler.
    pub fn forget(&mut self, key: &AutoscalerKey) {
        if let Some(id) = self.selections.find(key) {
            self.selections.forget(&mut self.labels, id);
        }
    }

    /// The pods that an autoscaler selects, in a stable order.
    pub fn selected(&self, key: &AutoscalerKey) -> Vec<engine::Pod> {
        let id = self.selections.find(key).unwrap_or(NONE);
        self.pods_of(self.selections.sets(id))
    }

    /// The pods of a namespace that a selector matches, in the same order.
    pub fn matching(&self, namespace: &str, selector: &Selector) -> Vec<engine::Pod> {
        let namespace = self.labels.namespace(namespace).unwrap_or(NONE);
        self.pods_of(self.labels.matching(namespace, selector).into_iter())
    }

    /// All autoscalers that share a pod with this one, itself included, sorted; empty if it shares none.
    pub fn sharing(&self, key: &AutoscalerKey) -> Vec<AutoscalerKey> {
        let Some(id) = self.selections.find(key) else { return Vec::new() };
        let all = self.selections.get(id).map_or(0, |known| self.labels.autoscalers(known.namespace));
        let found = self.selections.sharing(id, all).into_iter();
        let mut keys: Vec<AutoscalerKey> =
            found.filter_map(|id| Some(self.selections.get(id)?.key.clone())).collect();
        keys.sort_unstable();
        keys
    }

    /// A number that changes whenever the selected pods of an autoscaler change.
    pub fn pods_changed(&self, key: &AutoscalerKey) -> u64 {
        self.selections.find(key).and_then(|id| self.selections.get(id)).map_or(0, |known| known.changed)
    }

    /// How many pods there are.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The pods of label sets, by their ids: roughly the order of creation.
    fn pods_of(&self, sets: impl Iterator<Item = Id>) -> Vec<engine::Pod> {
        let mut ids = Vec::new();
        for set in sets.filter_map(|set| self.labels.set(set)) {
            let mut next = set.first;
            while let Some(record) = self.records.get(next) {
                ids.push(next);
                next = record.next;
            }
        }
        ids.sort_unstable();
        ids.into_iter().filter_map(|id| Some(self.records.get(id)?.pod.clone())).collect()
    }
}
