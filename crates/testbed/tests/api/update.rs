//! Replacement of objects.

use serde_json::json;
use testbed::cases;
use testbed::harness::{Case, Session};

use crate::objects::*;

pub(crate) const CASES: &[Case] = cases![
    with_the_version_that_was_read,
    without_a_version,
    with_an_old_version,
    with_a_version_of_nonsense,
    what_is_not_there,
    under_another_name,
    without_a_name,
    in_another_namespace,
    with_another_uid,
    what_is_left_out_is_gone,
    metadata_that_cannot_change,
    the_generation_follows_the_spec,
    the_generation_of_other_kinds,
    an_immutable_config_map,
    the_selector_of_a_deployment,
    the_template_of_a_job,
    the_spec_of_a_pod,
    the_image_of_a_pod,
    the_type_of_a_secret,
    the_address_of_a_service,
    the_storage_of_a_stateful_set,
    managers_are_told_apart,
    managed_fields_can_be_reset,
];

async fn with_the_version_that_was_read(s: Session) {
    let mut read = s.post(CONFIG_MAPS, config_map("a")).await.body;
    read["data"] = json!({"b": "2"});
    s.put(&at(CONFIG_MAPS, "a"), read).await;
    s.get(&at(CONFIG_MAPS, "a")).await;
}

async fn without_a_version(s: Session) {
    s.post(CONFIG_MAPS, config_map("a")).await;
    let mut object = config_map("a");
    object["data"] = json!({"b": "2"});
    s.put(&at(CONFIG_MAPS, "a"), object).await;
    // Updates of these kinds require a resource version.
    s.post(LEASES, lease("a")).await;
    s.put(&at(LEASES, "a"), lease("a")).await;
    s.post(SERVICES, service("a")).await;
    s.put(&at(SERVICES, "a"), service("a")).await;
    s.delete_at_end(&at(WEBHOOKS, "{ns}"));
    s.post(WEBHOOKS, webhook("{ns}")).await;
    s.put(&at(WEBHOOKS, "{ns}"), webhook("{ns}")).await;
}

async fn with_an_old_version(s: Session) {
    let mut first = s.post(CONFIG_MAPS, config_map("a")).await.body;
    first["data"] = json!({"b": "2"});
    s.put(&at(CONFIG_MAPS, "a"), &first).await;
    first["data"] = json!({"c": "3"});
    s.put(&at(CONFIG_MAPS, "a"), &first).await;
    s.get(&at(CONFIG_MAPS, "a")).await;
    let mut first = s.post(HPAS, hpa("a")).await.body;
    first["spec"]["maxReplicas"] = json!(3);
    s.put(&at(HPAS, "a"), &first).await;
    first["spec"]["maxReplicas"] = json!(4);
    s.put(&at(HPAS, "a"), &first).await;
}

async fn with_a_version_of_nonsense(s: Session) {
    s.post(CONFIG_MAPS, config_map("a")).await;
    let mut object = config_map("a");
    object["metadata"]["resourceVersion"] = json!("abc");
    s.put(&at(CONFIG_MAPS, "a"), object).await;
}

async fn what_is_not_there(s: Session) {
    s.put(&at(CONFIG_MAPS, "a"), config_map("a")).await;
    s.put(&at(DEPLOYMENTS, "a"), deployment("a")).await;
    s.put(&at(HPAS, "a"), hpa("a")).await;
    let mut object = config_map("a");
    object["metadata"]["resourceVersion"] = json!("7");
    s.put(&at(CONFIG_MAPS, "a"), object).await;
    // Some kinds can be created by an update.
    s.put(&at(LEASES, "a"), lease("a")).await;
}

async fn under_another_name(s: Session) {
    s.post(CONFIG_MAPS, config_map("a")).await;
    s.put(&at(CONFIG_MAPS, "a"), config_map("b")).await;
}

async fn without_a_name(s: Session) {
    s.post(CONFIG_MAPS, config_map("a")).await;
    s.put(&at(CONFIG_MAPS, "a"), json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"b": "2"}})).await;
}

async fn in_another_namespace(s: Session) {
    s.post(CONFIG_MAPS, config_map("a")).await;
    let mut object = config_map("a");
    object["metadata"]["namespace"] = json!("elsewhere");
    s.put(&at(CONFIG_MAPS, "a"), object).await;
}

async fn with_another_uid(s: Session) {
    s.post(CONFIG_MAPS, config_map("a")).await;
    let mut object = config_map("a");
    object["metadata"]["uid"] = json!("11111111-2222-3333-4444-555555555555");
    s.put(&at(CONFIG_MAPS, "a"), object).await;
}

async fn what_is_left_out_is_gone(s: Session) {
    let mut object = config_map("a");
    object["metadata"]["labels"] = json!({"a": "b"});
    object["metadata"]["annotations"] = json!({"c": "d"});
    s.post(CONFIG_MAPS, object).await;
    s.put(&at(CONFIG_MAPS, "a"), json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}))
        .await;
}

async fn metadata_that_cannot_change(s: Session) {
    let mut object = s.post(CONFIG_MAPS, config_map("a")).await.body;
    object["metadata"]["creationTimestamp"] = json!("2001-02-03T04:05:06Z");
    object["metadata"]["deletionTimestamp"] = json!("2001-02-03T04:05:06Z");
    object["metadata"]["generation"] = json!(9);
    s.put(&at(CONFIG_MAPS, "a"), object).await;
}

