//! Server-side apply, and kubectl's apply without it.

use http::Method;
use serde_json::{Value, json};
use testbed::cases;
use testbed::harness::{ApiResponse, Case, Patch, Session};

use crate::objects::*;

pub(crate) const CASES: &[Case] = cases![
    makes_what_is_not_there,
    again_changes_nothing,
    what_is_no_longer_listed_is_removed,
    a_conflict,
    a_conflict_is_forced,
    the_same_value_is_shared,
    fields_shared_are_kept,
    lists_by_key,
    over_what_was_updated,
    an_update_takes_fields_away,
    without_a_manager,
    managed_fields_are_refused,
    another_name,
    with_a_version,
    not_yaml,
    yaml,
    unknown_fields,
    the_status,
    the_scale,
    replicas_are_handed_over,
    labels_and_finalizers,
    an_invalid_object,
    as_kubectl_does_without_it,
];

async fn apply(s: &Session, collection: &str, manager: &str, object: &Value) -> ApiResponse {
    let name = object["metadata"]["name"].as_str().unwrap();
    s.patch(&format!("{collection}/{name}?fieldManager={manager}"), Patch::Apply, object).await
}

async fn force(s: &Session, collection: &str, manager: &str, object: &Value) -> ApiResponse {
    let name = object["metadata"]["name"].as_str().unwrap();
    s.patch(&format!("{collection}/{name}?fieldManager={manager}&force=true"), Patch::Apply, object).await
}

fn with(data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data})
}

async fn makes_what_is_not_there(s: Session) {
    apply(&s, CONFIG_MAPS, "one", &config_map("a")).await;
    apply(&s, DEPLOYMENTS, "one", &deployment("a")).await;
    apply(&s, HPAS, "one", &hpa("a")).await;
    apply(&s, SERVICES, "one", &service("a")).await;
}

async fn again_changes_nothing(s: Session) {
    apply(&s, CONFIG_MAPS, "one", &config_map("a")).await;
    apply(&s, CONFIG_MAPS, "one", &config_map("a")).await;
    apply(&s, DEPLOYMENTS, "one", &deployment("a")).await;
    apply(&s, DEPLOYMENTS, "one", &deployment("a")).await;
}

async fn what_is_no_longer_listed_is_removed(s: Session) {
    apply(&s, CONFIG_MAPS, "one", &with(&json!({"a": "1", "b": "2"}))).await;
    apply(&s, CONFIG_MAPS, "one", &with(&json!({"b": "3"}))).await;
    apply(&s, CONFIG_MAPS, "one", &with(&json!({}))).await;
    apply(
        &s,
        CONFIG_MAPS,
        "one",
        &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}),
    )
    .await;
}

async fn a_conflict(s: Session) {
    apply(&s, CONFIG_MAPS, "one", &with(&json!({"a": "1", "b": "2"}))).await;
    apply(&s, CONFIG_MAPS, "two", &with(&json!({"a": "0"}))).await;
    apply(&s, CONFIG_MAPS, "two", &with(&json!({"a": "0", "b": "0"}))).await;
    s.get(&at(CONFIG_MAPS, "a")).await;
}

async fn a_conflict_is_forced(s: Session) {
    apply(&s, CONFIG_MAPS, "one", &with(&json!({"a": "1", "b": "2"}))).await;
    force(&s, CONFIG_MAPS, "two", &with(&json!({"a": "0"}))).await;
    apply(&s, CONFIG_MAPS, "one", &with(&json!({"b": "2"}))).await;
}

async fn the_same_value_is_shared(s: Session) {
    apply(&s, CONFIG_MAPS, "one", &with(&json!({"a": "1"}))).await;
    apply(&s, CONFIG_MAPS, "two", &with(&json!({"a": "1"}))).await;
}

async fn fields_shared_are_kept(s: Session) {
    apply(&s, CONFIG_MAPS, "one", &with(&json!({"a": "1"}))).await;
    apply(&s, CONFIG_MAPS, "two", &with(&json!({"a": "1", "b": "2"}))).await;
    apply(&s, CONFIG_MAPS, "one", &with(&json!({}))).await;
    apply(&s, CONFIG_MAPS, "two", &with(&json!({"b": "2"}))).await;
}

