//! What a hostile tenant writes: values, and the fields of KEDA's objects that take them.

use serde_json::{Value, json};

use super::canaries::{OperatorFiles, RecordingServer, VARIABLE};

/// A value of a hostile tenant.
#[derive(Clone, Debug)]
pub(super) struct HostileValue {
    pub(super) kind: &'static str,
    pub(super) text: String,
}

/// Paths of files, addresses, references to variables, names in another namespace. None of them is a name that a resolver is asked
/// for: their labels are empty or too long.
pub(super) fn values(files: &OperatorFiles, server: &RecordingServer) -> Vec<HostileValue> {
    let value = |kind, text: String| HostileValue { kind, text };
    vec![
        value("path", files.path("token")),
        value("file URL", format!("file://{}", files.path("ca.crt"))),
        value("URL", server.url()),
        value("address", server.address.clone()),
        value("variable", format!("$({VARIABLE})..")),
        value("shell variable", format!("${{{VARIABLE}}}..")),
        value("name", "../../other/secrets/canary".to_owned()),
        value("short name", "other/canary..".to_owned()),
    ]
}

/// A step of the path of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PathStep {
    Property(String),
    /// The first item of a list.
    First,
}

/// The paths of all texts in a schema; those with a fixed list of values are left out, since the API server refuses others.
pub(super) fn text_fields(schema: &Value) -> Vec<Vec<PathStep>> {
    let mut found = Vec::new();
    collect(schema, &mut Vec::new(), &mut found);
    found
}

fn collect(schema: &Value, path: &mut Vec<PathStep>, found: &mut Vec<Vec<PathStep>>) {
    let mut below = |step: PathStep, schema: &Value| {
        path.push(step);
        collect(schema, path, found);
        path.pop();
    };
    match schema["type"].as_str() {
        Some("array") => below(PathStep::First, &schema["items"]),
        Some("object") => {
            for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                below(PathStep::Property(name.clone()), property);
            }
            if schema["additionalProperties"].is_object() {
                below(PathStep::Property("any".to_owned()), &schema["additionalProperties"]);
            }
        }
        Some("string") if schema.get("enum").is_none() => found.push(path.clone()),
        None if schema["x-kubernetes-int-or-string"] == true => found.push(path.clone()),
        _ => {}
    }
}

/// Sets a field, with the required fields of the objects on the way to it.
pub(super) fn set(object: &mut Value, schema: &Value, path: &[PathStep], text: &str) {
    let Some((step, rest)) = path.split_first() else {
        *object = json!(text);
        return;
    };
    match step {
        PathStep::First => {
            if object.as_array().is_none_or(Vec::is_empty) {
                *object = json!([null]);
            }
            set(&mut object[0], &schema["items"], rest, text);
        }
        PathStep::Property(name) => {
            if !object.is_object() {
                *object = minimal(schema);
            }
            let property = match schema["properties"].get(name) {
                Some(property) => property,
                None => &schema["additionalProperties"],
            };
            set(&mut object[name.as_str()], property, rest, text);
        }
    }
}

/// A value with the required fields only.
fn minimal(schema: &Value) -> Value {
    if let Some(first) = schema["enum"].as_array().and_then(|all| all.first()) {
        return first.clone();
    }
    match schema["type"].as_str() {
        Some("object") => {
            let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let fields = required.map(|name| (name.to_owned(), minimal(&schema["properties"][name])));
            Value::Object(fields.collect())
        }
        Some("array") => json!([minimal(&schema["items"])]),
        Some("integer" | "number") => json!(1),
        Some("boolean") => json!(false),
        _ => json!("x"),
    }
}
