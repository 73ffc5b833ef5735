use serde_json::json;

use crate::list_watch::ListWatchEvent;
use crate::workloads::index::{ObjectIndex, WatchedEvent, WriteResult};
use crate::workloads::objects::{ObjectRef, Pod, WorkloadKind};

fn pod(name: &str, revision: u64) -> Pod {
    let owner =
        json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "s", "controller": true});
    let meta = json!({"name": name, "namespace": "default", "uid": format!("uid of {name}"),
        "resourceVersion": revision.to_string(), "creationTimestamp": "2026-01-01T00:00:00Z", "ownerReferences": [owner]});
    serde_json::from_value(json!({"metadata": meta})).unwrap()
}

fn names(index: &ObjectIndex) -> Vec<String> {
    index.pods.children("s").iter().map(|pod| pod.name().to_owned()).collect()
}

fn apply_event(index: &mut ObjectIndex, event: ListWatchEvent<Pod>) -> Vec<ObjectRef> {
    index.apply(WatchedEvent::Pod(event)).into_iter().collect()
}

#[test]
fn watch_events_enqueue_owners() {
    let mut index = ObjectIndex::default();
    let set = ObjectRef { kind: WorkloadKind::ReplicaSet, namespace: "default".into(), name: "web".into() };
    for event in [ListWatchEvent::Applied(pod("a", 5)), ListWatchEvent::Deleted(pod("a", 6))] {
        assert_eq!(apply_event(&mut index, event), std::slice::from_ref(&set));
    }
    assert_eq!(names(&index), [""; 0]);
}

#[test]
fn write_answers_are_cached_before_the_watch_reports_them() {
    let mut index = ObjectIndex::default();
    apply_event(&mut index, ListWatchEvent::Applied(pod("a", 5)));
    index.apply_write(WriteResult::Pod(pod("b", 7)));
    assert_eq!(names(&index), ["a", "b"]);
    apply_event(&mut index, ListWatchEvent::Applied(pod("b", 7)));
    apply_event(&mut index, ListWatchEvent::Deleted(pod("b", 8)));
    index.apply_write(WriteResult::Pod(pod("b", 7)));
    assert_eq!(names(&index), ["a"], "what the watch has passed does not come back");
}

#[test]
fn deletions_are_not_reverted_by_older_events() {
    let mut index = ObjectIndex::default();
    apply_event(&mut index, ListWatchEvent::Applied(pod("a", 5)));
    let key = ObjectRef { kind: WorkloadKind::Pod, namespace: "default".into(), name: "a".into() };
    index.apply_write(WriteResult::Deleted(key.clone(), "uid of another".into()));
    assert!(!index.pods.children("s")[0].is_deleting());
    index.apply_write(WriteResult::Deleted(key, "uid of a".into()));
    // An event from before the deletion arrives after it.
    apply_event(&mut index, ListWatchEvent::Applied(pod("a", 6)));
    assert!(index.pods.children("s")[0].is_deleting());
    apply_event(&mut index, ListWatchEvent::Deleted(pod("a", 7)));
    assert_eq!(names(&index), [""; 0]);
}

#[test]
fn new_list_replaces_the_cache() {
    let mut index = ObjectIndex::default();
    apply_event(&mut index, ListWatchEvent::Applied(pod("a", 5)));
    apply_event(&mut index, ListWatchEvent::ListStarted);
    apply_event(&mut index, ListWatchEvent::Listed(pod("b", 6)));
    assert_eq!(names(&index), ["a", "b"]);
    apply_event(&mut index, ListWatchEvent::ListDone);
    assert_eq!(names(&index), ["b"]);
    apply_event(&mut index, ListWatchEvent::Applied(pod("b", 4)));
    assert_eq!(index.pods.children("s")[0].revision(), 6, "what is older is not believed");
}
