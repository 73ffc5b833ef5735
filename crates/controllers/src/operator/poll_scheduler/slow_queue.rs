//! Objects with a slow source. Their places are divided among namespaces, because the source of one tenant may hold a place for long:
//! a namespace uses what no other needs, and starts no more than its part if others need theirs. An object that is not due needs no
//! place: when it becomes due, its namespace gets its part even while others hold all places.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use tokio::time::Instant;

use crate::operator::id::{ResourceId, ResourceKind};

/// Waiting and running objects with a slow source.
#[derive(Debug)]
pub(super) struct SlowQueue {
    /// How many run concurrently. Objects that prove to be slow while they run in the fast queue may exceed it.
    places: usize,
    /// Waiting objects that are not known to be due, by due time.
    later: BTreeSet<(Instant, ResourceId)>,
    /// Objects that are due or run.
    by_namespace: HashMap<Arc<str>, NamespaceQueue>,
    index: NamespaceIndex,
}

/// Waiting and running objects of one namespace.
#[derive(Debug, Default)]
pub(super) struct NamespaceQueue {
    /// Waiting objects, by due time.
    pub(super) waiting: BTreeSet<(Instant, ResourceId)>,
    pub(super) running: usize,
}

/// The namespaces with objects that are due or run, grouped by numbers of objects: `first` visits the few groups that differ, not the
/// namespaces.
#[derive(Debug, Default)]
struct NamespaceIndex {
    namespaces: usize,
    /// How many namespaces have so many objects, due and running.
    by_len: BTreeMap<usize, usize>,
    by_running: BTreeMap<usize, RunningGroup>,
}

/// The namespaces of which the same number of objects run.
#[derive(Debug, Default)]
struct RunningGroup {
    namespaces: usize,
    /// The first waiting object of each namespace that has one, by due time.
    heads: BTreeSet<(Instant, ResourceId)>,
}

impl NamespaceQueue {
    pub(super) fn len(&self) -> usize {
        self.waiting.len() + self.running
    }

    /// Number of objects of a kind that are due and wait.
    pub(super) fn overdue(&self, kind: ResourceKind, now: Instant) -> usize {
        overdue(&self.waiting, kind, now)
    }
}

fn overdue(waiting: &BTreeSet<(Instant, ResourceId)>, kind: ResourceKind, now: Instant) -> usize {
    waiting.iter().take_while(|(at, _)| *at < now).filter(|(_, id)| id.kind == kind).count()
}

impl NamespaceIndex {
    fn insert(&mut self, queue: &NamespaceQueue) {
        if queue.len() == 0 {
            return;
        }
        self.namespaces += 1;
        *self.by_len.entry(queue.len()).or_default() += 1;
        let group = self.by_running.entry(queue.running).or_default();
        group.namespaces += 1;
        group.heads.extend(queue.waiting.first().cloned());
    }

    /// Removes a namespace. Its queue is as it was when it was inserted.
    fn remove(&mut self, queue: &NamespaceQueue) {
        if queue.len() == 0 {
            return;
        }
        self.namespaces -= 1;
        if let Entry::Occupied(mut namespaces) = self.by_len.entry(queue.len()) {
            *namespaces.get_mut() -= 1;
            if *namespaces.get() == 0 {
                namespaces.remove();
            }
        }
        if let Entry::Occupied(mut group) = self.by_running.entry(queue.running) {
            group.get_mut().namespaces -= 1;
            if let Some(head) = queue.waiting.first() {
                group.get_mut().heads.remove(head);
            }
            if group.get().namespaces == 0 {
                group.remove();
            }
        }
    }
}

impl SlowQueue {
    pub(super) fn new(places: usize) -> Self {
        let (later, by_namespace, index) = (BTreeSet::new(), HashMap::new(), NamespaceIndex::default());
        Self { places, later, by_namespace, index }
    }

    /// Adds a waiting object.
    pub(super) fn insert(&mut self, at: Instant, id: &ResourceId) {
        self.later.insert((at, id.clone()));
    }

    /// Removes a waiting object.
    pub(super) fn remove(&mut self, at: Instant, id: &ResourceId) {
        let waiting = (at, id.clone());
        if !self.later.remove(&waiting) && self.by_namespace.contains_key(&id.namespace) {
            self.change(&id.namespace, |queue| {
                queue.waiting.remove(&waiting);
            });
        }
    }

