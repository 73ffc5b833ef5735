//! The work queue: each object once, never concurrently with itself, with backoff after failures.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

use super::objects::{ObjectRef, WorkloadKind};

const INITIAL_RETRY_DELAY: Duration = Duration::from_millis(5);
/// Jobs are retried more slowly.
const INITIAL_JOB_RETRY_DELAY: Duration = Duration::from_secs(1);
const MAX_RETRY_DELAY: Duration = Duration::from_mins(5);

/// The work queue of all controllers.
#[derive(Debug, Default)]
pub(crate) struct WorkQueue {
    waiting: VecDeque<ObjectRef>,
    is_waiting: HashSet<ObjectRef>,
    running: HashSet<ObjectRef>,
    /// Enqueued while running.
    once_more: HashSet<ObjectRef>,
    timers: BTreeMap<(Instant, u64), ObjectRef>,
    timer_of: HashMap<ObjectRef, (Instant, u64)>,
    serial: u64,
    /// Number of consecutive failures, and the last error.
    failures: HashMap<ObjectRef, (u32, String)>,
}

impl WorkQueue {
    /// Enqueues an object.
    pub(crate) fn wake(&mut self, key: ObjectRef) {
        if self.running.contains(&key) {
            self.once_more.insert(key);
        } else if self.is_waiting.insert(key.clone()) {
            self.waiting.push_back(key);
        }
    }

    /// The next object; the caller must report when it is done.
    pub(crate) fn next(&mut self) -> Option<ObjectRef> {
        let key = self.waiting.pop_front()?;
        self.is_waiting.remove(&key);
        self.running.insert(key.clone());
        Some(key)
    }

    /// Reports that an object was processed.
    pub(crate) fn done(&mut self, key: &ObjectRef, failure: Option<String>, now: Instant) {
        self.running.remove(key);
        match failure {
            Some(text) => {
                let (count, last) = self.failures.entry(key.clone()).or_default();
                *count += 1;
                *last = text;
                let first =
                    if key.kind == WorkloadKind::Job { INITIAL_JOB_RETRY_DELAY } else { INITIAL_RETRY_DELAY };
                let wait = first.saturating_mul(2_u32.saturating_pow(*count - 1)).min(MAX_RETRY_DELAY);
                self.wake_at(key, now + wait);
            }
            None => {
                self.failures.remove(key);
            }
        }
        if self.once_more.remove(key) {
            self.wake(key.clone());
        }
    }

    /// Enqueues an object at a time, unless it is due earlier.
    pub(crate) fn wake_at(&mut self, key: &ObjectRef, at: Instant) {
        if let Some(known) = self.timer_of.get(key) {
            if known.0 <= at {
                return;
            }
            self.timers.remove(known);
        }
        self.serial += 1;
        let timer = (at, self.serial);
        self.timers.insert(timer, key.clone());
        self.timer_of.insert(key.clone(), timer);
    }

    /// Enqueues the objects that are due.
    pub(crate) fn tick(&mut self, now: Instant) {
        while let Some(first) = self.timers.first_entry().filter(|first| first.key().0 <= now) {
            let key = first.remove();
            self.timer_of.remove(&key);
            self.wake(key);
        }
    }

    /// When the next object is due.
    pub(crate) fn next_time(&self) -> Option<Instant> {
        self.timers.keys().next().map(|(at, _)| *at)
    }

    /// The last error of an object, if its last run failed.
    pub(crate) fn failure(&self, key: &ObjectRef) -> Option<&str> {
        self.failures.get(key).map(|(_, text)| text.as_str())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn key(name: &str) -> ObjectRef {
        ObjectRef { kind: WorkloadKind::Deployment, namespace: "default".into(), name: name.into() }
    }

    #[test]
    fn objects_are_queued_once_and_never_run_concurrently() {
        let mut queue = WorkQueue::default();
        for name in ["a", "b", "a"] {
            queue.wake(key(name));
        }
        assert_eq!(queue.next(), Some(key("a")));
        queue.wake(key("a"));
        assert_eq!(queue.next(), Some(key("b")));
        assert_eq!(queue.next(), None);
        queue.done(&key("a"), None, Instant::now());
        assert_eq!(queue.next(), Some(key("a")));
        queue.done(&key("a"), None, Instant::now());
        queue.done(&key("b"), None, Instant::now());
        assert_eq!(queue.next(), None);
    }

    #[test]
    fn failures_are_retried_with_exponential_backoff() {
        let mut queue = WorkQueue::default();
        let mut now = Instant::now();
        for wait in [5, 10, 20, 40] {
            queue.wake(key("a"));
            assert_eq!(queue.next(), Some(key("a")));
            queue.done(&key("a"), Some("no".into()), now);
            assert_eq!(queue.next_time(), Some(now + Duration::from_millis(wait)));
            assert_eq!(queue.failure(&key("a")), Some("no"));
            now = queue.next_time().unwrap();
            queue.tick(now);
            assert_eq!(queue.next_time(), None);
            queue.next().unwrap();
            queue.running.clear();
        }
        queue.done(&key("a"), None, now);
        assert_eq!(queue.failure(&key("a")), None);
    }

    #[test]
    fn the_earliest_timer_of_an_object_wins() {
        let mut queue = WorkQueue::default();
        let now = Instant::now();
        let at = |seconds| now + Duration::from_secs(seconds);
        queue.wake_at(&key("a"), at(9));
        queue.wake_at(&key("a"), at(3));
        queue.wake_at(&key("a"), at(5));
        queue.wake_at(&key("b"), at(4));
        assert_eq!(queue.next_time(), Some(at(3)));
        queue.tick(at(3));
        assert_eq!((queue.next(), queue.next()), (Some(key("a")), None));
        queue.tick(at(20));
        assert_eq!((queue.next(), queue.next_time()), (Some(key("b")), None));
    }
}
