//! The event correlator of client-go, without clock or network: it decides which events are sent, combined, counted or held
//! back.
//!
//! In this order, as recorded from kube-controller-manager 1.36:
//! 1. from the 10th different message of one source, object, type and reason, with no gap over ten minutes, messages
//!    become one event, `(combined from similar events): …`;
//! 2. an event that was recorded before increases the `count` of that event, by a PATCH;
//! 3. one source may send 25 events of one object and type at once, then one per 300 s. Events held back are still counted.
//!
//! Between 2 and 3, unlike Kubernetes: a recorder with a pause sends the same event again only after that pause.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use engine::Event;
use engine::report::EventKind;
use jiff::Timestamp;
use tokio::time::Instant;

use super::lru::Lru;
use super::{EventAnnotations, ObjectReference, RecordedEvent};
use crate::random;

/// How many keys each cache has.
const CACHE_CAPACITY: usize = 4096;

/// From this number of different messages on, the messages of a group are combined.
const MAX_DISTINCT_MESSAGES: usize = 10;

/// After a longer gap, messages of a group are no longer combined.
const SIMILARITY_WINDOW: Duration = Duration::from_mins(10);

/// The prefix of a combined message.
const COMBINED_PREFIX: &str = "(combined from similar events): ";

/// The token bucket of one source, object and type: how many events may be sent at once.
const BUCKET_BURST: f64 = 25.0;

/// The token bucket: the time after which one more event may be sent.
const BUCKET_REFILL_INTERVAL: Duration = Duration::from_mins(5);

/// An event that is to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OutgoingEvent {
    pub(super) about: ObjectReference,
    pub(super) component: &'static str,
    pub(super) kind: EventKind,
    pub(super) reason: engine::CowStr,
    pub(super) message: String,
    /// The `action` of an event of `events.k8s.io`.
    pub(super) action: Option<String>,
    pub(super) annotations: EventAnnotations,
    /// The annotations of an earlier occurrence, which the event may have on the server.
    pub(super) earlier_annotations: EventAnnotations,
    pub(super) name: String,
    /// The number of occurrences; from 2 on, the event should exist on the server.
    pub(super) count: u32,
    pub(super) first: Timestamp,
    pub(super) last: Timestamp,
}

/// The events recorded so far.
#[derive(Debug)]
pub(super) struct Correlator {
    hash: RandomState,
    similar: Lru<SimilarMessages>,
    counted: Lru<CountedEvent>,
    allowance: Lru<TokenBucket>,
    /// The last number used in a name, so that names stay unique when the clock stands still or goes back.
    last_nanos: i128,
}

/// The hashes of recent different messages with the same source, object, type and reason.
#[derive(Debug)]
struct SimilarMessages {
    messages: VecDeque<u64>,
    last: Instant,
}

/// An event whose repetitions are counted.
#[derive(Debug)]
struct CountedEvent {
    name: String,
    count: u32,
    first: Timestamp,
    /// When it was last sent.
    sent: Option<Instant>,
    /// The annotations that it was last sent with.
    annotations: EventAnnotations,
}

/// A token bucket.
#[derive(Debug)]
struct TokenBucket {
    left: f64,
    at: Instant,
}

impl Correlator {
    pub(super) fn new() -> Self {
        Self {
            hash: RandomState::new(),
            similar: Lru::new(CACHE_CAPACITY),
            counted: Lru::new(CACHE_CAPACITY),
            allowance: Lru::new(CACHE_CAPACITY),
            last_nanos: 0,
        }
    }

    /// The event to send; none if it is held back.
    pub(super) fn observe(&mut self, recorded: RecordedEvent) -> Option<OutgoingEvent> {
        let RecordedEvent { about, component, pause, event, action, annotations, at, now } = recorded;
        let object = (component, about.api_version, about.kind, &about.namespace, &about.name, &about.uid);
        let spam = self.hash.hash_one((object, event.kind as u8));
        let group = self.hash.hash_one((object, event.kind as u8, &event.reason));
        let text = self.hash.hash_one(&event.message);
        let exact = self.hash.hash_one((group, text));

        let combined = self.combines(now, group, text);
        let Event { kind, reason, message } = event;
        let (key, message) =
            if combined { (group, format!("{COMBINED_PREFIX}{message}")) } else { (exact, message) };
        let nanos = at.as_nanosecond().max(self.last_nanos + 1);
        self.last_nanos = nanos;
        let new = || CountedEvent {
            name: event_name(&about.name, nanos),
            count: 0,
            first: at,
            sent: None,
            annotations: EventAnnotations::default(),
        };
        let counted = self.counted.entry(key, &new);
        counted.count = counted.count.saturating_add(1).min(i32::MAX as u32);
        let (name, count, first) = (counted.name.clone(), counted.count, counted.first);
        if counted.sent.is_some_and(|sent| now.saturating_duration_since(sent) < pause) {
            return None;
        }
        // client-go does not limit events with an action, so their first occurrence is never held back.
        let is_new = action.is_some() && count == 1;
        if !is_new && !self.allows(now, spam) {
            return None;
        }
        let counted = self.counted.entry(key, &new);
        counted.sent = Some(now);
        let earlier_annotations = EventAnnotations::clone(&counted.annotations);
        if !annotations.is_empty() {
            counted.annotations = EventAnnotations::clone(&annotations);
        }
        let last = at;
        Some(OutgoingEvent {
            about,
            component,
            kind,
            reason,
            message,
            action,
            annotations,
            earlier_annotations,
            name,
            count,
            first,
            last,
        })
    }

    /// Whether the message is to be combined with similar ones.
    fn combines(&mut self, now: Instant, group: u64, message: u64) -> bool {
        let similar = self.similar.entry(group, || SimilarMessages { messages: VecDeque::new(), last: now });
        if now.saturating_duration_since(similar.last) > SIMILARITY_WINDOW {
            similar.messages.clear();
        }
        similar.last = now;
        if !similar.messages.contains(&message) {
            similar.messages.push_back(message);
        }
        if similar.messages.len() < MAX_DISTINCT_MESSAGES {
            return false;
        }
        // The oldest hash is dropped, so that the next new message is combined too. Kubernetes drops an arbitrary one.
        similar.messages.pop_front();
        true
    }

    fn allows(&mut self, now: Instant, spam: u64) -> bool {
        let allowance = self.allowance.entry(spam, || TokenBucket { left: BUCKET_BURST, at: now });
        let passed = now.saturating_duration_since(allowance.at).as_secs_f64();
        allowance.left = (allowance.left + passed / BUCKET_REFILL_INTERVAL.as_secs_f64()).min(BUCKET_BURST);
        allowance.at = now;
        if allowance.left < 1.0 {
            return false;
        }
        allowance.left -= 1.0;
        true
    }

    #[cfg(test)]
    pub(super) fn entry_counts(&self) -> [usize; 3] {
        [self.similar.len(), self.counted.len(), self.allowance.len()]
    }
}

/// `{object}.{nanoseconds in hex}`, or a UUID where that would not be a valid name.
pub(super) fn event_name(object: &str, nanos: i128) -> String {
    let name = format!("{object}.{nanos:x}");
    if api::names::subdomain_faults(&name).is_empty() { name } else { random::uuid() }
}
