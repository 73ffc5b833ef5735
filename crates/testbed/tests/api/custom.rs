//! CustomResourceDefinitions, and custom resources.

use serde_json::{Value, json};
use testbed::cases;
use testbed::harness::{Case, Patch, Session};

use crate::objects::{CRDS, at};
use crate::widgets::{DEFINITION, WIDGETS, define, definition, established, widget};

pub(crate) const CASES: &[Case] = cases![
    a_definition_is_established,
    objects_come_and_go,
    defaults_and_pruning,
    values_that_are_wrong,
    several_values_are_wrong,
    required_fields,
    unknown_fields_can_be_kept,
    integers_or_texts,
    nothing_where_something_must_be,
    status_is_apart,
    without_status_it_is_a_field,
    scale,
    generations,
    columns,
    two_versions_of_one_object,
    a_version_that_is_not_served,
    names_in_discovery,
    outside_of_namespaces,
    patches,
    apply_with_lists_by_key,
    strict_fields,
    selectors,
    a_definition_that_is_wrong,
    names_that_do_not_fit,
    a_definition_changes,
    gone_with_its_definition,
    names_of_objects,
];

async fn a_definition_is_established(s: Session) {
    s.delete_at_end(DEFINITION);
    s.post(CRDS, definition()).await;
    s.until(DEFINITION, established).await;
    s.delete(DEFINITION).await;
    s.until(DEFINITION, |response| response.code == 404).await;
}

async fn objects_come_and_go(s: Session) {
    define(&s, &definition()).await;
    s.post(WIDGETS, widget("a", &json!({"size": 3}))).await;
    s.post(WIDGETS, widget("a", &json!({"size": 3}))).await;
    s.get(&at(WIDGETS, "a")).await;
    s.get(WIDGETS).await;
    s.get(&at(WIDGETS, "absent")).await;
    let mut object = s.get(&at(WIDGETS, "a")).await.body;
    object["spec"]["size"] = json!(4);
    s.put(&at(WIDGETS, "a"), &object).await;
    s.put(&at(WIDGETS, "a"), &object).await;
    // An update without a resource version is rejected, unlike for most built-in kinds.
    s.put(&at(WIDGETS, "a"), widget("a", &json!({"size": 5}))).await;
    s.delete(&at(WIDGETS, "a")).await;
    s.delete(&at(WIDGETS, "a")).await;
}

async fn defaults_and_pruning(s: Session) {
    define(&s, &definition()).await;
    let mut object = widget(
        "a",
        &json!({"size": 3, "unknown": 1, "parts": [{"name": "x", "unknown": 2}], "open": {"any": {"thing": 1}}}),
    );
    object["unknown"] = json!("gone");
    s.post(WIDGETS, object).await;
    s.get(&at(WIDGETS, "a")).await;
}

async fn values_that_are_wrong(s: Session) {
    define(&s, &definition()).await;
    for spec in [
        json!({"size": -1}),
        json!({"size": 101}),
        json!({"size": "3"}),
        json!({"size": 1.5}),
        json!({"size": 1, "colour": "blue"}),
        json!({"size": 1, "code": "A"}),
        json!({"size": 1, "code": "abcde"}),
        json!({"size": 1, "weight": 0}),
        json!({"size": 1, "on": "yes"}),
        json!({"size": 1, "parts": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}),
        json!({"size": 1, "parts": [{"name": "a"}, {"name": "a"}]}),
        json!({"size": 1, "tags": ["x", "x"]}),
        json!({"size": 1, "extra": {"a": 1}}),
        json!({"size": 1, "when": "yesterday"}),
        json!([]),
    ] {
        s.post(WIDGETS, widget("a", &spec)).await;
    }
}

async fn several_values_are_wrong(s: Session) {
    define(&s, &definition()).await;
    let object = widget("a", &json!({"size": -1, "colour": "blue", "on": 1}));
    let response = s.request(http::Method::POST, WIDGETS).json(object).send_unrecorded().await;
    // The real server reports the errors in undefined order.
    let mut causes = response.body["details"]["causes"].as_array().cloned().unwrap_or_default();
    causes.sort_by_key(Value::to_string);
    s.note("causes in some order", causes.into());
}

