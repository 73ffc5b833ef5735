//! Garbage collection of objects with owners.

use serde_json::{Value, json};
use testbed::cases;
use testbed::harness::{ApiResponse, Case, Session};

use crate::objects::*;

pub(crate) const CASES: &[Case] = cases![
    go_in_the_background,
    go_first,
    stay_as_orphans,
    without_an_owner_they_go,
    with_two_owners_they_stay,
    across_kinds_and_levels,
    a_collection_goes_with_its_dependents,
    no_owner_in_another_namespace,
    the_owner_waits_for_a_finalizer,
];

fn owned(name: &str, owners: &[&ApiResponse]) -> Value {
    let reference = |owner: &&ApiResponse| {
        json!({"apiVersion": owner.text("/apiVersion"), "kind": owner.text("/kind"),
            "name": owner.text("/metadata/name"), "uid": owner.uid(), "blockOwnerDeletion": true})
    };
    let mut object = config_map(name);
    object["metadata"]["ownerReferences"] = owners.iter().map(reference).collect();
    object
}

fn gone(response: &ApiResponse) -> bool {
    response.code == 404
}

async fn go_in_the_background(s: Session) {
    let owner = s.post(CONFIG_MAPS, config_map("owner")).await;
    s.post(CONFIG_MAPS, owned("a", &[&owner])).await;
    s.delete_with(&at(CONFIG_MAPS, "owner"), json!({"propagationPolicy": "Background"})).await;
    s.get(&at(CONFIG_MAPS, "owner")).await;
    s.until(&at(CONFIG_MAPS, "a"), gone).await;
}

async fn go_first(s: Session) {
    let owner = s.post(CONFIG_MAPS, config_map("owner")).await;
    s.post(CONFIG_MAPS, owned("a", &[&owner])).await;
    s.delete_with(&at(CONFIG_MAPS, "owner"), json!({"propagationPolicy": "Foreground"})).await;
    s.until(&at(CONFIG_MAPS, "owner"), gone).await;
    s.get(&at(CONFIG_MAPS, "a")).await;
}

async fn stay_as_orphans(s: Session) {
    let owner = s.post(CONFIG_MAPS, config_map("owner")).await;
    s.post(CONFIG_MAPS, owned("a", &[&owner])).await;
    s.delete_with(&at(CONFIG_MAPS, "owner"), json!({"propagationPolicy": "Orphan"})).await;
    s.until(&at(CONFIG_MAPS, "owner"), gone).await;
    s.until(&at(CONFIG_MAPS, "a"), |response| response.body.pointer("/metadata/ownerReferences").is_none())
        .await;
}

async fn without_an_owner_they_go(s: Session) {
    let owner = s.post(CONFIG_MAPS, config_map("owner")).await;
    s.delete(&at(CONFIG_MAPS, "owner")).await;
    s.post(CONFIG_MAPS, owned("a", &[&owner])).await;
    s.until(&at(CONFIG_MAPS, "a"), gone).await;
}

async fn with_two_owners_they_stay(s: Session) {
    let one = s.post(CONFIG_MAPS, config_map("one")).await;
    let two = s.post(CONFIG_MAPS, config_map("two")).await;
    s.post(CONFIG_MAPS, owned("a", &[&one, &two])).await;
    s.post(CONFIG_MAPS, owned("b", &[&one])).await;
    s.delete_with(&at(CONFIG_MAPS, "one"), json!({"propagationPolicy": "Background"})).await;
    // When the other object was deleted, the garbage collector has also checked this one, or will do so.
    s.until(&at(CONFIG_MAPS, "b"), gone).await;
    s.until(&at(CONFIG_MAPS, "a"), |response| {
        response
            .body
            .pointer("/metadata/ownerReferences")
            .and_then(Value::as_array)
            .is_some_and(|all| all.len() == 1)
    })
    .await;
    s.delete_with(&at(CONFIG_MAPS, "two"), json!({"propagationPolicy": "Background"})).await;
    s.until(&at(CONFIG_MAPS, "a"), gone).await;
}

async fn across_kinds_and_levels(s: Session) {
    let top = s.post(DEPLOYMENTS, deployment("top")).await;
    let mut middle = replica_set("middle");
    middle["metadata"]["ownerReferences"] = owned("x", &[&top])["metadata"]["ownerReferences"].clone();
    let middle = s.post(REPLICA_SETS, middle).await;
    let mut bottom = pod("bottom");
    bottom["metadata"]["ownerReferences"] = owned("x", &[&middle])["metadata"]["ownerReferences"].clone();
    s.post(PODS, bottom).await;
    s.delete(&at(DEPLOYMENTS, "top")).await;
    s.until(&at(PODS, "bottom"), gone).await;
    s.get(&at(REPLICA_SETS, "middle")).await;
}

async fn a_collection_goes_with_its_dependents(s: Session) {
    let owner = s.post(LEASES, lease("owner")).await;
    s.post(CONFIG_MAPS, owned("a", &[&owner])).await;
    s.delete_with(LEASES, json!({"propagationPolicy": "Foreground"})).await;
    s.until(&at(LEASES, "owner"), gone).await;
    s.get(&at(CONFIG_MAPS, "a")).await;
}

async fn no_owner_in_another_namespace(s: Session) {
    s.delete_at_end("/api/v1/namespaces/{ns}-more");
    s.post(NAMESPACES, namespace("{ns}-more")).await;
    let owner = s.post("/api/v1/namespaces/{ns}-more/configmaps", config_map("owner")).await;
    s.post(CONFIG_MAPS, owned("a", &[&owner])).await;
    s.until(&at(CONFIG_MAPS, "a"), gone).await;
}

async fn the_owner_waits_for_a_finalizer(s: Session) {
    let owner = s.post(CONFIG_MAPS, config_map("owner")).await;
    let mut held = owned("a", &[&owner]);
    held["metadata"]["finalizers"] = json!(["example.com/held"]);
    s.post(CONFIG_MAPS, held).await;
    s.delete_with(&at(CONFIG_MAPS, "owner"), json!({"propagationPolicy": "Foreground"})).await;
    s.wait(&at(CONFIG_MAPS, "a"), |response| !response.text("/metadata/deletionTimestamp").is_empty()).await;
    s.get(&at(CONFIG_MAPS, "owner")).await;
    s.patch(&at(CONFIG_MAPS, "a"), testbed::harness::Patch::Merge, json!({"metadata": {"finalizers": null}}))
        .await;
    s.until(&at(CONFIG_MAPS, "owner"), gone).await;
}