async fn lists_by_key(s: Session) {
    let container = |containers: Value| {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": {
            "selector": {"matchLabels": {"app": "a"}},
            "template": {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": containers}}}})
    };
    apply(&s, DEPLOYMENTS, "one", &container(json!([{"name": "main", "image": "web:1"}]))).await;
    let side = container(json!([{"name": "side", "image": "proxy", "ports": [{"containerPort": 80}]}]));
    apply(&s, DEPLOYMENTS, "two", &side).await;
    apply(&s, DEPLOYMENTS, "two", &container(json!([{"name": "main", "image": "web:2"}]))).await;
    let both = container(json!([{"name": "main", "image": "web:2"}, {"name": "more", "image": "x"}]));
    apply(&s, DEPLOYMENTS, "one", &both).await;
    apply(&s, DEPLOYMENTS, "one", &container(json!([{"name": "main", "image": "web:2"}]))).await;
    let twice = container(json!([{"name": "main", "image": "web:2"}, {"name": "main", "image": "x"}]));
    apply(&s, DEPLOYMENTS, "one", &twice).await;
}

async fn over_what_was_updated(s: Session) {
    s.post(CONFIG_MAPS, config_map("a")).await;
    apply(&s, CONFIG_MAPS, "one", &with(&json!({"a": "0"}))).await;
    apply(&s, CONFIG_MAPS, "one", &with(&json!({"a": "1", "b": "2"}))).await;
    apply(&s, CONFIG_MAPS, "one", &with(&json!({"b": "2"}))).await;
}

async fn an_update_takes_fields_away(s: Session) {
    apply(&s, CONFIG_MAPS, "one", &with(&json!({"a": "1", "b": "2"}))).await;
    s.patch(&format!("{}?fieldManager=two", at(CONFIG_MAPS, "a")), Patch::Merge, json!({"data": {"a": "0"}}))
        .await;
    apply(&s, CONFIG_MAPS, "one", &with(&json!({"a": "1", "b": "2"}))).await;
}

async fn without_a_manager(s: Session) {
    s.patch(&at(CONFIG_MAPS, "a"), Patch::Apply, config_map("a")).await;
    s.patch(&format!("{}?fieldManager=", at(CONFIG_MAPS, "a")), Patch::Apply, config_map("a")).await;
    s.patch(&format!("{}?force=true", at(CONFIG_MAPS, "a")), Patch::Merge, json!({})).await;
}

async fn managed_fields_are_refused(s: Session) {
    let mut object = config_map("a");
    object["metadata"]["managedFields"] = json!([{"manager": "x", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {}}]);
    apply(&s, CONFIG_MAPS, "one", &object).await;
}

async fn another_name(s: Session) {
    s.patch(&format!("{}?fieldManager=one", at(CONFIG_MAPS, "a")), Patch::Apply, config_map("b")).await;
    s.patch(&format!("{}?fieldManager=one", at(CONFIG_MAPS, "a")), Patch::Apply, secret("a")).await;
    s.patch(
        &format!("{}?fieldManager=one", at(CONFIG_MAPS, "a")),
        Patch::Apply,
        json!({"metadata": {"name": "a"}}),
    )
    .await;
}

async fn with_a_version(s: Session) {
    let first = apply(&s, CONFIG_MAPS, "one", &config_map("a")).await;
    let mut object = with(&json!({"a": "2"}));
    object["metadata"]["resourceVersion"] = json!(first.version());
    apply(&s, CONFIG_MAPS, "one", &object).await;
    object["data"] = json!({"a": "3"});
    apply(&s, CONFIG_MAPS, "one", &object).await;
    let mut object = config_map("b");
    object["metadata"]["resourceVersion"] = json!("7");
    apply(&s, CONFIG_MAPS, "one", &object).await;
}

async fn not_yaml(s: Session) {
    let path = format!("{}?fieldManager=one", at(CONFIG_MAPS, "a"));
    s.patch(&path, Patch::Apply, "[]").await;
    s.patch(&path, Patch::Apply, "").await;
}

async fn yaml(s: Session) {
    let path = format!("{}?fieldManager=one", at(CONFIG_MAPS, "a"));
    let text = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  namespace: {ns}\ndata:\n  # why\n  b: |\n    two\n    lines\n";
    s.patch(&path, Patch::Apply, text).await;
}

async fn unknown_fields(s: Session) {
    let mut object = config_map("a");
    object["spec"] = json!({"x": 1});
    apply(&s, CONFIG_MAPS, "one", &object).await;
    s.patch(
        &format!("{}?fieldManager=one&fieldValidation=Strict", at(CONFIG_MAPS, "a")),
        Patch::Apply,
        &object,
    )
    .await;
}

async fn the_status(s: Session) {
    apply(&s, HPAS, "one", &hpa("a")).await;
    let status = json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "a"},
        "status": {"currentReplicas": 3, "desiredReplicas": 4}});
    s.patch(&format!("{}?fieldManager=two", at(HPAS, "a/status")), Patch::Apply, &status).await;
    s.get(&at(HPAS, "a")).await;
    // The field is ignored in the object itself.
    apply(&s, HPAS, "three", &status).await;
}

