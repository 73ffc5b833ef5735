//! A work queue: keys with due times. Plain data: time is an argument.
//!
//! Every key keeps its own phase in the period, so that the work of many is spread over it; keys of one group are due close
//! together, so that they can share requests.

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use tokio::time::Instant;

/// A key whose object has changed is due after this delay, so that changes in quick succession are reconciled once.
const COALESCE_DELAY: Duration = Duration::from_millis(50);

/// All keys of one group are due within this fraction (one fourth) of the period.
pub const GROUP_SHARE_OF_PERIOD: u32 = 4;

/// Reconciles start at this many moments of the period, so that a few start together: a process that wakes up for a single
/// reconcile finds its caches cold. With fewer moments ten thousand keys would come in bursts.
const MOMENTS_PER_PERIOD: f64 = 128.0;

/// A key that can be spread over the period.
pub trait SpreadKey: Clone + Ord + Hash {
    /// Keys of one group are due close together: those of one namespace.
    fn group(&self) -> &str;
}

/// Keys with due times.
#[derive(Debug)]
pub struct WorkQueue<K> {
    /// Phases are counted from this moment.
    epoch: Instant,
    entries: HashMap<K, QueueEntry>,
    due: BTreeSet<(Instant, K)>,
}

#[derive(Debug)]
struct QueueEntry {
    period: Duration,
    /// Its position in the period, from 0 to 1.
    phase: f64,
    /// When its next periodic reconcile is due; reconciles that start late do not move it.
    tick: Instant,
    /// When its last periodic reconcile was due.
    last: Option<Instant>,
    /// Its due time in `due`; none while a reconcile runs.
    waiting: Option<Instant>,
    /// Whether its object has changed while a reconcile was running.
    again: bool,
}

impl<K: SpreadKey> WorkQueue<K> {
    /// Empty; phases are counted from `now`.
    pub fn new(now: Instant) -> Self {
        Self { epoch: now, entries: HashMap::new(), due: BTreeSet::new() }
    }

    /// Adds a key that existed at the start: due at its phase in the first period.
    pub fn add_spread(&mut self, key: &K, now: Instant, period: Duration) {
        let at = self.moment_of(phase(key), period, now);
        self.insert(key, at, period);
    }

    /// Adds a new key: due after one period.
    pub fn add_after_period(&mut self, key: &K, now: Instant, period: Duration) {
        self.insert(key, now + period, period);
    }

    /// Adds a key that is due now. A known key, whose object was deleted and created again, is due like a changed one.
    pub fn add_at_once(&mut self, key: &K, now: Instant, period: Duration) {
        if self.entries.contains_key(key) {
            self.enqueue(key, now, period);
        } else {
            self.insert(key, now, period);
        }
    }

    /// The first moment of this phase that is not before `earliest`.
    fn moment_of(&self, phase: f64, period: Duration, earliest: Instant) -> Instant {
        let first = self.epoch + period.mul_f64(phase);
        let missing = earliest.saturating_duration_since(first).as_nanos();
        let periods = missing.div_ceil(period.as_nanos().max(1));
        first + period * u32::try_from(periods).unwrap_or(u32::MAX)
    }

    fn insert(&mut self, key: &K, at: Instant, period: Duration) {
        if !self.entries.contains_key(key) {
            let entry = QueueEntry {
                period,
                phase: phase(key),
                tick: at,
                last: None,
                waiting: Some(at),
                again: false,
            };
            self.entries.insert(key.clone(), entry);
            self.due.insert((at, key.clone()));
            return;
        }
        // The object was deleted and created again: its period may differ, and the earlier due time counts.
        let Some(entry) = self.entries.get_mut(key) else { return };
        entry.period = period;
        if let Some(waiting) = entry.waiting.filter(|waiting| *waiting > at) {
            self.due.remove(&(waiting, key.clone()));
            self.due.insert((at, key.clone()));
            entry.waiting = Some(at);
        }
    }

