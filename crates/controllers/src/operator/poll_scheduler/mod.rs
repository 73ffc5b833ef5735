//! Schedules polls and reconciles, and bounds how many objects are processed concurrently. Pure: time is an argument.
//!
//! An object is due when a poll is due or when it was woken, and is never processed twice at a time. Polls have fixed times, spread
//! over the interval. Objects that send the same query (a group) are polled close together, so that one response serves all of
//! them; when one of them becomes active, the others are polled at once. Objects whose processing takes long have a slow source:
//! they count in a queue of their own, so that they do not delay the others. The places of both queues are divided among namespaces.

mod fast_queue;
mod slow_queue;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use tokio::time::Instant;

use self::fast_queue::FastQueue;
use self::slow_queue::SlowQueue;
use super::id::{ResourceId, ResourceKind};

/// Processing that takes longer counts in the slow queue.
const SLOW_THRESHOLD: Duration = Duration::from_secs(1);

/// Objects that exist at the start are first processed within this time, whatever their interval.
const START_SPREAD: Duration = Duration::from_secs(30);

/// Number of poll times within an interval. Polls at the same time share caches of the CPU, and the process sleeps in between.
const SLOTS_PER_INTERVAL: u32 = 256;

/// Up to this many objects, `MERGED_SLOTS` neighbouring poll times are one: a source never gets too many queries at once.
const MAX_OBJECTS_FOR_MERGED_SLOTS: usize = 2048;
const MERGED_SLOTS: u32 = 4;

/// The polls of a group are spread over this time: less than a response is reused, but not all at once.
const GROUP_SPREAD: Duration = Duration::from_secs(3);

/// Schedules all objects.
#[derive(Debug)]
pub struct PollScheduler {
    /// Poll times are counted from here: when the first object was added.
    began: Option<Instant>,
    entries: HashMap<ResourceId, ScheduleEntry>,
    /// Waiting and running objects of the fast queue.
    fast: FastQueue,
    /// Waiting and running objects of the slow queue.
    slow: SlowQueue,
    /// Number of objects in each group.
    groups: HashMap<u64, u32>,
    /// When each group was last polled out of schedule.
    hurried_groups: HashMap<u64, Instant>,
}

/// How many objects are processed concurrently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConcurrencyLimits {
    /// In the fast queue.
    pub fast: usize,
    /// In the slow queue, of all namespaces together.
    pub slow: usize,
}

/// When an object is polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PollSchedule {
    /// Time between two polls.
    pub interval: Duration,
    /// The same for all objects that send the same query.
    pub group: u64,
}

/// An object that is due and counts as running.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueObject {
    /// The object.
    pub id: ResourceId,
    /// How late its poll begins; none if no poll is due.
    pub poll_delay: Option<Duration>,
    /// How long it waited after it was due.
    pub queue_delay: Duration,
}

#[derive(Debug, Default)]
struct ScheduleEntry {
    /// When the object is polled; none if it is not.
    schedule: Option<PollSchedule>,
    /// When the next poll is due.
    tick: Option<Instant>,
    /// When the object was woken, or is to be woken.
    wake: Option<Instant>,
    /// Its due time in the waiting queue.
    waiting: Option<Instant>,
    /// Since when it runs.
    since: Option<Instant>,
    /// Whether its last or current processing is slow.
    slow: bool,
    /// Whether the object is gone, and only its processing still runs.
    gone: bool,
}

impl PollScheduler {
    /// A scheduler without objects.
    pub fn new(limits: ConcurrencyLimits) -> Self {
        Self {
            began: None,
            entries: HashMap::new(),
            fast: FastQueue::new(limits.fast.max(1)),
            slow: SlowQueue::new(limits.slow.max(1)),
            groups: HashMap::new(),
            hurried_groups: HashMap::new(),
        }
    }

    /// Adds an object that exists at the start, at its place in the first interval.
    pub fn add_spread(&mut self, id: &ResourceId, now: Instant, schedule: PollSchedule) {
        let schedule = PollSchedule { interval: schedule.interval.min(START_SPREAD), ..schedule };
        let first = self.grid(now).next(id, schedule, now);
        self.add(id, first);
    }

