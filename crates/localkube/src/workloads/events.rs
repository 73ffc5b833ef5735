//! Events as people see them in `kubectl describe`. What repeats is counted, what is alike is combined, and who talks too
//! much is not listened to.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use jiff::Timestamp;
use kube::api::{Patch, PatchParams, PostParams};
use kube::core::Request;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;

use super::conditions::whole_seconds;
use super::execute::{MANAGER, is_missing};
use super::objects::Kind;
use super::plan::{Note, Subject};
use crate::clock::Clock;

/// So many different texts are told one by one; from then on they are combined.
const ALIKE: usize = 10;
/// Texts are alike within this time.
const WINDOW: Duration = Duration::from_mins(10);
/// So many events of one object at once; then one each [`REFILL`].
const BURST: f64 = 25.0;
const REFILL: Duration = Duration::from_mins(5);
/// How many objects are remembered before the oldest are forgotten.
const MEMORY: usize = 4096;

/// Something that happened to an object.
#[derive(Clone, Debug)]
pub(crate) struct Occurrence {
    pub(crate) subject: Subject,
    pub(crate) note: Note,
}

/// An event to be written: a new one, or one more of a kind.
#[derive(Debug, PartialEq)]
struct Record {
    namespace: String,
    name: String,
    count: u32,
    event: Value,
}

/// What was told before.
#[derive(Debug, Default)]
struct Memory {
    objects: HashMap<String, Told>,
    serial: i128,
}

/// What was told of one object.
#[derive(Debug)]
struct Told {
    left: f64,
    at: Timestamp,
    /// The texts told, by reason.
    alike: HashMap<&'static str, (Timestamp, BTreeSet<String>)>,
    /// The events written, by reason and text; a combined one has none.
    written: HashMap<(&'static str, String), (String, u32, Timestamp)>,
}

/// Writes events until nobody sends any more.
pub(crate) async fn run(client: kube::Client, clock: Clock, mut occurrences: UnboundedReceiver<Occurrence>) {
    let mut memory = Memory::default();
    while let Some(occurrence) = occurrences.recv().await {
        if let Some(record) = memory.record(&occurrence, clock.now()) {
            // An event that cannot be written is no reason to stop.
            let _ = write(&client, &record).await;
        }
    }
}

async fn write(client: &kube::Client, record: &Record) -> Result<(), kube::Error> {
    let events = Request::new(format!("/api/v1/namespaces/{}/events", record.namespace));
    if record.count > 1 {
        let Value::Object(fields) = &record.event else { return Ok(()) };
        let changed =
            fields.iter().filter(|(name, _)| ["count", "message", "lastTimestamp"].contains(&name.as_str()));
        let patch: serde_json::Map<_, _> =
            changed.map(|(name, value)| (name.clone(), value.clone())).collect();
        let request = events.patch(&record.name, &PatchParams::apply(MANAGER), &Patch::Merge(patch));
        match client.request_text(request.map_err(kube::Error::BuildRequest)?).await {
            Err(error) if is_missing(&error) => {}
            done => return done.map(drop),
        }
    }
    let parameters = PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
    let request = events.create(&parameters, record.event.to_string().into_bytes());
    client.request_text(request.map_err(kube::Error::BuildRequest)?).await.map(drop)
}

/// Who speaks for a kind.
fn component(kind: Kind) -> &'static str {
    match kind {
        Kind::Deployment => "deployment-controller",
        Kind::ReplicaSet => "replicaset-controller",
        Kind::StatefulSet => "statefulset-controller",
        Kind::Job => "job-controller",
        Kind::Pod => "kubelet",
    }
}

impl Memory {
    fn record(&mut self, occurrence: &Occurrence, now: Timestamp) -> Option<Record> {
        let Occurrence { subject, note } = occurrence;
        if self.objects.len() > MEMORY {
            self.objects.retain(|_, told| passed(told.at, now) < WINDOW);
        }
        let told = self.objects.entry(subject.uid.clone()).or_insert_with(|| Told::new(now));
        let is_combined = told.is_combined(note, now);
        told.may_speak(now).then_some(())?;
        let text = if is_combined { String::new() } else { note.text.clone() };
        let message = if is_combined {
            format!("(combined from similar events): {}", note.text)
        } else {
            note.text.clone()
        };
        self.serial = now.as_nanosecond().max(self.serial + 1);
        let new = || (format!("{}.{:x}", subject.key.name, self.serial), 0, now);
        let (name, count, first) = told.written.entry((note.reason, text)).or_insert_with(new);
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
        Some(Record { namespace: subject.key.namespace.clone(), name: name.clone(), count: *count, event })
    }
}

impl Told {
    fn new(now: Timestamp) -> Self {
        Self { left: BURST, at: now, alike: HashMap::new(), written: HashMap::new() }
    }

    /// Whether there were so many texts of this reason lately that this one is told together with others.
    fn is_combined(&mut self, note: &Note, now: Timestamp) -> bool {
        let (last, texts) = self.alike.entry(note.reason).or_insert_with(|| (now, BTreeSet::new()));
        if passed(*last, now) > WINDOW {
            texts.clear();
        }
        *last = now;
        if texts.len() < ALIKE {
            texts.insert(note.text.clone());
        }
        texts.len() >= ALIKE
    }

    fn may_speak(&mut self, now: Timestamp) -> bool {
        let refilled = passed(self.at, now).as_secs_f64() / REFILL.as_secs_f64();
        self.left = (self.left + refilled).min(BURST);
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
    use crate::workloads::objects::Key;

    fn occurrence(text: &str) -> Occurrence {
        let key = Key { kind: Kind::ReplicaSet, namespace: "default".into(), name: "web".into() };
        let subject = Subject { key, uid: "1".into(), resource_version: "7".into() };
        Occurrence { subject, note: Note::normal("SuccessfulCreate", text) }
    }

    #[test]
    fn what_repeats_is_counted() {
        let mut memory = Memory::default();
        let now: Timestamp = "2026-01-01T00:00:00.5Z".parse().unwrap();
        let first = memory.record(&occurrence("a"), now).unwrap();
        let other = memory.record(&occurrence("b"), now).unwrap();
        let later = now + Duration::from_secs(3);
        let again = memory.record(&occurrence("a"), later).unwrap();
        assert_eq!((first.count, other.count, again.count), (1, 1, 2));
        assert_eq!(first.name, again.name);
        assert_ne!(first.name, other.name);
        assert_eq!(again.event["firstTimestamp"], "2026-01-01T00:00:00Z");
        assert_eq!(again.event["lastTimestamp"], "2026-01-01T00:00:03Z");
        assert_eq!(again.event["source"]["component"], "replicaset-controller");
    }

    #[test]
    fn what_is_alike_is_combined_and_too_much_is_dropped() {
        let mut memory = Memory::default();
        let mut now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let told: Vec<_> =
            (0..100).filter_map(|n| memory.record(&occurrence(&format!("pod {n}")), now)).collect();
        assert_eq!(told.len(), 25);
        let single =
            told.iter().filter(|record| !record.event["message"].as_str().unwrap().starts_with('(')).count();
        assert_eq!(single, 9);
        assert_eq!(told[9].event["message"], "(combined from similar events): pod 9");
        assert_eq!((told[24].count, &told[24].name), (16, &told[9].name));
        now += Duration::from_mins(6);
        assert_eq!(memory.record(&occurrence("late"), now).unwrap().count, 17);
        assert_eq!(memory.record(&occurrence("later"), now), None);
        now += Duration::from_mins(11);
        assert_eq!(memory.record(&occurrence("new day"), now).unwrap().event["message"], "new day");
    }
}
