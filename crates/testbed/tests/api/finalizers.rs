//! Objects with finalizers, which are removed only when they have no finalizer.

use serde_json::{Value, json};
use testbed::cases;
use testbed::harness::{Case, Patch, Session};

use crate::objects::*;

pub(crate) const CASES: &[Case] = cases![
    hold_an_object,
    the_last_one_lets_go,
    none_can_be_added_while_it_goes,
    a_replacement_lets_go,
    what_goes_can_still_change,
    deleting_twice,
    in_a_collection,
    of_a_kind_with_generations,
    a_namespace_is_finalized,
];

fn held(name: &str, by: &[&str]) -> Value {
    let mut object = config_map(name);
    object["metadata"]["finalizers"] = json!(by);
    object
}

const REMOVE_FINALIZERS: &str = r#"{"metadata": {"finalizers": null}}"#;

async fn hold_an_object(s: Session) {
    s.post(CONFIG_MAPS, held("a", &["example.com/a"])).await;
    let path = at(CONFIG_MAPS, "a");
    s.delete(&path).await;
    s.get(&path).await;
    s.patch(&path, Patch::Merge, REMOVE_FINALIZERS).await;
    s.get(&path).await;
}

async fn the_last_one_lets_go(s: Session) {
    s.post(CONFIG_MAPS, held("a", &["example.com/a", "example.com/b"])).await;
    let path = at(CONFIG_MAPS, "a");
    s.delete(&path).await;
    s.patch(&path, Patch::Json, json!([{"op": "remove", "path": "/metadata/finalizers/0"}])).await;
    s.patch(&path, Patch::Json, json!([{"op": "remove", "path": "/metadata/finalizers/0"}])).await;
    s.get(&path).await;
}

async fn none_can_be_added_while_it_goes(s: Session) {
    s.post(CONFIG_MAPS, held("a", &["example.com/a"])).await;
    let path = at(CONFIG_MAPS, "a");
    s.delete(&path).await;
    s.patch(&path, Patch::Merge, json!({"metadata": {"finalizers": ["example.com/a", "example.com/b"]}}))
        .await;
    s.patch(&path, Patch::Merge, REMOVE_FINALIZERS).await;
}

async fn a_replacement_lets_go(s: Session) {
    s.post(CONFIG_MAPS, held("a", &["example.com/a"])).await;
    let path = at(CONFIG_MAPS, "a");
    s.delete(&path).await;
    s.put(&path, config_map("a")).await;
    s.get(&path).await;
}

async fn what_goes_can_still_change(s: Session) {
    s.post(CONFIG_MAPS, held("a", &["example.com/a"])).await;
    let path = at(CONFIG_MAPS, "a");
    s.delete(&path).await;
    s.patch(&path, Patch::Merge, json!({"data": {"b": "2"}})).await;
    s.patch(&path, Patch::Merge, json!({"metadata": {"deletionTimestamp": null}})).await;
    s.post(CONFIG_MAPS, config_map("a")).await;
    s.patch(&path, Patch::Merge, REMOVE_FINALIZERS).await;
}

async fn deleting_twice(s: Session) {
    s.post(CONFIG_MAPS, held("a", &["example.com/a"])).await;
    let path = at(CONFIG_MAPS, "a");
    s.delete(&path).await;
    s.delete(&path).await;
    s.delete_with(&path, json!({"gracePeriodSeconds": 0})).await;
    s.patch(&path, Patch::Merge, REMOVE_FINALIZERS).await;
}

async fn in_a_collection(s: Session) {
    for (name, by) in [("a", &["example.com/a"][..]), ("b", &[][..])] {
        let mut object = held(name, by);
        object["metadata"]["labels"] = json!({"x": "y"});
        s.post(CONFIG_MAPS, object).await;
    }
    s.delete(&format!("{CONFIG_MAPS}?labelSelector=x")).await;
    s.get(&format!("{CONFIG_MAPS}?labelSelector=x")).await;
    s.patch(&at(CONFIG_MAPS, "a"), Patch::Merge, REMOVE_FINALIZERS).await;
}

async fn of_a_kind_with_generations(s: Session) {
    let mut object = hpa("a");
    object["metadata"]["finalizers"] = json!(["example.com/a"]);
    s.post(HPAS, object).await;
    let path = at(HPAS, "a");
    s.delete(&path).await;
    s.patch(&path, Patch::Merge, REMOVE_FINALIZERS).await;
    s.get(&path).await;
}

async fn a_namespace_is_finalized(s: Session) {
    s.delete_at_end("/api/v1/namespaces/{ns}-more");
    let mut object = s.post(NAMESPACES, namespace("{ns}-more")).await.body;
    object["spec"]["finalizers"] = json!(["kubernetes", "example.com/a"]);
    object = s.put("/api/v1/namespaces/{ns}-more/finalize", object).await.body;
    object["spec"]["finalizers"] = json!(["kubernetes"]);
    s.put("/api/v1/namespaces/{ns}-more/finalize", object).await;
}