    /// Adds a new object that is due at `at`, or when the processing of an older object with this name has ended. A known object is
    /// left as it is.
    pub fn add(&mut self, id: &ResourceId, at: Instant) {
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

    /// Makes an object due at `at` at the latest; once more if it runs.
    pub fn wake_by(&mut self, id: &ResourceId, at: Instant) {
        let Some(entry) = self.entries.get_mut(id).filter(|entry| !entry.gone) else { return };
        entry.wake = Some(entry.wake.map_or(at, |known| known.min(at)));
        self.place(id);
    }

    /// Makes the next poll of a polled object due at `at` at the latest.
    pub fn poll_by(&mut self, id: &ResourceId, at: Instant) {
        let Some(entry) = self.entries.get_mut(id) else { return };
        entry.tick = entry.tick.map(|tick| tick.min(at));
        self.place(id);
    }

    /// Sets or removes the poll schedule. An object that was not polled before is due at once.
    pub fn set_schedule(&mut self, id: &ResourceId, schedule: Option<PollSchedule>, now: Instant) {
        let grid = self.grid(now);
        let Some(entry) = self.entries.get_mut(id).filter(|entry| !entry.gone) else { return };
        let old = std::mem::replace(&mut entry.schedule, schedule);
        entry.tick = match (schedule, entry.tick, old) {
            (None, _, _) => None,
            (Some(_), None, _) => Some(now),
            (Some(new), Some(tick), Some(old)) if new != old => Some(tick.min(grid.next(id, new, now))),
            (Some(_), tick, _) => tick,
        };
        self.regroup(old, schedule);
        self.place(id);
    }

    /// An object has become active: all others of its group and kind are polled at once, because they will become active too.
    pub fn poll_group_now(&mut self, id: &ResourceId, now: Instant) {
        let Some(group) =
            self.entries.get(id).and_then(|entry| entry.schedule).map(|schedule| schedule.group)
        else {
            return;
        };
        self.hurried_groups.retain(|_, at| now.saturating_duration_since(*at) < GROUP_SPREAD);
        let is_alone = self.groups.get(&group).is_none_or(|members| *members < 2);
        if is_alone || self.hurried_groups.contains_key(&group) {
            return;
        }
        self.hurried_groups.insert(group, now);
        let is_member =
            |entry: &ScheduleEntry| entry.schedule.is_some_and(|schedule| schedule.group == group);
        let is_other = |other: &ResourceId| other != id && other.kind == id.kind;
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

    /// Removes an object. While its processing runs, an object with the same name has to wait.
    pub fn remove(&mut self, id: &ResourceId) {
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

    /// The next object that is due; it counts as running from now on.
    pub fn next_due(&mut self, now: Instant) -> Option<DueObject> {
        self.move_slow(now);
        self.slow.make_due(now);
        let fast = self.fast.first();
        let slow = self.slow.first();
        let (at, id) = match (fast, slow) {
            (Some(fast), Some(slow)) => fast.min(slow),
            (one, other) => one.or(other)?,
        };
        if *at > now {
            return None;
        }
        let id = id.clone();
        let grid = self.grid(now);
        let entry = self.entries.get_mut(&id)?;
        let waiting = entry.waiting.take();
        entry.since = Some(now);
        entry.wake = entry.wake.filter(|wake| *wake > now);
        let due = entry.tick.filter(|tick| *tick <= now);
        if let (Some(_), Some(schedule)) = (due, entry.schedule) {
            // Missed polls are skipped.
            entry.tick = Some(grid.next(&id, schedule, now));
        }
        let is_slow = entry.slow;
        if is_slow {
            if let Some(waiting) = waiting {
                self.slow.remove(waiting, &id);
            }
            self.slow.add_running(&id);
        } else {
            if let Some(waiting) = waiting {
                self.fast.remove(waiting, &id);
            }
            self.fast.add_running(now, &id);
        }
        let queue_delay = waiting.map_or(Duration::ZERO, |at| now.saturating_duration_since(at));
        Some(DueObject { poll_delay: due.map(|tick| now - tick), queue_delay, id })
    }

    /// The processing of an object has ended.
    pub fn finish(&mut self, id: &ResourceId, now: Instant) {
        self.move_slow(now);
        let Some(entry) = self.entries.get_mut(id) else { return };
        let Some(since) = entry.since.take() else { return };
        if !self.fast.remove_running(since, id) {
            self.slow.remove_running(id);
        }
        entry.slow = now.saturating_duration_since(since) >= SLOW_THRESHOLD;
        if entry.gone {
            self.entries.remove(id);
        } else {
            self.place(id);
        }
    }

    /// The processing of an object has panicked: the object is due again after `delay`, whatever its poll schedule.
    pub fn finish_with_delay(&mut self, id: &ResourceId, now: Instant, delay: Duration) {
        if let Some(entry) = self.entries.get_mut(id).filter(|entry| !entry.gone) {
            let at = now + delay;
            entry.wake = Some(at);
            entry.tick = entry.schedule.map(|_| at);
        }
        self.finish(id, now);
    }

    /// When `next_due` is to be called again.
    pub fn next_due_at(&self) -> Option<Instant> {
        let fast = self.fast.first().map(|(at, _)| *at);
        [fast, self.fast.next_place_at(), self.slow.next_start_at()].into_iter().flatten().min()
    }

    /// Number of objects.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no objects.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Number of objects of a kind that are due and wait.
    pub fn overdue(&self, kind: ResourceKind, now: Instant) -> usize {
        self.fast.overdue(kind, now) + self.slow.overdue(kind, now)
    }

    /// Moves objects that run for long to the slow queue.
    fn move_slow(&mut self, now: Instant) {
        while let Some(id) = self.fast.pop_slow(now) {
            self.slow.add_running(&id);
            if let Some(entry) = self.entries.get_mut(&id) {
                entry.slow = true;
            }
        }
    }

    /// The grid of poll times.
    fn grid(&mut self, now: Instant) -> PollGrid {
        let together = if self.entries.len() <= MAX_OBJECTS_FOR_MERGED_SLOTS { MERGED_SLOTS } else { 1 };
        PollGrid { began: *self.began.get_or_insert(now), together }
    }

    /// Updates the number of objects in each group.
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

    /// Puts an object into the waiting queue by its due time.
    fn place(&mut self, id: &ResourceId) {
        let Some(entry) = self.entries.get_mut(id) else { return };
        let at = [entry.tick, entry.wake].into_iter().flatten().min().filter(|_| entry.since.is_none());
        let old = std::mem::replace(&mut entry.waiting, at);
        let is_slow = entry.slow;
        if let Some(old) = old {
            // The object may have changed queues since.
            self.fast.remove(old, id);
            self.slow.remove(old, id);
        }
        match at {
            Some(at) if is_slow => self.slow.insert(at, id),
            Some(at) => self.fast.insert(at, id),
            None => {}
        }
    }
}

/// The grid of poll times.
#[derive(Clone, Copy)]
struct PollGrid {
    began: Instant,
    /// Neighbouring poll times that are one.
    together: u32,
}

impl PollGrid {
    /// The next poll time of an object.
    fn next(self, id: &ResourceId, schedule: PollSchedule, now: Instant) -> Instant {
        let interval = schedule.interval.max(Duration::from_millis(1));
        let moment = interval / SLOTS_PER_INTERVAL;
        // Objects of a group begin at the same place and are a little apart.
        let apart = interval.min(GROUP_SPREAD * 8) / 8;
        let place = moment * slot_of(&schedule.group) + apart * slot_of(id) / SLOTS_PER_INTERVAL;
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

/// A hash below [`SLOTS_PER_INTERVAL`].
fn slot_of(of: &impl Hash) -> u32 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    u32::try_from(hasher.finish() % u64::from(SLOTS_PER_INTERVAL)).unwrap_or(0)
}
