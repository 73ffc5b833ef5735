//! Validates a custom resource against its schema, in the order and with the texts of the API server.
//!
//! Rules in CEL (`x-kubernetes-validations`) are not evaluated.

use api::field::FieldError;
use serde_json::{Map, Value};

use super::faults::{
    broken, elsewhere, fault, float_text, missing, too_long, too_many, unsupported, wrong_type,
};
use super::node::{AdditionalProperties, SchemaNode};
use crate::schema::ListKind;

/// The largest integer that a 64-bit float represents exactly.
const MAX_EXACT_INTEGER: f64 = 9_007_199_254_740_991.0;

/// Validates a value and its children; errors go to `out`. A part that is unchanged from `old` is not validated again,
/// so that an object stays editable after its schema became stricter. Returns how many values the schema matched, which
/// selects the closest of several alternatives.
pub(super) fn check(
    node: &SchemaNode,
    value: &Value,
    old: Option<&Value>,
    path: &str,
    out: &mut Vec<FieldError>,
) -> usize {
    if old == Some(value) {
        return 1;
    }
    out.extend(type_fault(node, value, path));
    alternatives(node, value, path, out);
    let mut seen = 1;
    match value {
        Value::String(text) => check_text(node, value, text, path, out),
        Value::Number(_) => check_number(node, value, path, out),
        Value::Array(items) => seen += check_items(node, items, old.and_then(Value::as_array), path, out),
        _ => {}
    }
    // Null is never one of the choices, even if the enum lists it.
    if !node.choices.is_empty() && (value.is_null() || !node.choices.iter().any(|choice| same(choice, value)))
    {
        out.push(unsupported(path, value, &node.choices));
    }
    if let Value::Object(fields) = value {
        seen += check_fields(node, fields, old.and_then(Value::as_object), path, out);
    }
    seen
}

/// The OpenAPI type of a value, and the format of numbers.
fn kind_of(value: &Value) -> (&'static str, &'static str) {
    match value {
        Value::Null => ("null", ""),
        Value::Bool(_) => ("boolean", ""),
        Value::String(_) => ("string", ""),
        Value::Array(_) => ("array", ""),
        Value::Object(_) => ("object", ""),
        Value::Number(number) if number.is_i64() => ("integer", "int64"),
        Value::Number(number) if number.as_f64().is_some_and(is_whole) => ("integer", "float64"),
        Value::Number(_) => ("number", "float64"),
    }
}

fn is_whole(number: f64) -> bool {
    number.fract() == 0.0 && number.abs() <= MAX_EXACT_INTEGER
}

fn type_fault(node: &SchemaNode, value: &Value, path: &str) -> Option<FieldError> {
    let wanted = match &node.kind {
        _ if node.int_or_string => "integer,string",
        Some(kind) => kind,
        None => return None,
    };
    let (kind, format) = kind_of(value);
    if value.is_null() {
        return (!node.nullable).then(|| wrong_type(path, wanted, kind));
    }
    if wanted.split(',').any(|wanted| wanted == kind) || wanted == "number" && kind == "integer" {
        return None;
    }
    match node.format {
        // The server accepts a list for any string format.
        Some(_) if matches!(kind, "string" | "array") && !matches!(wanted, "integer" | "number") => None,
        Some(wanted) if !matches!(kind, "string" | "array") => Some(wrong_type(path, wanted.name(), format)),
        _ => Some(wrong_type(path, wanted, kind)),
    }
}

fn alternatives(node: &SchemaNode, value: &Value, path: &str, out: &mut Vec<FieldError>) {
    let tried = |nodes: &[SchemaNode]| -> Vec<(usize, Vec<FieldError>)> {
        let one = |node: &SchemaNode| {
            let mut faults = Vec::new();
            (check(node, value, None, path, &mut faults), faults)
        };
        nodes.iter().map(one).collect()
    };
    // The errors of the alternative that matched the most values; the first of several.
    let nearest = |tried: Vec<(usize, Vec<FieldError>)>| {
        let best = tried.into_iter().reduce(|best, next| if next.0 > best.0 { next } else { best });
        best.map(|(_, faults)| faults).unwrap_or_default()
    };
    let valid =
        |tried: &[(usize, Vec<FieldError>)]| tried.iter().filter(|(_, faults)| faults.is_empty()).count();
    let quoted = api::gotext::quote(path);

    let any = tried(&node.any_of);
    if !any.is_empty() && valid(&any) == 0 {
        out.push(elsewhere(format!("{quoted} must validate at least one schema (anyOf)")));
        out.extend(nearest(any));
    }
    let one = tried(&node.one_of);
    match valid(&one) {
        _ if one.is_empty() => {}
        0 => {
            out.push(elsewhere(format!(
                "{quoted} must validate one and only one schema (oneOf). Found none valid"
            )));
            out.extend(nearest(one));
        }
        1 => {}
        several => out.push(elsewhere(format!(
            "{quoted} must validate one and only one schema (oneOf). Found {several} valid alternatives"
        ))),
    }
    let all = tried(&node.all_of);
    let good = valid(&all);
    if good < all.len() {
        let none = if good == 0 { ". None validated" } else { "" };
        out.extend(all.into_iter().flat_map(|(_, faults)| faults));
        out.push(elsewhere(format!("{quoted} must validate all the schemas (allOf){none}")));
    }
    if let Some(not) = &node.not {
        let mut faults = Vec::new();
        check(not, value, None, path, &mut faults);
        if faults.is_empty() {
            out.push(elsewhere(format!("{quoted} must not validate the schema (not)")));
        }
    }
}

