//! Schemas: the fields of a kind, their types, and how lists and maps are merged.
//!
//! Built-in kinds use the OpenAPI document of a real API server ([`built_in`]), custom resources their definition
//! ([`Schema::of_custom`]).

mod built_in;
mod custom;
mod decode;
pub(crate) mod go;
mod normalize;
#[cfg(test)]
mod tests;
mod unknown;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};

pub use built_in::{built_in, document};
pub use decode::{type_error, unreadable};
pub use normalize::normalize;
pub use unknown::{prune, unknown_fields};

/// The schema of a value.
#[derive(Debug)]
pub struct Schema {
    /// The name of a built-in type, such as `io.k8s.api.apps.v1.DeploymentSpec`; otherwise empty.
    pub name: String,
    /// The type of the value.
    pub shape: SchemaShape,
    /// The default value.
    pub default: Option<Value>,
}

/// The type of a value.
#[derive(Debug)]
pub enum SchemaShape {
    /// Anything, not inspected.
    Any,
    /// A scalar.
    Scalar(Scalar),
    /// A map or a struct.
    Object(ObjectSchema),
    /// A list.
    List(ListSchema),
}

/// A scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar {
    /// A string.
    Text,
    /// A string with base64-encoded bytes.
    Bytes,
    /// `true` or `false`.
    Bool,
    /// A 32-bit integer.
    Int32,
    /// A 64-bit integer.
    Int64,
    /// A number.
    Number,
    /// A quantity, such as `100m`.
    Quantity,
    /// An instant in whole seconds.
    Time,
    /// An instant in microseconds.
    MicroTime,
    /// An integer, or a string such as a percentage or a name.
    IntOrString,
}

/// A struct with fields, a map, or both.
#[derive(Debug, Default)]
pub struct ObjectSchema {
    /// The declared fields.
    pub fields: BTreeMap<String, FieldSchema>,
    /// The schema of all other values.
    pub values: Option<SchemaLink>,
    /// Whether undeclared keys are preserved.
    pub open: bool,
    /// Whether it is owned as a whole.
    pub atomic: bool,
}

/// A field of a struct.
#[derive(Debug)]
pub struct FieldSchema {
    /// Its schema.
    pub schema: SchemaLink,
    /// The zero value that Go writes if the field is absent.
    pub zero: Option<Value>,
    /// How a strategic merge patch handles it.
    pub strategy: PatchStrategy,
}

/// How a strategic merge patch handles a field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PatchStrategy {
    /// Whether lists are merged instead of replaced.
    pub merge: bool,
    /// Whether `$retainKeys` is expected.
    pub retain_keys: bool,
    /// The merge key of list items; `None` for scalars.
    pub key: Option<String>,
}

/// A list.
#[derive(Debug)]
pub struct ListSchema {
    /// The schema of its items.
    pub items: SchemaLink,
    /// How it is merged.
    pub kind: ListKind,
}

/// How a list is merged and owned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ListKind {
    /// As a whole.
    #[default]
    Atomic,
    /// By value.
    Set,
    /// By item, identified by these fields.
    Map(Vec<String>),
}

/// A reference to a schema. Built-in types are resolved by name, since some are recursive.
pub struct SchemaLink(LinkTarget);

enum LinkTarget {
    Here(Box<Schema>),
    Named { name: String, found: OnceLock<Option<Arc<Schema>>> },
}

/// A position in a schema.
#[derive(Clone, Copy, Debug)]
pub enum SchemaCursor<'s> {
    /// A schema is known.
    Known(&'s Schema),
    /// Inside of preserved unknown fields: maps are owned per key, lists as a whole.
    Open,
    /// Not declared.
    Unknown,
}

/// Does not follow named references, which may be recursive.
impl fmt::Debug for SchemaLink {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            LinkTarget::Here(schema) => schema.fmt(out),
            LinkTarget::Named { name, .. } => out.write_str(name),
        }
    }
}

impl SchemaLink {
    fn here(schema: Schema) -> Self {
        Self(LinkTarget::Here(Box::new(schema)))
    }

