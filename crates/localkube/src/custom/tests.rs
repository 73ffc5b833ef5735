//! Custom resources and definitions, compared with recorded responses of kube-apiserver 1.36: one exchange per line of
//! `recorded.jsonl.zst`.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::collections::BTreeMap;

use serde_json::json;

use super::*;

const RECORDED: &[u8] = include_bytes!("recorded.jsonl.zst");

fn recorded() -> Vec<Value> {
    let text = String::from_utf8(zstd::decode_all(RECORDED).unwrap()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn definition(kind: &str, openapi: &Value, subresources: &Value) -> Definition {
    let names = json!({"plural": format!("{kind}s"), "kind": kind});
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": openapi},
        "subresources": subresources});
    let spec = json!({"group": "example.com", "names": names, "scope": "Cluster", "versions": [version]});
    Definition::read(&json!({"spec": spec})).unwrap()
}

fn faults(found: &[FieldError]) -> Vec<Value> {
    found.iter().map(|fault| json!([fault.field, fault.kind.reason(), fault.message()])).collect()
}

/// Writes whole numbers without a fraction.
fn plain(value: &Value) -> Value {
    match value {
        Value::Number(number) if number.as_f64().is_some_and(|n| n.fract() == 0.0 && n.abs() < 1e15) => {
            json!(number.as_f64().unwrap() as i64)
        }
        Value::Array(items) => items.iter().map(plain).collect(),
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), plain(value))).collect(),
        other => other.clone(),
    }
}

#[derive(Default)]
struct VectorReport {
    tried: usize,
    wrong: Vec<String>,
}

impl VectorReport {
    fn compare(&mut self, line: &Value, object: &Value, found: &[FieldError]) {
        self.tried += 1;
        let (mut ours, mut real) = (faults(found), line["faults"].as_array().cloned().unwrap_or_default());
        if line.get("unordered").is_some() {
            ours.sort_by_key(Value::to_string);
            real.sort_by_key(Value::to_string);
        }
        let wrong = if ours != real {
            format!("faults\n  here {}\n  real {}", json!(ours), json!(real))
        } else if let Some(answer) = line.get("object").filter(|answer| {
            ["spec", "status"].iter().any(|field| {
                plain(answer.get(field).unwrap_or(&Value::Null))
                    != plain(object.get(field).unwrap_or(&Value::Null))
            })
        }) {
            format!("object\n  here {object}\n  real {answer}")
        } else {
            return;
        };
        self.wrong.push(format!("{}\n{wrong}", line.get("given").or(line.get("definition")).unwrap()));
    }

    fn check(self, least: usize) {
        assert!(self.tried >= least, "only {} were tried", self.tried);
        assert!(
            self.wrong.is_empty(),
            "{} of {} differ:\n{}",
            self.wrong.len(),
            self.tried,
            self.wrong.join("\n")
        );
    }
}

#[test]
fn objects_are_defaulted_and_validated_like_the_real_server() {
    let mut definitions = BTreeMap::new();
    let mut outcome = VectorReport::default();
    for line in recorded() {
        if let Some(name) = line["schema"].as_str() {
            definitions.insert(name.to_owned(), definition(name, &line["openapi"], &line["subresources"]));
        } else if let Some(of) = line["of"].as_str() {
            let mut object = line["given"].clone();
            let definition = &definitions[of];
            definition.default("v1", &mut object);
            let found = definition.validate("v1", &object, None);
            outcome.compare(&line, &object, &found);
        }
    }
    outcome.check(350);
}

#[test]
fn definitions_are_defaulted_and_validated_like_the_real_server() {
    let mut outcome = VectorReport::default();
    for line in recorded().iter().filter(|line| line.get("definition").is_some()) {
        let mut crd = line["definition"].clone();
        (RULES.default)(&mut crd, "v1");
        (RULES.create)(&mut crd);
        outcome.compare(line, &crd, &(RULES.validate)(&crd));
    }
    outcome.check(100);
}

