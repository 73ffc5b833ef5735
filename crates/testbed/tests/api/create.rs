//! Creation of objects.

use serde_json::json;
use testbed::cases;
use testbed::harness::{Case, Session};

use crate::objects::*;

pub(crate) const CASES: &[Case] = cases![
    the_same_name_twice,
    a_generated_name,
    a_generated_name_beside_a_name,
    no_name,
    the_namespace_of_the_path_is_filled_in,
    another_namespace_than_the_path,
    a_namespace_that_is_not,
    names_that_are_not_allowed,
    labels_that_are_not_allowed,
    annotations_that_are_not_allowed,
    annotations_that_are_too_long,
    what_the_server_sets_cannot_be_set,
    a_resource_version_is_refused,
    a_finalizer_that_is_not_a_name,
    owners_that_are_not_complete,
    post_to_an_object,
    a_name_of_another_kind,
    yaml,
];

async fn the_same_name_twice(s: Session) {
    s.post(CONFIG_MAPS, config_map("a")).await;
    s.post(CONFIG_MAPS, config_map("a")).await;
    s.post(DEPLOYMENTS, deployment("a")).await;
    s.post(DEPLOYMENTS, deployment("a")).await;
}

async fn a_generated_name(s: Session) {
    let generated = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "web-"}});
    let first = s.post(CONFIG_MAPS, &generated).await;
    let second = s.post(CONFIG_MAPS, &generated).await;
    let name = first.text("/metadata/name");
    assert_eq!(name.len(), "web-".len() + 5, "{name}");
    assert_ne!(name, second.text("/metadata/name"));
}

async fn a_generated_name_beside_a_name(s: Session) {
    let both =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "generateName": "web-"}});
    s.post(CONFIG_MAPS, &both).await;
    s.post(CONFIG_MAPS, &both).await;
}

async fn no_name(s: Session) {
    s.post(CONFIG_MAPS, json!({"apiVersion": "v1", "kind": "ConfigMap"})).await;
    s.post(DEPLOYMENTS, json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {}})).await;
}

async fn the_namespace_of_the_path_is_filled_in(s: Session) {
    let mut named = config_map("a");
    named["metadata"]["namespace"] = json!("{ns}");
    s.post(CONFIG_MAPS, config_map("b")).await;
    s.post(CONFIG_MAPS, named).await;
}

async fn another_namespace_than_the_path(s: Session) {
    let mut named = config_map("a");
    named["metadata"]["namespace"] = json!("elsewhere");
    s.post(CONFIG_MAPS, named).await;
    s.get(&at(CONFIG_MAPS, "a")).await;
}

async fn a_namespace_that_is_not(s: Session) {
    s.post("/api/v1/namespaces/{ns}-absent/configmaps", config_map("a")).await;
    s.post("/apis/apps/v1/namespaces/{ns}-absent/deployments", deployment("a")).await;
    s.get("/api/v1/namespaces/{ns}-absent/configmaps").await;
}

async fn names_that_are_not_allowed(s: Session) {
    for name in ["Upper", "a_b", "-a", "a.", "a b", "ä", "a/b"] {
        s.post(CONFIG_MAPS, config_map(name)).await;
    }
    s.post(CONFIG_MAPS, config_map(&"x".repeat(254))).await;
    // Names of Services and namespaces must be DNS labels, not DNS subdomains.
    s.post(SERVICES, service("a.b")).await;
    s.post(SERVICES, service("1a")).await;
    s.post(SERVICES, service(&"x".repeat(64))).await;
    s.post(NAMESPACES, namespace("{ns}.a")).await;
}

async fn labels_that_are_not_allowed(s: Session) {
    for labels in [
        json!({"a b": "c"}),
        json!({"a": "b c"}),
        json!({"": "c"}),
        json!({"a": "x".repeat(64)}),
        json!({"Example.com/a": "b"}),
        json!({"a/b/c": "d"}),
        json!({"a": "-b"}),
    ] {
        s.post(CONFIG_MAPS, labelled("a", &labels)).await;
    }
    s.post(CONFIG_MAPS, labelled("a", &json!({"example.com/a": "", "b": "c.d_e-F"}))).await;
}

