//! When each object is due, and how many turns run at once. Plain data: time is an argument.
//!
//! An object has a turn when it is polled, and when something about it has changed; never two at once. Polls go from start
//! to start; those of objects that were there when we began are spread over the interval. Turns that take long are those
//! of objects with a slow source: they have a lane of their own, so that however many of them there are, the others are not late.

#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use tokio::time::Instant;

use super::id::Id;

/// From here on a turn is slow.
const PATIENCE: Duration = Duration::from_secs(1);

/// Objects that were there when we began have their first turn within this time, whatever their interval.
const SPREAD: Duration = Duration::from_secs(30);

/// First turns begin at so many moments, so that a few come together and the process may sleep between them.
const MOMENTS: u64 = 256;

/// When each object is due.
#[derive(Debug)]
pub struct Wheel {
    limits: Limits,
    slots: HashMap<Id, Slot>,
    /// Those who wait, by lane.
    quick: BTreeSet<(Instant, Id)>,
    slow: BTreeSet<(Instant, Id)>,
    /// Those who run and are not slow, by their start.
    running: BTreeSet<(Instant, Id)>,
    running_slow: usize,
}

/// How many turns run at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Of objects whose sources are quick.
    pub quick: usize,
    /// Of others.
    pub slow: usize,
}

/// A turn that has begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Whose.
    pub id: Id,
    /// How late its poll begins; none if no poll is due.
    pub poll: Option<Duration>,
}

#[derive(Debug, Default)]
struct Slot {
    /// From the start of a poll to the start of the next; none: it is not polled.
    interval: Option<Duration>,
    /// When the next poll is due.
    tick: Option<Instant>,
    /// When a turn was asked for.
    wake: Option<Instant>,
    /// Where it stands among those who wait.
    waiting: Option<Instant>,
    /// Since when it runs.
    since: Option<Instant>,
    /// Whether its last turn was slow, or this one is.
    slow: bool,
}

impl Wheel {
    /// Empty.
    pub fn new(limits: Limits) -> Self {
        let limits = Limits { quick: limits.quick.max(1), slow: limits.slow.max(1) };
        Self {
            limits,
            slots: HashMap::new(),
            quick: BTreeSet::new(),
            slow: BTreeSet::new(),
            running: BTreeSet::new(),
            running_slow: 0,
        }
    }

    /// An object that was there when we began: at its place in the first interval.
    pub fn spread(&mut self, id: &Id, now: Instant, interval: Duration) {
        self.add(id, now + interval.min(SPREAD).mul_f64(phase(id)));
    }

    /// A new object: its first turn is at `at`. Nothing happens if it is known.
    pub fn add(&mut self, id: &Id, at: Instant) {
        if !self.slots.contains_key(id) {
            self.slots.insert(id.clone(), Slot { wake: Some(at), ..Slot::default() });
            self.place(id);
        }
    }

    /// Asks for a turn at `at` at the latest; for another one if one is running.
    pub fn wake(&mut self, id: &Id, at: Instant) {
        let Some(slot) = self.slots.get_mut(id) else { return };
        slot.wake = Some(slot.wake.map_or(at, |known| known.min(at)));
        self.place(id);
    }

    /// From now on it is polled so often, or not at all. A poll that was not before is due at once.
    pub fn poll(&mut self, id: &Id, interval: Option<Duration>, now: Instant) {
        let Some(slot) = self.slots.get_mut(id) else { return };
        let old = std::mem::replace(&mut slot.interval, interval);
        slot.tick = match (interval, slot.tick, old) {
            (None, _, _) => None,
            (Some(_), None, _) => Some(now),
            (Some(new), Some(tick), Some(old)) if new != old => Some(tick.min(now + new)),
            (Some(_), tick, _) => tick,
        };
        self.place(id);
    }

    /// An object is gone; a turn of it may still end.
    pub fn remove(&mut self, id: &Id) {
        let Some(slot) = self.slots.remove(id) else { return };
        self.unplace(id, &slot);
        match slot.since {
            Some(since) if !self.running.remove(&(since, id.clone())) => {
                self.running_slow = self.running_slow.saturating_sub(1);
            }
            _ => {}
        }
    }

