//! Invalid requests.

use http::Method;
use serde_json::json;
use testbed::cases;
use testbed::harness::{Case, Patch, Session};

use crate::objects::*;

pub(crate) const CASES: &[Case] = cases![
    broken_json,
    an_empty_body,
    not_an_object,
    a_body_that_is_too_large,
    a_value_that_is_too_large,
    deep_json,
    other_content_types,
    other_patch_types,
    answers_in_other_types,
    kinds_that_do_not_fit_the_path,
    no_kind,
    groups_and_versions_that_are_not,
    resources_that_are_not,
    paths_that_are_not,
    methods_that_are_not_allowed,
    parameters_of_nonsense,
    wrong_types,
    duplicate_fields,
    unknown_fields_refused,
    unknown_fields_warned_of,
    unknown_fields_ignored,
    unknown_ways_to_check_fields,
    names_in_paths,
    a_version_of_the_future,
    nothing_is_half_written,
    text_that_is_not_utf8,
    without_a_content_type,
];

async fn broken_json(s: Session) {
    for text in ["{", "{\"kind\": }", "{'kind': 'ConfigMap'}", "nonsense", "{} {}"] {
        s.post(CONFIG_MAPS, text).await;
    }
    s.put(&at(CONFIG_MAPS, "a"), "{").await;
}

async fn an_empty_body(s: Session) {
    s.post(CONFIG_MAPS, "").await;
    s.put(&at(CONFIG_MAPS, "a"), "").await;
    s.post(CONFIG_MAPS, " ").await;
}

async fn not_an_object(s: Session) {
    for text in ["[]", "7", "\"text\"", "null", "true"] {
        s.post(CONFIG_MAPS, text).await;
    }
}

async fn a_body_that_is_too_large(s: Session) {
    let large = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": "x".repeat(3 * 1024 * 1024)}});
    let response = s.request(Method::POST, CONFIG_MAPS).json(&large).send().await;
    assert_eq!(response.code, 413, "{}", response.body);
    s.get(&at(CONFIG_MAPS, "a")).await;
}

async fn a_value_that_is_too_large(s: Session) {
    let mut object = config_map("a");
    object["data"]["a"] = json!("x".repeat(1024 * 1024 + 1));
    s.post(CONFIG_MAPS, object).await;
    // Each request has one error, because the real server reports several in undefined order.
    for key in ["not allowed", ".."] {
        let mut object = config_map("a");
        object["data"] = json!({(key): "1"});
        s.post(CONFIG_MAPS, object).await;
    }
}

async fn deep_json(s: Session) {
    let deep = format!(
        "{{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"x\":{}{}}}",
        "[".repeat(20_000),
        "]".repeat(20_000)
    );
    s.post(CONFIG_MAPS, deep).await;
}

async fn other_content_types(s: Session) {
    for content in ["text/plain", "application/xml", "nonsense", "application/json-patch+json"] {
        s.request(Method::POST, CONFIG_MAPS)
            .header("content-type", content)
            .body(config_map("a"))
            .send()
            .await;
    }
    let with_charset =
        s.request(Method::POST, CONFIG_MAPS).header("content-type", "application/json; charset=utf-8");
    with_charset.body(config_map("a")).send().await;
}

async fn other_patch_types(s: Session) {
    s.post(CONFIG_MAPS, config_map("a")).await;
    for content in ["application/json", "text/plain", "application/merge-patch+yaml"] {
        s.request(Method::PATCH, &at(CONFIG_MAPS, "a"))
            .header("content-type", content)
            .body(json!({}))
            .send()
            .await;
    }
    s.request(Method::PATCH, &at(CONFIG_MAPS, "a")).body(json!({})).send().await;
}

async fn answers_in_other_types(s: Session) {
    s.post(CONFIG_MAPS, config_map("a")).await;
    for accept in [
        "text/plain",
        "application/xml",
        "*/*",
        "application/*",
        "text/html, application/json;q=0.5",
        "application/json;as=Dream;v=v1;g=meta.k8s.io",
        "nonsense",
    ] {
        s.get_as(&at(CONFIG_MAPS, "a"), accept).await;
    }
}

async fn kinds_that_do_not_fit_the_path(s: Session) {
    s.post(CONFIG_MAPS, secret("a")).await;
    s.post(DEPLOYMENTS, config_map("a")).await;
    s.post(CONFIG_MAPS, deployment("a")).await;
    s.post(CONFIG_MAPS, json!({"apiVersion": "v7", "kind": "ConfigMap", "metadata": {"name": "a"}})).await;
    s.post(CONFIG_MAPS, json!({"apiVersion": "v1", "kind": "Dream", "metadata": {"name": "a"}})).await;
    s.post(HPAS, hpa_v1("a")).await;
    s.put(&at(CONFIG_MAPS, "a"), secret("a")).await;
}