async fn annotations_that_are_not_allowed(s: Session) {
    for annotations in [json!({"a b": "c"}), json!({"": "c"}), json!({"a": "anything ä goes\n"})] {
        let mut object = config_map("a");
        object["metadata"]["annotations"] = annotations;
        s.post(CONFIG_MAPS, object).await;
    }
}

async fn annotations_that_are_too_long(s: Session) {
    let mut object = config_map("a");
    object["metadata"]["annotations"] = json!({"a": "x".repeat(256 * 1024)});
    s.post(CONFIG_MAPS, object).await;
}

async fn what_the_server_sets_cannot_be_set(s: Session) {
    let mut object = config_map("a");
    object["metadata"]["uid"] = json!("11111111-2222-3333-4444-555555555555");
    object["metadata"]["creationTimestamp"] = json!("2001-02-03T04:05:06Z");
    object["metadata"]["deletionTimestamp"] = json!("2001-02-03T04:05:06Z");
    object["metadata"]["deletionGracePeriodSeconds"] = json!(7);
    object["metadata"]["generation"] = json!(17);
    object["metadata"]["selfLink"] = json!("/here");
    s.post(CONFIG_MAPS, object).await;
    let mut object = hpa("a");
    object["metadata"]["generation"] = json!(17);
    object["status"] = json!({"currentReplicas": 3, "desiredReplicas": 4, "currentMetrics": null});
    s.post(HPAS, object).await;
    let mut object = pod("a");
    object["status"] = json!({"phase": "Running"});
    s.post(PODS, object).await;
}

async fn a_resource_version_is_refused(s: Session) {
    let mut object = config_map("a");
    object["metadata"]["resourceVersion"] = json!("7");
    s.post(CONFIG_MAPS, object).await;
}

async fn a_finalizer_that_is_not_a_name(s: Session) {
    for finalizer in ["no slash", "plain", "example.com/", "example.com/fine"] {
        let mut object = config_map("a");
        object["metadata"]["finalizers"] = json!([finalizer]);
        s.post(CONFIG_MAPS, object).await;
    }
    s.patch(&at(CONFIG_MAPS, "a"), testbed::harness::Patch::Merge, json!({"metadata": {"finalizers": null}}))
        .await;
}

async fn owners_that_are_not_complete(s: Session) {
    let uid = "11111111-2222-3333-4444-555555555555";
    for owners in [
        json!([{"apiVersion": "", "kind": "", "name": "", "uid": ""}]),
        json!([{"apiVersion": "apps/v1/x", "kind": "Deployment", "name": "a", "uid": uid}]),
        json!([
            {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a", "uid": uid, "controller": true},
            {"apiVersion": "apps/v1", "kind": "Deployment", "name": "b", "uid": uid, "controller": true},
        ]),
        json!([{"apiVersion": "v1", "kind": "Event", "name": "a", "uid": uid}]),
    ] {
        let mut object = config_map("a");
        object["metadata"]["ownerReferences"] = owners;
        s.post(CONFIG_MAPS, object).await;
    }
}

async fn post_to_an_object(s: Session) {
    s.post(CONFIG_MAPS, config_map("a")).await;
    s.post(&at(CONFIG_MAPS, "a"), config_map("a")).await;
}

async fn a_name_of_another_kind(s: Session) {
    // The same name in another resource is another object.
    s.post(CONFIG_MAPS, config_map("a")).await;
    s.post(SECRETS, secret("a")).await;
}

async fn yaml(s: Session) {
    let text = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  b: \"1\"\n";
    let ask = s.request(http::Method::POST, CONFIG_MAPS).header("content-type", "application/yaml");
    ask.body(text).send().await;
}
