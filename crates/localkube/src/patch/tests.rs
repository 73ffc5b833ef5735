//! Results of each patch type; texts and orders are those of a real API server.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{PatchKind, apply, check};
use crate::schema::built_in;
use crate::status::Status;

fn patched(kind: PatchKind, object: &Value, patch: &Value) -> Result<Value, Status> {
    let schema = built_in("apps", "v1", "Deployment").unwrap();
    apply(kind, Some(&schema), object, patch)
}

fn strategic(object: &Value, patch: &Value) -> Value {
    patched(PatchKind::Strategic, object, patch).unwrap()
}

fn pod(spec: &Value) -> Value {
    json!({"spec": {"template": {"spec": spec}}})
}

fn with_containers(containers: &Value) -> Value {
    pod(&json!({"containers": containers}))
}

fn names(object: &Value) -> String {
    let containers = object["spec"]["template"]["spec"]["containers"].as_array().unwrap();
    containers.iter().map(|container| container["name"].as_str().unwrap()).collect()
}

#[test]
fn content_type_determines_the_patch_kind() {
    assert_eq!(
        PatchKind::from_content_type("application/merge-patch+json; charset=utf-8"),
        Some(PatchKind::Merge)
    );
    assert_eq!(PatchKind::from_content_type("application/json"), None);
}

/// The examples of RFC 7386, appendix A, that Kubernetes supports.
#[test]
fn merge_patch_follows_the_rfc() {
    for (object, patch, result) in [
        (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
        (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
        (json!({"a": "b"}), json!({"a": null}), json!({})),
        (json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"})),
        (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
        (json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}})),
        (json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]})),
        (json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1})),
        (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
        (json!([1, 2]), json!({"a": "b", "c": null}), json!({"a": "b"})),
    ] {
        assert_eq!(patched(PatchKind::Merge, &object, &patch).unwrap(), result, "{object} + {patch}");
    }
}

#[test]
fn malformed_patches_are_refused() {
    let map = "into Go value of type map[string]interface {}";
    for (kind, patch, text) in [
        (PatchKind::Merge, json!(5), format!("error decoding patch: json: cannot unmarshal number {map}")),
        (PatchKind::Merge, json!(null), "Invalid JSON Patch".to_owned()),
        (PatchKind::Strategic, json!([]), format!("json: cannot unmarshal array {map}")),
        (
            PatchKind::Json,
            json!({}),
            "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp".to_owned(),
        ),
        (
            PatchKind::Json,
            json!([5]),
            "error decoding patch: json: cannot unmarshal number into Go value of type handlers.jsonPatchOp".to_owned(),
        ),
    ] {
        let refused = patched(kind, &json!({}), &patch).unwrap_err();
        assert_eq!((refused.code, refused.message), (400, text));
    }
    for kind in [PatchKind::Json, PatchKind::Strategic] {
        assert_eq!(patched(kind, &json!({"a": 1}), &Value::Null).unwrap(), json!({"a": 1}));
    }
}

#[test]
fn json_patch_is_atomic() {
    let object = json!({"a": {"b": [1, 2]}, "x/y": 1});
    let patched = |patch: Value| patched(PatchKind::Json, &object, &patch);
    let done = patched(json!([
        {"op": "test", "path": "/a/b/0", "value": 1},
        {"op": "add", "path": "/a/b/1", "value": 9},
        {"op": "add", "path": "/a/b/-", "value": 3},
        {"op": "remove", "path": "/a/b/0"},
        {"op": "replace", "path": "/x~1y", "value": 2},
        {"op": "copy", "from": "/a/b", "path": "/c"},
        {"op": "move", "from": "/a", "path": "/d"},
    ]));
    assert_eq!(done.unwrap(), json!({"x/y": 2, "c": [9, 2, 3], "d": {"b": [9, 2, 3]}}));
    for wrong in [
        json!([{"op": "test", "path": "/a", "value": 1}]),
        json!([{"op": "test", "path": "/nowhere/x", "value": 1}]),
        json!([{"op": "remove", "path": "/nowhere"}]),
        json!([{"op": "replace", "path": "/a/b/7", "value": 1}]),
        json!([{"op": "add", "path": "/a/b/7", "value": 1}]),
        json!([{"op": "add", "path": "/a/b/x", "value": 1}]),
        json!([{"op": "add", "path": "/nowhere/x", "value": 1}]),
        json!([{"op": "add", "path": "a", "value": 1}]),
        json!([{"op": "add", "path": "", "value": {}}]),
        json!([{"op": "remove", "path": ""}]),
        json!([{"op": "move", "from": "/nowhere", "path": "/b"}]),
        json!([{"op": "move", "from": "/a", "path": "/a/b"}]),
        json!([{"op": "grow", "path": "/a"}]),
        json!([{"op": "copy", "from": "", "path": "/a"}]),
        json!([{"op": "add"}, {"op": "test", "path": "/x"}]),
        json!([null]),
    ] {
        let refused = patched(wrong.clone()).unwrap_err();
        assert_eq!(refused.code, 422, "{wrong}");
        assert_eq!(refused.message, "the server rejected our request due to an error in our request");
        assert_eq!(refused.to_json()["details"], json!({}));
    }
}

