#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use super::*;

fn pod(namespace: &str, name: &str, labels: &[(&str, &str)]) -> Pod {
    Pod {
        namespace: namespace.into(),
        name: name.into(),
        labels: Arc::new(labels.iter().copied().collect::<Labels>()),
    }
}

fn names(pods: &[Arc<Pod>]) -> Vec<String> {
    pods.iter().map(|pod| format!("{}/{}", pod.namespace, pod.name)).collect()
}

#[test]
fn pods_are_ordered_updated_and_removed() {
    let inventory = Inventory::new();
    for (namespace, name) in [("b", "2"), ("a", "9"), ("b", "1"), ("a-b", "0"), ("a", "10")] {
        inventory.set_pod(pod(namespace, name, &[]));
    }
    assert_eq!(names(&inventory.pods(None)), ["a/10", "a/9", "a-b/0", "b/1", "b/2"]);
    assert_eq!(names(&inventory.pods(Some("b"))), ["b/1", "b/2"]);
    assert!(inventory.pods(Some("none")).is_empty());

    inventory.set_pod(pod("b", "1", &[("app", "web")]));
    assert_eq!(inventory.pod("b", "1").unwrap().labels.get("app"), Some("web"));
    assert_eq!(inventory.pod_count(), 5);

    inventory.remove_pod("b", "1");
    inventory.remove_pod("b", "1");
    inventory.remove_pod("c", "1");
    inventory.remove_pod("a-b", "0");
    assert_eq!(names(&inventory.pods(None)), ["a/10", "a/9", "b/2"]);
    assert_eq!(inventory.pod("b", "1"), None);
}

#[test]
fn equal_label_sets_are_shared() {
    let inventory = Inventory::new();
    inventory.set_pod(pod("a", "1", &[("app", "web"), ("hash", "1")]));
    inventory.set_pod(pod("b", "2", &[("app", "web"), ("hash", "1")]));
    inventory.set_pod(pod("b", "3", &[("app", "web"), ("hash", "2")]));
    let labels = |namespace, name| Arc::clone(&inventory.pod(namespace, name).unwrap().labels);
    assert!(Arc::ptr_eq(&labels("a", "1"), &labels("b", "2")));
    let (one, other) = (labels("a", "1"), labels("b", "3"));
    let value = |labels: &Labels| labels.get("app").unwrap().as_ptr();
    assert_eq!(value(&one), value(&other), "values are kept once, too");
}

#[test]
fn unused_values_are_dropped() {
    let inventory = Inventory::new();
    for i in 0..20_000 {
        let own = i.to_string();
        inventory.set_pod(pod("a", "one", &[("app", "web"), ("own", &own)]));
    }
    let all = inventory.read();
    assert!(all.labels.len() < 3000, "{} sets of labels", all.labels.len());
    assert!(all.texts.len() < 5000, "{} texts", all.texts.len());
}

#[test]
fn generation_changes_with_nodes_only() {
    let inventory = Inventory::new();
    let node = Node { name: "a".into(), ready: true, ..Node::default() };
    inventory.set_node(node.clone());
    let first = inventory.nodes_generation();
    inventory.set_node(node.clone());
    inventory.set_pod(pod("a", "1", &[]));
    inventory.remove_node("b");
    assert_eq!(inventory.nodes_generation(), first);
    inventory.set_node(Node { ready: false, ..node });
    let second = inventory.nodes_generation();
    assert_ne!(second, first);
    inventory.remove_node("a");
    assert_ne!(inventory.nodes_generation(), second);
    assert!(inventory.nodes().is_empty());
}

#[test]
fn inventory_is_complete_after_both_listings() {
    let inventory = Inventory::new();
    inventory.nodes_complete();
    assert!(!inventory.is_complete());
    inventory.pods_complete();
    assert!(inventory.clone().is_complete());
}
