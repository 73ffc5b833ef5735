//! What an object should look like to Go, to say in Go's words where it does not.

use serde_json::Value;

/// A type of an object's field.
#[derive(Debug)]
pub(crate) enum Kind {
    /// A string, or something written as one.
    Text,
    /// An integer of this Go type and range.
    Int(&'static str, i64, i64),
    /// An object with known fields.
    Struct(&'static Shape),
    /// A list of such objects.
    List(&'static Shape),
    /// Strings by name.
    Texts,
    /// Anything goes, or whoever reads it has its own words.
    Any,
}

/// An object with known fields.
#[derive(Debug)]
pub(crate) struct Shape {
    /// `v1beta1.PodMetrics`.
    pub(crate) name: &'static str,
    /// Fields by their names in JSON.
    pub(crate) fields: &'static [(&'static str, Kind)],
}

impl Shape {
    /// The first field that Go cannot read, in its words.
    pub(crate) fn complaint(&self, value: &Value) -> Option<String> {
        self.fault(value, &mut Vec::new())
    }

    fn fault<'a>(&self, value: &'a Value, path: &mut Vec<&'a str>) -> Option<String> {
        for (name, value) in value.as_object()? {
            let Some((_, kind)) = self.fields.iter().find(|(known, _)| known == name) else { continue };
            path.push(name);
            if let Some(fault) = self.field_fault(kind, value, path) {
                return Some(fault);
            }
            path.pop();
        }
        None
    }

    fn field_fault<'a>(&self, kind: &Kind, value: &'a Value, path: &mut Vec<&'a str>) -> Option<String> {
        let refuse = |path: &[&str], value: &Value, wanted: &str| {
            let owner = self.name.rsplit('.').next().unwrap_or_default();
            let (path, what) = (path.join("."), what(value, wanted));
            Some(format!(
                "json: cannot unmarshal {what} into Go struct field {owner}.{path} of type {wanted}"
            ))
        };
        match (kind, value) {
            (_, Value::Null) | (Kind::Any, _) | (Kind::Text, Value::String(_)) => None,
            (Kind::Int(_, least, most), Value::Number(number))
                if number.as_i64().is_some_and(|n| (*least..=*most).contains(&n)) =>
            {
                None
            }
            (Kind::Text, _) => refuse(path, value, "string"),
            (Kind::Int(wanted, ..), _) => refuse(path, value, wanted),
            (Kind::Struct(shape), Value::Object(_)) => shape.fault(value, path),
            (Kind::Struct(shape), _) => refuse(path, value, shape.name),
            (Kind::Texts, Value::Object(texts)) => {
                let wrong = texts.values().find(|text| !text.is_string() && !text.is_null())?;
                refuse(path, wrong, "string")
            }
            (Kind::Texts, _) => refuse(path, value, "map[string]string"),
            (Kind::List(shape), Value::Array(items)) => items.iter().find_map(|item| match item {
                Value::Object(_) => shape.fault(item, path),
                Value::Null => None,
                _ => refuse(path, item, shape.name),
            }),
            (Kind::List(shape), _) => refuse(path, value, &format!("[]{}", shape.name)),
        }
    }
}

/// What Go calls a value; of a number that does not fit it shows the digits.
pub(super) fn what(value: &Value, wanted: &str) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "bool".to_owned(),
        Value::Number(number) if wanted.starts_with("int") => format!("number {number}"),
        Value::Number(_) => "number".to_owned(),
        Value::String(_) => "string".to_owned(),
        Value::Array(_) => "array".to_owned(),
        Value::Object(_) => "object".to_owned(),
    }
}
