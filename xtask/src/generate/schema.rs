//! The parts of a structural schema, each with the sentence that `kubectl explain` shows.

use serde_json::{Map, Value, json};

/// The schema of one field.
#[derive(Clone)]
pub(super) struct Schema {
    body: Map<String, Value>,
    required: bool,
}

/// What quantities may look like; `-` only where something was measured.
const QUANTITY: &str = r"([0-9]+\.?[0-9]*|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$";

/// What Kubernetes says of quantities in custom resources.
pub(super) const ANY_QUANTITY: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

fn schema(kind: &str, about: &str) -> Schema {
    Schema { body: Map::new(), required: false }.with("description", about.into()).with("type", kind.into())
}

pub(super) fn text(about: &str) -> Schema {
    schema("string", about)
}

/// One of some words.
pub(super) fn word(about: &str, words: &[&str]) -> Schema {
    text(about).with("enum", words.into())
}

pub(super) fn time(about: &str) -> Schema {
    text(about).with("format", "date-time".into())
}

pub(super) fn flag(about: &str) -> Schema {
    schema("boolean", about)
}

pub(super) fn number(about: &str) -> Schema {
    schema("integer", about).with("format", "int32".into())
}

pub(super) fn large(about: &str) -> Schema {
    schema("integer", about).with("format", "int64".into())
}

fn either(about: &str, pattern: String) -> Schema {
    let mut schema = text(about);
    schema.body.shift_remove("type");
    schema
        .with("anyOf", json!([{"type": "integer"}, {"type": "string"}]))
        .with("pattern", pattern.into())
        .with("x-kubernetes-int-or-string", true.into())
}

/// A quantity that somebody asks for: not negative.
pub(super) fn quantity(about: &str) -> Schema {
    either(about, format!(r"^\+?{QUANTITY}"))
}

/// Any quantity, in the words of Kubernetes' own schemas.
pub(super) fn any_quantity(about: &str) -> Schema {
    either(about, ANY_QUANTITY.to_owned())
}

/// A quantity that was measured.
pub(super) fn measured(about: &str) -> Schema {
    either(about, format!("^[+-]?{QUANTITY}"))
}

pub(super) fn list(about: &str, of: Schema) -> Schema {
    schema("array", about).with("items", of.body.into())
}

/// The metadata of an object, of which the server wants to hear nothing else.
pub(super) fn metadata() -> Schema {
    let mut schema = schema("object", "");
    schema.body.shift_remove("description");
    schema
}

/// Texts by name.
pub(super) fn labels(about: &str) -> Schema {
    schema("object", about).with("additionalProperties", json!({"type": "string"}))
}

/// Objects by name.
pub(super) fn map(about: &str, of: Schema) -> Schema {
    schema("object", about).with("additionalProperties", of.body.into())
}

/// A schema from elsewhere.
pub(super) fn given(body: Map<String, Value>) -> Schema {
    Schema { body, required: false }
}

pub(super) fn object<const N: usize>(about: &str, fields: [(&str, Schema); N]) -> Schema {
    let required: Vec<&str> =
        fields.iter().filter(|(_, field)| field.required).map(|(name, _)| *name).collect();
    let schema = schema("object", about);
    let schema = if required.is_empty() { schema } else { schema.with("required", required.into()) };
    let properties: Map<String, Value> =
        fields.into_iter().map(|(name, field)| (name.to_owned(), field.body.into())).collect();
    schema.with("properties", properties.into())
}

impl Schema {
    fn with(mut self, key: &str, value: Value) -> Self {
        self.body.insert(key.to_owned(), value);
        self
    }

    /// The object must have this field.
    pub(super) fn required(mut self) -> Self {
        self.required = true;
        self
    }

    /// What the API server fills in.
    pub(super) fn or(self, default: impl Into<Value>) -> Self {
        self.with("default", default.into())
    }

    pub(super) fn at_least(self, minimum: i32) -> Self {
        self.with("minimum", minimum.into())
    }

    pub(super) fn at_most(self, maximum: i32) -> Self {
        self.with("maximum", maximum.into())
    }

    /// A text must have a character.
    pub(super) fn said(self) -> Self {
        self.with("minLength", 1.into())
    }

    /// A list must have an item.
    pub(super) fn filled(self) -> Self {
        self.with("minItems", 1.into())
    }

    /// A list that is written as a whole.
    pub(super) fn atomic(self) -> Self {
        self.with("x-kubernetes-list-type", "atomic".into())
    }

    /// `null` says something else than absence, or is written where nothing is known.
    pub(super) fn nullable(self) -> Self {
        self.with("nullable", true.into())
    }

    /// What must hold between fields, in CEL, and what to say if it does not.
    pub(super) fn rule(mut self, rule: &str, message: &str) -> Self {
        let rules = self.body.entry("x-kubernetes-validations").or_insert_with(|| json!([]));
        if let Some(rules) = rules.as_array_mut() {
            rules.push(json!({"rule": rule, "message": message}));
        }
        self
    }

    pub(super) fn into_value(self) -> Value {
        self.body.into()
    }
}