fn crd(plural: &str, names: &Value) -> Value {
    let mut crd = json!({
        "metadata": {"name": format!("{plural}.example.com")},
        "spec": {"group": "example.com", "names": names, "scope": "Cluster", "versions": [
            {"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]},
    });
    crd["spec"]["names"]["plural"] = json!(plural);
    (RULES.default)(&mut crd, "v1");
    (RULES.create)(&mut crd);
    crd
}

const NOW: jiff::Timestamp = jiff::Timestamp::UNIX_EPOCH;

fn settle(mut crd: Value, others: &[Value]) -> Value {
    crd["status"] = accepted(&crd, others, NOW).unwrap();
    assert_eq!(accepted(&crd, others, NOW), None, "a second look changes nothing");
    crd
}

fn condition(crd: &Value, at: usize) -> String {
    let condition = &crd["status"]["conditions"][at];
    let text = |field: &str| condition[field].as_str().unwrap();
    format!("{} {} {}: {}", text("type"), text("status"), text("reason"), text("message"))
}

#[test]
fn accepted_definitions_are_served() {
    let apples = crd("apples", &json!({"kind": "Apple", "shortNames": ["ap"], "categories": ["all"]}));
    assert!(Definition::read(&apples).is_none());
    let apples = settle(apples, &[]);
    assert_eq!(condition(&apples, 0), "NamesAccepted True NoConflicts: no conflicts found");
    assert_eq!(
        condition(&apples, 1),
        "Established True InitialNamesAccepted: the initial names have been accepted"
    );
    assert_eq!(
        apples["status"]["acceptedNames"],
        json!({"plural": "apples", "kind": "Apple", "singular": "apple", "shortNames": ["ap"], "listKind": "AppleList",
            "categories": ["all"]})
    );
    let served = Definition::read(&apples).unwrap();
    assert_eq!(
        (served.kind.as_str(), served.list_kind.as_str(), served.short.as_slice()),
        ("Apple", "AppleList", &["ap".to_owned()][..])
    );
}

#[test]
fn conflicting_names_are_not_accepted() {
    let apples = [settle(crd("apples", &json!({"kind": "Apple", "shortNames": ["ap"]})), &[])];
    for (names, expected, accepted) in [
        (
            json!({"kind": "Apple"}),
            "ListKindConflict: \"AppleList\" is already in use",
            json!({"plural": "bs", "kind": ""}),
        ),
        (
            json!({"kind": "B", "shortNames": ["ap", "b1"]}),
            "ShortNamesConflict: \"ap\" is already in use",
            json!({"plural": "bs", "kind": "B", "singular": "b", "listKind": "BList"}),
        ),
        (
            json!({"kind": "B", "singular": "apple"}),
            "SingularConflict: \"apple\" is already in use",
            json!({"plural": "bs", "kind": "B", "listKind": "BList"}),
        ),
    ] {
        let refused = settle(crd("bs", &names), &apples);
        assert_eq!(condition(&refused, 0), format!("NamesAccepted False {expected}"));
        assert_eq!(condition(&refused, 1), "Established False NotAccepted: not all names are accepted");
        assert_eq!(refused["status"]["acceptedNames"], accepted, "{names}");
        assert!(Definition::read(&refused).is_none());
        // The names are accepted after the other definitions are gone.
        assert!(Definition::read(&settle(refused, &[])).is_some());
    }
}

#[test]
fn established_definition_keeps_its_immutable_fields() {
    let old = settle(crd("apples", &json!({"kind": "Apple"})), &[]);
    let faults = |change: &dyn Fn(&mut Value)| {
        let mut new = old.clone();
        change(&mut new);
        (RULES.update)(&mut new, &old);
        let found = (RULES.validate_update)(&new, &old);
        (new, found.iter().map(ToString::to_string).collect::<Vec<_>>())
    };
    let (_, found) = faults(&|new| new["spec"]["scope"] = json!("Namespaced"));
    assert_eq!(found, ["spec.scope: Invalid value: \"Namespaced\": field is immutable"]);
    let (_, found) = faults(&|new| new["spec"]["names"]["kind"] = json!("Pear"));
    assert_eq!(found, ["spec.names.kind: Invalid value: \"Pear\": field is immutable"]);
    let (new, found) = faults(&|new| {
        let mut second = new["spec"]["versions"][0].clone();
        second["name"] = json!("v2");
        new["spec"]["versions"][0]["storage"] = json!(false);
        new["spec"]["versions"].as_array_mut().unwrap().push(second);
    });
    assert_eq!((new["status"]["storedVersions"].clone(), found), (json!(["v1", "v2"]), vec![]));
    let (_, found) = faults(&|new| new["spec"]["versions"][0]["name"] = json!("v3"));
    assert!(
        found[0].starts_with(
            "status.storedVersions[0]: Invalid value: \"v1\": missing from spec.versions; v1 was"
        )
    );
}

#[test]
fn versions_are_sorted_like_kubernetes() {
    let mut names =
        ["v1", "v2", "v1beta1", "v1alpha1", "v11alpha2", "foo1", "v10", "v2beta1", "v1beta2", "abc"];
    names.sort_by_key(|name| VersionOrder::of(name));
    assert_eq!(
        names,
        ["v10", "v2", "v1", "v2beta1", "v1beta2", "v1beta1", "v11alpha2", "v1alpha1", "abc", "foo1"]
    );
}

#[test]
fn unchanged_invalid_parts_are_accepted() {
    let openapi = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "a": {"type": "integer", "maximum": 3}, "b": {"type": "integer", "maximum": 3},
        "l": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n"],
            "items": {"type": "object", "properties": {"n": {"type": "string"}, "v": {"type": "integer", "maximum": 3}}}}}}}});
    let definition = definition("Thing", &openapi, &Value::Null);
    let old = json!({"spec": {"a": 5, "b": 1, "l": [{"n": "x", "v": 5}]}});
    let count = |new: Value| definition.validate("v1", &new, Some(&old)).len();
    assert_eq!(count(json!({"spec": {"a": 5, "b": 2, "l": [{"n": "y", "v": 1}, {"n": "x", "v": 5}]}})), 0);
    assert_eq!(count(json!({"spec": {"a": 6, "b": 7, "l": [{"n": "y", "v": 5}]}})), 3);
}