/// Only the first violated limit is reported.
fn check_text(node: &SchemaNode, value: &Value, text: &str, path: &str, out: &mut Vec<FieldError>) {
    let length = text.chars().count() as i64;
    let span = node.limits.length;
    match (&node.limits.pattern, span.least, span.most) {
        (_, _, Some(most)) if length > most => out.push(too_long(path, most)),
        (_, Some(least), _) if length < least => {
            out.push(broken(path, value, &format!("should be at least {least} chars long")));
        }
        (Some((pattern, compiled)), _, _) if !compiled.as_ref().is_some_and(|regex| regex.is_match(text)) => {
            out.push(broken(path, value, &format!("should match '{pattern}'")));
        }
        _ => {}
    }
    if let Some(format) = node.format.filter(|format| !format.accepts(text)) {
        out.push(wrong_type(path, format.name(), text));
    }
}

fn check_number(node: &SchemaNode, value: &Value, path: &str, out: &mut Vec<FieldError>) {
    let Some(number) = value.as_f64() else { return };
    let format = node.format.map(|format| format!("with format {}", format.name()));
    let fits = match node.kind.as_deref() {
        Some("integer") => {
            (value.is_i64() || is_whole(number))
                && node.format.is_none_or(|format| format.holds_integer(number))
        }
        Some("number") => node.format.is_none_or(|format| format.holds_number(number)),
        _ => true,
    };
    if !fits {
        let kind = node.kind.as_deref().unwrap_or_default();
        let format = format.unwrap_or_else(|| "(default format)".to_owned());
        out.push(elsewhere(format!("Checked value must be of type {kind} {format} in {path}")));
    }
    let limits = &node.limits;
    // The server compares integers with truncated limits.
    let whole = value.as_i64();
    let limit = |limit: f64| if whole.is_some() { limit.trunc() } else { limit };
    let shown = |limit: f64| if whole.is_some() { format!("{limit:.0}") } else { float_text(limit) };
    if let Some(factor) = limits.multiple_of.map(limit) {
        if factor <= 0.0 {
            let detail = format!("factor MultipleOf declared for {path} must be positive: {}", shown(factor));
            out.push(fault(api::field::FieldErrorKind::Invalid, path, shown(factor), detail));
        } else if !is_whole(number / factor) {
            out.push(broken(path, value, &format!("should be a multiple of {}", shown(factor))));
        }
    }
    if let Some(most) = limits.maximum.map(limit)
        && (number > most || limits.exclusive_maximum && number >= most)
    {
        let than = if limits.exclusive_maximum { "than" } else { "than or equal to" };
        out.push(broken(path, value, &format!("should be less {than} {}", shown(most))));
    }
    if let Some(least) = limits.minimum.map(limit)
        && (number < least || limits.exclusive_minimum && number <= least)
    {
        let than = if limits.exclusive_minimum { "than" } else { "than or equal to" };
        out.push(broken(path, value, &format!("should be greater {than} {}", shown(least))));
    }
}

fn check_items(
    node: &SchemaNode,
    items: &[Value],
    old: Option<&Vec<Value>>,
    path: &str,
    out: &mut Vec<FieldError>,
) -> usize {
    let mut seen = 0;
    if let Some(inner) = &node.items {
        for (at, item) in items.iter().enumerate() {
            seen += check(inner, item, counterpart(node, item, old), &format!("{path}[{at}]"), out);
        }
    }
    let count = items.len();
    if let Some(least) = node.limits.items.least.filter(|least| (count as i64) < *least) {
        out.push(broken(path, &Value::from(count), &format!("should have at least {least} items")));
    }
    if let Some(most) = node.limits.items.most.filter(|most| count as i64 > *most) {
        out.push(too_many(path, count, most));
    }
    seen
}

/// The item of the old list with the same keys; other lists have no counterparts.
fn counterpart<'a>(node: &SchemaNode, item: &Value, old: Option<&'a Vec<Value>>) -> Option<&'a Value> {
    let ListKind::Map(keys) = &node.list else { return None };
    old?.iter().find(|old| keys.iter().all(|key| old.get(key) == item.get(key)))
}

fn check_fields(
    node: &SchemaNode,
    fields: &Map<String, Value>,
    old: Option<&Map<String, Value>>,
    path: &str,
    out: &mut Vec<FieldError>,
) -> usize {
    let count = fields.len();
    let span = node.limits.properties;
    if let Some(least) = span.least.filter(|least| (count as i64) < *least) {
        out.push(broken(path, &Value::from(count), &format!("should have at least {least} properties")));
        return 0;
    }
    if let Some(most) = span.most.filter(|most| count as i64 > *most) {
        out.push(too_many(path, count, most));
        return 0;
    }
    let mut names: Vec<&String> = fields.keys().collect();
    names.sort();
    if matches!(node.additional, AdditionalProperties::Refused) {
        for name in names.iter().filter(|name| !node.properties.iter().any(|(known, _)| known == **name)) {
            let detail = format!("{} in body is a forbidden property", join(path, name));
            out.push(FieldError::invalid(path, *name, detail));
        }
    }
    let mut seen = 0;
    for name in names {
        if let (Some(inner), Some(value)) = (node.property(name), fields.get(name)) {
            seen += check(inner, value, old.and_then(|old| old.get(name)), &join(path, name), out);
        }
    }
    out.extend(
        node.required
            .iter()
            .filter(|name| !fields.contains_key(*name))
            .map(|name| missing(&join(path, name))),
    );
    seen
}

/// Joins a path and a field name.
pub(super) fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// Whether two values are equal; numbers are compared by value.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(x), Value::Number(y)) => x.as_f64() == y.as_f64(),
        _ => a == b,
    }
}
