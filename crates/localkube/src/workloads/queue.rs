//! Whom to look at next: each once, not while it is being looked at, later if it failed.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

use super::objects::{Key, Kind};

const FIRST_RETRY: Duration = Duration::from_millis(5);
/// Jobs are in no hurry.
const FIRST_RETRY_OF_JOBS: Duration = Duration::from_secs(1);
const LONGEST_RETRY: Duration = Duration::from_mins(5);

/// The queue of all controllers.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    waiting: VecDeque<Key>,
    is_waiting: HashSet<Key>,
    running: HashSet<Key>,
    /// Woken while running.
    once_more: HashSet<Key>,
    timers: BTreeMap<(Instant, u64), Key>,
    timer_of: HashMap<Key, (Instant, u64)>,
    serial: u64,
    /// How often in a row they failed, and why the last time.
    failures: HashMap<Key, (u32, String)>,
}

impl Queue {
    /// It is to be looked at.
    pub(crate) fn wake(&mut self, key: Key) {
        if self.running.contains(&key) {
            self.once_more.insert(key);
        } else if self.is_waiting.insert(key.clone()) {
            self.waiting.push_back(key);
        }
    }

    /// Whom to look at now. Whoever takes it says when it is done.
    pub(crate) fn next(&mut self) -> Option<Key> {
        let key = self.waiting.pop_front()?;
        self.is_waiting.remove(&key);
        self.running.insert(key.clone());
        Some(key)
    }

    /// It was looked at.
    pub(crate) fn done(&mut self, key: &Key, failure: Option<String>, now: Instant) {
        self.running.remove(key);
        match failure {
            Some(text) => {
                let (count, last) = self.failures.entry(key.clone()).or_default();
                *count += 1;
                *last = text;
                let first = if key.kind == Kind::Job { FIRST_RETRY_OF_JOBS } else { FIRST_RETRY };
                let wait = first.saturating_mul(2_u32.saturating_pow(*count - 1)).min(LONGEST_RETRY);
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

    /// It is to be looked at then, if not earlier.
    pub(crate) fn wake_at(&mut self, key: &Key, at: Instant) {
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

    /// Wakes those whose time has come.
    pub(crate) fn tick(&mut self, now: Instant) {
        while let Some(first) = self.timers.first_entry().filter(|first| first.key().0 <= now) {
            let key = first.remove();
            self.timer_of.remove(&key);
            self.wake(key);
        }
    }

    /// When the next time comes.
    pub(crate) fn next_time(&self) -> Option<Instant> {
        self.timers.keys().next().map(|(at, _)| *at)
    }

    /// Why it failed the last time, if it did.
    pub(crate) fn failure(&self, key: &Key) -> Option<&str> {
        self.failures.get(key).map(|(_, text)| text.as_str())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn key(name: &str) -> Key {
        Key { kind: Kind::Deployment, namespace: "default".into(), name: name.into() }
    }

    #[test]
    fn each_is_looked_at_once_and_never_twice_at_a_time() {
        let mut queue = Queue::default();
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
    fn what_failed_waits_longer_each_time() {
        let mut queue = Queue::default();
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
    fn the_earliest_time_counts() {
        let mut queue = Queue::default();
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
