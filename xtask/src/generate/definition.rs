//! Builds CustomResourceDefinitions from `.schema` files.
//!
//! A file begins with `group GROUP` and, for each kind that has this schema,
//!
//! ```text
//! kind KIND PLURAL SCOPE SHORT-NAME… -- description
//!   column NAME TYPE JSON-PATH [wide] -- description
//! ```

use anyhow::Context;
use serde_json::{Map, Value, json};

use super::schema::{SchemaLine, SchemaReader, parse};

/// A definition and its name.
pub(super) struct Definition {
    /// `scaledobjects.keda.sh`
    pub(super) name: String,
    pub(super) kind: String,
    /// For `kubectl apply`.
    pub(super) object: Value,
}

/// The definitions of all kinds of a file.
pub(super) fn definitions(text: &str, reader: &mut SchemaReader) -> anyhow::Result<Vec<Definition>> {
    let (mut group, mut kinds, mut fields) = ("", Vec::new(), Vec::new());
    for line in parse(text) {
        match line.words.as_slice() {
            ["group", name] => group = *name,
            ["kind", ..] => kinds.push(line),
            ["define", name, ..] => {
                let body = reader.read(&line, 2)?;
                reader.define(name, body);
            }
            _ => fields.push(line),
        }
    }
    kinds.iter().map(|kind| definition(group, kind, &fields, reader)).collect()
}

fn definition(
    group: &str,
    line: &SchemaLine<'_>,
    fields: &[SchemaLine<'_>],
    reader: &SchemaReader,
) -> anyhow::Result<Definition> {
    let [_, kind, plural, scope, short_names @ ..] = line.words.as_slice() else {
        anyhow::bail!("the kind of a definition is incomplete");
    };
    let mut names = Map::new();
    names.insert("kind".to_owned(), json!(kind));
    names.insert("listKind".to_owned(), json!(format!("{kind}List")));
    names.insert("plural".to_owned(), json!(plural));
    names.insert("singular".to_owned(), json!(kind.to_lowercase()));
    if !short_names.is_empty() {
        names.insert("shortNames".to_owned(), json!(short_names));
    }
    let (own, required) = reader.fields(fields)?;
    let mut properties = Map::new();
    let text = |description: String| json!({"description": description, "type": "string"});
    properties.insert("apiVersion".to_owned(), text(format!("{group}/v1alpha1.")));
    properties.insert("kind".to_owned(), text(format!("{kind}.")));
    properties.insert("metadata".to_owned(), json!({"type": "object"}));
    properties.extend(own);
    let mut schema = Map::new();
    schema.insert("description".to_owned(), json!(line.description));
    schema.insert("type".to_owned(), json!("object"));
    if !required.is_empty() {
        schema.insert("required".to_owned(), required.into());
    }
    schema.insert("properties".to_owned(), properties.into());
    let columns = line.children.iter().map(column).collect::<anyhow::Result<Vec<_>>>()?;
    let object = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group,
            "names": names,
            "scope": scope,
            "versions": [{
                "name": "v1alpha1",
                "served": true,
                "storage": true,
                "additionalPrinterColumns": columns,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": schema},
            }],
        },
    });
    Ok(Definition { name: format!("{plural}.{group}"), kind: (*kind).to_owned(), object })
}

/// A column of `kubectl get`; one that is `wide` is shown with `-o wide` only.
fn column(line: &SchemaLine<'_>) -> anyhow::Result<Value> {
    let [_, name, kind, path, wide @ ..] = line.words.as_slice() else {
        anyhow::bail!("a column is incomplete");
    };
    let mut column = json!({"name": name, "type": kind, "jsonPath": path});
    let fields = column.as_object_mut().context("a column is an object")?;
    if let Some(description) = line.description {
        fields.insert("description".to_owned(), description.into());
    }
    if line.description.is_some() || !wide.is_empty() {
        fields.insert("priority".to_owned(), i32::from(!wide.is_empty()).into());
    }
    Ok(column)
}
