//! What the objects of a kind look like: which fields there are, of what type, and how lists and maps are merged.
//!
//! Built-in kinds are described by the document that a real API server gives out ([`built_in`]), custom ones by their
//! definition ([`Schema::of_custom`]).

mod built_in;
mod custom;
mod decode;
pub(crate) mod go;
mod shape;
#[cfg(test)]
mod tests;
mod unknown;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};

pub use built_in::{built_in, document};
pub use decode::{type_error, unreadable};
pub use shape::settle;
pub use unknown::{prune, unknown_fields};

/// The description of a value.
#[derive(Debug)]
pub struct Schema {
    /// The name of a built-in type, such as `io.k8s.api.apps.v1.DeploymentSpec`; empty for all others.
    pub name: String,
    /// What the value is.
    pub shape: Shape,
    /// What stands for it where it is left out.
    pub default: Option<Value>,
}

/// What a value is.
#[derive(Debug)]
pub enum Shape {
    /// Anything, nobody looks into it.
    Any,
    /// A value without parts.
    Scalar(Scalar),
    /// A map or a structure.
    Object(Object),
    /// A list.
    List(List),
}

/// A value without parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar {
    /// A string.
    Text,
    /// A string that holds bytes in base64.
    Bytes,
    /// `true` or `false`.
    Bool,
    /// A whole number of 32 bits.
    Int32,
    /// A whole number of 64 bits.
    Int64,
    /// A number.
    Number,
    /// A quantity, such as `100m`.
    Quantity,
    /// An instant in whole seconds.
    Time,
    /// An instant in microseconds.
    MicroTime,
    /// A whole number, or a string such as a percentage or a name.
    IntOrString,
}

/// A structure with fields, a map from names to values, or both.
#[derive(Debug, Default)]
pub struct Object {
    /// The fields that are declared.
    pub fields: BTreeMap<String, Field>,
    /// What the values of all other keys are.
    pub values: Option<Link>,
    /// Whether keys that nobody declared are kept, whatever they hold.
    pub open: bool,
    /// Whether it has one owner as a whole.
    pub atomic: bool,
}

/// A field of a structure.
#[derive(Debug)]
pub struct Field {
    /// What it holds.
    pub schema: Link,
    /// What a structure without it holds all the same: Go leaves out neither embedded structures nor required values.
    pub zero: Option<Value>,
    /// How a strategic merge patch treats it.
    pub strategy: Strategy,
}

/// How a strategic merge patch treats a field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Strategy {
    /// Whether lists are merged; they are replaced otherwise.
    pub merge: bool,
    /// Whether `$retainKeys` is expected.
    pub retain_keys: bool,
    /// The field by which items of a list are the same; none for plain values.
    pub key: Option<String>,
}

/// A list.
#[derive(Debug)]
pub struct List {
    /// What its items are.
    pub items: Link,
    /// How it is merged.
    pub kind: ListKind,
}

/// How a list is merged and owned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListKind {
    /// As a whole.
    Atomic,
    /// Each value on its own.
    Set,
    /// Each item on its own, known by these fields.
    Map(Vec<String>),
}

/// A schema inside another. Built-in types are found by name, since some contain themselves.
pub struct Link(Target);

enum Target {
    Here(Box<Schema>),
    Named { name: String, found: OnceLock<Option<Arc<Schema>>> },
}

/// What is known of a place in an object.
#[derive(Clone, Copy, Debug)]
pub enum Place<'s> {
    /// Described by a schema.
    Known(&'s Schema),
    /// Inside of something open: maps are owned key by key, lists as a whole.
    Open,
    /// There is no such place.
    Unknown,
}

/// Without what a name leads to, which might lead back.
impl fmt::Debug for Link {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Target::Here(schema) => schema.fmt(out),
            Target::Named { name, .. } => out.write_str(name),
        }
    }
}

impl Link {
    fn here(schema: Schema) -> Self {
        Self(Target::Here(Box::new(schema)))
    }

    fn named(name: &str) -> Self {
        Self(Target::Named { name: name.to_owned(), found: OnceLock::new() })
    }

    /// The schema it leads to.
    pub fn schema(&self) -> &Schema {
        match &self.0 {
            Target::Here(schema) => schema,
            Target::Named { name, found } => {
                found.get_or_init(|| built_in::named(name)).as_deref().unwrap_or(&ANY)
            }
        }
    }
}

static ANY: Schema = Schema { name: String::new(), shape: Shape::Any, default: None };

impl Schema {
    fn of(shape: Shape) -> Self {
        Self { name: String::new(), shape, default: None }
    }

    /// What is known of a key of an object.
    pub fn field(&self, key: &str) -> Place<'_> {
        match &self.shape {
            Shape::Object(object) => object.field(key),
            Shape::Any | Shape::Scalar(_) | Shape::List(_) => Place::Unknown,
        }
    }

    /// The last part of its name, `DeploymentSpec`: what Go calls the structure.
    pub fn short_name(&self) -> &str {
        self.name.rsplit('.').next().unwrap_or_default()
    }

    /// Whether a value has one owner as a whole.
    pub fn is_leaf(&self) -> bool {
        match &self.shape {
            Shape::Any | Shape::Scalar(_) => true,
            Shape::Object(object) => object.atomic,
            Shape::List(list) => list.kind == ListKind::Atomic,
        }
    }
}

impl Object {
    /// What is known of a key.
    pub fn field(&self, key: &str) -> Place<'_> {
        match (self.fields.get(key), &self.values) {
            (Some(field), _) => Place::Known(field.schema.schema()),
            (None, Some(values)) => Place::Known(values.schema()),
            (None, None) if self.open => Place::Open,
            (None, None) => Place::Unknown,
        }
    }
}

impl<'s> Place<'s> {
    /// The schema, where one is known.
    pub fn schema(self) -> Option<&'s Schema> {
        match self {
            Self::Known(schema) => Some(schema),
            Self::Open | Self::Unknown => None,
        }
    }

    /// What is known of a key below.
    #[must_use]
    pub fn field(self, key: &str) -> Self {
        match self {
            Self::Known(schema) => schema.field(key),
            Self::Open => Self::Open,
            Self::Unknown => Self::Unknown,
        }
    }

    /// Whether a key below is declared by name.
    pub fn declares(self, key: &str) -> bool {
        self.declared(key).is_some()
    }

    pub(crate) fn declared(self, key: &str) -> Option<&'s Field> {
        match self {
            Self::Known(Schema { shape: Shape::Object(object), .. }) => object.fields.get(key),
            Self::Known(_) | Self::Open | Self::Unknown => None,
        }
    }

    /// The list that this place is.
    pub fn list(self) -> Option<&'s List> {
        match self {
            Self::Known(Schema { shape: Shape::List(list), .. }) => Some(list),
            Self::Known(_) | Self::Open | Self::Unknown => None,
        }
    }

    /// Whether this value has one owner as a whole.
    pub fn is_leaf(self, value: &Value) -> bool {
        match self {
            Self::Known(schema) => schema.is_leaf(),
            Self::Open => !value.is_object(),
            Self::Unknown => true,
        }
    }
}

/// The words of a definition that say how lists and maps are merged.
fn list_kind(definition: &Value) -> ListKind {
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