async fn the_generation_follows_the_spec(s: Session) {
    let mut object = s.post(DEPLOYMENTS, deployment("a")).await.body;
    object["metadata"]["labels"] = json!({"a": "b"});
    object = s.put(&at(DEPLOYMENTS, "a"), object).await.body;
    object["spec"]["replicas"] = json!(5);
    object = s.put(&at(DEPLOYMENTS, "a"), object).await.body;
    object["metadata"]["annotations"] = json!({"a": "b"});
    object = s.put(&at(DEPLOYMENTS, "a"), object).await.body;
    object["status"] = json!({"replicas": 9});
    s.put(&at(DEPLOYMENTS, "a"), object).await;
}

async fn the_generation_of_other_kinds(s: Session) {
    for (collection, mut object, field, value) in [
        (HPAS, hpa("a"), "/spec/maxReplicas", json!(3)),
        (REPLICA_SETS, replica_set("a"), "/spec/replicas", json!(3)),
        (STATEFUL_SETS, stateful_set("a"), "/spec/replicas", json!(3)),
        (JOBS, job("a"), "/spec/parallelism", json!(3)),
        (SERVICES, service("a"), "/spec/ports/0/port", json!(81)),
    ] {
        object = s.post(collection, object).await.body;
        *object.pointer_mut(field).unwrap() = value;
        s.put(&at(collection, "a"), object).await;
    }
}

async fn an_immutable_config_map(s: Session) {
    let mut object = config_map("a");
    object["immutable"] = json!(true);
    s.post(CONFIG_MAPS, &object).await;
    object["data"] = json!({"b": "2"});
    s.put(&at(CONFIG_MAPS, "a"), &object).await;
    s.put(&at(CONFIG_MAPS, "a"), config_map("a")).await;
    let mut object = secret("a");
    object["immutable"] = json!(true);
    s.post(SECRETS, &object).await;
    object["stringData"] = json!({"word": "shut"});
    s.put(&at(SECRETS, "a"), &object).await;
}

async fn the_selector_of_a_deployment(s: Session) {
    for (collection, object) in
        [(DEPLOYMENTS, deployment("a")), (REPLICA_SETS, replica_set("a")), (STATEFUL_SETS, stateful_set("a"))]
    {
        let mut object = s.post(collection, object).await.body;
        object["spec"]["selector"]["matchLabels"]["b"] = json!("c");
        object["spec"]["template"]["metadata"]["labels"]["b"] = json!("c");
        s.put(&at(collection, "a"), object).await;
    }
}

async fn the_template_of_a_job(s: Session) {
    let mut object = s.post(JOBS, job("a")).await.body;
    object["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = json!(7);
    let response = s.request(http::Method::PUT, &at(JOBS, "a")).json(object).send_unrecorded().await;
    // The error contains the whole template in Go's notation.
    assert_eq!(response.code, 422);
    assert_eq!(response.text("/details/causes/0/field"), "spec.template");
    assert!(response.text("/message").ends_with("field is immutable"), "{}", response.body);
}

async fn the_spec_of_a_pod(s: Session) {
    let mut object = s.post(PODS, pod("a")).await.body;
    object["spec"]["hostname"] = json!("elsewhere");
    let response = s.request(http::Method::PUT, &at(PODS, "a")).json(object).send_unrecorded().await;
    // The rest of the error is a difference of two pods in Go's notation.
    assert_eq!(response.code, 422);
    assert_eq!(response.text("/reason"), "Invalid");
    assert_eq!(response.text("/details/causes/0/field"), "spec");
    let text = "Pod \"a\" is invalid: spec: Forbidden: pod updates may not change fields other than ";
    assert!(response.text("/message").starts_with(text), "{}", response.body);
}

async fn the_image_of_a_pod(s: Session) {
    let mut object = s.post(PODS, pod("a")).await.body;
    object["spec"]["containers"][0]["image"] = json!("web:2");
    s.put(&at(PODS, "a"), object).await;
}

async fn the_type_of_a_secret(s: Session) {
    s.post(SECRETS, secret("a")).await;
    let mut object = secret("a");
    object["type"] = json!("example.com/own");
    s.put(&at(SECRETS, "a"), object).await;
}

async fn the_address_of_a_service(s: Session) {
    let mut object = s.post(SERVICES, service("a")).await.body;
    object["spec"]["selector"] = json!({"app": "b"});
    object = s.put(&at(SERVICES, "a"), object).await.body;
    object["spec"]["clusterIP"] = json!("None");
    object["spec"]["clusterIPs"] = json!(["None"]);
    s.put(&at(SERVICES, "a"), object).await;
}

async fn the_storage_of_a_stateful_set(s: Session) {
    let mut object = s.post(STATEFUL_SETS, stateful_set("a")).await.body;
    object["spec"]["serviceName"] = json!("b");
    s.put(&at(STATEFUL_SETS, "a"), object).await;
}

async fn managers_are_told_apart(s: Session) {
    let path = at(CONFIG_MAPS, "a");
    s.request(http::Method::POST, CONFIG_MAPS)
        .header("user-agent", "one/2.0 (linux)")
        .json(config_map("a"))
        .send()
        .await;
    let mut object = config_map("a");
    object["data"] = json!({"a": "1", "b": "2"});
    s.put(&format!("{path}?fieldManager=two"), &object).await;
    object["data"] = json!({"a": "0", "b": "2"});
    s.put(&format!("{path}?fieldManager=two"), &object).await;
    s.put(&format!("{path}?fieldManager={}", "x".repeat(129)), &object).await;
    object["data"] = json!({});
    s.put(&format!("{path}?fieldManager=three"), &object).await;
}

async fn managed_fields_can_be_reset(s: Session) {
    s.post(CONFIG_MAPS, config_map("a")).await;
    let mut object = config_map("a");
    object["metadata"]["managedFields"] = json!([{}]);
    s.put(&at(CONFIG_MAPS, "a"), object).await;
}
