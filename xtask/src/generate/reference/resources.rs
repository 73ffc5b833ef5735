//! The fields of custom resources, from their definitions.

use std::fmt::Write as _;

use serde_json::Value;

use crate::generate::definition::Definition;
use crate::generate::scalers::cell;

const HEAD: &str =
    "<!-- Made by `cargo xtask generate` from the definitions in deploy/crds; do not edit. -->
# Custom resources

`Autoscaler` is our own ([what it adds to an HPA](../autoscaler.md)); the other kinds are KEDA's, with the same fields
([the operator](../operator.md)). `[]` stands for each item of a list, `*` for each key of a map. `kubectl explain` shows the same texts.
";
/// A field whose schema is that of Kubernetes, which has a reference of its own.
const KUBERNETES_FIELD: &str = "jobTargetRef";
/// Fields that every object has.
const COMMON_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

// Writing to a string cannot fail.

/// The page.
pub(super) fn page(definitions: &[Definition]) -> String {
    let mut page = HEAD.to_owned();
    for definition in definitions {
        let at = |pointer: &str| definition.object.pointer(pointer).unwrap_or(&Value::Null);
        let schema = at("/spec/versions/0/schema/openAPIV3Schema");
        let short_names = at("/spec/names/shortNames").as_array().into_iter().flatten();
        let short_names: Vec<String> = short_names.map(|name| format!(", `{}`", text(name))).collect();
        let _ = write!(
            page,
            "\n## {}\n\n`{}/{}`, {}; `{}`{}. {}\n\n| field | type | default | meaning |\n|---|---|---|---|\n",
            definition.kind,
            text(at("/spec/group")),
            text(at("/spec/versions/0/name")),
            text(at("/spec/scope")).to_lowercase(),
            text(at("/spec/names/plural")),
            short_names.concat(),
            cell(text(&schema["description"])),
        );
        add_fields(&mut page, schema, "");
    }
    page
}

/// Adds the fields of an object, and those below them. `path` ends with a dot, unless it is empty.
fn add_fields(page: &mut String, schema: &Value, path: &str) {
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        if path.is_empty() && COMMON_FIELDS.contains(&name.as_str()) {
            continue;
        }
        let default = match &field["default"] {
            Value::Null if required.contains(&name.as_str()) => "**required**".to_owned(),
            Value::Null => String::new(),
            default => format!("`{}`", cell(&default.to_string())),
        };
        let _ = writeln!(
            page,
            "| `{path}{name}` | {} | {default} | {} |",
            type_of(field),
            cell(text(&field["description"]))
        );
        if name == KUBERNETES_FIELD {
            continue;
        }
        add_fields(page, field, &format!("{path}{name}."));
        add_fields(page, &field["items"], &format!("{path}{name}[]."));
        add_fields(page, &field["additionalProperties"], &format!("{path}{name}.*."));
    }
}

fn type_of(field: &Value) -> String {
    if let Some(values) = field["enum"].as_array() {
        let values: Vec<String> = values.iter().map(|value| format!("`{}`", cell(text(value)))).collect();
        return values.join(", ");
    }
    let of = |below: &Value| if below.is_object() { type_of(below) } else { "any".to_owned() };
    match text(&field["type"]) {
        "array" => format!("list of {}", of(&field["items"])),
        "object" if field["additionalProperties"].is_object() => {
            format!("map of {}", of(&field["additionalProperties"]))
        }
        "" if field["x-kubernetes-int-or-string"] == true => "number or text".to_owned(),
        "" => "any".to_owned(),
        known => known.to_owned(),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_are_listed_with_their_paths() {
        let schema = json!({"required": ["a"], "properties": {
            "kind": {"type": "string"},
            "a": {"type": "array", "description": "All\nof a|b.", "items": {"type": "object", "properties": {
                "b": {"enum": ["X", "Y"], "default": "X", "type": "string"}
            }}},
            "jobTargetRef": {"type": "object", "properties": {"c": {"type": "string"}}}
        }});
        let mut page = String::new();
        add_fields(&mut page, &schema, "");
        assert_eq!(
            page,
            "| `a` | list of object | **required** | All of a\\|b. |\n| `a[].b` | `X`, `Y` | `\"X\"` |  |\n\
             | `jobTargetRef` | object |  |  |\n"
        );
    }
}
