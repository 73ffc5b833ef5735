//! JSON as in Go.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Given;
use crate::formula::budget::Budget;
use crate::formula::catalog::Function;
use crate::formula::error::EvalError;
use crate::formula::text;
use crate::formula::value::{Key, MAX_VALUE_SIZE, Map, Value, too_large};

pub(super) fn call(function: Function, given: &Given<'_>, run: &mut Budget) -> Result<Value, EvalError> {
    if function == Function::FromJson {
        let text = given.text(0)?;
        run.spend(text.len() as u64)?;
        run.keep(text.len() as u64)?;
        let json: serde_json::Value = serde_json::from_str(text).map_err(|error| {
            if error.is_eof() { "unexpected end of JSON input".to_owned() } else { error.to_string() }
        })?;
        return from(json);
    }
    let value = given.value(0);
    run.spend(value.size())?;
    let mut out = String::new();
    write(value, 0, &mut out)?;
    run.text(out)
}

fn from(json: serde_json::Value) -> Result<Value, EvalError> {
    Ok(match json {
        serde_json::Value::Null => Value::Nil,
        serde_json::Value::Bool(flag) => Value::Bool(flag),
        // In Go every number decodes to a float.
        serde_json::Value::Number(number) => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        serde_json::Value::String(text) => Value::Text(text.into()),
        serde_json::Value::Array(items) => {
            Value::array(items.into_iter().map(from).collect::<Result<_, _>>()?)?
        }
        serde_json::Value::Object(fields) => {
            let mut entries = BTreeMap::new();
            for (key, value) in fields {
                entries.insert(Key::Text(key.into()), from(value)?);
            }
            Value::Map(Arc::new(Map::new(entries)?))
        }
    })
}

/// Indented by two spaces per level, as in expr.
fn write(value: &Value, level: usize, out: &mut String) -> Result<(), EvalError> {
    if out.len() as u64 > MAX_VALUE_SIZE {
        return Err(too_large());
    }
    let inner = |out: &mut String, index: usize| {
        out.push_str(if index == 0 { "\n" } else { ",\n" });
        out.push_str(&"  ".repeat(level + 1));
    };
    let end = |out: &mut String, mark: char| {
        out.push('\n');
        out.push_str(&"  ".repeat(level));
        out.push(mark);
    };
    match value {
        Value::Nil => out.push_str("null"),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Int(number) | Value::Span(number) => out.push_str(&number.to_string()),
        Value::Float(number) if number.is_finite() => out.push_str(&text::json_float(*number)),
        Value::Float(number) => {
            return Err(format!("json: unsupported value: {}", text::float(*number)).into());
        }
        Value::Text(text) => quote(text, out),
        Value::Array(list) if list.items().is_empty() => out.push_str("[]"),
        Value::Array(list) => {
            out.push('[');
            for (index, item) in list.items().iter().enumerate() {
                inner(out, index);
                write(item, level + 1, out)?;
            }
            end(out, ']');
        }
        Value::Map(map) if map.entries().is_empty() => out.push_str("{}"),
        Value::Map(map) => {
            out.push('{');
            for (index, (key, value)) in map.entries().iter().enumerate() {
                let Key::Text(key) = key else {
                    return Err("json: unsupported type: map[interface {}]interface {}".into());
                };
                inner(out, index);
                quote(key, out);
                out.push_str(": ");
                write(value, level + 1, out)?;
            }
            end(out, '}');
        }
        Value::Time(time) => quote(&time.strftime("%Y-%m-%dT%H:%M:%S%.f%:z").to_string(), out),
        Value::Zone(_) => out.push_str("{}"),
    }
    Ok(())
}

fn quote(text: &str, out: &mut String) {
    let quoted = serde_json::Value::from(text).to_string();
    for c in quoted.chars() {
        match c {
            // Go escapes HTML characters in JSON.
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
}