    /// Lets the objects that are due now compete for places.
    pub(super) fn make_due(&mut self, now: Instant) {
        while self.later.first().is_some_and(|(at, _)| *at <= now)
            && let Some((at, id)) = self.later.pop_first()
        {
            let namespace = Arc::clone(&id.namespace);
            self.change(&namespace, |queue| {
                queue.waiting.insert((at, id));
            });
        }
    }

    /// Counts an object as running.
    pub(super) fn add_running(&mut self, id: &ResourceId) {
        self.change(&id.namespace, |queue| queue.running += 1);
    }

    /// The processing of a running object has ended.
    pub(super) fn remove_running(&mut self, id: &ResourceId) {
        self.change(&id.namespace, |queue| queue.running = queue.running.saturating_sub(1));
    }

    /// When an object may be started, if none of those that run ends before.
    pub(super) fn next_start_at(&self) -> Option<Instant> {
        let times = [self.first(), self.later.first()];
        times.into_iter().flatten().map(|(at, _)| *at).min()
    }

    /// The object that has been due for longest, of those whose namespace has a place left.
    ///
    /// Visits no more groups than there are different numbers whose sum is at most `places`, whatever the number of namespaces is.
    pub(super) fn first(&self) -> Option<&(Instant, ResourceId)> {
        let part = self.part();
        let mut first: Option<&(Instant, ResourceId)> = None;
        // What a namespace has beyond its part is not taken from the parts of others.
        let (mut used, mut with_part) = (0, self.index.namespaces);
        for (running, group) in self.index.by_running.range(..part) {
            count_step();
            used += running * group.namespaces;
            with_part -= group.namespaces;
            first = match (first, group.heads.first()) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            };
        }
        first.filter(|_| used + with_part * part < self.places)
    }

    /// Number of objects of a kind that are due and wait.
    pub(super) fn overdue(&self, kind: ResourceKind, now: Instant) -> usize {
        let groups = self.index.by_running.values();
        let heads = groups.flat_map(|group| group.heads.iter().take_while(move |(at, _)| *at < now));
        let queues = heads.filter_map(|(_, id)| self.by_namespace.get(&id.namespace));
        let due: usize = queues.map(|queue| queue.overdue(kind, now)).sum();
        due + overdue(&self.later, kind, now)
    }

    /// How many objects one namespace may run: the largest number with which no more run than there are places. A namespace with
    /// fewer slow objects leaves the rest to the others.
    fn part(&self) -> usize {
        let (mut free, mut namespaces) = (self.places, self.index.namespaces);
        for (len, count) in &self.index.by_len {
            count_step();
            let part = free / namespaces.max(1);
            if *len > part {
                // With more namespaces than places each of them may run one, if there is a place.
                return part.max(1);
            }
            free -= len * count;
            namespaces -= count;
        }
        self.places
    }

    /// Changes the queue of a namespace, and keeps the index of it.
    fn change(&mut self, namespace: &Arc<str>, change: impl FnOnce(&mut NamespaceQueue)) {
        let queue = self.by_namespace.entry(Arc::clone(namespace)).or_default();
        self.index.remove(queue);
        change(queue);
        self.index.insert(queue);
        if queue.len() == 0 {
            self.by_namespace.remove(namespace);
        }
    }

    /// Number of running objects.
    #[cfg(test)]
    pub(super) fn running(&self) -> usize {
        self.by_namespace.values().map(|queue| queue.running).sum()
    }
}

