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

/// Polls begin at so many moments of an interval: those that come together find each other's code and data at client, and the
/// process may sleep between them.
const MOMENTS: u32 = 256;

/// As long as there are no more objects than this, a few moments are one: a source is never asked by too many at once.
const FEW: usize = 2048;
const FEWER: u32 = 4;

/// Polls of those who ask the same come within this time: less than an answer is good for, but not all at once.
const TOGETHER: Duration = Duration::from_secs(3);

/// When each object is due.
#[derive(Debug)]
pub struct PollScheduler {
    limits: ConcurrencyLimits,
    /// From when moments are counted: when the first object came.
    began: Option<Instant>,
    entries: HashMap<Id, ScheduleEntry>,
    /// Those who wait, by lane.
    quick: BTreeSet<(Instant, Id)>,
    slow: BTreeSet<(Instant, Id)>,
    /// Those who run and are not slow, by their start.
    running: BTreeSet<(Instant, Id)>,
    running_slow: usize,
    /// SampleQuery many ask the same, by group.
    groups: HashMap<u64, u32>,
    /// Which groups were hurried a moment ago.
    hurried: HashMap<u64, Instant>,
}

/// SampleQuery many turns run at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConcurrencyLimits {
    /// Of objects whose sources are quick.
    pub quick: usize,
    /// Of others.
    pub slow: usize,
}

/// SampleQuery an object is polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PollSchedule {
    /// From one poll to the next.
    pub interval: Duration,
    /// The same for all that ask the same.
    pub group: u64,
}

/// A turn that has begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueObject {
    /// Whose.
    pub id: Id,
    /// SampleQuery late its poll begins; none if no poll is due.
    pub poll: Option<Duration>,
}

#[derive(Debug, Default)]
struct ScheduleEntry {
    /// SampleQuery it is polled; none: not at all.
    schedule: Option<PollSchedule>,
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

impl PollScheduler {
    /// Empty.
    pub fn new(limits: ConcurrencyLimits) -> Self {
        let limits = ConcurrencyLimits { quick: limits.quick.max(1), slow: limits.slow.max(1) };
        Self {
            limits,
            began: None,
            entries: HashMap::new(),
            quick: BTreeSet::new(),
            slow: BTreeSet::new(),
            running: BTreeSet::new(),
            running_slow: 0,
            groups: HashMap::new(),
            hurried: HashMap::new(),
        }
    }

    /// An object that was there when we began: at its place in the first interval.
    pub fn spread(&mut self, id: &Id, now: Instant, schedule: PollSchedule) {
        let schedule = PollSchedule { interval: schedule.interval.min(SPREAD), ..schedule };
        let first = self.rhythm(now).next(id, schedule, now);
        self.add(id, first);
    }

    /// A new object: its first turn is at `at`, or when the last one of an older object of this name has ended. Nothing
    /// happens if it is known.
    pub fn add(&mut self, id: &Id, at: Instant) {
        self.began.get_or_insert(at);
        match self.entries.get_mut(id) {
            Some(entry) if entry.gone => (entry.gone, entry.wake) = (false, Some(at)),
            Some(_) => {}
            None => {
                self.entries.insert(id.clone(), ScheduleEntry { wake: Some(at), ..ScheduleEntry::default() });
                self.place(id);
            }
        }
    }

    /// Asks for a turn at `at` at the latest; for another one if one is running.
    pub fn wake(&mut self, id: &Id, at: Instant) {
        let Some(entry) = self.entries.get_mut(id).filter(|entry| !entry.gone) else { return };
        entry.wake = Some(entry.wake.map_or(at, |known| known.min(at)));
        self.place(id);
    }

    /// From now on it is polled so, or not at all. A poll that was not before is due at once.
    pub fn poll(&mut self, id: &Id, schedule: Option<PollSchedule>, now: Instant) {
        let rhythm = self.rhythm(now);
        let Some(entry) = self.entries.get_mut(id).filter(|entry| !entry.gone) else { return };
        let old = std::mem::replace(&mut entry.schedule, schedule);
        entry.tick = match (schedule, entry.tick, old) {
            (None, _, _) => None,
            (Some(_), None, _) => Some(now),
            (Some(new), Some(tick), Some(old)) if new != old => Some(tick.min(rhythm.next(id, new, now))),
            (Some(_), tick, _) => tick,
        };
        self.regroup(old, schedule);
        self.place(id);
    }

