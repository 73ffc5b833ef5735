//! The schemas of custom resources, from their definitions.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::{
    FieldSchema, ListSchema, ObjectSchema, PatchStrategy, Scalar, Schema, SchemaLink, SchemaShape,
    is_atomic_map, list_kind,
};

/// The maximum nesting of definitions.
const MAX_NESTING: usize = 100;

impl Schema {
    /// The schema of a custom resource from its `openAPIV3Schema`; `apiVersion`, `kind` and `metadata` are always
    /// included.
    pub fn of_custom(definition: &Value) -> Arc<Self> {
        let mut schema = read(definition, 0);
        if let SchemaShape::Object(object) = &mut schema.shape {
            embed(object);
        } else {
            let mut object = ObjectSchema { open: true, ..ObjectSchema::default() };
            embed(&mut object);
            schema.shape = SchemaShape::Object(object);
        }
        Arc::new(schema)
    }
}

fn read(definition: &Value, depth: usize) -> Schema {
    let is = |key: &str| definition.get(key).and_then(Value::as_bool) == Some(true);
    let open = is("x-kubernetes-preserve-unknown-fields");
    let shape = match definition.get("type").and_then(Value::as_str) {
        _ if depth > MAX_NESTING => SchemaShape::Any,
        _ if is("x-kubernetes-int-or-string") => SchemaShape::Scalar(Scalar::IntOrString),
        Some("string") => SchemaShape::Scalar(Scalar::Text),
        Some("boolean") => SchemaShape::Scalar(Scalar::Bool),
        Some("integer") => SchemaShape::Scalar(Scalar::Int64),
        Some("number") => SchemaShape::Scalar(Scalar::Number),
        Some("array") => {
            let items = definition.get("items").map_or(Schema::of(SchemaShape::Any), |i| read(i, depth + 1));
            SchemaShape::List(ListSchema { items: SchemaLink::here(items), kind: list_kind(definition) })
        }
        Some("object") => {
            let mut object = ObjectSchema {
                fields: fields(definition, depth),
                values: values(definition, depth),
                open,
                atomic: is_atomic_map(definition),
            };
            if is("x-kubernetes-embedded-resource") {
                embed(&mut object);
            }
            SchemaShape::Object(object)
        }
        // Without a type, preserved values have no declared fields.
        _ if open => SchemaShape::Object(ObjectSchema { open, ..ObjectSchema::default() }),
        _ => SchemaShape::Any,
    };
    Schema { default: definition.get("default").cloned(), ..Schema::of(shape) }
}

fn fields(definition: &Value, depth: usize) -> BTreeMap<String, FieldSchema> {
    let properties = definition.get("properties").and_then(Value::as_object);
    let all = properties.into_iter().flatten();
    all.map(|(key, property)| (key.clone(), field(SchemaLink::here(read(property, depth + 1))))).collect()
}

fn values(definition: &Value, depth: usize) -> Option<SchemaLink> {
    match definition.get("additionalProperties")? {
        Value::Bool(true) => {
            let anything = ObjectSchema { open: true, ..ObjectSchema::default() };
            Some(SchemaLink::here(Schema::of(SchemaShape::Object(anything))))
        }
        values @ Value::Object(_) => Some(SchemaLink::here(read(values, depth + 1))),
        _ => None,
    }
}

fn field(schema: SchemaLink) -> FieldSchema {
    FieldSchema { schema, zero: None, strategy: PatchStrategy::default() }
}

/// Adds the fields of every object.
fn embed(object: &mut ObjectSchema) {
    for key in ["apiVersion", "kind"] {
        object
            .fields
            .insert(key.to_owned(), field(SchemaLink::here(Schema::of(SchemaShape::Scalar(Scalar::Text)))));
    }
    let metadata = SchemaLink::named("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
    object.fields.insert("metadata".to_owned(), field(metadata));
}
