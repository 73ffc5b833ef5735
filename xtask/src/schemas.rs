//! Reads the schemas of all kinds and their protobuf encoding from a real API server, and stores them in localkube.

mod empties;
mod messages;

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use flate2::Compression;
use flate2::write::GzEncoder;
use localkube::kinds::KINDS;
use serde_json::{Map, Value, json};
use testbed::{Access, ControlPlane, Options};

use messages::Messages;

/// Generated data: `cargo xtask schemas` writes it, localkube embeds it.
const SCHEMAS: &str = "crates/localkube/schemas/kubernetes-1.36.json.gz";
const MESSAGES: &str = "crates/localkube/schemas/protobuf-1.36.json.gz";

/// The prefix of Kubernetes' own types; custom resources of the server are excluded.
const BUILT_IN_PREFIX: &str = "io.k8s.";

/// Messages of requests in addition to objects of the kinds in localkube's table.
const OTHER_MESSAGES: &[(&str, &str, &str)] = &[
    ("", "v1", "Binding"),
    ("", "v1", "DeleteOptions"),
    ("authentication.k8s.io", "v1", "TokenRequest"),
    ("autoscaling", "v1", "Scale"),
    ("policy", "v1", "Eviction"),
];

pub(crate) fn run() -> anyhow::Result<ExitCode> {
    // This is a separate control plane, because its final state would break other tests.
    let plane = ControlPlane::start(&Options { controller_manager: false, ..Options::default() })?;
    let mut schemas = schemas(plane.access())?;
    schemas.sort_keys();
    let messages = messages(plane.access(), &schemas)?;
    let count = schemas.len();
    write(SCHEMAS, &json!({"components": {"schemas": schemas}}), &format!("{count} schemas"))?;
    write(MESSAGES, &messages::to_json(&messages), &format!("{} messages", messages.len()))?;
    Ok(ExitCode::SUCCESS)
}

fn write(name: &str, value: &Value, what: &str) -> anyhow::Result<()> {
    // localkube reads gzip, which needs no C library: zstd would make up a tenth of the first build of `make up`.
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(value.to_string().as_bytes())?;
    let packed = encoder.finish()?;
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name);
    std::fs::write(&file, &packed).with_context(|| format!("failed to write {name}"))?;
    println!("{name}: {what}, {} bytes", packed.len());
    Ok(())
}

fn schemas(access: &Access) -> anyhow::Result<Map<String, Value>> {
    let ask = |path: &str| -> anyhow::Result<Value> {
        let text = access.run_kubectl(&["get", "--raw", path])?;
        serde_json::from_str(&text).with_context(|| format!("failed to read {path}"))
    };
    let index = ask("/openapi/v3")?;
    let mut schemas = Map::new();
    for path in index.get("paths").and_then(Value::as_object).into_iter().flatten().map(|(path, _)| path) {
        // All kinds of all groups are stored, so that a new kind needs only a row in localkube's table.
        if path.starts_with("api") {
            let mut document = ask(&format!("/openapi/v3/{path}"))?;
            if let Some(found) = document.pointer_mut("/components/schemas") {
                keep(&mut schemas, found.take());
            }
        }
    }
    anyhow::ensure!(!schemas.is_empty(), "the server knows no schemas");
    Ok(schemas)
}

/// The protobuf messages of all objects that localkube decodes.
fn messages(access: &Access, schemas: &Map<String, Value>) -> anyhow::Result<Messages> {
    let name_of = |group: &str, version: &str, kind: &str| {
        let wanted = json!({"group": group, "version": version, "kind": kind});
        let is_it = |schema: &Value| {
            schema["x-kubernetes-group-version-kind"].as_array().is_some_and(|all| all.contains(&wanted))
        };
        let found = schemas.iter().find(|(_, schema)| is_it(schema)).map(|(name, _)| name.clone());
        found.with_context(|| format!("the server has no {kind} in {group}/{version}"))
    };
    let kinds =
        KINDS.iter().flat_map(|row| row.versions.iter().map(|version| (row.group, *version, row.kind)));
    let roots = kinds
        .chain(OTHER_MESSAGES.iter().copied())
        .map(|(group, version, kind)| name_of(group, version, kind));
    let roots = roots.collect::<anyhow::Result<Vec<_>>>()?;
    let mut messages = messages::reachable(&messages::read()?, &roots, schemas)?;
    empties::observe(access, &mut messages, name_of)?;
    Ok(messages)
}

/// Adds the schemas of one document. Types that occur in several documents differ only in the list of their groups.
fn keep(schemas: &mut Map<String, Value>, document: Value) {
    let Value::Object(document) = document else { return };
    for (name, mut schema) in document {
        if name.starts_with(BUILT_IN_PREFIX) && !schemas.contains_key(&name) {
            drop_descriptions(&mut schema);
            schemas.insert(name, schema);
        }
    }
}

/// Removes descriptions, which are nine tenths of a document and are not needed.
fn drop_descriptions(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            // A property may be named `description`; its value is a schema, not a text.
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
    fn descriptions_are_removed_and_properties_of_that_name_kept() {
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
