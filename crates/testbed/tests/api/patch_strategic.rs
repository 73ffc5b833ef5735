//! Strategic merge patches.

use serde_json::{Value, json};
use testbed::cases;
use testbed::harness::{ApiResponse, Case, Patch, Session};

use crate::objects::*;

pub(crate) const CASES: &[Case] = cases![
    containers_are_merged_by_name,
    an_item_is_deleted,
    a_list_is_replaced,
    an_object_is_replaced,
    order_is_set,
    ports_of_services_are_merged_by_port,
    environment_and_volumes,
    sets_of_texts,
    keys_are_retained,
    conditions_are_merged_by_type,
    without_a_merge_key,
    an_unknown_directive,
    nulls,
];

async fn patch(s: &Session, patch: Value) -> ApiResponse {
    s.patch(&at(DEPLOYMENTS, "a"), Patch::Strategic, patch).await
}

fn containers(containers: &Value) -> Value {
    json!({"spec": {"template": {"spec": {"containers": containers}}}})
}

async fn containers_are_merged_by_name(s: Session) {
    s.post(DEPLOYMENTS, deployment("a")).await;
    patch(&s, containers(&json!([{"name": "main", "image": "web:2"}]))).await;
    patch(&s, containers(&json!([{"name": "side", "image": "proxy"}]))).await;
    patch(&s, containers(&json!([{"name": "main", "resources": {"requests": {"memory": "1Gi"}}}]))).await;
}

async fn an_item_is_deleted(s: Session) {
    s.post(DEPLOYMENTS, deployment("a")).await;
    patch(&s, containers(&json!([{"name": "side", "image": "proxy"}]))).await;
    patch(&s, containers(&json!([{"name": "main", "$patch": "delete"}]))).await;
    patch(&s, containers(&json!([{"name": "absent", "$patch": "delete"}]))).await;
}

async fn a_list_is_replaced(s: Session) {
    s.post(DEPLOYMENTS, deployment("a")).await;
    patch(&s, containers(&json!([{"$patch": "replace"}, {"name": "other", "image": "web"}]))).await;
}

async fn an_object_is_replaced(s: Session) {
    s.post(DEPLOYMENTS, deployment("a")).await;
    patch(&s, json!({"metadata": {"labels": {"a": "1", "b": "2"}}})).await;
    patch(&s, json!({"metadata": {"labels": {"$patch": "replace", "c": "3"}}})).await;
    patch(&s, json!({"metadata": {"labels": {"$patch": "delete"}}})).await;
}

async fn order_is_set(s: Session) {
    s.post(DEPLOYMENTS, deployment("a")).await;
    patch(&s, containers(&json!([{"name": "side", "image": "proxy"}]))).await;
    let order = json!({"spec": {"template": {"spec": {
        "$setElementOrder/containers": [{"name": "last"}, {"name": "side"}, {"name": "main"}],
        "containers": [{"name": "last", "image": "web"}],
    }}}});
    patch(&s, order).await;
}

async fn ports_of_services_are_merged_by_port(s: Session) {
    let mut object = service("a");
    object["spec"]["ports"] = json!([{"name": "a", "port": 80}, {"name": "b", "port": 81}]);
    s.post(SERVICES, object).await;
    let path = at(SERVICES, "a");
    s.patch(&path, Patch::Strategic, json!({"spec": {"ports": [{"port": 80, "name": "c"}]}})).await;
    s.patch(&path, Patch::Strategic, json!({"spec": {"ports": [{"port": 82, "name": "d"}]}})).await;
    s.patch(&path, Patch::Strategic, json!({"spec": {"ports": [{"port": 81, "$patch": "delete"}]}})).await;
}

async fn environment_and_volumes(s: Session) {
    s.post(DEPLOYMENTS, deployment("a")).await;
    patch(
        &s,
        containers(
            &json!([{"name": "main", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
        "args": ["one", "two"], "ports": [{"containerPort": 80}]}]),
        ),
    )
    .await;
    patch(
        &s,
        containers(&json!([{"name": "main", "env": [{"name": "B", "value": "3"}], "args": ["three"],
        "ports": [{"containerPort": 81}]}])),
    )
    .await;
    patch(&s, json!({"spec": {"template": {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}}})).await;
}

async fn sets_of_texts(s: Session) {
    let mut object = config_map("a");
    object["metadata"]["finalizers"] = json!(["example.com/a", "example.com/b"]);
    s.post(CONFIG_MAPS, object).await;
    let path = at(CONFIG_MAPS, "a");
    s.patch(&path, Patch::Strategic, json!({"metadata": {"finalizers": ["example.com/c"]}})).await;
    s.patch(
        &path,
        Patch::Strategic,
        json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/a"]}}),
    )
    .await;
    s.patch(&path, Patch::Strategic, json!({"metadata": {"finalizers": null}})).await;
}

async fn keys_are_retained(s: Session) {
    s.post(DEPLOYMENTS, deployment("a")).await;
    patch(&s, json!({"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}})).await;
    patch(&s, json!({"spec": {"strategy": {"type": "RollingUpdate"}}})).await;
    patch(&s, json!({"spec": {"strategy": {"type": "Recreate"}}})).await;
}

async fn conditions_are_merged_by_type(s: Session) {
    s.post(PODS, pod("a")).await;
    let path = at(PODS, "a/status");
    let ready = json!({"type": "Ready", "status": "False", "lastTransitionTime": "2001-02-03T04:05:06Z"});
    s.patch(&path, Patch::Strategic, json!({"status": {"conditions": [ready]}})).await;
    let more = json!({"status": {"conditions": [{"type": "Initialized", "status": "True"}, {"type": "Ready", "status": "True"}]}});
    s.patch(&path, Patch::Strategic, more).await;
}

async fn without_a_merge_key(s: Session) {
    s.post(DEPLOYMENTS, deployment("a")).await;
    patch(&s, containers(&json!([{"image": "web:2"}]))).await;
}

async fn an_unknown_directive(s: Session) {
    s.post(DEPLOYMENTS, deployment("a")).await;
    patch(&s, containers(&json!([{"name": "main", "$patch": "wish"}]))).await;
    patch(&s, json!({"spec": {"$patch": "wish"}})).await;
    s.patch(&at(DEPLOYMENTS, "a"), Patch::Strategic, "[]").await;
    s.patch(&at(DEPLOYMENTS, "a"), Patch::Strategic, "{").await;
}

async fn nulls(s: Session) {
    s.post(DEPLOYMENTS, deployment("a")).await;
    patch(&s, json!({"spec": {"replicas": null}})).await;
    patch(&s, containers(&json!([{"name": "main", "resources": null}]))).await;
    patch(&s, containers(&Value::Null)).await;
}
