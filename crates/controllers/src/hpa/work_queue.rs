//! When each autoscaler is due. Plain data: time is an argument.
//!
//! Every autoscaler keeps its own phase in the period, so that the work of many is spread over it; those of one namespace
//! come close together, so that they can share what was asked for once. As in Kubernetes a new one is first looked at
//! one period after it was seen (docs/spec/hpa.md 7.2); unlike there, a changed spec is looked at at once.

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use cluster::AutoscalerKey;
use tokio::time::Instant;

/// Changes that come in one breath are looked at together.
const BREATH: Duration = Duration::from_millis(50);

/// The part of the period in which all autoscalers of one namespace come.
pub const TOGETHER: u32 = 4;

/// Passes begin at this many moments of the period, so that a few come together: a process that wakes up for a single
/// pass finds its caches cold. Not fewer, or ten thousand autoscalers would come in gusts.
const MOMENTS: f64 = 128.0;

/// When each autoscaler is due.
#[derive(Debug)]
pub struct WorkQueue {
    /// Phases count from here.
    epoch: Instant,
    slots: HashMap<AutoscalerKey, QueueEntry>,
    due: BTreeSet<(Instant, AutoscalerKey)>,
}

#[derive(Debug)]
struct QueueEntry {
    period: Duration,
    /// Its place in the period.
    phase: f64,
    /// When its next pass by phase is due; passes that begin late do not move it.
    tick: Instant,
    /// When its last pass by phase was due.
    last: Option<Instant>,
    /// Where it stands in `due`; absent while a pass runs.
    waiting: Option<Instant>,
    /// A pass that was asked for while one was running.
    again: bool,
}

impl WorkQueue {
    /// Empty; phases count from `now`.
    pub fn new(now: Instant) -> Self {
        Self { epoch: now, slots: HashMap::new(), due: BTreeSet::new() }
    }

    /// An autoscaler that was there when we began: at its place in the first period.
    pub fn spread(&mut self, key: &AutoscalerKey, now: Instant, period: Duration) {
        let at = self.place(phase(key), period, now);
        self.insert(key, at, period);
    }

    /// A new autoscaler: after one period.
    pub fn add(&mut self, key: &AutoscalerKey, now: Instant, period: Duration) {
        self.insert(key, now + period, period);
    }

    /// The first moment of this phase that is not before `earliest`.
    fn place(&self, phase: f64, period: Duration, earliest: Instant) -> Instant {
        let first = self.epoch + period.mul_f64(phase);
        let missing = earliest.saturating_duration_since(first).as_nanos();
        let periods = missing.div_ceil(period.as_nanos().max(1));
        first + period * u32::try_from(periods).unwrap_or(u32::MAX)
    }

    fn insert(&mut self, key: &AutoscalerKey, at: Instant, period: Duration) {
        if !self.slots.contains_key(key) {
            let slot = QueueEntry {
                period,
                phase: phase(key),
                tick: at,
                last: None,
                waiting: Some(at),
                again: false,
            };
            self.slots.insert(key.clone(), slot);
            self.due.insert((at, key.clone()));
        }
    }

    /// What is asked for has changed: look at once.
    pub fn hurry(&mut self, key: &AutoscalerKey, now: Instant, period: Duration) {
        let Some(slot) = self.slots.get_mut(key) else { return };
        slot.period = period;
        let at = now + BREATH;
        match slot.waiting {
            Some(waiting) if waiting > at => {
                self.due.remove(&(waiting, key.clone()));
                self.due.insert((at, key.clone()));
                slot.waiting = Some(at);
            }
            Some(_) => {}
            None => slot.again = true,
        }
    }

    /// The next autoscaler that is due, with how late its pass begins; its pass has begun.
    pub fn take(&mut self, now: Instant) -> Option<(AutoscalerKey, Duration)> {
        let (at, _) = self.due.first()?;
        if *at > now {
            return None;
        }
        let (at, key) = self.due.pop_first()?;
        if let Some(slot) = self.slots.get_mut(&key) {
            slot.waiting = None;
            if slot.tick == at {
                slot.last = Some(at);
            }
        }
        Some((key, now - at))
    }

    /// A pass is over: the next one follows the phase, or comes at once if it was asked for meanwhile.
    pub fn done(&mut self, key: &AutoscalerKey, now: Instant) {
        let Some(slot) = self.slots.get(key).filter(|slot| slot.waiting.is_none()) else { return };
        // Ticks that were missed are not made up for, and a first pass that came off its phase moves towards it.
        let earliest = slot.last.map_or(now, |last| now.max(last + slot.period / 2));
        let tick = self.place(slot.phase, slot.period, earliest);
        let Some(slot) = self.slots.get_mut(key) else { return };
        slot.tick = tick;
        let at = if std::mem::take(&mut slot.again) { now + BREATH } else { tick };
        slot.waiting = Some(at);
        self.due.insert((at, key.clone()));
    }

    /// An autoscaler is gone for good.
    pub fn remove(&mut self, key: &AutoscalerKey) {
        if let Some(slot) = self.slots.remove(key)
            && let Some(waiting) = slot.waiting
        {
            self.due.remove(&(waiting, key.clone()));
        }
    }

