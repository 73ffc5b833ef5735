//! Deletion of objects and collections.

use http::Method;
use serde_json::json;
use testbed::cases;
use testbed::harness::{Case, Session};

use crate::objects::*;

pub(crate) const CASES: &[Case] = cases![
    each_kind,
    what_is_not_there,
    with_a_uid,
    with_a_version,
    a_pod_that_runs_has_time,
    a_pod_that_runs_has_no_time,
    a_grace_period_that_is_negative,
    options_in_the_query,
    options_of_nonsense,
    both_ways_to_say_orphan,
    a_collection,
    a_collection_by_label,
    an_empty_collection,
    a_namespace,
    nothing_is_made_in_a_namespace_that_ends,
    made_again_it_is_another,
];

async fn each_kind(s: Session) {
    for (collection, object) in one_of_each("a") {
        s.request(Method::POST, collection).json(object).send_unrecorded().await;
        s.delete_with(&at(collection, "a"), json!({"propagationPolicy": "Background"})).await;
        s.get(&at(collection, "a")).await;
    }
}

async fn what_is_not_there(s: Session) {
    s.delete(&at(CONFIG_MAPS, "absent")).await;
    s.delete(&at(DEPLOYMENTS, "absent")).await;
}

async fn with_a_uid(s: Session) {
    let made = s.post(CONFIG_MAPS, config_map("a")).await;
    let path = at(CONFIG_MAPS, "a");
    s.delete_with(&path, json!({"preconditions": {"uid": "11111111-2222-3333-4444-555555555555"}})).await;
    s.delete_with(&path, json!({"preconditions": {"uid": made.uid()}})).await;
}

async fn with_a_version(s: Session) {
    let made = s.post(CONFIG_MAPS, config_map("a")).await;
    let path = at(CONFIG_MAPS, "a");
    s.delete_with(&path, json!({"preconditions": {"resourceVersion": "1"}})).await;
    s.delete_with(&path, json!({"preconditions": {"resourceVersion": made.version()}})).await;
}

fn running(name: &str) -> serde_json::Value {
    let mut object = pod(name);
    object["spec"]["nodeName"] = json!("nowhere");
    object
}

async fn a_pod_that_runs_has_time(s: Session) {
    s.post(PODS, running("a")).await;
    s.delete(&at(PODS, "a")).await;
    s.get(&at(PODS, "a")).await;
    // A second deletion cannot extend the grace period, but can shorten it.
    s.delete(&at(PODS, "a")).await;
    s.delete_with(&at(PODS, "a"), json!({"gracePeriodSeconds": 60})).await;
    s.delete_with(&at(PODS, "a"), json!({"gracePeriodSeconds": 5})).await;
    s.delete_with(&at(PODS, "a"), json!({"gracePeriodSeconds": 0})).await;
    s.get(&at(PODS, "a")).await;
}

async fn a_pod_that_runs_has_no_time(s: Session) {
    s.post(PODS, running("a")).await;
    s.delete_with(&at(PODS, "a"), json!({"gracePeriodSeconds": 0})).await;
    s.get(&at(PODS, "a")).await;
    // A pod that was never scheduled has no grace period.
    s.post(PODS, pod("b")).await;
    s.delete(&at(PODS, "b")).await;
    s.get(&at(PODS, "b")).await;
}

async fn a_grace_period_that_is_negative(s: Session) {
    s.post(PODS, running("a")).await;
    s.delete_with(&at(PODS, "a"), json!({"gracePeriodSeconds": -1})).await;
    s.delete_with(&at(PODS, "a"), json!({"gracePeriodSeconds": 0})).await;
}

