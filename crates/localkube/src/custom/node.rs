//! A parsed schema of a custom resource: patterns compiled, limits as numbers.

use regex::Regex;
use serde_json::Value;

use super::formats::Format;
use crate::json::{list, strings};
use crate::schema::{ListKind, list_kind};

/// The schema of one value.
#[derive(Debug, Default)]
pub(crate) struct SchemaNode {
    pub(crate) kind: Option<String>,
    pub(crate) format: Option<Format>,
    pub(crate) nullable: bool,
    pub(crate) int_or_string: bool,
    pub(crate) preserve_unknown: bool,
    pub(crate) embedded: bool,
    pub(crate) properties: Vec<(String, SchemaNode)>,
    pub(crate) required: Vec<String>,
    pub(crate) additional: AdditionalProperties,
    pub(crate) items: Option<Box<SchemaNode>>,
    pub(crate) list: ListKind,
    pub(crate) default: Option<Value>,
    pub(crate) choices: Vec<Value>,
    pub(crate) limits: ValueLimits,
    pub(crate) any_of: Vec<SchemaNode>,
    pub(crate) one_of: Vec<SchemaNode>,
    pub(crate) all_of: Vec<SchemaNode>,
    pub(crate) not: Option<Box<SchemaNode>>,
}

/// `additionalProperties`.
#[derive(Debug, Default)]
pub(crate) enum AdditionalProperties {
    #[default]
    Unsaid,
    Allowed,
    Refused,
    Like(Box<SchemaNode>),
}

/// Limits of numbers, strings, lists and objects.
#[derive(Debug, Default)]
pub(crate) struct ValueLimits {
    pub(crate) minimum: Option<f64>,
    pub(crate) exclusive_minimum: bool,
    pub(crate) maximum: Option<f64>,
    pub(crate) exclusive_maximum: bool,
    pub(crate) multiple_of: Option<f64>,
    pub(crate) length: CountRange,
    pub(crate) items: CountRange,
    pub(crate) properties: CountRange,
    /// An invalid regular expression matches nothing; the definition was refused anyway.
    pub(crate) pattern: Option<(String, Option<Regex>)>,
}

/// A minimum and a maximum count.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CountRange {
    pub(crate) least: Option<i64>,
    pub(crate) most: Option<i64>,
}

impl SchemaNode {
    /// Parses an `openAPIV3Schema`.
    pub(crate) fn read(schema: &Value) -> Self {
        let flag = |name: &str| schema.get(name).and_then(Value::as_bool).unwrap_or_default();
        let each = |name: &str| list(schema, name).iter().map(Self::read).collect();
        let properties = schema.get("properties").and_then(Value::as_object);
        Self {
            kind: text(schema, "type").filter(|kind| !kind.is_empty()),
            format: schema.get("format").and_then(Value::as_str).and_then(Format::known),
            nullable: flag("nullable"),
            int_or_string: flag("x-kubernetes-int-or-string"),
            preserve_unknown: flag("x-kubernetes-preserve-unknown-fields"),
            embedded: flag("x-kubernetes-embedded-resource"),
            properties: properties
                .map(|map| map.iter().map(|(name, inner)| (name.clone(), Self::read(inner))).collect())
                .unwrap_or_default(),
            required: strings(schema, "required"),
            additional: match schema.get("additionalProperties") {
                None | Some(Value::Null) => AdditionalProperties::Unsaid,
                Some(Value::Bool(true)) => AdditionalProperties::Allowed,
                Some(Value::Bool(false)) => AdditionalProperties::Refused,
                Some(inner) => AdditionalProperties::Like(Box::new(Self::read(inner))),
            },
            items: schema
                .get("items")
                .filter(|items| items.is_object())
                .map(|items| Box::new(Self::read(items))),
            list: list_kind(schema),
            default: schema.get("default").filter(|default| !default.is_null()).cloned(),
            choices: list(schema, "enum").to_vec(),
            limits: ValueLimits::read(schema),
            any_of: each("anyOf"),
            one_of: each("oneOf"),
            all_of: each("allOf"),
            not: schema.get("not").filter(|not| not.is_object()).map(|not| Box::new(Self::read(not))),
        }
    }

    /// The schema of a property.
    pub(crate) fn property(&self, name: &str) -> Option<&Self> {
        self.properties.iter().find(|(known, _)| known == name).map(|(_, node)| node).or(
            match &self.additional {
                AdditionalProperties::Like(node) => Some(node),
                _ => None,
            },
        )
    }
}

impl ValueLimits {
    fn read(schema: &Value) -> Self {
        let number = |name: &str| schema.get(name).and_then(Value::as_f64);
        let count = |name: &str| schema.get(name).and_then(Value::as_i64);
        let flag = |name: &str| schema.get(name).and_then(Value::as_bool).unwrap_or_default();
        let span = |least: &str, most: &str| CountRange { least: count(least), most: count(most) };
        Self {
            minimum: number("minimum"),
            exclusive_minimum: flag("exclusiveMinimum"),
            maximum: number("maximum"),
            exclusive_maximum: flag("exclusiveMaximum"),
            multiple_of: number("multipleOf"),
            length: span("minLength", "maxLength"),
            items: span("minItems", "maxItems"),
            properties: span("minProperties", "maxProperties"),
            pattern: text(schema, "pattern").filter(|text| !text.is_empty()).map(|text| {
                let compiled = Regex::new(&text).ok();
                (text, compiled)
            }),
        }
    }
}

fn text(value: &Value, name: &str) -> Option<String> {
    value.get(name).and_then(Value::as_str).map(str::to_owned)
}