    /// When somebody is due next.
    pub fn next(&self) -> Option<Instant> {
        self.due.first().map(|(at, _)| *at)
    }

    /// How many wait although they are due.
    pub fn late(&self, now: Instant) -> usize {
        self.due.iter().take_while(|(at, _)| *at <= now).count()
    }

    /// How many autoscalers there are.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }
}

/// The place of an autoscaler in the period, always the same: that of its namespace, and a little of its own.
fn phase(key: &AutoscalerKey) -> f64 {
    let share = |value: &dyn Fn(&mut DefaultHasher)| {
        let mut hasher = DefaultHasher::new();
        value(&mut hasher);
        (hasher.finish() % 1_000_000) as f64 / 1_000_000.0
    };
    let together = 1.0 / f64::from(TOGETHER);
    let place = share(&|hasher| key.namespace.hash(hasher)) * (1.0 - together)
        + share(&|hasher| key.hash(hasher)) * together;
    (place * MOMENTS).floor() / MOMENTS
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const PERIOD: Duration = Duration::from_secs(15);

    fn key(name: &str) -> AutoscalerKey {
        AutoscalerKey::hpa("ns", name)
    }

    fn secs(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    #[test]
    fn a_new_one_comes_after_a_period_and_then_once_per_period() {
        let start = Instant::now();
        let mut queue = WorkQueue::new(start);
        queue.add(&key("a"), start, PERIOD);
        assert_eq!(queue.take(start + secs(14.9)), None);
        assert_eq!(queue.take(start + PERIOD), Some((key("a"), Duration::ZERO)));
        assert_eq!(queue.take(start + secs(100.0)), None, "it runs");
        queue.done(&key("a"), start + secs(15.2));
        let second = queue.next().unwrap();
        assert!(
            (secs(22.5)..=secs(37.5)).contains(&(second - start)),
            "moves to its phase: {:?}",
            second - start
        );
        queue.take(second).unwrap();
        queue.done(&key("a"), second + secs(0.3));
        assert_eq!(queue.next(), Some(second + PERIOD), "a pass that takes time does not move the phase");
    }

    #[test]
    fn ticks_that_were_missed_are_not_made_up_for() {
        let start = Instant::now();
        let mut queue = WorkQueue::new(start);
        queue.spread(&key("a"), start, PERIOD);
        let first = queue.next().unwrap();
        queue.take(first).unwrap();
        queue.done(&key("a"), first + secs(46.0));
        assert_eq!(queue.next(), Some(first + secs(60.0)));
    }

    #[test]
    fn a_change_is_looked_at_at_once_and_the_phase_stays() {
        let start = Instant::now();
        let mut queue = WorkQueue::new(start);
        queue.spread(&key("a"), start, PERIOD);
        let first = queue.next().unwrap();
        queue.take(first).unwrap();
        queue.done(&key("a"), first);
        queue.hurry(&key("a"), first + secs(3.0), PERIOD);
        assert!(queue.take(first + secs(3.1)).is_some());
        queue.done(&key("a"), first + secs(3.2));
        assert_eq!(queue.next(), Some(first + PERIOD));
    }

    #[test]
    fn a_change_during_a_pass_leads_to_another_one() {
        let start = Instant::now();
        let mut queue = WorkQueue::new(start);
        queue.add(&key("a"), start, PERIOD);
        queue.take(start + secs(15.0)).unwrap();
        queue.hurry(&key("a"), start + secs(15.1), PERIOD);
        queue.done(&key("a"), start + secs(15.3));
        assert_eq!(queue.next(), Some(start + secs(15.3) + BREATH));
    }

    #[test]
    fn many_are_spread_over_the_period_and_none_is_left_out() {
        let start = Instant::now();
        let mut queue = WorkQueue::new(start);
        for i in 0..1500 {
            queue.spread(&AutoscalerKey::hpa(&format!("ns-{i}"), "web"), start, PERIOD);
        }
        for second in 1..=15 {
            let mut taken = 0;
            while queue.take(start + secs(f64::from(second))).is_some() {
                taken += 1;
            }
            // Two or three moments, each with a 24th of them at most, a few more or less.
            assert!((5..250).contains(&taken), "{taken} in second {second}");
        }
        assert_eq!(queue.next(), None);
    }

    #[test]
    fn those_of_one_namespace_come_close_together() {
        let start = Instant::now();
        let mut queue = WorkQueue::new(start);
        for i in 0..100 {
            queue.spread(&key(&format!("hpa-{i}")), start, PERIOD);
        }
        let first = queue.next().unwrap();
        let mut taken = 0;
        while queue.take(first + PERIOD / TOGETHER).is_some() {
            taken += 1;
        }
        assert_eq!(taken, 100);
    }

    #[test]
    fn one_that_is_gone_is_not_due() {
        let start = Instant::now();
        let mut queue = WorkQueue::new(start);
        queue.add(&key("a"), start, PERIOD);
        queue.remove(&key("a"));
        queue.done(&key("a"), start);
        assert_eq!(queue.take(start + secs(60.0)), None);
        assert!(queue.is_empty());
    }
}
