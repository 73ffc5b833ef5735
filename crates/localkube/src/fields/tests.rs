//! Sequences of writes whose managed fields were recorded from a real API server.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::schema::{Schema, built_in};
use crate::status::Status;

/// An object and writes to it; the time advances by a minute with every write.
struct OwnershipScenario {
    schema: Arc<Schema>,
    kind: &'static str,
    api_version: &'static str,
    minute: u32,
    object: Option<Value>,
}

impl OwnershipScenario {
    fn of(group: &str, kind: &'static str, api_version: &'static str) -> Self {
        Self { schema: built_in(group, "v1", kind).unwrap(), kind, api_version, minute: 0, object: None }
    }

    fn config_map() -> Self {
        Self::of("", "ConfigMap", "v1")
    }

    fn write<R>(
        &mut self,
        manager: &str,
        to: Option<&str>,
        does: impl FnOnce(&Self, &FieldWriter<'_>) -> R,
    ) -> R {
        self.minute += 1;
        let now = format!("2026-01-01T00:{:02}:00Z", self.minute);
        let custom = self.kind == "Thing";
        let resets = resets(self.kind, custom, to);
        let api_version = self.api_version;
        does(self, &FieldWriter { manager, api_version, subresource: to, now: &now, resets, convert: None })
    }

    /// A create or an update by a client that sends everything but `managedFields`.
    fn put(&mut self, manager: &str, to: Option<&str>, mut new: Value) {
        new["apiVersion"] = json!(self.api_version);
        new["kind"] = json!(self.kind);
        new["metadata"]["name"] = json!("x");
        let new = self.write(manager, to, |scenario, who| {
            record_update(&scenario.schema, scenario.object.as_ref(), &mut new, who);
            new
        });
        self.object = Some(new);
    }

    fn apply(&mut self, manager: &str, force: bool, mut config: Value) -> Result<(), Status> {
        config["apiVersion"] = json!(self.api_version);
        config["kind"] = json!(self.kind);
        config["metadata"]["name"] = json!("x");
        let applied = self.write(manager, None, |scenario, who| {
            apply(&scenario.schema, scenario.object.as_ref(), &config, who, force)
        })?;
        self.object = Some(applied);
        Ok(())
    }

    /// The owners: `MANAGER OPERATION MINUTE`, and the fields.
    fn owners(&self) -> Vec<(String, Value)> {
        let entries = self.object.as_ref().unwrap()["metadata"]["managedFields"].as_array();
        let owner = |entry: &Value| {
            let minute = entry["time"].as_str().map_or("-", |time| &time[14..16]);
            let operation = entry["operation"].as_str().unwrap();
            (
                format!("{} {operation} {minute}", entry["manager"].as_str().unwrap()),
                entry["fieldsV1"].clone(),
            )
        };
        entries.into_iter().flatten().map(owner).collect()
    }

    fn data(&self) -> &Value {
        &self.object.as_ref().unwrap()["data"]
    }
}

fn owners(expected: &[(&str, Value)]) -> Vec<(String, Value)> {
    expected.iter().map(|(who, fields)| ((*who).to_owned(), fields.clone())).collect()
}

#[test]
fn writers_own_the_fields_they_change() {
    let mut scenario = OwnershipScenario::config_map();
    scenario.put("m1", None, json!({"data": {"a": "1", "b": "2"}, "metadata": {"labels": {"x": "y"}}}));
    let labels = json!({"f:labels": {".": {}, "f:x": {}}});
    let all = json!({"f:data": {".": {}, "f:a": {}, "f:b": {}}, "f:metadata": labels});
    assert_eq!(scenario.owners(), owners(&[("m1 Update 01", all)]));
    let label = json!({"labels": {"x": "y"}});
    scenario.put("m2", None, json!({"data": {"a": "9", "b": "2", "c": "3"}, "metadata": label}));
    let first = json!({"f:data": {".": {}, "f:b": {}}, "f:metadata": labels});
    let second = json!({"f:data": {"f:a": {}, "f:c": {}}});
    assert_eq!(scenario.owners(), owners(&[("m1 Update 01", first.clone()), ("m2 Update 02", second)]));
    // m2 changes nothing and keeps its time.
    scenario.put("m2", None, json!({"data": {"a": "9", "b": "2"}, "metadata": label}));
    let second = json!({"f:data": {"f:a": {}}});
    assert_eq!(scenario.owners(), owners(&[("m1 Update 01", first), ("m2 Update 02", second.clone())]));
    // Removing a field gives no ownership; the creator of the map still owns it.
    scenario.put("m3", None, json!({"data": {"a": "9"}}));
    assert_eq!(
        scenario.owners(),
        owners(&[("m1 Update 01", json!({"f:data": {}})), ("m2 Update 02", second)])
    );
}

#[test]
fn appliers_share_and_give_up_fields() {
    let mut scenario = OwnershipScenario::config_map();
    scenario.put("m", None, json!({"data": {"a": "9"}}));
    let m = ("m Update 01", json!({"f:data": {".": {}, "f:a": {}}}));
    let both = json!({"f:data": {"f:a": {}, "f:d": {}}});
    scenario.apply("ap1", false, json!({"data": {"a": "9", "d": "4"}})).unwrap();
    assert_eq!(scenario.owners(), owners(&[("ap1 Apply 02", both.clone()), m.clone()]));
    // The second apply changes nothing, so it has no time and comes first.
    scenario.apply("ap2", false, json!({"data": {"a": "9", "d": "4"}})).unwrap();
    assert_eq!(
        scenario.owners(),
        owners(&[("ap2 Apply -", both.clone()), ("ap1 Apply 02", both.clone()), m.clone()])
    );
    scenario.apply("ap2", false, json!({"data": {"d": "4"}})).unwrap();
    scenario.apply("ap1", false, json!({})).unwrap();
    assert_eq!(scenario.owners(), owners(&[("ap2 Apply -", json!({"f:data": {"f:d": {}}})), m.clone()]));
    assert_eq!(scenario.data(), &json!({"a": "9", "d": "4"}));
    scenario.apply("ap2", false, json!({})).unwrap();
    assert_eq!(scenario.data(), &json!({"a": "9"}));
    assert_eq!(scenario.owners(), owners(&[m]));
}

#[test]
fn conflicts_are_refused_unless_forced() {
    let mut scenario = OwnershipScenario::config_map();
    scenario.put("m", None, json!({"data": {"a": "1", "b": "1"}}));
    let refused = scenario.apply("ap", false, json!({"data": {"a": "2"}})).unwrap_err();
    assert_eq!(refused.code, 409);
    assert_eq!(refused.message, "Apply failed with 1 conflict: conflict with \"m\" using v1: .data.a");
    assert_eq!(
        refused.to_json()["details"],
        json!({"causes": [{"reason": "FieldManagerConflict", "message": "conflict with \"m\" using v1", "field": ".data.a"}]})
    );
    scenario.apply("ap", true, json!({"data": {"a": "2"}})).unwrap();
    assert_eq!(
        scenario.owners(),
        owners(&[
            ("ap Apply 03", json!({"f:data": {"f:a": {}}})),
            ("m Update 01", json!({"f:data": {".": {}, "f:b": {}}}))
        ])
    );
    let refused = scenario.apply("other", false, json!({"data": {"a": "3", "b": "3"}})).unwrap_err();
    assert_eq!(
        refused.message,
        "Apply failed with 2 conflicts: conflicts with \"ap\":\n- .data.a\nconflicts with \"m\" using v1:\n- .data.b"
    );
}

#[test]
fn list_items_have_their_own_owners() {
    let mut scenario = OwnershipScenario::of("", "Service", "v1");
    let ports = |ports: Value| json!({"spec": {"ports": ports}});
    scenario
        .apply(
            "ap1",
            false,
            ports(json!([{"port": 80, "name": "http"}, {"port": 443, "name": "https", "protocol": "TCP"}])),
        )
        .unwrap();
    let key = |port: u16| format!("k:{{\"port\":{port},\"protocol\":\"TCP\"}}");
    let http = json!({".": {}, "f:name": {}, "f:port": {}});
    let https = json!({".": {}, "f:name": {}, "f:port": {}, "f:protocol": {}});
    let fields = json!({"f:spec": {"f:ports": {key(80): http, key(443): https}}});
    assert_eq!(scenario.owners(), owners(&[("ap1 Apply 01", fields)]));
    scenario
        .apply(
            "ap2",
            false,
            ports(json!([{"port": 53, "protocol": "UDP"}, {"port": 80, "targetPort": 8080}])),
        )
        .unwrap();
    scenario.apply("ap1", false, ports(json!([{"port": 443, "name": "https"}]))).unwrap();
    let spec = &scenario.object.as_ref().unwrap()["spec"];
    let left = json!([{"port": 53, "protocol": "UDP"}, {"port": 80, "targetPort": 8080}, {"port": 443, "name": "https"}]);
    assert_eq!(spec["ports"], left);
    let refused = scenario.apply("ap3", false, ports(json!([{"port": 80, "targetPort": "x"}]))).unwrap_err();
    assert_eq!(
        refused.message,
        "Apply failed with 1 conflict: conflict with \"ap2\": .spec.ports[port=80,protocol=\"TCP\"].targetPort"
    );
}

#[test]
fn always_present_structs_have_no_owner() {
    let mut scenario = OwnershipScenario::of("apps", "Deployment", "apps/v1");
    let container = json!({"name": "c", "resources": {"limits": {"cpu": "1"}}, "ports": [{"containerPort": 80, "protocol": "TCP"}]});
    scenario.put("m1", None, json!({
        "spec": {
            "replicas": 1, "selector": {"matchLabels": {"app": "d"}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%"}},
            "template": {"metadata": {"labels": {"app": "d"}}, "spec": {"containers": [container], "securityContext": {}}},
        },
        "status": {"replicas": 3},
    }));
    let ports = json!({".": {}, "k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}, "f:protocol": {}}});
    let container = json!({".": {}, "f:name": {}, "f:ports": ports, "f:resources": {".": {}, "f:limits": {".": {}, "f:cpu": {}}}});
    let template = json!({
        "f:metadata": {"f:labels": {".": {}, "f:app": {}}},
        "f:spec": {"f:containers": {"k:{\"name\":\"c\"}": container}, "f:securityContext": {}},
    });
    let strategy = json!({"f:rollingUpdate": {".": {}, "f:maxSurge": {}}, "f:type": {}});
    let fields = json!({"f:spec": {"f:replicas": {}, "f:selector": {}, "f:strategy": strategy, "f:template": template}});
    assert_eq!(scenario.owners(), owners(&[("m1 Update 01", fields)]));
    // The scale subresource has no time.
    let mut scaled = scenario.object.clone().unwrap();
    scaled["spec"]["replicas"] = json!(2);
    scaled["metadata"] = json!({});
    scenario.put("hpa", Some("scale"), scaled);
    assert_eq!(scenario.owners()[0], ("hpa Update -".to_owned(), json!({"f:spec": {"f:replicas": {}}})));
    assert_eq!(scenario.object.as_ref().unwrap()["metadata"]["managedFields"][0]["subresource"], "scale");
    let refused =
        scenario.apply("ap", false, json!({"spec": {"replicas": 9}, "status": {"replicas": 1}})).unwrap_err();
    assert_eq!(
        refused.message,
        "Apply failed with 1 conflict: conflict with \"hpa\" with subresource \"scale\" using apps/v1: .spec.replicas"
    );
}

#[test]
fn reset_managed_fields_stay_empty_until_the_next_apply() {
    for empty in [json!([]), json!([{}])] {
        let mut scenario = OwnershipScenario::config_map();
        scenario.put("m1", None, json!({"data": {"a": "1"}}));
        scenario.put("m1", None, json!({"data": {"a": "1"}, "metadata": {"managedFields": empty}}));
        assert_eq!(scenario.owners(), owners(&[]));
        scenario.put("m2", None, json!({"data": {"a": "1", "b": "2"}}));
        assert_eq!(scenario.owners(), owners(&[]));
        scenario.apply("ap", false, json!({"data": {"b": "2"}})).unwrap();
        assert_eq!(
            scenario.owners(),
            owners(&[
                ("ap Apply -", json!({"f:data": {"f:b": {}}})),
                ("before-first-apply Update 04", json!({"f:data": {".": {}, "f:a": {}, "f:b": {}}})),
            ])
        );
    }
}

#[test]
fn surplus_update_entries_are_merged() {
    let mut scenario = OwnershipScenario::config_map();
    let mut data = json!({});
    for writer in 0..12 {
        data[format!("k{writer}")] = json!("1");
        scenario.put(&format!("u{writer}"), None, json!({"data": data}));
    }
    let owners = scenario.owners();
    assert_eq!(owners.len(), 10);
    assert_eq!(
        owners[0],
        (
            "ancient-changes Update 03".to_owned(),
            json!({"f:data": {".": {}, "f:k0": {}, "f:k1": {}, "f:k2": {}}})
        )
    );
}

fn thing() -> OwnershipScenario {
    let definition = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "atom": {"type": "array", "items": {"type": "string"}},
        "m": {"type": "object", "additionalProperties": {"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}}}},
        "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        "n": {"type": "integer"},
    }}}});
    let schema = Schema::of_custom(&definition);
    OwnershipScenario { schema, kind: "Thing", api_version: "example.com/v1", minute: 0, object: None }
}

#[test]
fn custom_resources_are_owned_as_their_definition_says() {
    let mut scenario = thing();
    let spec = json!({"set": ["b", "a"], "atom": ["x"], "m": {"k": {"x": 1}}, "any": {"foo": {"bar": [1]}}});
    scenario.put("m1", None, json!({"spec": spec}));
    let any = json!({".": {}, "f:foo": {".": {}, "f:bar": {}}});
    let map = json!({".": {}, "f:k": {".": {}, "f:x": {}}});
    let set = json!({".": {}, "v:\"a\"": {}, "v:\"b\"": {}});
    let fields = json!({"f:spec": {".": {}, "f:any": any, "f:atom": {}, "f:m": map, "f:set": set}});
    assert_eq!(scenario.owners(), owners(&[("m1 Update 01", fields)]));
    scenario.apply("ap", false, json!({"spec": {"set": ["z"], "m": {"k": {"y": 2}, "k2": {}}, "any": {"foo": {"x": 1}, "n": null}}})).unwrap();
    let fields = json!({"f:spec": {
        "f:any": {"f:foo": {".": {}, "f:x": {}}, "f:n": {}},
        "f:m": {"f:k": {".": {}, "f:y": {}}, "f:k2": {}},
        "f:set": {"v:\"z\"": {}},
    }});
    assert_eq!(scenario.owners()[0], ("ap Apply 02".to_owned(), fields));
    let spec = &scenario.object.as_ref().unwrap()["spec"];
    assert_eq!(spec["set"], json!(["b", "a", "z"]));
    assert_eq!(spec["any"], json!({"foo": {"bar": [1], "x": 1}, "n": null}));
    scenario.apply("ap", false, json!({})).unwrap();
    let spec = &scenario.object.as_ref().unwrap()["spec"];
    assert_eq!(
        *spec,
        json!({"set": ["b", "a"], "atom": ["x"], "m": {"k": {"x": 1}}, "any": {"foo": {"bar": [1]}}})
    );
}

#[test]
fn invalid_configurations_are_refused() {
    for (spec, problem) in [
        (json!({"bogus": 1}), ".spec.bogus: field not declared in schema"),
        (json!({"n": "x"}), ".spec.n: expected numeric (int or float), got string"),
        (json!({"set": ["q", "q"]}), ".spec.set: duplicate entries for key [=\"q\"]"),
        (json!({"set": [5]}), ".spec.set[=5]: expected string, got &value.valueUnstructured{Value:5}"),
        (json!({"set": {"a": "b"}}), ".spec.set: expected list, got &{map[a:b]}"),
        (json!(7), ".spec: expected map, got &{7}"),
    ] {
        let refused = thing().apply("ap", true, json!({"spec": spec})).unwrap_err();
        assert_eq!(refused.code, 500);
        let before = "failed to create typed patch object (/x; example.com/v1, Kind=Thing): ";
        assert_eq!(refused.message, format!("{before}{problem}"));
    }
    let refused = thing().apply("ap", true, json!({"metadata": {"managedFields": []}})).unwrap_err();
    assert_eq!((refused.code, refused.message.as_str()), (400, "metadata.managedFields must be nil"));
}

#[test]
fn kubectl_takes_over_its_client_side_applied_fields() {
    let mut scenario = OwnershipScenario::config_map();
    let last =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"a": "1"}})
            .to_string();
    let annotations = json!({"kubectl.kubernetes.io/last-applied-configuration": last});
    scenario.put(
        "kubectl-client-side-apply",
        None,
        json!({"data": {"a": "1"}, "metadata": {"annotations": annotations}}),
    );
    assert_eq!(scenario.apply("other", false, json!({"data": {"a": "2"}})).unwrap_err().code, 409);
    scenario.apply("kubectl", false, json!({"data": {"a": "2"}})).unwrap();
    let kept = &scenario.object.as_ref().unwrap()["metadata"]["annotations"];
    let text = "{\"apiVersion\":\"v1\",\"data\":{\"a\":\"2\"},\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"x\"}}\n";
    assert_eq!(kept["kubectl.kubernetes.io/last-applied-configuration"], text);
}