    /// One has found something to do: whoever of its kind asks the same is polled at once, since it will hear the same.
    pub fn hurry(&mut self, id: &Id, now: Instant) {
        let Some(group) =
            self.entries.get(id).and_then(|entry| entry.schedule).map(|schedule| schedule.group)
        else {
            return;
        };
        self.hurried.retain(|_, at| now.saturating_duration_since(*at) < TOGETHER);
        let is_alone = self.groups.get(&group).is_none_or(|members| *members < 2);
        if is_alone || self.hurried.contains_key(&group) {
            return;
        }
        self.hurried.insert(group, now);
        let is_member =
            |entry: &ScheduleEntry| entry.schedule.is_some_and(|schedule| schedule.group == group);
        let is_other = |other: &Id| other != id && other.kind == id.kind;
        let others = self.entries.iter_mut().filter(|(other, entry)| is_other(other) && is_member(entry));
        let mut moved = Vec::new();
        for (other, entry) in others.filter(|(_, entry)| entry.tick.is_some_and(|tick| tick > now)) {
            entry.tick = Some(now);
            moved.push(other.clone());
        }
        for other in &moved {
            self.place(other);
        }
    }

    /// An object is gone; a turn of it may still end, and there is none of another object of this name before that.
    pub fn remove(&mut self, id: &Id) {
        let Some(entry) = self.entries.get_mut(id) else { return };
        let old = entry.schedule.take();
        (entry.tick, entry.wake) = (None, None);
        entry.gone = entry.since.is_some();
        let is_running = entry.gone;
        self.regroup(old, None);
        self.place(id);
        if !is_running {
            self.entries.remove(id);
        }
    }

    /// The next turn that is due; it has begun.
    pub fn take(&mut self, now: Instant) -> Option<DueObject> {
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
        let entry = self.entries.get_mut(&id)?;
        let waiting = entry.waiting.take();
        entry.since = Some(now);
        entry.wake = entry.wake.filter(|wake| *wake > now);
        let due = entry.tick.filter(|tick| *tick <= now);
        if let (Some(_), Some(schedule)) = (due, entry.schedule) {
            // Polls that were missed are not made up for.
            entry.tick = Some(rhythm.next(&id, schedule, now));
        }
        let is_slow = entry.slow;
        if let Some(waiting) = waiting {
            let lane = if is_slow { &mut self.slow } else { &mut self.quick };
            lane.remove(&(waiting, id.clone()));
        }
        if is_slow {
            self.running_slow += 1;
        } else {
            self.running.insert((now, id.clone()));
        }
        Some(DueObject { poll: due.map(|tick| now - tick), id })
    }

    /// A turn is over.
    pub fn done(&mut self, id: &Id, now: Instant) {
        self.age(now);
        let Some(entry) = self.entries.get_mut(id) else { return };
        let Some(since) = entry.since.take() else { return };
        if !self.running.remove(&(since, id.clone())) {
            self.running_slow = self.running_slow.saturating_sub(1);
        }
        entry.slow = now.saturating_duration_since(since) >= PATIENCE;
        if entry.gone {
            self.entries.remove(id);
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

    /// SampleQuery many objects there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// SampleQuery many turns should have begun.
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
            if let Some(entry) = self.entries.get_mut(&id) {
                entry.slow = true;
            }
        }
    }

    /// When moments are.
    fn rhythm(&mut self, now: Instant) -> Rhythm {
        let together = if self.entries.len() <= FEW { FEWER } else { 1 };
        Rhythm { began: *self.began.get_or_insert(now), together }
    }

    /// Counts how many ask the same.
    fn regroup(&mut self, old: Option<PollSchedule>, new: Option<PollSchedule>) {
        let (old, new) = (old.map(|schedule| schedule.group), new.map(|schedule| schedule.group));
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
        let Some(entry) = self.entries.get_mut(id) else { return };
        let at = [entry.tick, entry.wake].into_iter().flatten().min().filter(|_| entry.since.is_none());
        let old = std::mem::replace(&mut entry.waiting, at);
        let is_slow = entry.slow;
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
    fn next(self, id: &Id, schedule: PollSchedule, now: Instant) -> Instant {
        let interval = schedule.interval.max(Duration::from_millis(1));
        let moment = interval / MOMENTS;
        // Objects that ask the same begin at the same place and are a little apart.
        let apart = interval.min(TOGETHER * 8) / 8;
        let place = moment * small(&schedule.group) + apart * small(id) / MOMENTS;
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