/// A patch of two kilobytes that doubles a value thirty times made an object of a gigabyte.
#[test]
fn copies_of_one_patch_are_bounded() {
    let object = json!({"a": {"x": "x".repeat(1 << 20)}});
    let copy = |to: usize| json!({"op": "copy", "from": "/a/x", "path": format!("/a/x{to}")});
    let patch = |count: usize| Value::Array((0..count).map(copy).collect());
    // Each copy has a mebibyte and two quotation marks; three of them are just too many.
    let two = patched(PatchKind::Json, &object, &patch(2)).unwrap();
    assert_eq!(two["a"].as_object().unwrap().len(), 3);
    let doubling: Vec<Value> =
        (0..30).map(|to| json!({"op": "copy", "from": "/a", "path": format!("/a/d{to}")})).collect();
    for wrong in [patch(3), Value::Array(doubling)] {
        let refused = patched(PatchKind::Json, &object, &wrong).unwrap_err();
        assert_eq!((refused.code, refused.reason), (422, "Invalid"));
        assert_eq!(refused.message, "the server rejected our request due to an error in our request");
    }
}

#[test]
fn json_patch_is_as_lenient_as_kubernetes() {
    let object = json!({"a": [1, 2]});
    for (operation, result) in [
        (json!({"op": "test", "path": "/b"}), json!({"a": [1, 2]})),
        (json!({"op": "replace", "path": "/b", "value": 1}), json!({"a": [1, 2], "b": 1})),
        (json!({"op": "copy", "from": "/x", "path": "/b"}), json!({"a": [1, 2], "b": null})),
        (json!({"op": "add", "path": "/b"}), json!({"a": [1, 2], "b": null})),
        (json!({"op": "add", "path": "/a/-1", "value": 3}), json!({"a": [1, 2, 3]})),
        (json!({"op": "remove", "path": "/a/-1"}), json!({"a": [1]})),
        (json!({"op": "replace", "path": "", "value": {}}), json!({})),
    ] {
        assert_eq!(patched(PatchKind::Json, &object, &json!([operation])).unwrap(), result, "{operation}");
    }
}