async fn options_in_the_query(s: Session) {
    s.post(PODS, running("a")).await;
    s.delete(&format!("{}?gracePeriodSeconds=7", at(PODS, "a"))).await;
    s.delete(&format!("{}?gracePeriodSeconds=0", at(PODS, "a"))).await;
    s.post(CONFIG_MAPS, config_map("a")).await;
    s.delete(&format!("{}?propagationPolicy=Sideways", at(CONFIG_MAPS, "a"))).await;
    s.delete(&format!("{}?propagationPolicy=Background", at(CONFIG_MAPS, "a"))).await;
}

async fn options_of_nonsense(s: Session) {
    s.post(CONFIG_MAPS, config_map("a")).await;
    let path = at(CONFIG_MAPS, "a");
    s.delete_with(&path, json!({"propagationPolicy": "Sideways"})).await;
    s.delete_with(&path, "{").await;
    s.delete_with(&path, json!({"apiVersion": "v1", "kind": "ConfigMap"})).await;
    s.delete_with(&path, json!({"dryRun": ["Some"]})).await;
    s.delete_with(&path, json!({"apiVersion": "v1", "kind": "DeleteOptions"})).await;
}

async fn both_ways_to_say_orphan(s: Session) {
    s.post(CONFIG_MAPS, config_map("a")).await;
    let path = at(CONFIG_MAPS, "a");
    s.delete_with(&path, json!({"propagationPolicy": "Background", "orphanDependents": true})).await;
    s.delete_with(&path, json!({"orphanDependents": false})).await;
}

async fn a_collection(s: Session) {
    for name in ["a", "b", "c"] {
        s.post(LEASES, lease(name)).await;
    }
    s.delete(LEASES).await;
    s.get(LEASES).await;
}

async fn a_collection_by_label(s: Session) {
    for (name, label) in [("a", "1"), ("b", "2"), ("c", "1")] {
        let mut object = lease(name);
        object["metadata"]["labels"] = json!({"x": label});
        s.post(LEASES, object).await;
    }
    s.delete(&format!("{LEASES}?labelSelector=x%3D1")).await;
    s.get(LEASES).await;
    s.delete(&format!("{LEASES}?fieldSelector=metadata.name%3Dabsent")).await;
    s.delete(&format!("{LEASES}?fieldSelector=metadata.name%3Db")).await;
    s.get(LEASES).await;
}

async fn an_empty_collection(s: Session) {
    s.delete(LEASES).await;
    s.delete("/apis/coordination.k8s.io/v1/leases").await;
    s.delete(NAMESPACES).await;
}

async fn a_namespace(s: Session) {
    let path = "/api/v1/namespaces/{ns}-more";
    s.post(NAMESPACES, namespace("{ns}-more")).await;
    s.request(Method::POST, "/api/v1/namespaces/{ns}-more/configmaps")
        .json(config_map("a"))
        .send_unrecorded()
        .await;
    s.delete(path).await;
    s.until(path, |response| response.code == 404).await;
    s.get("/api/v1/namespaces/{ns}-more/configmaps/a").await;
}

async fn nothing_is_made_in_a_namespace_that_ends(s: Session) {
    let inside = "/api/v1/namespaces/{ns}-more/configmaps";
    s.post(NAMESPACES, namespace("{ns}-more")).await;
    let mut held = config_map("a");
    held["metadata"]["finalizers"] = json!(["example.com/held"]);
    s.post(inside, held).await;
    s.delete("/api/v1/namespaces/{ns}-more").await;
    s.post(inside, config_map("b")).await;
    s.wait(&at(inside, "a"), |response| !response.text("/metadata/deletionTimestamp").is_empty()).await;
    s.patch(&at(inside, "a"), testbed::harness::Patch::Merge, json!({"metadata": {"finalizers": null}}))
        .await;
    s.until("/api/v1/namespaces/{ns}-more", |response| response.code == 404).await;
}

async fn made_again_it_is_another(s: Session) {
    s.post(CONFIG_MAPS, config_map("a")).await;
    s.delete(&at(CONFIG_MAPS, "a")).await;
    s.post(CONFIG_MAPS, config_map("a")).await;
}