#[test]
fn entries_of_another_version_are_compared_in_that_version() {
    let v1 = built_in("autoscaling", "v1", "HorizontalPodAutoscaler").unwrap();
    let hpa = |version: &str, spec: Value| json!({"apiVersion": version, "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"}, "spec": spec});
    let convert = |object: &Value, version: &str| {
        let percent = object["spec"]["targetCPUUtilizationPercentage"].clone();
        Some(hpa(version, json!({"maxReplicas": 3, "metrics": [percent]})))
    };
    let mut live = hpa("autoscaling/v1", json!({"maxReplicas": 3, "targetCPUUtilizationPercentage": 50}));
    live["metadata"]["managedFields"] = json!([{"manager": "m1", "operation": "Update", "apiVersion": "autoscaling/v2",
        "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:maxReplicas": {}, "f:metrics": {}}}}]);
    let mut new = hpa("autoscaling/v1", json!({"maxReplicas": 3, "targetCPUUtilizationPercentage": 60}));
    let who = FieldWriter {
        manager: "m2",
        api_version: "autoscaling/v1",
        subresource: None,
        now: "2026-01-01T00:00:00Z",
        resets: resets("HorizontalPodAutoscaler", false, None),
        convert: Some(&convert),
    };
    record_update(&v1, Some(&live), &mut new, &who);
    let entries = &new["metadata"]["managedFields"];
    assert_eq!(entries[0]["fieldsV1"], json!({"f:spec": {"f:maxReplicas": {}}}));
    assert_eq!(entries[1]["fieldsV1"], json!({"f:spec": {"f:targetCPUUtilizationPercentage": {}}}));
}

