//! Objects that are not known to have a slow source. If there are several namespaces, each of them leaves a quarter of the places to
//! others: many objects whose sources answer just fast enough would otherwise delay all polls.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use tokio::time::Instant;

use super::SLOW_THRESHOLD;
use super::slow_queue::NamespaceQueue;
use crate::operator::id::{ResourceId, ResourceKind};

/// Waiting and running objects that are not known to be slow.
#[derive(Debug)]
pub(super) struct FastQueue {
    /// How many run concurrently.
    places: usize,
    by_namespace: HashMap<Arc<str>, FastNamespace>,
    /// The first waiting object of each namespace that has a place left, by due time.
    heads: BTreeSet<(Instant, ResourceId)>,
    /// Running objects, by start time.
    running: BTreeSet<(Instant, ResourceId)>,
    /// Number of waiting objects.
    waiting: usize,
}

/// Waiting and running objects of one namespace.
#[derive(Debug, Default)]
struct FastNamespace {
    queue: NamespaceQueue,
    /// Its entry in `heads`.
    head: Option<(Instant, ResourceId)>,
}

impl FastQueue {
    pub(super) fn new(places: usize) -> Self {
        Self {
            places,
            by_namespace: HashMap::new(),
            heads: BTreeSet::new(),
            running: BTreeSet::new(),
            waiting: 0,
        }
    }

    /// Adds a waiting object.
    pub(super) fn insert(&mut self, at: Instant, id: &ResourceId) {
        let is_new = self.change(&id.namespace, |queue| queue.waiting.insert((at, id.clone())));
        self.waiting += usize::from(is_new);
    }

    /// Removes a waiting object.
    pub(super) fn remove(&mut self, at: Instant, id: &ResourceId) {
        let is_removed = self.change(&id.namespace, |queue| queue.waiting.remove(&(at, id.clone())));
        self.waiting -= usize::from(is_removed);
    }

    /// Counts an object as running.
    pub(super) fn add_running(&mut self, since: Instant, id: &ResourceId) {
        if self.running.insert((since, id.clone())) {
            self.change(&id.namespace, |queue| queue.running += 1);
        }
    }

    /// The processing of a running object has ended; false if it does not run in this queue.
    pub(super) fn remove_running(&mut self, since: Instant, id: &ResourceId) -> bool {
        let is_removed = self.running.remove(&(since, id.clone()));
        if is_removed {
            self.change(&id.namespace, |queue| queue.running -= 1);
        }
        is_removed
    }

    /// An object that has run for too long for this queue, which it leaves.
    pub(super) fn pop_slow(&mut self, now: Instant) -> Option<ResourceId> {
        let (since, id) = self.running.first().filter(|(since, _)| *since + SLOW_THRESHOLD <= now)?.clone();
        self.remove_running(since, &id);
        Some(id)
    }

    /// The waiting object that is due first, of those whose namespace has a place left.
    pub(super) fn first(&self) -> Option<&(Instant, ResourceId)> {
        if self.running.len() >= self.places {
            return None;
        }
        if self.by_namespace.len() == 1 {
            return self.by_namespace.values().next()?.queue.waiting.first();
        }
        self.heads.first()
    }

    /// When a place may become free because a running object proves to be slow; none if no waiting object needs it.
    pub(super) fn next_place_at(&self) -> Option<Instant> {
        let is_limited = self.waiting > 0 && self.running.len() >= self.namespace_places();
        self.running.first().filter(|_| is_limited).map(|(since, _)| *since + SLOW_THRESHOLD)
    }

    /// Number of objects of a kind that are due and wait.
    pub(super) fn overdue(&self, kind: ResourceKind, now: Instant) -> usize {
        let overdue = |namespace: &FastNamespace| namespace.queue.overdue(kind, now);
        if self.running.len() >= self.namespace_places() {
            // A namespace without a place left has no entry in `heads`.
            return self.by_namespace.values().map(overdue).sum();
        }
        let heads = self.heads.iter().take_while(|(at, _)| *at < now);
        heads.filter_map(|(_, id)| self.by_namespace.get(&id.namespace)).map(overdue).sum()
    }

    /// How many objects one of several namespaces may run.
    fn namespace_places(&self) -> usize {
        self.places - self.places / 4
    }

    /// Changes the queue of a namespace, and keeps its head where it belongs.
    fn change<T>(&mut self, namespace: &Arc<str>, change: impl FnOnce(&mut NamespaceQueue) -> T) -> T {
        let places = self.namespace_places();
        let FastNamespace { queue, head } = self.by_namespace.entry(Arc::clone(namespace)).or_default();
        let changed = change(queue);
        let first = queue.waiting.first().filter(|_| queue.running < places);
        // Most changes leave it as it is.
        if first != head.as_ref() {
            let new = first.cloned();
            if let Some(old) = std::mem::replace(head, new.clone()) {
                self.heads.remove(&old);
            }
            self.heads.extend(new);
        }
        if queue.len() == 0 {
            self.by_namespace.remove(namespace);
        }
        changed
    }

    /// Number of running objects.
    #[cfg(test)]
    pub(super) fn running(&self) -> usize {
        self.running.len()
    }
}