    /// The object of the key has changed: due at once.
    pub fn enqueue(&mut self, key: &K, now: Instant, period: Duration) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        entry.period = period;
        let at = now + COALESCE_DELAY;
        match entry.waiting {
            Some(waiting) if waiting > at => {
                self.due.remove(&(waiting, key.clone()));
                self.due.insert((at, key.clone()));
                entry.waiting = Some(at);
            }
            Some(_) => {}
            None => entry.again = true,
        }
    }

    /// Removes the next key that is due, with how late its reconcile starts; call [`WorkQueue::finish`] when it has ended.
    pub fn pop_due(&mut self, now: Instant) -> Option<(K, Duration)> {
        let (at, _) = self.due.first()?;
        if *at > now {
            return None;
        }
        let (at, key) = self.due.pop_first()?;
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.waiting = None;
            if entry.tick == at {
                entry.last = Some(at);
            }
        }
        Some((key, now - at))
    }

    /// A reconcile has ended: the next one follows the phase, or is due at once if the object has changed meanwhile.
    pub fn finish(&mut self, key: &K, now: Instant) {
        let Some(entry) = self.entries.get(key).filter(|entry| entry.waiting.is_none()) else { return };
        // Missed periods are not made up for, and a key whose first reconcile was off its phase moves towards it.
        let earliest = entry.last.map_or(now, |last| now.max(last + entry.period / 2));
        let tick = self.moment_of(entry.phase, entry.period, earliest);
        let Some(entry) = self.entries.get_mut(key) else { return };
        entry.tick = tick;
        let at = if std::mem::take(&mut entry.again) { now + COALESCE_DELAY } else { tick };
        entry.waiting = Some(at);
        self.due.insert((at, key.clone()));
    }

    /// A reconcile has failed: the next one is due after `delay`, whatever the phase says.
    pub fn finish_with_delay(&mut self, key: &K, now: Instant, delay: Duration) {
        let Some(entry) = self.entries.get_mut(key).filter(|entry| entry.waiting.is_none()) else { return };
        let at = now + delay;
        (entry.tick, entry.waiting, entry.again) = (at, Some(at), false);
        self.due.insert((at, key.clone()));
    }

    /// Removes a key.
    pub fn remove(&mut self, key: &K) {
        if let Some(entry) = self.entries.remove(key)
            && let Some(waiting) = entry.waiting
        {
            self.due.remove(&(waiting, key.clone()));
        }
    }

    /// When the next key is due.
    pub fn next_due(&self) -> Option<Instant> {
        self.due.first().map(|(at, _)| *at)
    }

    /// How many keys wait although they are due.
    pub fn overdue(&self, now: Instant) -> usize {
        self.due.iter().take_while(|(at, _)| *at <= now).count()
    }

    /// The number of keys.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

