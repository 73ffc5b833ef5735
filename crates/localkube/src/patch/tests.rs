//! What each patch makes of an object.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Kind, apply};

fn strategic(object: &Value, patch: &Value) -> Value {
    apply(Kind::Strategic, object, patch).unwrap()
}

fn with_containers(containers: &Value) -> Value {
    json!({"spec": {"template": {"spec": {"containers": containers}}}})
}

#[test]
fn content_types_name_patches() {
    assert_eq!(Kind::from_content_type("application/merge-patch+json; charset=utf-8"), Some(Kind::Merge));
    assert_eq!(Kind::from_content_type("application/json"), None);
}

/// The examples of RFC 7386, appendix A.
#[test]
fn merge_patch_as_the_rfc_shows_it() {
    for (object, patch, result) in [
        (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
        (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
        (json!({"a": "b"}), json!({"a": null}), json!({})),
        (json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"})),
        (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
        (json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}})),
        (json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]})),
        (json!(["a", "b"]), json!(["c", "d"]), json!(["c", "d"])),
        (json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1})),
        (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
    ] {
        assert_eq!(apply(Kind::Merge, &object, &patch).unwrap(), result, "{object} + {patch}");
    }
}

#[test]
fn json_patch_does_all_or_nothing() {
    let object = json!({"a": {"b": [1, 2]}, "x/y": 1});
    let patched = |patch: Value| apply(Kind::Json, &object, &patch);
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
        json!([{"op": "remove", "path": "/nowhere"}]),
        json!([{"op": "replace", "path": "/nowhere", "value": 1}]),
        json!([{"op": "add", "path": "/a/b/7", "value": 1}]),
        json!([{"op": "add", "path": "/a/b/01", "value": 1}]),
        json!([{"op": "move", "from": "/a", "path": "/a/b"}]),
    ] {
        assert_eq!(patched(wrong.clone()).unwrap_err().code, 422, "{wrong}");
    }
    for senseless in [json!({}), json!([{"op": "add"}]), json!([{"op": "grow", "path": "/a"}])] {
        assert_eq!(patched(senseless.clone()).unwrap_err().code, 400, "{senseless}");
    }
}

#[test]
fn strategic_patch_merges_containers_by_name() {
    let object = with_containers(&json!([{"name": "a", "image": "1"}, {"name": "b", "image": "1"}]));
    let patch = with_containers(&json!([{"name": "b", "image": "2"}, {"name": "c", "image": "3"}]));
    assert_eq!(
        strategic(&object, &patch),
        with_containers(
            &json!([{"name": "a", "image": "1"}, {"name": "b", "image": "2"}, {"name": "c", "image": "3"}])
        )
    );
}

#[test]
fn strategic_patch_deletes_replaces_and_reorders() {
    let object =
        with_containers(&json!([{"name": "a", "env": [{"name": "X", "value": "1"}]}, {"name": "b"}]));
    let delete = with_containers(&json!([{"name": "a", "$patch": "delete"}]));
    assert_eq!(strategic(&object, &delete), with_containers(&json!([{"name": "b"}])));
    let replace = with_containers(&json!([{"$patch": "replace"}, {"name": "z"}]));
    assert_eq!(strategic(&object, &replace), with_containers(&json!([{"name": "z"}])));
    let mut order = with_containers(&json!([{"name": "c"}]));
    order["spec"]["template"]["spec"]["$setElementOrder/containers"] =
        json!([{"name": "c"}, {"name": "b"}, {"name": "a"}]);
    let names: Vec<Value> = strategic(&object, &order)["spec"]["template"]["spec"]["containers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c["name"].clone())
        .collect();
    assert_eq!(names, ["c", "b", "a"]);
    let env = with_containers(
        &json!([{"name": "a", "env": [{"name": "X", "value": null, "valueFrom": {"fieldRef": {}}}]}]),
    );
    assert_eq!(
        strategic(&object, &env)["spec"]["template"]["spec"]["containers"][0]["env"],
        json!([{"name": "X", "valueFrom": {"fieldRef": {}}}])
    );
}

#[test]
fn strategic_patch_knows_sets_retained_keys_and_atomic_lists() {
    let object = json!({"metadata": {"finalizers": ["a", "b"]}, "spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {}}, "args": [1, 2]}});
    let patch = json!({
        "metadata": {"finalizers": ["b", "c"], "$deleteFromPrimitiveList/finalizers": ["a"]},
        "spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}, "args": [3]},
    });
    assert_eq!(
        strategic(&object, &patch),
        json!({"metadata": {"finalizers": ["b", "c"]}, "spec": {"strategy": {"type": "Recreate"}, "args": [3]}})
    );
}

#[test]
fn ports_have_another_key_in_services_than_in_containers() {
    let service = json!({"spec": {"ports": [{"port": 80, "name": "http"}]}});
    let patched = strategic(&service, &json!({"spec": {"ports": [{"port": 80, "targetPort": 8080}]}}));
    assert_eq!(patched, json!({"spec": {"ports": [{"port": 80, "name": "http", "targetPort": 8080}]}}));
    let pod = with_containers(&json!([{"name": "a", "ports": [{"containerPort": 1}]}]));
    let more = with_containers(&json!([{"name": "a", "ports": [{"containerPort": 2}]}]));
    let ports = strategic(&pod, &more)["spec"]["template"]["spec"]["containers"][0]["ports"].clone();
    assert_eq!(ports, json!([{"containerPort": 1}, {"containerPort": 2}]));
    let unkeyed = with_containers(&json!([{"image": "x"}]));
    assert_eq!(apply(Kind::Strategic, &pod, &unkeyed).unwrap_err().code, 400);
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i8>().prop_map(Value::from),
        "[a-c$]{0,3}".prop_map(Value::from)
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        let key = prop_oneof![
            Just("containers".to_owned()),
            Just("name".to_owned()),
            Just("$patch".to_owned()),
            Just("$setElementOrder/containers".to_owned()),
            Just("finalizers".to_owned()),
            "[a-c]".prop_map(String::from),
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((key, inner), 0..5)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

proptest! {
    /// Whatever is sent, nothing panics; and a merge patch of an object onto anything gives an object without nulls it named.
    #[test]
    fn no_patch_panics(object in any_json(), patch in any_json()) {
        for kind in [Kind::Json, Kind::Merge, Kind::Strategic] {
            let _ = apply(kind, &object, &patch);
        }
    }

    /// A merge patch applied twice changes nothing more.
    #[test]
    fn merge_patch_is_idempotent(object in any_json(), patch in any_json()) {
        let once = apply(Kind::Merge, &object, &patch).unwrap();
        prop_assert_eq!(apply(Kind::Merge, &once, &patch).unwrap(), once);
    }
}
