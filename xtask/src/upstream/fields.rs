//! The fields of resource definitions.

use std::collections::BTreeSet;

use api::yaml::{SourceFile, parse};
use serde_json::Value;

/// The paths of all fields of the definitions in a YAML file; none if it holds no definition.
pub(super) fn fields(name: &str, text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let source = SourceFile::new(name.to_owned(), text.to_owned());
    let Ok(documents) = parse(&source) else { return found };
    for document in documents {
        let Ok(object) = document.decode_lenient::<Value>() else { continue };
        let kind = object.pointer("/spec/names/kind").and_then(Value::as_str).unwrap_or_default();
        let versions = object.pointer("/spec/versions").and_then(Value::as_array);
        for schema in
            versions.into_iter().flatten().filter_map(|version| version.pointer("/schema/openAPIV3Schema"))
        {
            collect(schema, kind, &mut found);
        }
    }
    found
}

/// Adds the fields of a schema. Lists and maps have the path of their values.
fn collect(schema: &Value, path: &str, found: &mut BTreeSet<String>) {
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        let path = format!("{path}.{name}");
        collect(property, &path, found);
        found.insert(path);
    }
    for values in ["items", "additionalProperties"].iter().filter_map(|key| schema.get(*key)) {
        collect(values, path, found);
    }
}
