#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use api::pod::{Container, Pod, PodCondition};

use super::*;

/// A running pod with one container that requests half a core.
pub(super) fn pod(namespace: &str, name: &str, labels: &[(&str, &str)]) -> Pod {
    let mut pod = Pod::default();
    pod.metadata.namespace = namespace.into();
    pod.metadata.name = name.into();
    pod.metadata.labels = labels.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    let mut container = Container { name: "app".into(), ..Container::default() };
    container.resources.requests.insert("cpu".into(), "500m".parse().unwrap());
    pod.spec.containers.push(container);
    pod.status.phase = "Running".into();
    pod
}

fn web(name: &str) -> Pod {
    pod("shop", name, &[("app", "web")])
}

pub(super) fn selector(text: &str) -> Selector {
    Selector::parse(text).unwrap()
}

fn names(pods: &[engine::Pod]) -> Vec<&str> {
    pods.iter().map(|pod| &*pod.name).collect()
}

fn select(index: &mut PodIndex, name: &str, text: &str) -> AutoscalerKey {
    let key = AutoscalerKey::hpa("shop", name);
    index.register(&key);
    index.select(&key, &selector(text));
    key
}

#[test]
fn selections_follow_created_and_deleted_pods() {
    let mut index = PodIndex::default();
    index.apply(&web("web-1"));
    index.apply(&pod("shop", "db-1", &[("app", "db")]));
    index.apply(&pod("other", "web-9", &[("app", "web")]));
    let key = select(&mut index, "web", "app=web");
    assert_eq!(names(&index.selected(&key)), ["web-1"]);
    index.apply(&web("web-2"));
    assert_eq!(names(&index.selected(&key)), ["web-1", "web-2"]);
    index.remove("shop", "web-1");
    index.remove("shop", "web-1");
    index.remove("nowhere", "web-1");
    assert_eq!(names(&index.selected(&key)), ["web-2"]);
    assert_eq!(index.len(), 3);
}

#[test]
fn changed_labels_move_a_pod() {
    let mut index = PodIndex::default();
    let (web_key, db_key) = (select(&mut index, "web", "app=web"), select(&mut index, "db", "app=db"));
    index.apply(&web("x"));
    index.apply(&pod("shop", "x", &[("app", "db")]));
    assert_eq!(names(&index.selected(&web_key)), [""; 0]);
    assert_eq!(names(&index.selected(&db_key)), ["x"]);
    index.apply(&pod("shop", "x", &[]));
    assert_eq!(names(&index.selected(&db_key)), [""; 0]);
    assert_eq!(names(&index.matching("shop", &Selector::everything())), ["x"]);
}

/// Spec 7.4: a new autoscaler selects nothing, and an old selector stays until the next one.
#[test]
fn an_autoscaler_without_selector_selects_nothing() {
    let mut index = PodIndex::default();
    index.apply(&web("web-1"));
    let key = AutoscalerKey::hpa("shop", "web");
    index.select(&key, &selector("app=web"));
    assert!(index.selected(&key).is_empty(), "not registered");
    index.register(&key);
    assert!(index.selected(&key).is_empty(), "nothing selected yet");
    index.select(&key, &selector("app=web"));
    index.register(&key);
    assert_eq!(names(&index.selected(&key)), ["web-1"], "to register again changes nothing");
    index.forget(&key);
    index.forget(&key);
    assert!(index.selected(&key).is_empty());
}

/// T33: ambiguity comes with pods and with what was selected so far.
#[test]
fn autoscalers_share_only_if_they_select_the_same_pods() {
    let mut index = PodIndex::default();
    let first = select(&mut index, "first", "app=web");
    let second = AutoscalerKey::hpa("shop", "second");
    index.register(&second);
    index.apply(&web("web-1"));
    assert_eq!(index.sharing(&first), []);
    index.select(&second, &selector("app in (web,db)"));
    let both = [first.clone(), second.clone()];
    assert_eq!(index.sharing(&first), both);
    assert_eq!(index.sharing(&second), both);
    let third = select(&mut index, "third", "app=db");
    assert_eq!(index.sharing(&third), [], "its selector overlaps, but there is no pod");
    index.apply(&pod("shop", "db-1", &[("app", "db")]));
    assert_eq!(index.sharing(&third), [second.clone(), third.clone()]);
    assert_eq!(index.sharing(&first), both, "it shares nothing with the third");
    assert_eq!(index.sharing(&second), [first.clone(), second.clone(), third.clone()]);
    index.remove("shop", "web-1");
    assert_eq!(index.sharing(&first), []);
    index.forget(&second);
    assert_eq!(index.sharing(&third), []);
}

#[test]
fn namespaces_and_kinds_are_separate() {
    let mut index = PodIndex::default();
    let here = select(&mut index, "web", "app=web");
    let there = AutoscalerKey::hpa("other", "web");
    let ours = AutoscalerKey::autoscaler("shop", "web");
    for key in [&there, &ours] {
        index.register(key);
        index.select(key, &selector("app=web"));
    }
    index.apply(&web("web-1"));
    index.apply(&pod("other", "web-1", &[("app", "web")]));
    assert_eq!(index.sharing(&there), []);
    assert_eq!(index.sharing(&here), [here.clone(), ours]);
    assert_eq!(index.selected(&there).len(), 1);
}

