//! The Go types of objects, to report a mismatch in the words of Go.

use serde_json::Value;

/// A type of an object's field.
#[derive(Debug)]
pub(crate) enum GoType {
    /// A string, or a type that is written as a string.
    Text,
    /// An integer of this Go type and range.
    Int(&'static str, i64, i64),
    /// An object with known fields.
    Struct(&'static GoStruct),
    /// A list of such objects.
    List(&'static GoStruct),
    /// A map of strings.
    Texts,
    /// Not checked here; its decoder has error texts of its own.
    Any,
}

/// An object with known fields.
#[derive(Debug)]
pub(crate) struct GoStruct {
    /// `v1beta1.PodMetrics`.
    pub(crate) name: &'static str,
    /// Fields by their names in JSON.
    pub(crate) fields: &'static [(&'static str, GoType)],
}

impl GoStruct {
    /// Go's text for the first field that it cannot decode.
    pub(crate) fn mismatch(&self, value: &Value) -> Option<String> {
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

    fn field_fault<'a>(&self, kind: &GoType, value: &'a Value, path: &mut Vec<&'a str>) -> Option<String> {
        let refuse = |path: &[&str], value: &Value, wanted: &str| {
            let owner = self.name.rsplit('.').next().unwrap_or_default();
            let (path, what) = (path.join("."), what(value, wanted));
            Some(format!(
                "json: cannot unmarshal {what} into Go struct field {owner}.{path} of type {wanted}"
            ))
        };
        match (kind, value) {
            (_, Value::Null) | (GoType::Any, _) | (GoType::Text, Value::String(_)) => None,
            (GoType::Int(_, least, most), Value::Number(number))
                if number.as_i64().is_some_and(|n| (*least..=*most).contains(&n)) =>
            {
                None
            }
            (GoType::Text, _) => refuse(path, value, "string"),
            (GoType::Int(wanted, ..), _) => refuse(path, value, wanted),
            (GoType::Struct(shape), Value::Object(_)) => shape.fault(value, path),
            (GoType::Struct(shape), _) => refuse(path, value, shape.name),
            (GoType::Texts, Value::Object(texts)) => {
                let wrong = texts.values().find(|text| !text.is_string() && !text.is_null())?;
                refuse(path, wrong, "string")
            }
            (GoType::Texts, _) => refuse(path, value, "map[string]string"),
            (GoType::List(shape), Value::Array(items)) => items.iter().find_map(|item| match item {
                Value::Object(_) => shape.fault(item, path),
                Value::Null => None,
                _ => refuse(path, item, shape.name),
            }),
            (GoType::List(shape), _) => refuse(path, value, &format!("[]{}", shape.name)),
        }
    }
}

/// Go's name of a JSON value; for a number that does not fit, with its digits.
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