#[test]
fn strategic_patch_merges_by_key() {
    let object = with_containers(&json!([{"name": "a", "image": "1"}, {"name": "b", "image": "1"}]));
    let patch = with_containers(&json!([{"name": "b", "image": "2"}, {"name": "c", "image": "3"}]));
    let result =
        json!([{"name": "a", "image": "1"}, {"name": "b", "image": "2"}, {"name": "c", "image": "3"}]);
    assert_eq!(strategic(&object, &patch), with_containers(&result));
    let env = |env: Value| with_containers(&json!([{"name": "a", "args": ["1"], "env": env}]));
    let object = env(json!([{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]));
    let patch = env(json!([{"name": "B", "value": null, "valueFrom": {"fieldRef": {}}}, {"name": "C"}]));
    let result = env(
        json!([{"name": "A", "value": "1"}, {"name": "B", "valueFrom": {"fieldRef": {}}}, {"name": "C"}]),
    );
    assert_eq!(strategic(&object, &patch), result);
    let service = built_in("", "v1", "Service").unwrap();
    let ports = |ports: Value| json!({"spec": {"ports": ports}});
    let patch = ports(json!([{"port": 81}, {"port": 80, "name": "b"}]));
    let merged =
        apply(PatchKind::Strategic, Some(&service), &ports(json!([{"port": 80, "targetPort": 8}])), &patch)
            .unwrap();
    assert_eq!(merged, ports(json!([{"port": 81}, {"port": 80, "targetPort": 8, "name": "b"}])));
}

#[test]
fn strategic_patch_deletes_and_replaces() {
    let object = with_containers(&json!([{"name": "a"}, {"name": "b"}]));
    let list = |containers: Value| strategic(&object, &with_containers(&containers));
    assert_eq!(
        names(&list(json!([{"name": "a", "$patch": "delete"}, {"name": "z", "$patch": "delete"}]))),
        "b"
    );
    assert_eq!(names(&list(json!([{"$patch": "replace"}, {"name": "z"}]))), "z");
    assert_eq!(names(&list(json!([{"name": "z", "$patch": "replace"}]))), "");
    assert_eq!(names(&list(json!([]))), "ab");
    let replaced = strategic(&object, &pod(&json!({"$patch": "replace", "hostname": "x"})));
    assert_eq!(replaced, pod(&json!({"hostname": "x"})));
    assert_eq!(strategic(&object, &pod(&json!({"$patch": "delete"}))), pod(&json!({})));
    let labels = json!({"metadata": {"labels": {"a": "b"}}});
    let patch = json!({"metadata": {"labels": {"a": null, "c": "d"}, "annotations": {"x": null}}});
    assert_eq!(strategic(&labels, &patch), json!({"metadata": {"labels": {"c": "d"}, "annotations": {}}}));
}

#[test]
fn strategic_patch_supports_sets_retained_keys_and_atomic_lists() {
    let object = json!({"metadata": {"finalizers": ["a", "b"]}, "spec": {
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {}},
        "template": {"spec": {"tolerations": [{"key": "k"}], "volumes": [{"name": "v", "emptyDir": {}}]}}}});
    let volume = json!({"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/x"}});
    let patch = json!({
        "metadata": {"finalizers": ["b", "c"], "$deleteFromPrimitiveList/finalizers": ["a"]},
        "spec": {
            "strategy": {"$retainKeys": ["type"], "type": "Recreate"},
            "template": {"spec": {"tolerations": [{"key": "z"}], "volumes": [volume]}}},
    });
    let volumes = json!([{"name": "v", "hostPath": {"path": "/x"}}]);
    assert_eq!(
        strategic(&object, &patch),
        json!({"metadata": {"finalizers": ["b", "c"]}, "spec": {
            "strategy": {"type": "Recreate"},
            "template": {"spec": {"tolerations": [{"key": "z"}], "volumes": volumes}}}})
    );
}

#[test]
fn strategic_patch_orders_items() {
    let object = with_containers(&json!([{"name": "a"}, {"name": "b"}]));
    let ordered = |order: &str, changed: &str| {
        let list =
            |names: &str| names.chars().map(|name| json!({"name": name.to_string()})).collect::<Value>();
        let mut spec = json!({"$setElementOrder/containers": list(order)});
        if !changed.is_empty() {
            spec["containers"] = list(changed);
        }
        patched(PatchKind::Strategic, &object, &pod(&spec))
    };
    assert_eq!(names(&ordered("ba", "").unwrap()), "ba");
    assert_eq!(names(&ordered("ba", "b").unwrap()), "ba");
    assert_eq!(names(&ordered("cb", "c").unwrap()), "cab");
    assert_eq!(names(&ordered("cba", "c").unwrap()), "cba");
    let refused = ordered("ba", "ab").unwrap_err();
    assert_eq!(refused.code, 500);
    assert_eq!(
        refused.message,
        "The order in patch list:\n[map[name:a] map[name:b]]\n doesn't match $setElementOrder list:\n[map[name:b] \
         map[name:a]]\n"
    );
}

