#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};

use super::*;

fn target(value: &Value) -> Target {
    serde_json::from_value(value.clone()).unwrap()
}

fn web(replicas: i32) -> Target {
    target(&json!({
        "metadata": {"name": "web", "namespace": "shop", "uid": "u", "resourceVersion": "7"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}},
        "status": {"replicas": 2},
    }))
}

/// Objects and the answers of their scale subresource, as kube-apiserver 1.36 gave both.
#[test]
fn derived_scales_equal_those_of_the_server() {
    let recorded: Vec<Value> = serde_json::from_str(include_str!("recorded.json")).unwrap();
    let mut targets = TargetIndex::default();
    for case in &recorded {
        let kind = case["kind"].as_str().unwrap();
        targets.apply(TargetKind::of(group(kind), kind).unwrap(), &target(&case["object"]));
    }
    assert_eq!(targets.len(), recorded.len());
    for case in &recorded {
        let (kind, name) =
            (case["kind"].as_str().unwrap(), case["object"]["metadata"]["name"].as_str().unwrap());
        let served = &case["scale"];
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let number = |value: &Value| value.as_i64().unwrap_or(0) as i32;
        let expected = CachedScale {
            scale: engine::Scale {
                spec_replicas: number(&served["spec"]["replicas"]).into(),
                status_replicas: number(&served["status"]["replicas"]).into(),
                selector: api::scale::normalize_selector(&text(&served["status"]["selector"])).unwrap(),
            },
            resource_version: text(&served["metadata"]["resourceVersion"]),
            uid: text(&served["metadata"]["uid"]),
        };
        let kind = TargetKind::of(group(kind), kind).unwrap();
        assert_eq!(targets.scale(kind, "shop", name), Some(expected), "{kind:?} {name}");
    }
}

fn group(kind: &str) -> &'static str {
    if kind == "ReplicationController" { "" } else { "apps" }
}

#[test]
fn the_newest_version_is_kept() {
    let mut targets = TargetIndex::default();
    targets.apply(TargetKind::Deployment, &web(3));
    targets.apply(TargetKind::Deployment, &web(5));
    targets.apply(TargetKind::StatefulSet, &web(9));
    let replicas =
        |targets: &TargetIndex, kind| targets.scale(kind, "shop", "web").map(|s| s.scale.spec_replicas.get());
    assert_eq!(replicas(&targets, TargetKind::Deployment), Some(5));
    assert_eq!(replicas(&targets, TargetKind::StatefulSet), Some(9));
    assert_eq!(replicas(&targets, TargetKind::ReplicaSet), None);
    assert_eq!(targets.scale(TargetKind::Deployment, "other", "web"), None);
    targets.remove(TargetKind::Deployment, "shop", "web");
    targets.remove(TargetKind::Deployment, "shop", "web");
    assert_eq!(replicas(&targets, TargetKind::Deployment), None);
    assert_eq!(replicas(&targets, TargetKind::StatefulSet), Some(9));
}

#[test]
fn a_list_replaces_the_targets_of_its_kind() {
    let mut targets = TargetIndex::default();
    let mut other = web(1);
    other.metadata.name = "db".into();
    targets.apply(TargetKind::Deployment, &web(3));
    targets.apply(TargetKind::Deployment, &other);
    targets.apply(TargetKind::ReplicaSet, &other);
    targets.listing(TargetKind::Deployment);
    targets.apply(TargetKind::Deployment, &other);
    // The first attempt broke off: what was in it does not count.
    targets.listing(TargetKind::Deployment);
    targets.apply(TargetKind::Deployment, &web(4));
    assert_eq!(targets.len(), 3, "nothing is lost before the list is complete");
    targets.listed(TargetKind::Deployment);
    assert_eq!(targets.scale(TargetKind::Deployment, "shop", "db"), None);
    assert_eq!(
        targets.scale(TargetKind::Deployment, "shop", "web").map(|s| s.scale.spec_replicas.get()),
        Some(4)
    );
    assert!(targets.scale(TargetKind::ReplicaSet, "shop", "db").is_some());
    targets.listed(TargetKind::Deployment);
    assert_eq!(targets.len(), 2, "without a list nothing is gone");
}

#[test]
fn underivable_scales_are_left_to_the_server() {
    let cases = [
        (TargetKind::Deployment, json!(null)),
        (TargetKind::Deployment, json!({})),
        (TargetKind::Deployment, json!({"app": "web"})),
        (
            TargetKind::Deployment,
            json!({"matchExpressions": [{"key": "a", "operator": "Like", "values": ["b"]}]}),
        ),
        (TargetKind::Deployment, json!({"matchExpressions": [{"key": "a", "operator": "In"}]})),
        (TargetKind::Deployment, json!({"matchLabels": {"not a key": "b"}})),
        (TargetKind::ReplicationController, json!({"matchLabels": {"app": "web"}})),
        (TargetKind::ReplicationController, json!({})),
    ];
    for (kind, selector) in cases {
        let mut targets = TargetIndex::default();
        let mut seen = web(1);
        seen.spec.selector = serde_json::from_value(selector.clone()).unwrap();
        targets.apply(kind, &seen);
        assert_eq!(targets.scale(kind, "shop", "web"), None, "{selector}");
    }
}

#[test]
fn absent_and_null_fields_have_their_defaults() {
    let bare = target(&json!({"metadata": {"name": "web", "namespace": null}, "spec": null, "status": null}));
    assert_eq!(View::key(&bare), ("", "web"));
    let mut targets = TargetIndex::default();
    let selector = json!({"matchLabels": {"app": "web"}, "matchExpressions": null});
    targets.apply(
        TargetKind::ReplicaSet,
        &target(&json!({"metadata": {"name": "web", "namespace": "shop"}, "spec": {"selector": selector}})),
    );
    let scale = targets.scale(TargetKind::ReplicaSet, "shop", "web").unwrap().scale;
    assert_eq!(
        (scale.spec_replicas.get(), scale.status_replicas.get(), scale.selector.as_str()),
        (1, 0, "app=web")
    );
}

#[test]
fn kinds_are_found_as_users_write_them() {
    assert_eq!(TargetKind::of("apps", "Deployment"), Some(TargetKind::Deployment));
    assert_eq!(TargetKind::of("apps", "deployment"), Some(TargetKind::Deployment));
    assert_eq!(TargetKind::of("apps", "DEPLOYMENT"), None);
    assert_eq!(TargetKind::of("", "Deployment"), None);
    assert_eq!(TargetKind::of("", "replicationcontroller"), Some(TargetKind::ReplicationController));
    assert_eq!(TargetKind::of("apps", "ReplicationController"), None);
}