/// The phase of a key, always the same: that of its group, and a little of its own.
fn phase<K: SpreadKey>(key: &K) -> f64 {
    let share = |value: &dyn Fn(&mut DefaultHasher)| {
        let mut hasher = DefaultHasher::new();
        value(&mut hasher);
        (hasher.finish() % 1_000_000) as f64 / 1_000_000.0
    };
    let group_share = 1.0 / f64::from(GROUP_SHARE_OF_PERIOD);
    let phase = share(&|hasher| key.group().hash(hasher)) * (1.0 - group_share)
        + share(&|hasher| key.hash(hasher)) * group_share;
    (phase * MOMENTS_PER_PERIOD).floor() / MOMENTS_PER_PERIOD
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const PERIOD: Duration = Duration::from_secs(15);

    type Key = (String, String);

    impl SpreadKey for Key {
        fn group(&self) -> &str {
            &self.0
        }
    }

    fn key(name: &str) -> Key {
        ("ns".to_owned(), name.to_owned())
    }

    fn secs(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    #[test]
    fn new_key_is_due_after_a_period_and_then_once_per_period() {
        let start = Instant::now();
        let mut queue = WorkQueue::<Key>::new(start);
        queue.add_after_period(&key("a"), start, PERIOD);
        assert_eq!(queue.pop_due(start + secs(14.9)), None);
        assert_eq!(queue.pop_due(start + PERIOD), Some((key("a"), Duration::ZERO)));
        assert_eq!(queue.pop_due(start + secs(100.0)), None, "it runs");
        queue.finish(&key("a"), start + secs(15.2));
        let second = queue.next_due().unwrap();
        assert!(
            (secs(22.5)..=secs(37.5)).contains(&(second - start)),
            "moves to its phase: {:?}",
            second - start
        );
        queue.pop_due(second).unwrap();
        queue.finish(&key("a"), second + secs(0.3));
        assert_eq!(
            queue.next_due(),
            Some(second + PERIOD),
            "a reconcile that takes time does not move the phase"
        );
    }

    #[test]
    fn key_that_is_added_at_once_is_due_and_then_once_per_period() {
        let start = Instant::now();
        let mut queue = WorkQueue::<Key>::new(start);
        queue.add_at_once(&key("a"), start, PERIOD);
        assert_eq!(queue.pop_due(start), Some((key("a"), Duration::ZERO)));
        queue.finish(&key("a"), start + secs(0.2));
        let second = queue.next_due().unwrap();
        assert!(
            (secs(7.5)..=secs(22.5)).contains(&(second - start)),
            "moves to its phase: {:?}",
            second - start
        );
        queue.add_at_once(&key("a"), start + secs(1.0), PERIOD);
        assert_eq!(queue.next_due(), Some(start + secs(1.0) + COALESCE_DELAY), "created again");
        assert_eq!(queue.len(), 1);
    }

    #[test]
    fn key_of_an_object_that_was_created_again_has_the_new_period() {
        let start = Instant::now();
        let hour = Duration::from_hours(1);
        let mut queue = WorkQueue::<Key>::new(start);
        queue.add_after_period(&key("a"), start, hour);
        queue.add_after_period(&key("a"), start + secs(1.0), PERIOD);
        let due = start + secs(1.0) + PERIOD;
        assert_eq!(queue.next_due(), Some(due));
        queue.add_after_period(&key("a"), start + secs(2.0), PERIOD);
        assert_eq!(queue.next_due(), Some(due), "the earlier due time counts");
        queue.pop_due(due).unwrap();
        queue.finish(&key("a"), due);
        assert!(queue.next_due().unwrap() <= due + PERIOD);
    }

    #[test]
    fn missed_periods_are_not_made_up_for() {
        let start = Instant::now();
        let mut queue = WorkQueue::<Key>::new(start);
        queue.add_spread(&key("a"), start, PERIOD);
        let first = queue.next_due().unwrap();
        queue.pop_due(first).unwrap();
        queue.finish(&key("a"), first + secs(46.0));
        assert_eq!(queue.next_due(), Some(first + secs(60.0)));
    }

    #[test]
    fn changed_object_is_due_at_once_and_keeps_its_phase() {
        let start = Instant::now();
        let mut queue = WorkQueue::<Key>::new(start);
        queue.add_spread(&key("a"), start, PERIOD);
        let first = queue.next_due().unwrap();
        queue.pop_due(first).unwrap();
        queue.finish(&key("a"), first);
        queue.enqueue(&key("a"), first + secs(3.0), PERIOD);
        assert!(queue.pop_due(first + secs(3.1)).is_some());
        queue.finish(&key("a"), first + secs(3.2));
        assert_eq!(queue.next_due(), Some(first + PERIOD));
    }

    #[test]
    fn change_during_a_reconcile_leads_to_another_one() {
        let start = Instant::now();
        let mut queue = WorkQueue::<Key>::new(start);
        queue.add_after_period(&key("a"), start, PERIOD);
        queue.pop_due(start + secs(15.0)).unwrap();
        queue.enqueue(&key("a"), start + secs(15.1), PERIOD);
        queue.finish(&key("a"), start + secs(15.3));
        assert_eq!(queue.next_due(), Some(start + secs(15.3) + COALESCE_DELAY));
    }

    #[test]
    fn keys_are_spread_over_the_period() {
        let start = Instant::now();
        let mut queue = WorkQueue::<Key>::new(start);
        for i in 0..1500 {
            queue.add_spread(&(format!("ns-{i}"), "web".to_owned()), start, PERIOD);
        }
        for second in 1..=15 {
            let mut taken = 0;
            while queue.pop_due(start + secs(f64::from(second))).is_some() {
                taken += 1;
            }
            // Two or three moments, each with a 24th of them at most, a few more or less.
            assert!((5..250).contains(&taken), "{taken} in second {second}");
        }
        assert_eq!(queue.next_due(), None);
    }

    #[test]
    fn keys_of_one_group_are_due_close_together() {
        let start = Instant::now();
        let mut queue = WorkQueue::<Key>::new(start);
        for i in 0..100 {
            queue.add_spread(&key(&format!("hpa-{i}")), start, PERIOD);
        }
        let first = queue.next_due().unwrap();
        let mut taken = 0;
        while queue.pop_due(first + PERIOD / GROUP_SHARE_OF_PERIOD).is_some() {
            taken += 1;
        }
        assert_eq!(taken, 100);
    }

    #[test]
    fn removed_key_is_not_due() {
        let start = Instant::now();
        let mut queue = WorkQueue::<Key>::new(start);
        queue.add_after_period(&key("a"), start, PERIOD);
        queue.remove(&key("a"));
        queue.finish(&key("a"), start);
        assert_eq!(queue.pop_due(start + secs(60.0)), None);
        assert!(queue.is_empty());
    }

    #[test]
    fn failed_key_is_due_after_its_delay_and_then_by_its_phase() {
        let start = Instant::now();
        let mut queue = WorkQueue::<Key>::new(start);
        queue.add_spread(&key("a"), start, PERIOD);
        let first = queue.next_due().unwrap();
        queue.pop_due(first).unwrap();
        queue.finish_with_delay(&key("a"), first, secs(4.0));
        assert_eq!(queue.next_due(), Some(first + secs(4.0)));
        queue.pop_due(first + secs(4.0)).unwrap();
        queue.finish(&key("a"), first + secs(4.1));
        assert_eq!(queue.next_due(), Some(first + PERIOD));
    }
}
