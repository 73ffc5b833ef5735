//! What is told about which objects, and what of it is worth a request: the correlation of client-go, without clock or
//! network.
//!
//! In this order, as kube-controller-manager 1.36 was seen to do it:
//! 1. from the 10th different message of one source, object, type and reason, with no gap over ten minutes, messages
//!    become one event, `(combined from similar events): …`;
//! 2. an event that was told before is counted in that event's `count`, a PATCH;
//! 3. one source may tell so much of one object and type: 25 at once, then one per 300 s. What is held back still counts.
//!
//! Between 2 and 3, and not in Kubernetes: who asks for it has the same sent again only after a pause.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use engine::Event;
use engine::report::EventKind;
use jiff::Timestamp;
use tokio::time::Instant;

use super::body::event_name;
use super::lru::Lru;
use super::{ObjectReference, RecordedEvent};

/// How many keys each memory has.
const MEMORY: usize = 4096;

/// From this many different messages on, they are combined.
const DISTINCT: usize = 10;

/// Messages further apart are not similar.
const SIMILAR: Duration = Duration::from_mins(10);

/// What stands before the last of combined messages.
const COMBINED: &str = "(combined from similar events): ";

/// How many events of one source, object and type may be sent at once.
const BURST: f64 = 25.0;

/// After how long one more may be sent.
const REFILL: Duration = Duration::from_mins(5);

/// An event that is to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OutgoingEvent {
    pub(super) about: ObjectReference,
    pub(super) component: &'static str,
    pub(super) kind: EventKind,
    pub(super) reason: engine::CowStr,
    pub(super) message: String,
    /// What was done, in events of the newer form.
    pub(super) action: Option<String>,
    pub(super) name: String,
    /// How often it happened; from 2 on, the event should be there already.
    pub(super) count: u32,
    pub(super) first: Timestamp,
    pub(super) last: Timestamp,
}

/// What was told before.
#[derive(Debug)]
pub(super) struct Correlator {
    hash: RandomState,
    similar: Lru<Similar>,
    counted: Lru<Counted>,
    allowance: Lru<Allowance>,
    /// The last number in a name: a clock that stands still, or goes back, makes no name twice.
    last_nanos: i128,
}

/// The different messages lately told with the same source, object, type and reason, by their hashes.
#[derive(Debug)]
struct Similar {
    messages: VecDeque<u64>,
    last: Instant,
}

/// The event that further ones like it are counted in.
#[derive(Debug)]
struct Counted {
    name: String,
    count: u32,
    first: Timestamp,
    /// When it was last sent.
    sent: Option<Instant>,
}

/// What may still be sent.
#[derive(Debug)]
struct Allowance {
    left: f64,
    at: Instant,
}

impl Correlator {
    pub(super) fn new() -> Self {
        Self {
            hash: RandomState::new(),
            similar: Lru::new(MEMORY),
            counted: Lru::new(MEMORY),
            allowance: Lru::new(MEMORY),
            last_nanos: 0,
        }
    }

    /// What to send, if anything.
    pub(super) fn observe(&mut self, told: RecordedEvent) -> Option<OutgoingEvent> {
        let RecordedEvent { about, component, pause, event, action, at, now } = told;
        let object = (component, about.api_version, about.kind, &about.namespace, &about.name, &about.uid);
        let spam = self.hash.hash_one((object, event.kind as u8));
        let group = self.hash.hash_one((object, event.kind as u8, &event.reason));
        let text = self.hash.hash_one(&event.message);
        let exact = self.hash.hash_one((group, text));

        let combined = self.combines(now, group, text);
        let Event { kind, reason, message } = event;
        let (key, message) =
            if combined { (group, format!("{COMBINED}{message}")) } else { (exact, message) };
        let nanos = at.as_nanosecond().max(self.last_nanos + 1);
        self.last_nanos = nanos;
        let new = || Counted { name: event_name(&about.name, nanos), count: 0, first: at, sent: None };
        let counted = self.counted.entry(key, &new);
        counted.count = counted.count.saturating_add(1).min(i32::MAX as u32);
        let (name, count, first) = (counted.name.clone(), counted.count, counted.first);
        if counted.sent.is_some_and(|sent| now.saturating_duration_since(sent) < pause) {
            return None;
        }
        // The newer form has no limit in client-go; what is said for the first time is not held back there.
        let is_new = action.is_some() && count == 1;
        if !is_new && !self.allows(now, spam) {
            return None;
        }
        self.counted.entry(key, &new).sent = Some(now);
        Some(OutgoingEvent { about, component, kind, reason, message, action, name, count, first, last: at })
    }

    /// Whether this message is one of too many.
    fn combines(&mut self, now: Instant, group: u64, message: u64) -> bool {
        let similar = self.similar.entry(group, || Similar { messages: VecDeque::new(), last: now });
        if now.saturating_duration_since(similar.last) > SIMILAR {
            similar.messages.clear();
        }
        similar.last = now;
        if !similar.messages.contains(&message) {
            similar.messages.push_back(message);
        }
        if similar.messages.len() < DISTINCT {
            return false;
        }
        // One place is left free, so that the next message that is new is combined too. Kubernetes forgets any one of
        // them, we the oldest.
        similar.messages.pop_front();
        true
    }

    fn allows(&mut self, now: Instant, spam: u64) -> bool {
        let allowance = self.allowance.entry(spam, || Allowance { left: BURST, at: now });
        let passed = now.saturating_duration_since(allowance.at).as_secs_f64();
        allowance.left = (allowance.left + passed / REFILL.as_secs_f64()).min(BURST);
        allowance.at = now;
        if allowance.left < 1.0 {
            return false;
        }
        allowance.left -= 1.0;
        true
    }

    #[cfg(test)]
    pub(super) fn remembered(&self) -> [usize; 3] {
        [self.similar.len(), self.counted.len(), self.allowance.len()]
    }
}
