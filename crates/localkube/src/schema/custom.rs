//! The schemas of custom resources, from their definitions.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::{Field, Link, List, Object, Scalar, Schema, Shape, Strategy, is_atomic_map, list_kind};

/// Definitions are nested by people; nobody needs more.
const DEEPEST: usize = 100;

impl Schema {
    /// The schema of a custom resource from its `openAPIV3Schema`; `apiVersion`, `kind` and `metadata` are known anyway.
    pub fn of_custom(definition: &Value) -> Arc<Self> {
        let mut schema = read(definition, 0);
        if let Shape::Object(object) = &mut schema.shape {
            embed(object);
        } else {
            let mut object = Object { open: true, ..Object::default() };
            embed(&mut object);
            schema.shape = Shape::Object(object);
        }
        Arc::new(schema)
    }
}

fn read(definition: &Value, depth: usize) -> Schema {
    let is = |key: &str| definition.get(key).and_then(Value::as_bool) == Some(true);
    let open = is("x-kubernetes-preserve-unknown-fields");
    let shape = match definition.get("type").and_then(Value::as_str) {
        _ if depth > DEEPEST => Shape::Any,
        _ if is("x-kubernetes-int-or-string") => Shape::Scalar(Scalar::IntOrString),
        Some("string") => Shape::Scalar(Scalar::Text),
        Some("boolean") => Shape::Scalar(Scalar::Bool),
        Some("integer") => Shape::Scalar(Scalar::Int64),
        Some("number") => Shape::Scalar(Scalar::Number),
        Some("array") => {
            let items = definition.get("items").map_or(Schema::of(Shape::Any), |i| read(i, depth + 1));
            Shape::List(List { items: Link::here(items), kind: list_kind(definition) })
        }
        Some("object") => {
            let mut object = Object {
                fields: fields(definition, depth),
                values: values(definition, depth),
                open,
                atomic: is_atomic_map(definition),
            };
            if is("x-kubernetes-embedded-resource") {
                embed(&mut object);
            }
            Shape::Object(object)
        }
        // Without a type, anything that is kept is looked into as if it were declared nowhere.
        _ if open => Shape::Object(Object { open, ..Object::default() }),
        _ => Shape::Any,
    };
    Schema { default: definition.get("default").cloned(), ..Schema::of(shape) }
}

fn fields(definition: &Value, depth: usize) -> BTreeMap<String, Field> {
    let properties = definition.get("properties").and_then(Value::as_object);
    let all = properties.into_iter().flatten();
    all.map(|(key, property)| (key.clone(), field(Link::here(read(property, depth + 1))))).collect()
}

fn values(definition: &Value, depth: usize) -> Option<Link> {
    match definition.get("additionalProperties")? {
        Value::Bool(true) => {
            let anything = Object { open: true, ..Object::default() };
            Some(Link::here(Schema::of(Shape::Object(anything))))
        }
        values @ Value::Object(_) => Some(Link::here(read(values, depth + 1))),
        _ => None,
    }
}

fn field(schema: Link) -> Field {
    Field { schema, zero: None, strategy: Strategy::default() }
}

/// What every object has.
fn embed(object: &mut Object) {
    for key in ["apiVersion", "kind"] {
        object.fields.insert(key.to_owned(), field(Link::here(Schema::of(Shape::Scalar(Scalar::Text)))));
    }
    let metadata = Link::named("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
    object.fields.insert("metadata".to_owned(), field(metadata));
}