async fn required_fields(s: Session) {
    define(&s, &definition()).await;
    s.post(WIDGETS, widget("a", &json!({}))).await;
    s.post(WIDGETS, widget("a", &json!({"size": 1, "parts": [{}]}))).await;
    s.post(WIDGETS, widget("a", &json!({"size": null}))).await;
}

async fn unknown_fields_can_be_kept(s: Session) {
    let mut keeping = definition();
    keeping["spec"]["versions"][0]["schema"]["openAPIV3Schema"] =
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    define(&s, &keeping).await;
    s.post(WIDGETS, widget("a", &json!({"size": 3, "unknown": {"deep": [1, "two", null]}}))).await;
}

async fn integers_or_texts(s: Session) {
    define(&s, &definition()).await;
    for (name, port) in [("a", json!(80)), ("b", json!("http")), ("c", json!(true)), ("d", json!(1.5))] {
        s.post(WIDGETS, widget(name, &json!({"size": 1, "port": port}))).await;
    }
}

async fn nothing_where_something_must_be(s: Session) {
    define(&s, &definition()).await;
    s.post(WIDGETS, widget("a", &json!({"size": 1, "maybe": null, "colour": null}))).await;
    s.post(WIDGETS, widget("b", &json!({"size": 1, "code": null}))).await;
}

async fn status_is_apart(s: Session) {
    define(&s, &definition()).await;
    let mut object = widget("a", &json!({"size": 3}));
    object["status"] = json!({"size": 9});
    let mut object = s.post(WIDGETS, object).await.body;
    object["status"] = json!({"size": 2, "unknown": 1});
    object["spec"]["size"] = json!(7);
    s.put(&at(WIDGETS, "a/status"), &object).await;
    s.patch(&at(WIDGETS, "a"), Patch::Merge, json!({"status": {"size": 8}})).await;
    s.patch(&at(WIDGETS, "a/status"), Patch::Merge, json!({"status": {"size": "x"}})).await;
    s.get(&at(WIDGETS, "a/status")).await;
}

async fn without_status_it_is_a_field(s: Session) {
    let mut plain = definition();
    plain["spec"]["versions"][0]["subresources"] = json!({});
    define(&s, &plain).await;
    let mut object = widget("a", &json!({"size": 3}));
    object["status"] = json!({"size": 9});
    s.post(WIDGETS, object).await;
    s.patch(&at(WIDGETS, "a"), Patch::Merge, json!({"status": {"size": 8}})).await;
    s.get(&at(WIDGETS, "a/status")).await;
    s.get(&at(WIDGETS, "a/scale")).await;
}

async fn scale(s: Session) {
    define(&s, &definition()).await;
    s.post(WIDGETS, widget("a", &json!({"size": 3}))).await;
    let path = at(WIDGETS, "a/scale");
    s.get(&path).await;
    s.patch(&at(WIDGETS, "a/status"), Patch::Merge, json!({"status": {"size": 2, "selector": "app=a"}}))
        .await;
    let mut scale = s.get(&path).await.body;
    scale["spec"]["replicas"] = json!(6);
    s.put(&path, &scale).await;
    s.put(&path, &scale).await;
    s.patch(&path, Patch::Merge, json!({"spec": {"replicas": 8}})).await;
    s.patch(&path, Patch::Merge, json!({"spec": {"replicas": 101}})).await;
    s.patch(&path, Patch::Merge, json!({"spec": {"replicas": -1}})).await;
    s.get(&at(WIDGETS, "a")).await;
}

async fn generations(s: Session) {
    define(&s, &definition()).await;
    s.post(WIDGETS, widget("a", &json!({"size": 3}))).await;
    s.patch(&at(WIDGETS, "a"), Patch::Merge, json!({"metadata": {"labels": {"a": "b"}}})).await;
    s.patch(&at(WIDGETS, "a"), Patch::Merge, json!({"spec": {"size": 4}})).await;
    s.patch(&at(WIDGETS, "a/status"), Patch::Merge, json!({"status": {"size": 4}})).await;
    s.patch(&at(WIDGETS, "a"), Patch::Merge, json!({"spec": {"size": 4}})).await;
}

