//! Asks a real API server for the schemas of its kinds and keeps them inside localkube.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use serde_json::{Map, Value, json};

/// Generated data: `cargo xtask schemas` writes it, localkube embeds it.
const FILE: &str = "crates/localkube/schemas/kubernetes-1.36.json.zst";

/// Kubernetes' own types; whatever custom resources the server happens to have stay out.
const OURS: &str = "io.k8s.";

pub(crate) fn run() -> anyhow::Result<ExitCode> {
    let access = testbed::shared()?;
    let ask = |path: &str| -> anyhow::Result<Value> {
        let text = access.run_kubectl(&["get", "--raw", path])?;
        serde_json::from_str(&text).with_context(|| format!("failed to read {path}"))
    };
    let index = ask("/openapi/v3")?;
    let mut schemas = Map::new();
    for path in index["paths"].as_object().into_iter().flatten().map(|(path, _)| path) {
        // Every kind of every group: so a row in localkube's table is all that a new kind needs.
        if path.starts_with("api") {
            let mut document = ask(&format!("/openapi/v3/{path}"))?;
            keep(&mut schemas, document["components"]["schemas"].take());
        }
    }
    anyhow::ensure!(!schemas.is_empty(), "the server knows no schemas");
    schemas.sort_keys();
    let count = schemas.len();
    let text = json!({"components": {"schemas": schemas}}).to_string();
    let packed = zstd::encode_all(text.as_bytes(), 21)?;
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(FILE);
    std::fs::write(&file, &packed).with_context(|| format!("failed to write {FILE}"))?;
    println!("{FILE}: {count} schemas, {} bytes", packed.len());
    Ok(ExitCode::SUCCESS)
}

/// Keeps the schemas of one document; types that several documents have are the same in all of them, but for the list of
/// groups they are named in.
fn keep(schemas: &mut Map<String, Value>, document: Value) {
    let Value::Object(document) = document else { return };
    for (name, mut schema) in document {
        if name.starts_with(OURS) && !schemas.contains_key(&name) {
            drop_descriptions(&mut schema);
            schemas.insert(name, schema);
        }
    }
}

/// Descriptions are nine tenths of a document, and only people read them.
fn drop_descriptions(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            // A property may have that name; its value is a schema, not a text.
            if map.get("description").is_some_and(Value::is_string) {
                map.shift_remove("description");
            }
            map.values_mut().for_each(drop_descriptions);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_descriptions),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_go_and_properties_of_that_name_stay() {
        let mut kept = Map::new();
        let document = json!({
            "io.k8s.A": {"description": "long", "properties": {"description": {"type": "string", "description": "x"}}},
            "com.example.B": {"type": "object"},
        });
        keep(&mut kept, document);
        assert_eq!(
            Value::Object(kept),
            json!({"io.k8s.A": {"properties": {"description": {"type": "string"}}}})
        );
    }
}
