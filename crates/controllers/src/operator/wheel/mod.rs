//! When each object is due, and how many turns run at once. Plain data: time is an argument.
//!
//! An object has a turn when it is polled, and when something about it has changed; never two at once. Polls are at fixed
//! moments, spread over the interval, and those of objects that ask the same come close together, so that one answer does
//! for all of them; when one of them finds something to do, the others do not wait for their moment. Turns that take long
//! are those of objects with a slow source: they have a lane of their own, so that however many of them there are, the
//! others are not late.

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

/// Polls begin at so many moments of an interval: those that come together find each other's code and data at hand, and the
/// process may sleep between them.
const MOMENTS: u32 = 256;

/// As long as there are no more objects than this, a few moments are one: a source is never asked by too many at once.
const FEW: usize = 2048;
const FEWER: u32 = 4;

/// Polls of those who ask the same come within this time: less than an answer is good for, but not all at once.
const TOGETHER: Duration = Duration::from_secs(3);

/// When each object is due.
#[derive(Debug)]
pub struct Wheel {
    limits: Limits,
    /// From when moments are counted: when the first object came.
    began: Option<Instant>,
    slots: HashMap<Id, Slot>,
    /// Those who wait, by lane.
    quick: BTreeSet<(Instant, Id)>,
    slow: BTreeSet<(Instant, Id)>,
    /// Those who run and are not slow, by their start.
    running: BTreeSet<(Instant, Id)>,
    running_slow: usize,
    /// How many ask the same, by group.
    groups: HashMap<u64, u32>,
    /// Which groups were hurried a moment ago.
    hurried: HashMap<u64, Instant>,
}

/// How many turns run at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Of objects whose sources are quick.
    pub quick: usize,
    /// Of others.
    pub slow: usize,
}

/// How an object is polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// From one poll to the next.
    pub interval: Duration,
    /// The same for all that ask the same.
    pub group: u64,
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
    /// How it is polled; none: not at all.
    pace: Option<Pace>,
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
    /// Whether it is gone, and only here because a turn of it still runs.
    gone: bool,
}

impl Wheel {
    /// Empty.
    pub fn new(limits: Limits) -> Self {
        let limits = Limits { quick: limits.quick.max(1), slow: limits.slow.max(1) };
        Self {
            limits,
            began: None,
            slots: HashMap::new(),
            quick: BTreeSet::new(),
            slow: BTreeSet::new(),
            running: BTreeSet::new(),
            running_slow: 0,
            groups: HashMap::new(),
            hurried: HashMap::new(),
        }
    }

    /// An object that was there when we began: at its place in the first interval.
    pub fn spread(&mut self, id: &Id, now: Instant, pace: Pace) {
        let pace = Pace { interval: pace.interval.min(SPREAD), ..pace };
        let first = self.rhythm(now).next(id, pace, now);
        self.add(id, first);
    }

    /// A new object: its first turn is at `at`, or when the last one of an older object of this name has ended. Nothing
    /// happens if it is known.
    pub fn add(&mut self, id: &Id, at: Instant) {
        self.began.get_or_insert(at);
        match self.slots.get_mut(id) {
            Some(slot) if slot.gone => (slot.gone, slot.wake) = (false, Some(at)),
            Some(_) => {}
            None => {
                self.slots.insert(id.clone(), Slot { wake: Some(at), ..Slot::default() });
                self.place(id);
            }
        }
    }

    /// Asks for a turn at `at` at the latest; for another one if one is running.
    pub fn wake(&mut self, id: &Id, at: Instant) {
        let Some(slot) = self.slots.get_mut(id).filter(|slot| !slot.gone) else { return };
        slot.wake = Some(slot.wake.map_or(at, |known| known.min(at)));
        self.place(id);
    }

    /// From now on it is polled so, or not at all. A poll that was not before is due at once.
    pub fn poll(&mut self, id: &Id, pace: Option<Pace>, now: Instant) {
        let rhythm = self.rhythm(now);
        let Some(slot) = self.slots.get_mut(id).filter(|slot| !slot.gone) else { return };
        let old = std::mem::replace(&mut slot.pace, pace);
        slot.tick = match (pace, slot.tick, old) {
            (None, _, _) => None,
            (Some(_), None, _) => Some(now),
            (Some(new), Some(tick), Some(old)) if new != old => Some(tick.min(rhythm.next(id, new, now))),
            (Some(_), tick, _) => tick,
        };
        self.regroup(old, pace);
        self.place(id);
    }

