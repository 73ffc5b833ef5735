//! Objects with a slow source. Their places are divided among namespaces, because the source of one tenant may hold a place for long:
//! a namespace uses what no other needs, and starts no more than its part if others need theirs.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use tokio::time::Instant;

use crate::operator::id::{ResourceId, ResourceKind};

/// Waiting and running objects with a slow source.
#[derive(Debug)]
pub(super) struct SlowQueue {
    /// How many run concurrently. Objects that prove to be slow while they run in the fast queue may exceed it.
    places: usize,
    by_namespace: HashMap<Arc<str>, NamespaceQueue>,
    /// Number of objects of all namespaces, waiting and running.
    len: usize,
}

/// Waiting and running objects of one namespace.
#[derive(Debug, Default)]
pub(super) struct NamespaceQueue {
    /// Waiting objects, by due time.
    pub(super) waiting: BTreeSet<(Instant, ResourceId)>,
    pub(super) running: usize,
}

impl NamespaceQueue {
    pub(super) fn len(&self) -> usize {
        self.waiting.len() + self.running
    }

    /// The waiting object that is due first, if fewer than so many objects run.
    pub(super) fn head(&self, places: usize) -> Option<(Instant, ResourceId)> {
        self.waiting.first().filter(|_| self.running < places).cloned()
    }

    /// Number of objects of a kind that are due and wait.
    pub(super) fn overdue(&self, kind: ResourceKind, now: Instant) -> usize {
        self.waiting.iter().take_while(|(at, _)| *at < now).filter(|(_, id)| id.kind == kind).count()
    }
}

impl SlowQueue {
    pub(super) fn new(places: usize) -> Self {
        Self { places, by_namespace: HashMap::new(), len: 0 }
    }

    /// Adds a waiting object.
    pub(super) fn insert(&mut self, at: Instant, id: &ResourceId) {
        let queue = self.by_namespace.entry(Arc::clone(&id.namespace)).or_default();
        self.len += usize::from(queue.waiting.insert((at, id.clone())));
    }

    /// Removes a waiting object.
    pub(super) fn remove(&mut self, at: Instant, id: &ResourceId) {
        let Some(queue) = self.by_namespace.get_mut(&id.namespace) else { return };
        self.len -= usize::from(queue.waiting.remove(&(at, id.clone())));
        self.drop_empty(&id.namespace);
    }

    /// Counts an object as running.
    pub(super) fn add_running(&mut self, id: &ResourceId) {
        self.by_namespace.entry(Arc::clone(&id.namespace)).or_default().running += 1;
        self.len += 1;
    }

    /// The processing of a running object has ended.
    pub(super) fn remove_running(&mut self, id: &ResourceId) {
        let Some(queue) = self.by_namespace.get_mut(&id.namespace).filter(|queue| queue.running > 0) else {
            return;
        };
        queue.running -= 1;
        self.len -= 1;
        self.drop_empty(&id.namespace);
    }

    /// The waiting object that is due first, of those whose namespace has a place left.
    pub(super) fn first(&self) -> Option<&(Instant, ResourceId)> {
        let part = self.part();
        // What a namespace has beyond its part is not taken from the parts of others.
        let used: usize = self.by_namespace.values().map(|queue| queue.running.min(part)).sum();
        if used >= self.places {
            return None;
        }
        let with_places = self.by_namespace.values().filter(|queue| queue.running < part);
        with_places.filter_map(|queue| queue.waiting.first()).min()
    }

    /// Number of objects of a kind that are due and wait.
    pub(super) fn overdue(&self, kind: ResourceKind, now: Instant) -> usize {
        self.by_namespace.values().map(|queue| queue.overdue(kind, now)).sum()
    }

    /// How many objects one namespace may run: the largest number with which no more run than there are places. A namespace with
    /// fewer slow objects leaves the rest to the others.
    fn part(&self) -> usize {
        if self.len <= self.places {
            return self.places;
        }
        let taken =
            |part: usize| -> usize { self.by_namespace.values().map(|queue| queue.len().min(part)).sum() };
        // With more namespaces than places each of them may run one, if there is a place.
        let (mut low, mut high) = (1, self.places.max(1));
        while low < high {
            let middle = (low + high).div_ceil(2);
            if taken(middle) <= self.places {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        low
    }

    fn drop_empty(&mut self, namespace: &Arc<str>) {
        if self.by_namespace.get(namespace).is_some_and(|queue| queue.len() == 0) {
            self.by_namespace.remove(namespace);
        }
    }

    /// Number of running objects.
    #[cfg(test)]
    pub(super) fn running(&self) -> usize {
        self.by_namespace.values().map(|queue| queue.running).sum()
    }
}
