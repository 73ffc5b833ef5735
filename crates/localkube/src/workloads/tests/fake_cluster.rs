//! A fake cluster in which plans are executed immediately.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::list_watch::ListWatchEvent;
use crate::patch::merge;
use crate::workloads::drive;
use crate::workloads::index::{ObjectIndex, WatchedEvent};
use crate::workloads::objects::{ObjectRef, WorkloadKind};
use crate::workloads::plan::WriteOperation;

/// Objects, time and recorded events.
pub(super) struct FakeCluster {
    pub(super) now: Timestamp,
    pub(super) events: Vec<String>,
    index: ObjectIndex,
    objects: BTreeMap<ObjectRef, Value>,
    serial: u64,
}

/// A reference to an object.
pub(super) fn key_of(kind: WorkloadKind, name: &str) -> ObjectRef {
    ObjectRef { kind, namespace: "default".into(), name: name.into() }
}

/// More than any test needs: a plan that never settles is a bug.
const MAX_PASSES: usize = 2000;

impl FakeCluster {
    pub(super) fn new() -> Self {
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        Self { now, events: Vec::new(), index: ObjectIndex::default(), objects: BTreeMap::new(), serial: 0 }
    }

    pub(super) fn add(&mut self, kind: WorkloadKind, mut object: Value) -> ObjectRef {
        self.serial += 1;
        let meta = object["metadata"].as_object_mut().unwrap();
        if let (None, Some(prefix)) = (meta.get("name"), meta.get("generateName").and_then(Value::as_str)) {
            let name = format!("{prefix}{:05}", self.serial);
            meta.insert("name".into(), json!(name));
        }
        meta.insert("namespace".into(), json!("default"));
        meta.insert("uid".into(), json!(format!("uid-{:05}", self.serial)));
        meta.insert("generation".into(), json!(1));
        meta.insert("creationTimestamp".into(), json!(self.now));
        if kind == WorkloadKind::Pod {
            object["status"] = json!({"phase": "Pending"});
        }
        let key = key_of(kind, object["metadata"]["name"].as_str().unwrap());
        assert!(!self.objects.contains_key(&key), "{key:?} is there");
        self.objects.insert(key.clone(), object);
        self.publish(&key);
        key
    }

    pub(super) fn edit(&mut self, key: &ObjectRef, patch: &Value) {
        let object = self.objects.get_mut(key).unwrap();
        let before = object["spec"].clone();
        merge::apply(object, patch);
        if object["spec"] != before {
            object["metadata"]["generation"] = json!(object["metadata"]["generation"].as_i64().unwrap() + 1);
        }
        self.publish(key);
    }

    pub(super) fn remove(&mut self, key: &ObjectRef) {
        let object = self.objects.remove(key).unwrap();
        self.notify(key.kind, object, true);
    }

    fn publish(&mut self, key: &ObjectRef) {
        self.serial += 1;
        let object = self.objects.get_mut(key).unwrap();
        object["metadata"]["resourceVersion"] = json!(self.serial.to_string());
        let object = object.clone();
        self.notify(key.kind, object, false);
    }

    fn notify(&mut self, kind: WorkloadKind, object: Value, gone: bool) {
        fn event<T: DeserializeOwned>(object: Value, gone: bool) -> ListWatchEvent<T> {
            let object = serde_json::from_value(object).unwrap();
            if gone { ListWatchEvent::Deleted(object) } else { ListWatchEvent::Applied(object) }
        }
        self.index.apply(match kind {
            WorkloadKind::Pod => WatchedEvent::Pod(event(object, gone)),
            WorkloadKind::Deployment => WatchedEvent::Deployment(event(object, gone)),
            WorkloadKind::ReplicaSet => WatchedEvent::ReplicaSet(event(object, gone)),
            WorkloadKind::StatefulSet => WatchedEvent::StatefulSet(event(object, gone)),
            WorkloadKind::Job => WatchedEvent::Job(event(object, gone)),
        });
    }

    /// Reconciles one object; returns whether there was anything to do.
    pub(super) fn pass(&mut self, key: &ObjectRef) -> bool {
        let Some((_, plan)) = drive::plan(&self.index, key, None, self.now) else { return false };
        let is_idle = plan.writes.is_empty() && plan.status.is_none();
        for write in plan.writes {
            let name = match write.change {
                WriteOperation::Create(object) => self.add(write.kind, object).name,
                WriteOperation::Patch { name, patch } => {
                    let key = key_of(write.kind, &name);
                    let known = &self.objects[&key]["metadata"]["resourceVersion"];
                    let expected = &patch["metadata"]["resourceVersion"];
                    assert!(expected.is_null() || expected == known, "a stale patch of {name}");
                    self.edit(&key, &patch);
                    name
                }
                WriteOperation::Delete { name, .. } => {
                    self.remove(&key_of(write.kind, &name));
                    name
                }
            };
            self.events.extend(
                write.note.map(|note| format!("{}: {}", note.reason, note.text.replace("{}", &name))),
            );
        }
        if let Some(status) = plan.status {
            self.edit(key, &status);
        }
        self.events.extend(plan.notes.into_iter().map(|note| format!("{}: {}", note.reason, note.text)));
        !is_idle
    }

    /// Reconciles all objects until there is nothing to do.
    pub(super) fn settle(&mut self) {
        for _ in 0..MAX_PASSES {
            let keys: Vec<ObjectRef> =
                self.objects.keys().filter(|key| key.kind != WorkloadKind::Pod).cloned().collect();
            if !keys.iter().any(|key| self.objects.contains_key(key) && self.pass(key)) {
                return;
            }
        }
        panic!("it never ends: {:#?}", self.events);
    }

    pub(super) fn wait(&mut self, seconds: u64) {
        self.now += Duration::from_secs(seconds);
    }

    pub(super) fn get(&self, key: &ObjectRef) -> &Value {
        &self.objects[key]
    }

    pub(super) fn has(&self, key: &ObjectRef) -> bool {
        self.objects.contains_key(key)
    }

    pub(super) fn all(&self, kind: WorkloadKind) -> Vec<(ObjectRef, Value)> {
        let all = self.objects.iter().filter(|(key, _)| key.kind == kind);
        all.map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    pub(super) fn set_phase(&mut self, pod: &ObjectRef, phase: &str, ready: bool) {
        let ready = json!({
            "type": "Ready",
            "status": if ready { "True" } else { "False" },
            "lastTransitionTime": self.now,
        });
        self.edit(pod, &json!({"status": {"phase": phase, "conditions": [ready]}}));
    }

    /// Makes up to `most` pending pods running and ready.
    pub(super) fn start_pods(&mut self, most: usize) -> usize {
        let pending =
            self.all(WorkloadKind::Pod).into_iter().filter(|(_, pod)| pod["status"]["phase"] == "Pending");
        let pending: Vec<ObjectRef> = pending.map(|(key, _)| key).take(most).collect();
        for key in &pending {
            self.set_phase(key, "Running", true);
        }
        pending.len()
    }

    /// Starts all pods and settles.
    pub(super) fn run(&mut self) {
        self.settle();
        while self.start_pods(usize::MAX) > 0 {
            self.settle();
        }
    }

    /// `type=status (reason)` of each condition, in order.
    pub(super) fn conditions(&self, key: &ObjectRef) -> Vec<String> {
        let conditions = self.get(key)["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let text = |field: &Value| field.as_str().unwrap_or_default().to_owned();
        conditions
            .iter()
            .map(|c| format!("{}={} ({})", text(&c["type"]), text(&c["status"]), text(&c["reason"])))
            .collect()
    }
}