async fn no_kind(s: Session) {
    s.post(CONFIG_MAPS, json!({"metadata": {"name": "a"}})).await;
    s.post(CONFIG_MAPS, json!({"kind": "ConfigMap", "metadata": {"name": "b"}})).await;
    s.post(CONFIG_MAPS, json!({"apiVersion": "v1", "metadata": {"name": "c"}})).await;
    s.post(CONFIG_MAPS, json!({"apiVersion": 1, "kind": "ConfigMap", "metadata": {"name": "d"}})).await;
    s.post(CONFIG_MAPS, json!({"apiVersion": "a/b/c", "kind": "ConfigMap", "metadata": {"name": "e"}})).await;
}

async fn groups_and_versions_that_are_not(s: Session) {
    s.get("/apis/absent.example.com/v1/namespaces/{ns}/things").await;
    s.get("/apis/apps/v7/namespaces/{ns}/deployments").await;
    s.get("/api/v7/namespaces/{ns}/configmaps").await;
    s.get("/apis/absent.example.com").await;
    s.get("/apis/apps/v7").await;
    s.get("/api/v7").await;
}

async fn resources_that_are_not(s: Session) {
    s.get("/api/v1/namespaces/{ns}/dreams").await;
    s.get("/api/v1/dreams").await;
    s.get("/apis/apps/v1/namespaces/{ns}/dreams/a").await;
    s.post("/api/v1/namespaces/{ns}/dreams", json!({})).await;
    s.delete("/api/v1/namespaces/{ns}/dreams/a").await;
    s.get("/api/v1/namespaces/{ns}/ConfigMaps").await;
    // A cluster-scoped resource is requested in a namespace.
    s.get("/api/v1/namespaces/{ns}/nodes").await;
}

async fn paths_that_are_not(s: Session) {
    for path in
        ["/nonsense", "/api/v1/", "/apis/apps/v1/", "/api/v1//configmaps", "/apis//v1", "/nonsense/deeper"]
    {
        let response = s.request(Method::GET, path).send_unrecorded().await;
        s.note(&format!("the code of GET {path}"), json!(response.code));
    }
    s.get("/apis/apps/v1/namespaces/{ns}/deployments/a/b/c").await;
}

async fn methods_that_are_not_allowed(s: Session) {
    s.post(CONFIG_MAPS, config_map("a")).await;
    s.put(CONFIG_MAPS, config_map("a")).await;
    s.patch(CONFIG_MAPS, Patch::Merge, json!({})).await;
    s.request(Method::OPTIONS, CONFIG_MAPS).send().await;
    s.request(Method::from_bytes(b"DREAM").unwrap(), CONFIG_MAPS).send().await;
    s.post("/version", json!({})).await;
}

async fn parameters_of_nonsense(s: Session) {
    s.post(&format!("{CONFIG_MAPS}?dryRun=Some"), config_map("a")).await;
    s.post(&format!("{CONFIG_MAPS}?pretty=maybe"), config_map("b")).await;
    s.post(&format!("{CONFIG_MAPS}?unknown=parameter"), config_map("c")).await;
    s.get(&format!("{}?pretty=true", at(CONFIG_MAPS, "c"))).await;
    s.get(&format!("{CONFIG_MAPS}?limit=x&watch=y")).await;
}

async fn wrong_types(s: Session) {
    for (pointer, value) in [
        ("/spec/replicas", json!("two")),
        ("/spec/replicas", json!(1.5)),
        ("/spec/replicas", json!(3_000_000_000_u32)),
        ("/spec/replicas", json!([])),
        ("/spec/template", json!("x")),
        ("/spec/template/spec/containers", json!({})),
        ("/spec/template/spec/containers/0/name", json!(7)),
        ("/spec/template/spec/containers/0/resources/requests/cpu", json!("lots")),
        ("/metadata/name", json!(1)),
        ("/metadata", json!([])),
        ("/spec", json!(null)),
    ] {
        let mut object = deployment("a");
        *object.pointer_mut(pointer).unwrap() = value;
        s.post(DEPLOYMENTS, object).await;
    }
    let mut object = deployment("a");
    object["metadata"]["labels"] = json!({"a": 1});
    s.post(DEPLOYMENTS, object).await;
    let mut object = config_map("a");
    object["data"] = json!({"a": 1});
    s.post(CONFIG_MAPS, object).await;
    let mut object = lease("a");
    object["spec"]["renewTime"] = json!("yesterday");
    s.post(LEASES, object).await;
    let mut object = secret("a");
    object["data"] = json!({"a": "not base64!"});
    s.post(SECRETS, object).await;
}