    /// The next turn that is due; it has begun.
    pub fn take(&mut self, now: Instant) -> Option<Turn> {
        self.age(now);
        let quick = self.quick.first().filter(|_| self.running.len() < self.limits.quick);
        let slow = self.slow.first().filter(|_| self.running_slow < self.limits.slow);
        let (at, id) = match (quick, slow) {
            (Some(quick), Some(slow)) => quick.min(slow),
            (one, other) => one.or(other)?,
        };
        if *at > now {
            return None;
        }
        let id = id.clone();
        let slot = self.slots.get_mut(&id)?;
        let waiting = slot.waiting.take();
        slot.since = Some(now);
        slot.wake = slot.wake.filter(|wake| *wake > now);
        let due = slot.tick.filter(|tick| *tick <= now);
        if let (Some(tick), Some(interval)) = (due, slot.interval) {
            let next = tick + interval;
            // Polls that were missed are not made up for.
            slot.tick = Some(if next > now { next } else { now + interval });
        }
        let is_slow = slot.slow;
        if let Some(waiting) = waiting {
            let lane = if is_slow { &mut self.slow } else { &mut self.quick };
            lane.remove(&(waiting, id.clone()));
        }
        if is_slow {
            self.running_slow += 1;
        } else {
            self.running.insert((now, id.clone()));
        }
        Some(Turn { poll: due.map(|tick| now - tick), id })
    }

    /// A turn is over.
    pub fn done(&mut self, id: &Id, now: Instant) {
        self.age(now);
        let Some(slot) = self.slots.get_mut(id) else { return };
        let Some(since) = slot.since.take() else { return };
        if !self.running.remove(&(since, id.clone())) {
            self.running_slow = self.running_slow.saturating_sub(1);
        }
        slot.slow = now.saturating_duration_since(since) >= PATIENCE;
        self.place(id);
    }

    /// When somebody should look again.
    pub fn next(&self) -> Option<Instant> {
        let quick = self.quick.first().map(|(at, _)| *at);
        let slow = self.slow.first().map(|(at, _)| *at).filter(|_| self.running_slow < self.limits.slow);
        let quick = if self.running.len() < self.limits.quick {
            quick
        } else {
            // A place is free once somebody proves to be slow.
            quick.and(self.running.first().map(|(since, _)| *since + PATIENCE))
        };
        [quick, slow].into_iter().flatten().min()
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// How many turns should have begun.
    pub fn late(&self, now: Instant) -> usize {
        let due = |lane: &BTreeSet<(Instant, Id)>| lane.iter().take_while(|(at, _)| *at < now).count();
        due(&self.quick) + due(&self.slow)
    }

    /// Turns that take long free their place for others.
    fn age(&mut self, now: Instant) {
        while let Some((since, _)) = self.running.first()
            && *since + PATIENCE <= now
            && let Some((_, id)) = self.running.pop_first()
        {
            self.running_slow += 1;
            if let Some(slot) = self.slots.get_mut(&id) {
                slot.slow = true;
            }
        }
    }

    /// Puts an object where it belongs among those who wait.
    fn place(&mut self, id: &Id) {
        let Some(slot) = self.slots.get_mut(id) else { return };
        let at = [slot.tick, slot.wake].into_iter().flatten().min().filter(|_| slot.since.is_none());
        let old = std::mem::replace(&mut slot.waiting, at);
        let is_slow = slot.slow;
        if let Some(old) = old {
            // It may have changed lanes since.
            self.quick.remove(&(old, id.clone()));
            self.slow.remove(&(old, id.clone()));
        }
        if let Some(at) = at {
            let lane = if is_slow { &mut self.slow } else { &mut self.quick };
            lane.insert((at, id.clone()));
        }
    }

    fn unplace(&mut self, id: &Id, slot: &Slot) {
        if let Some(at) = slot.waiting {
            self.quick.remove(&(at, id.clone()));
            self.slow.remove(&(at, id.clone()));
        }
    }
}

/// Its place in the first interval, from 0 to 1.
fn phase(id: &Id) -> f64 {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    #[allow(clippy::cast_precision_loss, reason = "both are small")]
    let phase = (hasher.finish() % MOMENTS) as f64 / MOMENTS as f64;
    phase
}
