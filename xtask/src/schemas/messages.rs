//! The messages of Kubernetes' protobuf encoding: a table of fields, read from the `.proto` files of its Go modules.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use serde_json::{Map, Value, json};

/// The fields of each message, by the name that the message has in OpenAPI documents.
pub(super) type Messages = BTreeMap<String, Vec<MessageField>>;

/// One field of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MessageField {
    pub(super) number: u32,
    /// The name in JSON; empty if JSON has the fields of the embedded message instead.
    pub(super) name: String,
    /// `string`, `bytes`, `bool`, `int32`, `int64`, `double`, `json`, or the name of a message.
    pub(super) kind: String,
    pub(super) shape: FieldShape,
    /// Whether JSON shows a zero; for values without parts.
    pub(super) shows_zero: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldShape {
    One,
    List,
    Map,
}

impl MessageField {
    /// Whether the field is a single scalar value.
    pub(super) fn is_scalar(&self) -> bool {
        self.shape == FieldShape::One && SCALARS.contains(&self.kind.as_str())
    }
}

/// Where the modules are required.
const MODULE: &str = "crates/testbed/go/kubernetes";
const MODULES: &[&str] =
    &["k8s.io/api", "k8s.io/apimachinery", "k8s.io/apiextensions-apiserver", "k8s.io/kube-aggregator"];
const SCALARS: &[&str] = &["string", "bytes", "bool", "int32", "int64", "double"];
/// Messages that contain only JSON.
const JSON: &[&str] = &[".RawExtension", ".FieldsV1", ".apiextensions.v1.JSON"];

/// Reads the `.proto` files of all modules.
pub(super) fn read() -> anyhow::Result<Messages> {
    let mut messages = Messages::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(MODULE);
    for module in MODULES {
        let mut go = Command::new("go");
        let listed = go.args(["list", "-m", "-f", "{{.Dir}}", module]).current_dir(&folder).output();
        let listed = listed.context("failed to run go")?;
        anyhow::ensure!(
            listed.status.success(),
            "go does not have {module}: {}",
            String::from_utf8_lossy(&listed.stderr)
        );
        for file in files(Path::new(String::from_utf8(listed.stdout)?.trim()))? {
            let text = std::fs::read_to_string(&file)?;
            parse(&text, &mut messages).with_context(|| format!("failed to read {}", file.display()))?;
        }
    }
    Ok(messages)
}

fn files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| format!("failed to list {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(files(&path)?);
        } else if path.file_name().is_some_and(|name| name == "generated.proto") {
            found.push(path);
        }
    }
    Ok(found)
}

/// Reads the messages of one file: they have one field per line, and none contains another.
fn parse(text: &str, messages: &mut Messages) -> anyhow::Result<()> {
    let mut package = String::new();
    let mut message: Option<(String, Vec<MessageField>)> = None;
    let mut in_comment = false;
    for line in text.lines().map(str::trim) {
        in_comment = (in_comment || line.starts_with("/*")) && !line.ends_with("*/");
        let line = line.trim_end_matches(';');
        let words: Vec<&str> = line.split_whitespace().collect();
        match (words.as_slice(), &mut message) {
            _ if in_comment || line.starts_with("//") => {}
            (["package", name], _) => (*name).clone_into(&mut package),
            (["message", name, "{"], None) => {
                message = Some((schema_name(&format!("{package}.{name}")), Vec::new()));
            }
            (["}"], open) => messages.extend(open.take()),
            (words @ [.., name, "=", number], Some((_, fields))) => {
                let (shape, kind) = match words {
                    ["optional", kind, ..] => (FieldShape::One, *kind),
                    ["repeated", kind, ..] => (FieldShape::List, *kind),
                    ["map<string,", kind, ..] => (FieldShape::Map, kind.trim_end_matches('>')),
                    _ => bail!("unknown kind of field: {line}"),
                };
                let kind = match kind.strip_prefix('.') {
                    _ if SCALARS.contains(&kind) => kind.to_owned(),
                    Some(full) => schema_name(full),
                    None => schema_name(&format!("{package}.{kind}")),
                };
                let number = number.parse().with_context(|| format!("no number: {line}"))?;
                fields.push(MessageField {
                    number,
                    name: (*name).to_owned(),
                    kind,
                    shape,
                    shows_zero: false,
                });
            }
            (_, Some(_)) if !line.is_empty() => bail!("unknown line in a message: {line}"),
            _ => {}
        }
    }
    Ok(())
}

/// `k8s.io.kube_aggregator.x.Y` is `io.k8s.kube-aggregator.x.Y` in OpenAPI documents.
fn schema_name(message: &str) -> String {
    message.replacen("k8s.io", "io.k8s", 1).replace('_', "-")
}