const DUPLICATE_FIELD: &str = r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "NAME"}, "data": {"a": "1", "a": "2"}, "data": {"b": "3"}}"#;

async fn duplicate_fields(s: Session) {
    s.post(&format!("{CONFIG_MAPS}?fieldValidation=Strict"), DUPLICATE_FIELD.replace("NAME", "a")).await;
    s.post(&format!("{CONFIG_MAPS}?fieldValidation=Warn"), DUPLICATE_FIELD.replace("NAME", "b")).await;
    s.post(&format!("{CONFIG_MAPS}?fieldValidation=Ignore"), DUPLICATE_FIELD.replace("NAME", "c")).await;
    s.post(CONFIG_MAPS, DUPLICATE_FIELD.replace("NAME", "d")).await;
}

fn unknown(name: &str) -> serde_json::Value {
    let mut object = deployment(name);
    object["spec"]["colour"] = json!("red");
    object["spec"]["template"]["spec"]["containers"][0]["imagePullPolice"] = json!("Always");
    object["metadata"]["lables"] = json!({});
    object["specs"] = json!({});
    object
}

async fn unknown_fields_refused(s: Session) {
    s.post(&format!("{DEPLOYMENTS}?fieldValidation=Strict"), unknown("a")).await;
    s.get(&at(DEPLOYMENTS, "a")).await;
    s.post(DEPLOYMENTS, deployment("a")).await;
    s.put(&format!("{}?fieldValidation=Strict", at(DEPLOYMENTS, "a")), unknown("a")).await;
    s.patch(
        &format!("{}?fieldValidation=Strict", at(DEPLOYMENTS, "a")),
        Patch::Strategic,
        json!({"spec": {"colour": "red"}}),
    )
    .await;
    s.patch(
        &format!("{}?fieldValidation=Strict", at(DEPLOYMENTS, "a")),
        Patch::Json,
        json!([{"op": "add", "path": "/spec/colour", "value": "red"}]),
    )
    .await;
}

async fn unknown_fields_warned_of(s: Session) {
    s.post(&format!("{DEPLOYMENTS}?fieldValidation=Warn"), unknown("a")).await;
    s.post(DEPLOYMENTS, unknown("b")).await;
    s.put(&at(DEPLOYMENTS, "a"), unknown("a")).await;
}

async fn unknown_fields_ignored(s: Session) {
    s.post(&format!("{DEPLOYMENTS}?fieldValidation=Ignore"), unknown("a")).await;
}

async fn unknown_ways_to_check_fields(s: Session) {
    s.post(&format!("{DEPLOYMENTS}?fieldValidation=Loosely"), deployment("a")).await;
}

async fn names_in_paths(s: Session) {
    for name in ["Upper", "a_b", "a%20b", "%C3%A4", "a%2Fb"] {
        s.get(&at(CONFIG_MAPS, name)).await;
    }
}

async fn a_version_of_the_future(s: Session) {
    s.get(&format!("{LEASES}?resourceVersion=999999999")).await;
}

async fn nothing_is_half_written(s: Session) {
    let mut object = hpa("a");
    object["spec"]["maxReplicas"] = json!(0);
    s.post(HPAS, object).await;
    s.get(HPAS).await;
    s.post(HPAS, hpa("a")).await;
    s.patch(
        &at(HPAS, "a"),
        Patch::Merge,
        json!({"spec": {"maxReplicas": 0}, "metadata": {"labels": {"a": "b"}}}),
    )
    .await;
    s.get(&at(HPAS, "a")).await;
}

async fn text_that_is_not_utf8(s: Session) {
    let mut body = config_map("a").to_string().into_bytes();
    let end = body.len() - 1;
    body.splice(end..end, b",\"x\":\"\xff\"".iter().copied());
    s.post(CONFIG_MAPS, body).await;
}

async fn without_a_content_type(s: Session) {
    s.request(Method::POST, CONFIG_MAPS).body(config_map("a")).send().await;
    s.request(Method::PUT, &at(CONFIG_MAPS, "a")).body(config_map("a")).send().await;
}
