//! The schema of a custom resource, read once: patterns compiled, limits as numbers.

use regex::Regex;
use serde_json::Value;

use super::formats::Format;

/// What one place in an object must look like.
#[derive(Debug, Default)]
pub(crate) struct Node {
    pub(crate) kind: Option<String>,
    pub(crate) format: Option<Format>,
    pub(crate) nullable: bool,
    pub(crate) int_or_string: bool,
    pub(crate) preserve_unknown: bool,
    pub(crate) embedded: bool,
    pub(crate) properties: Vec<(String, Node)>,
    pub(crate) required: Vec<String>,
    pub(crate) additional: Additional,
    pub(crate) items: Option<Box<Node>>,
    pub(crate) list: ListKind,
    pub(crate) default: Option<Value>,
    pub(crate) choices: Vec<Value>,
    pub(crate) limits: Limits,
    pub(crate) any_of: Vec<Node>,
    pub(crate) one_of: Vec<Node>,
    pub(crate) all_of: Vec<Node>,
    pub(crate) not: Option<Box<Node>>,
}

/// What fields may be in an object beside those named.
#[derive(Debug, Default)]
pub(crate) enum Additional {
    #[default]
    Unsaid,
    Allowed,
    Refused,
    Like(Box<Node>),
}

/// How the items of a list are told apart.
#[derive(Debug, Default)]
pub(crate) enum ListKind {
    #[default]
    Atomic,
    Set,
    Map(Vec<String>),
}

/// Bounds of numbers, texts, lists and objects.
#[derive(Debug, Default)]
pub(crate) struct Limits {
    pub(crate) minimum: Option<f64>,
    pub(crate) exclusive_minimum: bool,
    pub(crate) maximum: Option<f64>,
    pub(crate) exclusive_maximum: bool,
    pub(crate) multiple_of: Option<f64>,
    pub(crate) length: Span,
    pub(crate) items: Span,
    pub(crate) properties: Span,
    /// A pattern that is no regular expression matches nothing; the definition was refused anyway.
    pub(crate) pattern: Option<(String, Option<Regex>)>,
}

/// The smallest and the largest count.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Span {
    pub(crate) least: Option<i64>,
    pub(crate) most: Option<i64>,
}

impl Node {
    /// Reads an `openAPIV3Schema`.
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
            required: texts(schema, "required"),
            additional: match schema.get("additionalProperties") {
                None | Some(Value::Null) => Additional::Unsaid,
                Some(Value::Bool(true)) => Additional::Allowed,
                Some(Value::Bool(false)) => Additional::Refused,
                Some(inner) => Additional::Like(Box::new(Self::read(inner))),
            },
            items: schema
                .get("items")
                .filter(|items| items.is_object())
                .map(|items| Box::new(Self::read(items))),
            list: match schema.get("x-kubernetes-list-type").and_then(Value::as_str) {
                Some("set") => ListKind::Set,
                Some("map") => ListKind::Map(texts(schema, "x-kubernetes-list-map-keys")),
                _ => ListKind::Atomic,
            },
            default: schema.get("default").filter(|default| !default.is_null()).cloned(),
            choices: list(schema, "enum").to_vec(),
            limits: Limits::read(schema),
            any_of: each("anyOf"),
            one_of: each("oneOf"),
            all_of: each("allOf"),
            not: schema.get("not").filter(|not| not.is_object()).map(|not| Box::new(Self::read(not))),
        }
    }

    /// The node of a field of an object.
    pub(crate) fn property(&self, name: &str) -> Option<&Self> {
        self.properties.iter().find(|(known, _)| known == name).map(|(_, node)| node).or(
            match &self.additional {
                Additional::Like(node) => Some(node),
                _ => None,
            },
        )
    }
}

impl Limits {
    fn read(schema: &Value) -> Self {
        let number = |name: &str| schema.get(name).and_then(Value::as_f64);
        let count = |name: &str| schema.get(name).and_then(Value::as_i64);
        let flag = |name: &str| schema.get(name).and_then(Value::as_bool).unwrap_or_default();
        let span = |least: &str, most: &str| Span { least: count(least), most: count(most) };
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

pub(crate) fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

pub(crate) fn texts(value: &Value, name: &str) -> Vec<String> {
    list(value, name).iter().filter_map(Value::as_str).map(str::to_owned).collect()
}