async fn columns(s: Session) {
    define(&s, &definition()).await;
    s.post(WIDGETS, widget("a", &json!({"size": 3}))).await;
    s.get_as_table(WIDGETS).await;
    s.get_as_table(&at(WIDGETS, "a")).await;
}

/// The definition with a copy of its version that differs in these fields.
fn with_second_version(fields: &Value) -> Value {
    let mut definition = definition();
    let versions = definition["spec"]["versions"].as_array_mut().unwrap();
    let mut second = versions[0].clone();
    for (field, value) in fields.as_object().unwrap() {
        second[field] = value.clone();
    }
    versions.push(second);
    definition
}

async fn two_versions_of_one_object(s: Session) {
    let more =
        json!({"name": "v1beta1", "storage": false, "deprecated": true, "additionalPrinterColumns": []});
    define(&s, &with_second_version(&more)).await;
    let old = WIDGETS.replace("/v1/", "/v1beta1/");
    s.wait(&old, |response| response.code == 200).await;
    s.post(WIDGETS, widget("a", &json!({"size": 3}))).await;
    s.get(&at(&old, "a")).await;
    s.patch(&at(&old, "a"), Patch::Merge, json!({"spec": {"size": 4}})).await;
    s.get(&at(WIDGETS, "a")).await;
    s.get("/apis/{ns}.example.com").await;
    s.get_as_table(&old).await;
}

async fn a_version_that_is_not_served(s: Session) {
    define(&s, &with_second_version(&json!({"name": "v2", "storage": false, "served": false}))).await;
    s.get(&WIDGETS.replace("/v1/", "/v2/")).await;
}

async fn names_in_discovery(s: Session) {
    define(&s, &definition()).await;
    s.until("/apis/{ns}.example.com", |response| response.code == 200).await;
    s.until("/apis/{ns}.example.com/v1", |response| response.code == 200).await;
}

async fn outside_of_namespaces(s: Session) {
    let mut wide = definition();
    wide["spec"]["scope"] = json!("Cluster");
    s.delete_at_end(DEFINITION);
    s.request(http::Method::POST, CRDS).json(wide).send_unrecorded().await;
    s.wait(DEFINITION, established).await;
    let widgets = "/apis/{ns}.example.com/v1/widgets";
    s.wait(widgets, |response| response.code == 200).await;
    s.post(widgets, widget("a", &json!({"size": 3}))).await;
    s.get(&at(widgets, "a")).await;
    s.get(WIDGETS).await;
    let mut object = widget("b", &json!({"size": 3}));
    object["metadata"]["namespace"] = json!("{ns}");
    s.post(widgets, object).await;
    s.delete(&at(widgets, "a")).await;
}

async fn patches(s: Session) {
    define(&s, &definition()).await;
    s.post(WIDGETS, widget("a", &json!({"size": 3, "parts": [{"name": "x"}]}))).await;
    let path = at(WIDGETS, "a");
    s.patch(&path, Patch::Merge, json!({"spec": {"parts": [{"name": "y"}], "colour": null}})).await;
    s.patch(&path, Patch::Json, json!([{"op": "add", "path": "/spec/parts/-", "value": {"name": "z"}}]))
        .await;
    s.patch(&path, Patch::Strategic, json!({"spec": {"size": 4}})).await;
    s.patch(&path, Patch::Merge, json!({"spec": {"size": 1000}})).await;
    s.patch(&path, Patch::Merge, json!({"kind": "Gadget"})).await;
}

async fn apply_with_lists_by_key(s: Session) {
    define(&s, &definition()).await;
    let path = |manager: &str| format!("{}?fieldManager={manager}", at(WIDGETS, "a"));
    s.patch(
        &path("one"),
        Patch::Apply,
        widget("a", &json!({"size": 3, "parts": [{"name": "x"}], "tags": ["p"]})),
    )
    .await;
    s.patch(
        &path("two"),
        Patch::Apply,
        widget("a", &json!({"size": 3, "parts": [{"name": "y", "count": 5}], "tags": ["q"]})),
    )
    .await;
    s.patch(&path("two"), Patch::Apply, widget("a", &json!({"size": 4}))).await;
    s.patch(&path("two"), Patch::Apply, widget("a", &json!({"size": 3}))).await;
}

