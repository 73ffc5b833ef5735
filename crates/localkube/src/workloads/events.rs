//! Event recording with the correlation of client-go: repeated events are counted, similar ones combined, and too many
//! dropped.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use jiff::Timestamp;
use kube::api::{Patch, PatchParams, PostParams};
use kube::core::Request;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;

use super::conditions::whole_seconds;
use super::objects::WorkloadKind;
use super::plan::{EventNote, EventSubject};
use crate::clock::Clock;

/// The field manager.
pub(crate) const FIELD_MANAGER: &str = "kube-controller-manager";
/// The number of different texts after which events are combined.
const MAX_DISTINCT_TEXTS: usize = 10;
/// The window in which events are similar.
const CORRELATION_WINDOW: Duration = Duration::from_mins(10);
/// The event burst per object; then one event per [`EVENT_REFILL_INTERVAL`].
const MAX_EVENT_BURST: f64 = 25.0;
const EVENT_REFILL_INTERVAL: Duration = Duration::from_mins(5);
/// What is added to the time in the name of an event. A Deployment and the ScaledObject that scales it often share a name, and on a
/// simulated clock, events of both at one instant would have the same name.
const NAME_OFFSET_NANOSECONDS: i128 = 500_000;
/// The number of objects after which old ones are forgotten.
const MAX_REMEMBERED_OBJECTS: usize = 4096;

/// An event of an object.
#[derive(Clone, Debug)]
pub(crate) struct EventOccurrence {
    pub(crate) subject: EventSubject,
    pub(crate) note: EventNote,
}

/// An event to be written, new or repeated.
#[derive(Debug, PartialEq)]
struct EventRecord {
    namespace: String,
    name: String,
    count: u32,
    event: Value,
}

/// The correlation state of all objects.
#[derive(Debug, Default)]
struct EventCorrelator {
    objects: HashMap<String, ObjectEvents>,
    serial: i128,
}

/// The correlation state of an object.
#[derive(Debug)]
struct ObjectEvents {
    left: f64,
    at: Timestamp,
    /// The texts by reason.
    alike: HashMap<&'static str, (Timestamp, BTreeSet<String>)>,
    /// The written events by reason and text; a combined event has no text.
    written: HashMap<(&'static str, String), (String, u32, Timestamp)>,
}

/// Whether the object does not exist.
pub(crate) fn is_missing(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

/// Writes events until the channel is closed.
pub(crate) async fn run(
    client: kube::Client,
    clock: Clock,
    mut occurrences: UnboundedReceiver<EventOccurrence>,
) {
    let mut memory = EventCorrelator::default();
    while let Some(occurrence) = occurrences.recv().await {
        if let Some(record) = memory.record(&occurrence, clock.now()) {
            // A failed event write is ignored.
            let _ = write(&client, &record).await;
        }
    }
}

async fn write(client: &kube::Client, record: &EventRecord) -> Result<(), kube::Error> {
    let events = Request::new(format!("/api/v1/namespaces/{}/events", record.namespace));
    if record.count > 1 {
        let Value::Object(fields) = &record.event else { return Ok(()) };
        let changed =
            fields.iter().filter(|(name, _)| ["count", "message", "lastTimestamp"].contains(&name.as_str()));
        let patch: serde_json::Map<_, _> =
            changed.map(|(name, value)| (name.clone(), value.clone())).collect();
        let request = events.patch(&record.name, &PatchParams::apply(FIELD_MANAGER), &Patch::Merge(patch));
        match client.request_text(request.map_err(kube::Error::BuildRequest)?).await {
            Err(error) if is_missing(&error) => {}
            done => return done.map(drop),
        }
    }
    let parameters = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
    let request = events.create(&parameters, record.event.to_string().into_bytes());
    client.request_text(request.map_err(kube::Error::BuildRequest)?).await.map(drop)
}

/// The reporting component of a kind.
fn component(kind: WorkloadKind) -> &'static str {
    match kind {
        WorkloadKind::Deployment => "deployment-controller",
        WorkloadKind::ReplicaSet => "replicaset-controller",
        WorkloadKind::StatefulSet => "statefulset-controller",
        WorkloadKind::Job => "job-controller",
        WorkloadKind::Pod => "kubelet",
    }
}

impl EventCorrelator {
    fn record(&mut self, occurrence: &EventOccurrence, now: Timestamp) -> Option<EventRecord> {
        let EventOccurrence { subject, note } = occurrence;
        if self.objects.len() > MAX_REMEMBERED_OBJECTS {
            self.objects.retain(|_, recorded| passed(recorded.at, now) < CORRELATION_WINDOW);
        }
        let recorded = self.objects.entry(subject.uid.clone()).or_insert_with(|| ObjectEvents::new(now));
        let is_combined = recorded.is_combined(note, now);
        recorded.take_token(now).then_some(())?;
        let text = if is_combined { String::new() } else { note.text.clone() };
        let message = if is_combined {
            format!("(combined from similar events): {}", note.text)
        } else {
            note.text.clone()
        };
        self.serial = (now.as_nanosecond() + NAME_OFFSET_NANOSECONDS).max(self.serial + 1);
        let new = || (format!("{}.{:x}", subject.key.name, self.serial), 0, now);
        let (name, count, first) = recorded.written.entry((note.reason, text)).or_insert_with(new);
        *count += 1;
        let component = component(subject.key.kind);
        let (_, _, kind, _) = subject.key.kind.names();
        let event = json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": subject.key.namespace},
            "involvedObject": {
                "apiVersion": subject.key.kind.api_version(),
                "kind": kind,
                "namespace": subject.key.namespace,
                "name": subject.key.name,
                "uid": subject.uid,
                "resourceVersion": subject.resource_version,
            },
            "type": if note.warning { "Warning" } else { "Normal" },
            "reason": note.reason,
            "message": message,
            "count": count,
            "firstTimestamp": whole_seconds(*first),
            "lastTimestamp": whole_seconds(now),
            "eventTime": null,
            "source": {"component": component},
            "reportingComponent": component,
            "reportingInstance": "",
        });
        Some(EventRecord {
            namespace: subject.key.namespace.clone(),
            name: name.clone(),
            count: *count,
            event,
        })
    }
}