    /// One has found something to do: whoever of its kind asks the same is polled at once, since it will hear the same.
    pub fn hurry(&mut self, id: &Id, now: Instant) {
        let Some(group) = self.slots.get(id).and_then(|slot| slot.pace).map(|pace| pace.group) else {
            return;
        };
        self.hurried.retain(|_, at| now.saturating_duration_since(*at) < TOGETHER);
        let is_alone = self.groups.get(&group).is_none_or(|members| *members < 2);
        if is_alone || self.hurried.contains_key(&group) {
            return;
        }
        self.hurried.insert(group, now);
        let is_member = |slot: &Slot| slot.pace.is_some_and(|pace| pace.group == group);
        let is_other = |other: &Id| other != id && other.kind == id.kind;
        let others = self.slots.iter_mut().filter(|(other, slot)| is_other(other) && is_member(slot));
        let mut moved = Vec::new();
        for (other, slot) in others.filter(|(_, slot)| slot.tick.is_some_and(|tick| tick > now)) {
            slot.tick = Some(now);
            moved.push(other.clone());
        }
        for other in &moved {
            self.place(other);
        }
    }

    /// An object is gone; a turn of it may still end, and there is none of another object of this name before that.
    pub fn remove(&mut self, id: &Id) {
        let Some(slot) = self.slots.get_mut(id) else { return };
        let old = slot.pace.take();
        (slot.tick, slot.wake) = (None, None);
        slot.gone = slot.since.is_some();
        let is_running = slot.gone;
        self.regroup(old, None);
        self.place(id);
        if !is_running {
            self.slots.remove(id);
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
        let rhythm = self.rhythm(now);
        let slot = self.slots.get_mut(&id)?;
        let waiting = slot.waiting.take();
        slot.since = Some(now);
        slot.wake = slot.wake.filter(|wake| *wake > now);
        let due = slot.tick.filter(|tick| *tick <= now);
        if let (Some(_), Some(pace)) = (due, slot.pace) {
            // Polls that were missed are not made up for.
            slot.tick = Some(rhythm.next(&id, pace, now));
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
        if slot.gone {
            self.slots.remove(id);
        } else {
            self.place(id);
        }
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

    /// When moments are.
    fn rhythm(&mut self, now: Instant) -> Rhythm {
        let together = if self.slots.len() <= FEW { FEWER } else { 1 };
        Rhythm { began: *self.began.get_or_insert(now), together }
    }

    /// Counts how many ask the same.
    fn regroup(&mut self, old: Option<Pace>, new: Option<Pace>) {
        let (old, new) = (old.map(|pace| pace.group), new.map(|pace| pace.group));
        if old == new {
            return;
        }
        if let Some(new) = new {
            *self.groups.entry(new).or_default() += 1;
        }
        if let Some(old) = old
            && let Some(members) = self.groups.get_mut(&old)
        {
            *members -= 1;
            if *members == 0 {
                self.groups.remove(&old);
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
}

/// When moments are.
#[derive(Clone, Copy)]
struct Rhythm {
    began: Instant,
    /// So many moments are one.
    together: u32,
}

impl Rhythm {
    /// The next moment at which an object is polled.
    fn next(self, id: &Id, pace: Pace, now: Instant) -> Instant {
        let interval = pace.interval.max(Duration::from_millis(1));
        let moment = interval / MOMENTS;
        // Objects that ask the same begin at the same place and are a little apart.
        let apart = interval.min(TOGETHER * 8) / 8;
        let place = moment * small(&pace.group) + apart * small(id) / MOMENTS;
        let place = u32::try_from(place.as_nanos() / moment.as_nanos().max(1)).unwrap_or(0);
        let place = moment * (place / self.together * self.together);
        let first = self.began + place.checked_sub(interval).unwrap_or(place);
        if now < first {
            return first;
        }
        let since = (now - first).as_nanos() % interval.as_nanos();
        now + interval - Duration::from_nanos(u64::try_from(since).unwrap_or(0))
    }
}

/// Something below [`MOMENTS`] that is always the same for the same thing.
fn small(of: &impl Hash) -> u32 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    u32::try_from(hasher.finish() % u64::from(MOMENTS)).unwrap_or(0)
}
