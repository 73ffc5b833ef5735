//! Values of template expressions, printed as Go prints them.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{EvalError, QueryArgs};
use crate::prometheus::mapper::GroupResource;

/// How an action shows a missing value.
pub(super) const NO_VALUE: &str = "<no value>";

#[derive(Clone, Debug)]
pub(super) enum Value {
    /// A missing map key, or `nil`.
    Nothing,
    Bool(bool),
    Int(i64),
    /// A byte of a string.
    Byte(u8),
    Float(f64),
    Text(Arc<str>),
    List(Arc<[Arc<str>]>),
    Map(Arc<BTreeMap<String, String>>),
    Query(Arc<QueryArgs>),
    Resource(Arc<GroupResource>),
}

impl Value {
    pub(super) fn text(text: impl Into<Arc<str>>) -> Self {
        Self::Text(text.into())
    }

    fn list(words: &[String]) -> Self {
        Self::List(words.iter().map(|word| Arc::from(word.as_str())).collect())
    }

    /// Go type name.
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Self::Nothing => "<nil>",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Byte(_) => "uint8",
            Self::Float(_) => "float64",
            Self::Text(_) => "string",
            Self::List(_) => "[]string",
            Self::Map(_) => "map[string]string",
            Self::Query(_) => "naming.queryTemplateArgs",
            Self::Resource(_) => "schema.GroupResource",
        }
    }

    /// Truth value: false for empty and zero values; structs are true.
    pub(super) fn is_true(&self) -> bool {
        match self {
            Self::Nothing => false,
            Self::Bool(truth) => *truth,
            Self::Int(int) => *int != 0,
            Self::Byte(byte) => *byte != 0,
            Self::Float(float) => *float != 0.0,
            Self::Text(text) => !text.is_empty(),
            Self::List(list) => !list.is_empty(),
            Self::Map(map) => !map.is_empty(),
            Self::Query(_) | Self::Resource(_) => true,
        }
    }

    /// A struct field, map entry or method without arguments.
    pub(super) fn field(&self, name: &str) -> Result<Self, EvalError> {
        Ok(match (self, name) {
            (Self::Nothing, _) => Self::Nothing,
            (Self::Map(map), key) => map.get(key).map_or(Self::Nothing, |value| Self::text(value.as_str())),
            (Self::Query(args), "Series") => Self::text(args.series.as_str()),
            (Self::Query(args), "LabelMatchers") => Self::text(args.label_matchers.as_str()),
            (Self::Query(args), "LabelValuesByName") => {
                Self::Map(Arc::new(args.label_values_by_name.clone()))
            }
            (Self::Query(args), "GroupBy") => Self::text(args.group_by.as_str()),
            (Self::Query(args), "GroupBySlice") => Self::list(&args.group_by_slice),
            (Self::Resource(resource), "Group") => Self::text(resource.group.as_str()),
            (Self::Resource(resource), "Resource") => Self::text(resource.resource.as_str()),
            (Self::Resource(resource), "String") => Self::text(resource.to_string()),
            (Self::Resource(resource), "Empty") => {
                Self::Bool(resource.group.is_empty() && resource.resource.is_empty())
            }
            _ => return Err(format!("can't evaluate field {name} in type {}", self.type_name()).into()),
        })
    }

    /// Formats like `%v`.
    pub(super) fn print(&self) -> String {
        match self {
            Self::Nothing => "<nil>".to_owned(),
            Self::Bool(truth) => truth.to_string(),
            Self::Int(int) => int.to_string(),
            Self::Byte(byte) => byte.to_string(),
            Self::Float(float) => float_text(*float),
            Self::Text(text) => text.to_string(),
            Self::List(list) => format!("[{}]", list.join(" ")),
            Self::Map(map) => {
                let entries: Vec<String> = map.iter().map(|(key, value)| format!("{key}:{value}")).collect();
                format!("map[{}]", entries.join(" "))
            }
            Self::Query(args) => {
                let fields = ["Series", "LabelMatchers", "LabelValuesByName", "GroupBy", "GroupBySlice"];
                let printed: Vec<String> = fields
                    .iter()
                    .filter_map(|field| self.field(field).ok())
                    .map(|field| field.print())
                    .collect();
                debug_assert_eq!(printed.first(), Some(&args.series));
                format!("{{{}}}", printed.join(" "))
            }
            Self::Resource(resource) => resource.to_string(),
        }
    }
}

/// Shortest text that identifies the number; with an exponent if it is very large or small.
pub(super) fn float_text(float: f64) -> String {
    if float.is_nan() {
        return "NaN".to_owned();
    }
    if float.is_infinite() {
        return if float > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let scientific = format!("{float:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    match exponent.parse::<i32>().unwrap_or(0) {
        exponent if float != 0.0 && !(-4..21).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs())
        }
        _ => format!("{float}"),
    }
}