async fn strict_fields(s: Session) {
    define(&s, &definition()).await;
    let mut object = widget("a", &json!({"size": 3, "unknown": 1, "parts": [{"name": "x", "unknown": 2}]}));
    object["other"] = json!(1);
    s.post(&format!("{WIDGETS}?fieldValidation=Strict"), &object).await;
    s.post(&format!("{WIDGETS}?fieldValidation=Warn"), &object).await;
    s.post(&format!("{WIDGETS}?fieldValidation=Ignore"), widget("b", &json!({"size": 3, "unknown": 1})))
        .await;
}

async fn selectors(s: Session) {
    define(&s, &definition()).await;
    let mut object = widget("a", &json!({"size": 3}));
    object["metadata"]["labels"] = json!({"x": "y"});
    s.post(WIDGETS, object).await;
    s.get(&format!("{WIDGETS}?labelSelector=x%3Dy")).await;
    s.get(&format!("{WIDGETS}?labelSelector=x%3Dz")).await;
    s.get(&format!("{WIDGETS}?fieldSelector=metadata.name%3Da")).await;
    s.get(&format!("{WIDGETS}?fieldSelector=spec.size%3D3")).await;
}

async fn a_definition_that_is_wrong(s: Session) {
    for (pointer, value) in [
        ("/spec/versions/0/storage", json!(false)),
        ("/spec/versions/0/schema", json!(null)),
        ("/spec/versions", json!([])),
        ("/spec/scope", json!("Everywhere")),
        ("/spec/names/kind", json!("")),
        ("/spec/group", json!("")),
        ("/spec/versions/0/name", json!("One")),
        ("/spec/versions/0/schema/openAPIV3Schema/type", json!("string")),
    ] {
        let mut wrong = definition();
        *wrong.pointer_mut(pointer).unwrap() = value;
        s.post(CRDS, wrong).await;
    }
}

async fn names_that_do_not_fit(s: Session) {
    let mut wrong = definition();
    wrong["metadata"]["name"] = json!("gadgets.{ns}.example.com");
    s.post(CRDS, wrong).await;
    s.post(CRDS, json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "x"}})).await;
}

async fn a_definition_changes(s: Session) {
    define(&s, &definition()).await;
    s.post(WIDGETS, widget("a", &json!({"size": 3}))).await;
    let more = json!([{"op": "add", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/depth", "value": {"type": "integer", "default": 5}}]);
    s.request(http::Method::PATCH, DEFINITION)
        .header("content-type", "application/json-patch+json")
        .body(more)
        .send_unrecorded()
        .await;
    s.until(&at(WIDGETS, "a"), |response| response.body["spec"]["depth"] == 5).await;
    s.patch(DEFINITION, Patch::Merge, json!({"spec": {"scope": "Cluster"}})).await;
}

async fn gone_with_its_definition(s: Session) {
    define(&s, &definition()).await;
    s.post(WIDGETS, widget("a", &json!({"size": 3}))).await;
    s.request(http::Method::DELETE, DEFINITION).send_unrecorded().await;
    s.until(DEFINITION, |response| response.code == 404).await;
    s.until(WIDGETS, |response| response.code == 404).await;
    s.until("/apis/{ns}.example.com", |response| response.code == 404).await;
}

async fn names_of_objects(s: Session) {
    define(&s, &definition()).await;
    s.post(WIDGETS, widget("Upper", &json!({"size": 3}))).await;
    s.post(WIDGETS, json!({"apiVersion": "{ns}.example.com/v1", "kind": "Widget", "metadata": {"generateName": "a-"}, "spec": {"size": 1}})).await;
    s.post(
        WIDGETS,
        json!({"apiVersion": "{ns}.example.com/v1", "kind": "Gadget", "metadata": {"name": "a"}}),
    )
    .await;
    s.post(
        WIDGETS,
        json!({"apiVersion": "{ns}.example.com/v7", "kind": "Widget", "metadata": {"name": "a"}}),
    )
    .await;
    s.post(WIDGETS, json!({"metadata": {"name": "a"}, "spec": {"size": 1}})).await;
}