async fn the_scale(s: Session) {
    apply(&s, DEPLOYMENTS, "one", &deployment("a")).await;
    let scale = json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "a", "namespace": "{ns}"}, "spec": {"replicas": 7}});
    s.patch(&format!("{}?fieldManager=two", at(DEPLOYMENTS, "a/scale")), Patch::Apply, &scale).await;
    s.patch(&format!("{}?fieldManager=two&force=true", at(DEPLOYMENTS, "a/scale")), Patch::Apply, &scale)
        .await;
    s.get(&at(DEPLOYMENTS, "a")).await;
}

async fn replicas_are_handed_over(s: Session) {
    apply(&s, DEPLOYMENTS, "one", &deployment("a")).await;
    let path = format!("{}?fieldManager=autoscaler", at(DEPLOYMENTS, "a/scale"));
    s.patch(&path, Patch::Merge, json!({"spec": {"replicas": 7}})).await;
    apply(&s, DEPLOYMENTS, "one", &deployment("a")).await;
    let mut object = deployment("a");
    object["spec"].as_object_mut().unwrap().remove("replicas");
    apply(&s, DEPLOYMENTS, "one", &object).await;
}

async fn labels_and_finalizers(s: Session) {
    let mut object = config_map("a");
    object["metadata"]["labels"] = json!({"a": "1"});
    object["metadata"]["finalizers"] = json!(["example.com/a"]);
    apply(&s, CONFIG_MAPS, "one", &object).await;
    object["metadata"]["labels"] = json!({"b": "2"});
    object["metadata"]["finalizers"] = json!(["example.com/b"]);
    apply(&s, CONFIG_MAPS, "two", &object).await;
    apply(&s, CONFIG_MAPS, "two", &config_map("a")).await;
    s.patch(&at(CONFIG_MAPS, "a"), Patch::Merge, json!({"metadata": {"finalizers": null}})).await;
}

async fn an_invalid_object(s: Session) {
    let mut object = hpa("a");
    object["spec"]["maxReplicas"] = json!(0);
    apply(&s, HPAS, "one", &object).await;
    object["spec"]["maxReplicas"] = json!("many");
    apply(&s, HPAS, "one", &object).await;
}

async fn as_kubectl_does_without_it(s: Session) {
    const APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
    let mut first = config_map("a");
    first["metadata"]["annotations"] = json!({(APPLIED): config_map("a").to_string()});
    let make = format!("{CONFIG_MAPS}?fieldManager=kubectl-client-side-apply&fieldValidation=Strict");
    s.request(Method::POST, &make).json(first).send().await;
    let second = with(&json!({"b": "2"}));
    let patch =
        json!({"metadata": {"annotations": {(APPLIED): second.to_string()}}, "data": {"a": null, "b": "2"}});
    let change =
        format!("{}?fieldManager=kubectl-client-side-apply&fieldValidation=Strict", at(CONFIG_MAPS, "a"));
    s.patch(&change, Patch::Strategic, patch).await;
    // Then the same file with --server-side.
    apply(&s, CONFIG_MAPS, "kubectl", &second).await;
    apply(&s, CONFIG_MAPS, "kubectl", &with(&json!({"b": "3"}))).await;
}