#[test]
fn a_list_replaces_all_pods() {
    let mut index = PodIndex::default();
    let key = select(&mut index, "web", "app=web");
    for name in ["web-1", "web-2", "web-3"] {
        index.apply(&web(name));
    }
    index.listing();
    index.apply(&web("web-1"));
    // The first attempt broke off: what was in it does not count.
    index.listing();
    index.apply(&web("web-2"));
    index.apply(&web("web-4"));
    assert_eq!(index.len(), 4, "nothing is lost before the list is complete");
    index.listed();
    assert_eq!(names(&index.selected(&key)), ["web-2", "web-4"]);
    index.listed();
    assert_eq!(index.len(), 2, "without a list nothing is gone");
    index.listing();
    index.listed();
    assert!(index.is_empty());
}

#[test]
fn pods_are_converted_for_the_engine() {
    let mut index = PodIndex::default();
    let key = select(&mut index, "web", "app=web");
    let mut seen = web("web-1");
    seen.status.start_time = Some("2026-01-01T12:00:00Z".parse().unwrap());
    let since = "2026-01-01T12:00:09Z".parse().unwrap();
    let ready =
        PodCondition { kind: "Ready".into(), status: "True".into(), last_transition_time: Some(since) };
    seen.status.conditions.push(ready);
    index.apply(&seen);
    assert_eq!(index.selected(&key), [seen.view(seen.spec.shape().into())]);
    for phase in ["Failed", "Succeeded", "Pending"] {
        seen.status.phase = phase.into();
        seen.metadata.deletion_timestamp = Some(since);
        index.apply(&seen);
        assert_eq!(index.selected(&key), [seen.view(seen.spec.shape().into())], "{phase}");
    }
}

#[test]
fn pods_of_one_template_share_their_shape() {
    let mut index = PodIndex::default();
    let key = select(&mut index, "web", "app=web");
    index.apply(&web("web-1"));
    index.apply(&web("web-2"));
    let mut resized = web("web-3");
    resized.spec.containers[0].resources.requests.insert("cpu".into(), "1".parse().unwrap());
    index.apply(&resized);
    let pods = index.selected(&key);
    assert!(std::sync::Arc::ptr_eq(&pods[0].shape, &pods[1].shape));
    assert!(!std::sync::Arc::ptr_eq(&pods[0].shape, &pods[2].shape));
    assert_eq!(index.templates.len(), 2);
    index.apply(&web("web-3"));
    assert_eq!(index.templates.len(), 1, "the last pod of a shape takes it along");
}

#[test]
fn changes_of_selected_pods_are_counted() {
    let mut index = PodIndex::default();
    let key = select(&mut index, "web", "app=web");
    let mut last = index.pods_changed(&key);
    let mut changed = |index: &PodIndex| std::mem::replace(&mut last, index.pods_changed(&key)) != last;
    let mut seen = web("web-1");
    index.apply(&seen);
    assert!(changed(&index), "a pod came");
    index.apply(&seen);
    assert!(!changed(&index), "nothing that we look at has changed");
    index.apply(&pod("shop", "db-1", &[("app", "db")]));
    index.select(&key, &selector("app in (web)"));
    select(&mut index, "other", "app");
    assert!(!changed(&index), "all that was about others");
    seen.status.phase = "Failed".into();
    index.apply(&seen);
    assert!(changed(&index), "a pod ended");
    index.select(&key, &selector("app=db"));
    assert!(changed(&index), "other pods are selected");
    index.remove("shop", "web-1");
    assert!(!changed(&index), "a pod went that is not selected any more");
    index.remove("shop", "db-1");
    assert!(changed(&index), "a pod went");
    index.forget(&key);
    index.register(&key);
    assert!(changed(&index), "it is another autoscaler");
    assert_eq!(index.pods_changed(&AutoscalerKey::hpa("shop", "unknown")), 0);
}

/// Neither the pods' memory nor that of what they had in common grows with time.
#[test]
fn deleting_everything_leaves_empty_indexes() {
    let mut index = PodIndex::default();
    for round in 0..3 {
        let keys = ["web", "db", "all"].map(|name| AutoscalerKey::hpa("shop", name));
        for (key, text) in keys.iter().zip(["app=web", "app in (db,cache)", "!missing"]) {
            index.register(key);
            index.select(key, &selector(text));
        }
        for number in 0..50 {
            let app = ["web", "db", "other"][number % 3];
            let hash = format!("{round}-{number}");
            index.apply(&pod("shop", &format!("{app}-{number}"), &[("app", app), ("hash", &hash)]));
        }
        assert_eq!(index.selected(&keys[2]).len(), 50);
        if round == 1 {
            for key in &keys {
                index.forget(key);
            }
        }
        index.listing();
        index.listed();
        for key in &keys {
            index.forget(key);
        }
        assert_eq!((index.len(), index.templates.len()), (0, 0));
        assert_eq!((index.labels.counts(), index.selections.counts()), ([0; 3], [0; 2]));
    }
}

/// A selector is posted under the label that few selectors require, not under one that all have.
#[test]
fn a_new_label_set_is_compared_with_few_selectors() {
    let mut index = PodIndex::default();
    for number in 0..100 {
        select(&mut index, &format!("c{number}"), &format!("app=shop,part=p{number}"));
    }
    index.apply(&pod("shop", "x", &[("app", "shop"), ("part", "p7")]));
    let set = index.labels.matching(index.labels.namespace("shop").unwrap(), &Selector::everything())[0];
    assert!(index.labels.candidates(set).count() <= 2);
    assert_eq!(index.selected(&AutoscalerKey::hpa("shop", "c7")).len(), 1);
}