impl ObjectEvents {
    fn new(now: Timestamp) -> Self {
        Self { left: MAX_EVENT_BURST, at: now, alike: HashMap::new(), written: HashMap::new() }
    }

    /// Whether this event is combined with similar recent ones.
    fn is_combined(&mut self, note: &EventNote, now: Timestamp) -> bool {
        let (last, texts) = self.alike.entry(note.reason).or_insert_with(|| (now, BTreeSet::new()));
        if passed(*last, now) > CORRELATION_WINDOW {
            texts.clear();
        }
        *last = now;
        if texts.len() < MAX_DISTINCT_TEXTS {
            texts.insert(note.text.clone());
        }
        texts.len() >= MAX_DISTINCT_TEXTS
    }

    fn take_token(&mut self, now: Timestamp) -> bool {
        let refilled = passed(self.at, now).as_secs_f64() / EVENT_REFILL_INTERVAL.as_secs_f64();
        self.left = (self.left + refilled).min(MAX_EVENT_BURST);
        self.at = now;
        let may = self.left >= 1.0;
        if may {
            self.left -= 1.0;
        }
        may
    }
}

fn passed(since: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(since)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use crate::workloads::objects::ObjectRef;

    fn occurrence(text: &str) -> EventOccurrence {
        let key =
            ObjectRef { kind: WorkloadKind::ReplicaSet, namespace: "default".into(), name: "web".into() };
        let subject = EventSubject { key, uid: "1".into(), resource_version: "7".into() };
        EventOccurrence { subject, note: EventNote::normal("SuccessfulCreate", text) }
    }

    #[test]
    fn repeated_events_are_counted() {
        let mut memory = EventCorrelator::default();
        let now: Timestamp = "2026-01-01T00:00:00.5Z".parse().unwrap();
        let first = memory.record(&occurrence("a"), now).unwrap();
        let other = memory.record(&occurrence("b"), now).unwrap();
        let later = now + Duration::from_secs(3);
        let again = memory.record(&occurrence("a"), later).unwrap();
        assert_eq!((first.count, other.count, again.count), (1, 1, 2));
        assert_eq!(first.name, again.name);
        assert_ne!(first.name, other.name);
        // The name that client-go would give to an event of another object with this name.
        assert_ne!(first.name, format!("web.{:x}", now.as_nanosecond()));
        assert_eq!(again.event["firstTimestamp"], "2026-01-01T00:00:00Z");
        assert_eq!(again.event["lastTimestamp"], "2026-01-01T00:00:03Z");
        assert_eq!(again.event["source"]["component"], "replicaset-controller");
    }

    #[test]
    fn similar_events_are_combined_and_excess_events_dropped() {
        let mut memory = EventCorrelator::default();
        let mut now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let recorded: Vec<_> =
            (0..100).filter_map(|n| memory.record(&occurrence(&format!("pod {n}")), now)).collect();
        assert_eq!(recorded.len(), 25);
        let single = recorded
            .iter()
            .filter(|record| !record.event["message"].as_str().unwrap().starts_with('('))
            .count();
        assert_eq!(single, 9);
        assert_eq!(recorded[9].event["message"], "(combined from similar events): pod 9");
        assert_eq!((recorded[24].count, &recorded[24].name), (16, &recorded[9].name));
        now += Duration::from_mins(6);
        assert_eq!(memory.record(&occurrence("late"), now).unwrap().count, 17);
        assert_eq!(memory.record(&occurrence("later"), now), None);
        now += Duration::from_mins(11);
        assert_eq!(memory.record(&occurrence("new day"), now).unwrap().event["message"], "new day");
    }
}
