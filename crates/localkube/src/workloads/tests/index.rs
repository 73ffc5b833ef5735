use serde_json::json;

use crate::list_watch::ListWatchEvent;
use crate::workloads::index::{Index, News, Written};
use crate::workloads::objects::{Key, Kind, Pod};

fn pod(name: &str, revision: u64) -> Pod {
    let owner =
        json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "s", "controller": true});
    let meta = json!({"name": name, "namespace": "default", "uid": format!("uid of {name}"),
        "resourceVersion": revision.to_string(), "creationTimestamp": "2026-01-01T00:00:00Z", "ownerReferences": [owner]});
    serde_json::from_value(json!({"metadata": meta})).unwrap()
}

fn names(index: &Index) -> Vec<String> {
    index.pods.children("s").iter().map(|pod| pod.name().to_owned()).collect()
}

fn hear(index: &mut Index, event: ListWatchEvent<Pod>) -> Vec<Key> {
    index.apply(News::Pod(event)).into_iter().collect()
}

#[test]
fn owners_are_woken() {
    let mut index = Index::default();
    let set = Key { kind: Kind::ReplicaSet, namespace: "default".into(), name: "web".into() };
    for event in [ListWatchEvent::Applied(pod("a", 5)), ListWatchEvent::Deleted(pod("a", 6))] {
        assert_eq!(hear(&mut index, event), std::slice::from_ref(&set));
    }
    assert_eq!(names(&index), [""; 0]);
}

#[test]
fn answers_are_known_before_the_watch_tells() {
    let mut index = Index::default();
    hear(&mut index, ListWatchEvent::Applied(pod("a", 5)));
    index.learn(Written::Pod(pod("b", 7)));
    assert_eq!(names(&index), ["a", "b"]);
    hear(&mut index, ListWatchEvent::Applied(pod("b", 7)));
    hear(&mut index, ListWatchEvent::Deleted(pod("b", 8)));
    index.learn(Written::Pod(pod("b", 7)));
    assert_eq!(names(&index), ["a"], "what the watch has passed does not come back");
}

#[test]
fn deletion_is_not_forgotten() {
    let mut index = Index::default();
    hear(&mut index, ListWatchEvent::Applied(pod("a", 5)));
    let key = Key { kind: Kind::Pod, namespace: "default".into(), name: "a".into() };
    index.learn(Written::Deleted(key.clone(), "uid of another".into()));
    assert!(!index.pods.children("s")[0].is_deleting());
    index.learn(Written::Deleted(key, "uid of a".into()));
    // What happened before the deletion is told after it.
    hear(&mut index, ListWatchEvent::Applied(pod("a", 6)));
    assert!(index.pods.children("s")[0].is_deleting());
    hear(&mut index, ListWatchEvent::Deleted(pod("a", 7)));
    assert_eq!(names(&index), [""; 0]);
}

#[test]
fn a_new_list_replaces_what_was_known() {
    let mut index = Index::default();
    hear(&mut index, ListWatchEvent::Applied(pod("a", 5)));
    hear(&mut index, ListWatchEvent::ListStarted);
    hear(&mut index, ListWatchEvent::Listed(pod("b", 6)));
    assert_eq!(names(&index), ["a", "b"]);
    hear(&mut index, ListWatchEvent::ListDone);
    assert_eq!(names(&index), ["b"]);
    hear(&mut index, ListWatchEvent::Applied(pod("b", 4)));
    assert_eq!(index.pods.children("s")[0].revision(), 6, "what is older is not believed");
}