    fn named(name: &str) -> Self {
        Self(LinkTarget::Named { name: name.to_owned(), found: OnceLock::new() })
    }

    /// The referenced schema.
    pub fn schema(&self) -> &Schema {
        match &self.0 {
            LinkTarget::Here(schema) => schema,
            LinkTarget::Named { name, found } => {
                found.get_or_init(|| built_in::named(name)).as_deref().unwrap_or(&ANY_SCHEMA)
            }
        }
    }
}

static ANY_SCHEMA: Schema = Schema { name: String::new(), shape: SchemaShape::Any, default: None };

impl Schema {
    fn of(shape: SchemaShape) -> Self {
        Self { name: String::new(), shape, default: None }
    }

    /// The position of a key.
    pub fn field(&self, key: &str) -> SchemaCursor<'_> {
        match &self.shape {
            SchemaShape::Object(object) => object.field(key),
            SchemaShape::Any | SchemaShape::Scalar(_) | SchemaShape::List(_) => SchemaCursor::Unknown,
        }
    }

    /// The last part of its name, `DeploymentSpec`: the Go struct.
    pub fn short_name(&self) -> &str {
        self.name.rsplit('.').next().unwrap_or_default()
    }

    /// Whether a value is owned as a whole.
    pub fn is_leaf(&self) -> bool {
        match &self.shape {
            SchemaShape::Any | SchemaShape::Scalar(_) => true,
            SchemaShape::Object(object) => object.atomic,
            SchemaShape::List(list) => list.kind == ListKind::Atomic,
        }
    }
}

impl ObjectSchema {
    /// The position of a key.
    pub fn field(&self, key: &str) -> SchemaCursor<'_> {
        match (self.fields.get(key), &self.values) {
            (Some(field), _) => SchemaCursor::Known(field.schema.schema()),
            (None, Some(values)) => SchemaCursor::Known(values.schema()),
            (None, None) if self.open => SchemaCursor::Open,
            (None, None) => SchemaCursor::Unknown,
        }
    }
}

impl<'s> SchemaCursor<'s> {
    /// The schema, if it is known.
    pub fn schema(self) -> Option<&'s Schema> {
        match self {
            Self::Known(schema) => Some(schema),
            Self::Open | Self::Unknown => None,
        }
    }

    /// The position of a key below.
    #[must_use]
    pub fn field(self, key: &str) -> Self {
        match self {
            Self::Known(schema) => schema.field(key),
            Self::Open => Self::Open,
            Self::Unknown => Self::Unknown,
        }
    }

    /// Whether a key below is declared.
    pub fn declares(self, key: &str) -> bool {
        self.declared(key).is_some()
    }

    pub(crate) fn declared(self, key: &str) -> Option<&'s FieldSchema> {
        match self {
            Self::Known(Schema { shape: SchemaShape::Object(object), .. }) => object.fields.get(key),
            Self::Known(_) | Self::Open | Self::Unknown => None,
        }
    }

    /// The list schema at this position.
    pub fn list(self) -> Option<&'s ListSchema> {
        match self {
            Self::Known(Schema { shape: SchemaShape::List(list), .. }) => Some(list),
            Self::Known(_) | Self::Open | Self::Unknown => None,
        }
    }

    /// Whether this value is owned as a whole.
    pub fn is_leaf(self, value: &Value) -> bool {
        match self {
            Self::Known(schema) => schema.is_leaf(),
            Self::Open => !value.is_object(),
            Self::Unknown => true,
        }
    }
}

/// Parses `x-kubernetes-list-type` and its keys.
pub(crate) fn list_kind(definition: &Value) -> ListKind {
    match definition.get("x-kubernetes-list-type").and_then(Value::as_str) {
        Some("set") => ListKind::Set,
        Some("map") => {
            let keys = definition.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
            let keys = keys.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
            ListKind::Map(keys.collect())
        }
        _ => ListKind::Atomic,
    }
}

fn is_atomic_map(definition: &Value) -> bool {
    definition.get("x-kubernetes-map-type") == Some(&json!("atomic"))
}