/// Keeps the messages that are reachable from these, and adapts names and required zeros to the schemas.
pub(super) fn reachable(
    all: &Messages,
    roots: &[String],
    schemas: &Map<String, Value>,
) -> anyhow::Result<Messages> {
    let mut kept = Messages::new();
    let mut open: Vec<&str> = roots.iter().map(String::as_str).collect();
    while let Some(name) = open.pop() {
        if kept.contains_key(name) {
            continue;
        }
        let (name, fields) =
            all.get_key_value(name).with_context(|| format!("there is no message {name}"))?;
        open.extend(fields.iter().map(|field| field.kind.as_str()).filter(|kind| !SCALARS.contains(kind)));
        let fields = fields.iter().cloned().map(|field| fitted(name, field, schemas.get(name)));
        kept.insert(name.clone(), fields.collect::<anyhow::Result<_>>()?);
    }
    Ok(kept)
}

fn fitted(message: &str, mut field: MessageField, schema: Option<&Value>) -> anyhow::Result<MessageField> {
    if JSON.iter().any(|name| message.ends_with(name)) {
        "json".clone_into(&mut field.kind);
    }
    // Messages whose fields JSON has elsewhere have no schema.
    let Some(properties) = schema.and_then(|schema| schema["properties"].as_object()) else {
        return Ok(field);
    };
    // `$ref` and `x-kubernetes-map-type` are no names of fields in protobuf.
    let plain = |name: &str| name.replace(|letter: char| !letter.is_alphanumeric(), "").to_lowercase();
    let exact = properties.get_key_value(&field.name);
    let found = exact.or_else(|| properties.iter().find(|(name, _)| plain(name) == plain(&field.name)));
    match found {
        Some((name, property)) => {
            let required = schema.and_then(|schema| schema["required"].as_array());
            let required = required.is_some_and(|all| all.iter().any(|each| each == name));
            field.shows_zero = field.is_scalar() && required && property.get("default").is_some();
            field.name.clone_from(name);
        }
        None if field.kind.contains('.') => field.name.clear(),
        None => bail!("{message} has no {}", field.name),
    }
    Ok(field)
}

/// The stored form: message → `[number, name, kind, shape, shows zero]`.
pub(super) fn to_json(messages: &Messages) -> Value {
    let row = |field: &MessageField| {
        let shape = match field.shape {
            FieldShape::One => "one",
            FieldShape::List => "list",
            FieldShape::Map => "map",
        };
        json!([field.number, field.name, field.kind, shape, field.shows_zero])
    };
    messages
        .iter()
        .map(|(name, fields)| (name.clone(), fields.iter().map(row).collect()))
        .collect::<Map<_, Value>>()
        .into()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const TEXT: &str = r#"
/*
message Licence {
*/
syntax = "proto2";
package k8s.io.api.core.v1;
// A message {
message A {
  // optional string comment = 9;
  optional string ref = 1;

  repeated .k8s.io.kube_aggregator.B other = 2;
  map<string, C> inside = 3;
}
message C {
}
"#;

    #[test]
    fn fields_are_read_line_by_line() {
        let mut found = Messages::new();
        parse(TEXT, &mut found).unwrap();
        assert_eq!(
            to_json(&found),
            json!({
                "io.k8s.api.core.v1.A": [
                    [1, "ref", "string", "one", false],
                    [2, "other", "io.k8s.kube-aggregator.B", "list", false],
                    [3, "inside", "io.k8s.api.core.v1.C", "map", false],
                ],
                "io.k8s.api.core.v1.C": [],
            })
        );
        assert!(parse("message A {\noneof x {\n}\n}", &mut found).is_err());
    }

    #[test]
    fn names_are_those_of_the_schema() {
        let mut all = Messages::new();
        parse(&TEXT.replace(".k8s.io.kube_aggregator.B", "string"), &mut all).unwrap();
        let (a, c) = ("io.k8s.api.core.v1.A".to_owned(), "io.k8s.api.core.v1.C");
        let properties = json!({"$ref": {"type": "string", "default": ""}, "other": {"type": "array"}});
        let schemas = json!({a.clone(): {"properties": properties, "required": ["$ref"]}});
        let found = reachable(&all, &[a], schemas.as_object().unwrap()).unwrap();
        assert_eq!(
            to_json(&found),
            json!({
                "io.k8s.api.core.v1.A": [
                    [1, "$ref", "string", "one", true],
                    [2, "other", "string", "list", false],
                    [3, "", c, "map", false],
                ],
                "io.k8s.api.core.v1.C": [],
            })
        );
        assert!(reachable(&all, &["D".to_owned()], &Map::new()).is_err());
    }
}