/// Counts a group of namespaces that is visited, for tests.
fn count_step() {
    #[cfg(test)]
    tests::STEPS.set(tests::STEPS.get() + 1);
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::time::Duration;

    use super::*;

    thread_local! {
        pub(super) static STEPS: Cell<usize> = const { Cell::new(0) };
    }

    const PLACES: usize = 256;
    /// The numbers from 0 to 22 have the sum 253; one more group may be visited to find that it is too large.
    const MAX_STEPS: usize = 2 * 24;

    impl SlowQueue {
        /// The same as [`SlowQueue::part`], from its definition.
        fn expected_part(&self) -> usize {
            let fits = |part: &usize| {
                let taken: usize = self.by_namespace.values().map(|queue| queue.len().min(*part)).sum();
                taken <= self.places
            };
            (1..=self.places).rev().find(fits).unwrap_or(1)
        }

        /// The same as [`SlowQueue::first`], from its definition.
        fn expected_first(&self) -> Option<&(Instant, ResourceId)> {
            let part = self.expected_part();
            let used: usize = self.by_namespace.values().map(|queue| queue.running.min(part)).sum();
            let with_places = self.by_namespace.values().filter(|queue| queue.running < part);
            with_places.filter_map(|queue| queue.waiting.first()).min().filter(|_| used < self.places)
        }
    }

    /// The `number`-th object of a namespace.
    fn object(namespace: usize, number: usize) -> ResourceId {
        ResourceId::object(&format!("ns{namespace}"), &number.to_string())
    }

    /// Starts what may run; returns the started objects and the most steps that one choice took.
    fn started(queue: &mut SlowQueue) -> (Vec<ResourceId>, usize) {
        let (mut all, mut steps) = (Vec::new(), 0_usize);
        loop {
            STEPS.set(0);
            let first = queue.first().cloned();
            steps = steps.max(STEPS.get());
            let Some((at, id)) = first else { return (all, steps) };
            queue.remove(at, &id);
            queue.add_running(&id);
            all.push(id);
        }
    }

    #[test]
    fn steps_of_a_choice_do_not_grow_with_the_number_of_namespaces() {
        let now = Instant::now();
        for namespaces in [1_usize, 22, 100, 10_000] {
            let mut queue = SlowQueue::new(PLACES);
            for namespace in 0..namespaces {
                // The most different numbers of objects whose sum fits into the places, and larger ones.
                let count = if namespace < 22 { namespace + 1 } else { 1 + namespace % 5 };
                for number in 0..count {
                    queue.insert(now, &object(namespace, number));
                }
            }
            queue.make_due(now);
            // Objects that were running when they proved to be slow.
            for namespace in 0..namespaces.min(100) {
                for number in 0..namespace {
                    queue.add_running(&object(namespace, 1000 + number));
                }
            }
            let (_, steps) = started(&mut queue);
            assert!(steps > 0 && steps <= MAX_STEPS, "{namespaces} namespaces: {steps} steps");
        }
    }

    #[test]
    fn objects_that_are_not_due_need_no_places() {
        let now = Instant::now();
        let later = now + Duration::from_mins(1);
        let mut queue = SlowQueue::new(4);
        for number in 0..6 {
            queue.insert(now, &object(0, number));
        }
        for namespace in 1..4 {
            queue.insert(later, &object(namespace, 0));
        }
        assert_eq!(queue.next_start_at(), Some(now));
        queue.make_due(now);
        assert_eq!(started(&mut queue).0.len(), 4, "the others need no places yet");
        assert_eq!(queue.next_start_at(), Some(later));
        queue.make_due(later);
        let expected: Vec<_> = (1..4).map(|namespace| object(namespace, 0)).collect();
        assert_eq!(started(&mut queue).0, expected, "their parts, although all places are used");
        assert_eq!(queue.next_start_at(), None);
    }

    #[test]
    fn choices_are_those_of_the_definition() {
        let now = Instant::now();
        let mut random = 1_u64;
        let mut below = |bound: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from((random >> 33) % bound).unwrap_or_default()
        };
        for places in [1, 2, 5, 16] {
            let mut queue = SlowQueue::new(places);
            let mut running = Vec::new();
            for _ in 0..500 {
                match below(4) {
                    0 | 1 => {
                        let at = now + Duration::from_secs(below(60) as u64);
                        queue.insert(at, &object(below(8), below(1000)));
                        queue.make_due(now + Duration::from_secs(40));
                    }
                    2 if !running.is_empty() => {
                        let ended: ResourceId = running.swap_remove(below(running.len() as u64));
                        queue.remove_running(&ended);
                    }
                    _ => running.extend(started(&mut queue).0),
                }
                assert_eq!(queue.part(), queue.expected_part());
                assert_eq!(queue.first(), queue.expected_first());
            }
            for id in running {
                queue.remove_running(&id);
                assert_eq!(queue.first(), queue.expected_first());
            }
            let index = &queue.index;
            assert_eq!(index.namespaces, queue.by_namespace.len());
            assert_eq!(index.by_len.values().sum::<usize>(), index.namespaces);
        }
    }
}