#[test]
fn invalid_strategic_patches_are_refused() {
    let object = with_containers(&json!([{"name": "a"}]));
    for (spec, code, text) in [
        (
            json!({"containers": [{"image": "q"}]}),
            500,
            "map: map[image:q] does not contain declared merge key: name",
        ),
        (json!({"containers": ["q"]}), 500, "list element types are not identical: [[map[name:a]] [q]]"),
        (
            json!({"containers": [{"name": "a", "$patch": "x"}]}),
            500,
            "unknown patch type: x in map: map[$patch:x name:a]",
        ),
        (
            json!({"containers": [{"name": "a", "$patch": "merge"}]}),
            500,
            "merging lists cannot yet be specified in the patch",
        ),
        (json!({"$patch": "merge"}), 500, "unknown patch type: merge in map: map[$patch:merge]"),
        (
            json!({"$setElementOrder/containers": "x"}),
            500,
            "expected a []interface {}, but received a string",
        ),
        (
            json!({"$setElementOrder/containers": [{"x": "b"}]}),
            500,
            "map: map[x:b] does not contain declared merge key: name",
        ),
        (
            json!({"$setElementOrder/nope": []}),
            500,
            "unable to find api field in struct PodSpec for the json field \"nope\"",
        ),
        (json!({"$retainKeys": "x"}), 400, "invalid patch format of retainKeys"),
        (json!({"$retainKeys": ["x"], "y": 1}), 400, "invalid patch format of retainKeys"),
    ] {
        let refused = patched(PatchKind::Strategic, &object, &pod(&spec)).unwrap_err();
        assert_eq!((refused.code, refused.message.as_str()), (code, text), "{spec}");
    }
}

#[test]
fn patched_objects_must_be_decodable() {
    let schema = built_in("apps", "v1", "Deployment").unwrap();
    let refused = |kind: PatchKind, patch: Value| {
        let patched = apply(kind, Some(&schema), &json!({}), &patch).unwrap();
        check(kind, &schema, &patched, &patch).unwrap_err()
    };
    let status = refused(PatchKind::Merge, json!({"spec": {"replicas": "x"}}));
    assert_eq!(
        status.message,
        " \"\" is invalid: patch: Invalid value: \"{\\\"spec\\\":{\\\"replicas\\\":\\\"x\\\"}}\": json: cannot unmarshal \
         string into Go struct field DeploymentSpec.spec.replicas of type int32"
    );
    assert_eq!((status.code, status.causes[0].field.as_str()), (422, "patch"));
    let spec = |spec: Value, why: &str| {
        let printed = crate::schema::go::print(&json!({"spec": spec}));
        let text = format!(" \"\" is invalid: patch: Invalid value: \"{printed}\": {why}");
        assert_eq!(refused(PatchKind::Strategic, json!({"spec": spec})).message, text);
    };
    spec(json!("x"), "cannot restore struct from: string");
    spec(json!({"replicas": "x"}), "unrecognized type: int32");
    spec(json!({"template": {"spec": {"containers": {"a": 1}}}}), "cannot restore slice from map");
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i8>().prop_map(Value::from),
        "[a-c$]{0,3}".prop_map(Value::from)
    ];
    leaf.prop_recursive(6, 40, 5, |inner| {
        let keys = [
            "spec",
            "template",
            "containers",
            "name",
            "op",
            "path",
            "metadata",
            "finalizers",
            "$patch",
            "$retainKeys",
            "$setElementOrder/containers",
            "$deleteFromPrimitiveList/finalizers",
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((prop::sample::select(keys.to_vec()), inner), 0..5)
                .prop_map(|pairs| Value::Object(pairs.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())),
        ]
    })
}

proptest! {
    /// No input causes a panic.
    #[test]
    fn no_patch_panics(object in any_json(), patch in any_json()) {
        for kind in [PatchKind::Json, PatchKind::Merge, PatchKind::Strategic] {
            let _ = patched(kind, &object, &patch);
        }
    }

    /// Applying a merge patch twice is the same as applying it once.
    #[test]
    fn merge_patch_is_idempotent(object in any_json(), patch in any_json()) {
        if let Ok(once) = patched(PatchKind::Merge, &object, &patch) {
            prop_assert_eq!(patched(PatchKind::Merge, &once, &patch).unwrap(), once);
        }
    }
}