#[test]
fn field_sets_round_trip() {
    let json = json!({"f:a": {".": {}, "f:b": {}}, "f:l": {"k:{\"n\":1,\"p\":\"x\"}": {".": {}, "f:q": {}}, "v:\"s\"": {}, "v:2": {}, "v:10": {}, "i:3": {}}});
    let set = FieldSet::from_json(&json);
    assert_eq!(set.to_json(), json);
    assert_eq!(
        set.paths(),
        [".a", ".a.b", ".l[n=1,p=\"x\"]", ".l[=\"s\"]", ".l[=2]", ".l[=10]", ".l[3]", ".l[n=1,p=\"x\"].q"]
    );
    assert!(FieldSet::from_json(&json!({})).is_empty());
}

fn any_set() -> impl Strategy<Value = FieldSet> {
    let leaf = any::<bool>().prop_map(|member| FieldSet { member, ..FieldSet::default() });
    leaf.prop_recursive(3, 20, 3, |inner| {
        (any::<bool>(), prop::collection::btree_map("[a-c]", inner, 0..4)).prop_map(|(member, below)| {
            let mut set = FieldSet { member, ..FieldSet::default() };
            for (key, below) in below {
                set.put(PathStep::Field(key), below);
            }
            set
        })
    })
}

proptest! {
    /// A set is the union of its intersection with another set and its difference from it.
    #[test]
    fn intersection_and_difference_make_the_set(one in any_set(), other in any_set()) {
        let both = one.intersection(&other);
        let mut rest = one.clone();
        rest.subtract(&other);
        prop_assert!(rest.intersection(&other).is_empty());
        rest.union(&both);
        prop_assert_eq!(rest.paths(), one.paths());
    }
}
