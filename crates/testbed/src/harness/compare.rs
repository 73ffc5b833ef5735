//! Compares two transcripts field by field.

use std::fmt;

use serde_json::Value;

use super::transcript::{Exchange, Transcript};

/// One field that differs.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldDifference {
    /// The number of the exchange in its case, from one.
    pub exchange: usize,
    /// The method and path of the request.
    pub request: String,
    /// A field of the body such as `spec.replicas`, or another part of the exchange.
    pub field: String,
    /// The value on the first cluster; none if absent.
    pub first: Option<Value>,
    /// The value on the second cluster; none if absent.
    pub second: Option<Value>,
}

/// How two clusters differ in a case.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// `topic/case`.
    pub case: String,
    /// The names of the clusters.
    pub names: [&'static str; 2],
    /// All fields that differ, at least one.
    pub fields: Vec<FieldDifference>,
}

/// A deliberate difference.
#[derive(Clone, Copy, Debug)]
pub struct Deliberate {
    /// `topic/case`.
    pub case: &'static str,
    /// The field, as in [`FieldDifference`], without list indices.
    pub field: &'static str,
    /// The reason.
    pub reason: &'static str,
}

/// Deliberate differences between localkube and the real server. There are none.
pub const DELIBERATE: &[Deliberate] = &[];

/// The maximum length of a value in messages.
const MAX_SHOWN_CHARS: usize = 300;

/// Compares the responses of two clusters in a case.
pub fn compare(names: [&'static str; 2], first: &Transcript, second: &Transcript) -> Result<(), Difference> {
    let mut fields = Vec::new();
    for at in 0..first.exchanges.len().max(second.exchanges.len()) {
        exchange(at + 1, first.exchanges.get(at), second.exchanges.get(at), &mut fields);
    }
    fields.retain(|field| !DELIBERATE.iter().any(|deliberate| deliberate.covers(&first.case, &field.field)));
    if fields.is_empty() { Ok(()) } else { Err(Difference { case: first.case.clone(), names, fields }) }
}

impl Deliberate {
    fn covers(&self, case: &str, field: &str) -> bool {
        let mut plain = String::new();
        let mut inside = false;
        for c in field.chars() {
            inside = (inside || c == '[') && c != ']';
            if !inside && c != ']' {
                plain.push(c);
            }
        }
        self.case == case && self.field == plain
    }
}

fn exchange(
    number: usize,
    first: Option<&Exchange>,
    second: Option<&Exchange>,
    found: &mut Vec<FieldDifference>,
) {
    let request = first.or(second).map_or("", |exchange| &exchange.request);
    let mut add = |field: &str, first: Option<&Value>, second: Option<&Value>| {
        found.push(FieldDifference {
            exchange: number,
            request: request.to_owned(),
            field: field.to_owned(),
            first: first.cloned(),
            second: second.cloned(),
        });
    };
    let (Some(one), Some(other)) = (first, second) else {
        let request_of = |exchange: &Exchange| Value::from(exchange.request.clone());
        return add("the exchange", first.map(request_of).as_ref(), second.map(request_of).as_ref());
    };
    if one.code != other.code {
        // Different codes cause all other differences, so only the code and the message are reported.
        add("the code", Some(&one.code.into()), Some(&other.code.into()));
        return add("the answer", Some(message_or_body(&one.body)), Some(message_or_body(&other.body)));
    }
    for (field, one, other) in [
        ("the request", Value::from(&*one.request), Value::from(&*other.request)),
        ("the content type", Value::from(&*one.content), Value::from(&*other.content)),
        ("the warnings", Value::from(&*one.warnings), Value::from(&*other.warnings)),
    ] {
        if one != other {
            add(field, Some(&one), Some(&other));
        }
    }
    walk("", Some(&one.body), Some(&other.body), &mut add);
}

/// The message of a `Status`, or the whole body of any other response.
fn message_or_body(body: &Value) -> &Value {
    body.get("message").filter(|_| body.get("kind").is_some_and(|kind| kind == "Status")).unwrap_or(body)
}

type Add<'a> = dyn FnMut(&str, Option<&Value>, Option<&Value>) + 'a;

fn walk(path: &str, first: Option<&Value>, second: Option<&Value>, add: &mut Add<'_>) {
    match (first, second) {
        (Some(Value::Object(one)), Some(Value::Object(other))) => {
            let mut names: Vec<&String> =
                one.keys().chain(other.keys().filter(|k| !one.contains_key(*k))).collect();
            names.sort_unstable();
            for name in names {
                let dot = if path.is_empty() { "" } else { "." };
                // A name with dots, such as that of a label, is put in brackets, because it would look like several names.
                let name_shown =
                    if name.contains('.') { format!("[{name}]") } else { format!("{dot}{name}") };
                walk(&format!("{path}{name_shown}"), one.get(name), other.get(name), add);
            }
        }
        (Some(Value::Array(one)), Some(Value::Array(other))) => {
            for at in 0..one.len().max(other.len()) {
                walk(&format!("{path}[{at}]"), one.get(at), other.get(at), add);
            }
        }
        (one, other) if one == other => {}
        (one, other) => add(if path.is_empty() { "the body" } else { path }, one, other),
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, second] = self.names;
        writeln!(f, "{}", self.case)?;
        let mut last = 0;
        for field in &self.fields {
            if field.exchange != last {
                writeln!(f, "  {}. {}", field.exchange, field.request)?;
                last = field.exchange;
            }
            let shown =
                |value: Option<&Value>| value.map_or("absent".to_owned(), |value| cut(value.to_string()));
            let (one, other) = (shown(field.first.as_ref()), shown(field.second.as_ref()));
            writeln!(f, "     {}: {one} on {first}, {other} on {second}", field.field)?;
        }
        Ok(())
    }
}

fn cut(text: String) -> String {
    match text.char_indices().nth(MAX_SHOWN_CHARS) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn transcript(code: u16, body: Value) -> Transcript {
        let exchange = Exchange { request: "GET /x".into(), code, body, ..Exchange::default() };
        Transcript { case: "a/b".into(), exchanges: vec![exchange] }
    }

    fn said(first: &Transcript, second: &Transcript) -> String {
        compare(["one", "other"], first, second)
            .map_or_else(|difference| difference.to_string(), |()| String::new())
    }

    #[test]
    fn field_order_is_no_difference() {
        let first = transcript(200, json!({"a": 1, "b": [1, {"c": null}]}));
        let second = transcript(200, json!({"b": [1, {"c": null}], "a": 1}));
        assert_eq!(said(&first, &second), "");
    }

    #[test]
    fn every_differing_field_is_named() {
        let first = transcript(
            200,
            json!({"spec": {"replicas": 3, "ports": [{"port": 80}]}, "metadata": {"labels": {"a.b/c": "d"}}}),
        );
        let second =
            transcript(200, json!({"spec": {"ports": [{"port": 81}, {}]}, "metadata": {"labels": {}}}));
        let text = said(&first, &second);
        for line in [
            "a/b",
            "  1. GET /x",
            "     metadata.labels[a.b/c]: \"d\" on one, absent on other",
            "     spec.ports[0].port: 80 on one, 81 on other",
            "     spec.ports[1]: absent on one, {} on other",
            "     spec.replicas: 3 on one, absent on other",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }

    #[test]
    fn different_status_code_is_the_only_reported_field() {
        let text = said(
            &transcript(404, json!({"kind": "Status", "message": "not found"})),
            &transcript(200, json!({"x": 1})),
        );
        assert!(text.contains("the code: 404 on one, 200 on other"), "{text}");
        assert!(text.contains("the answer: \"not found\" on one, {\"x\":1} on other"), "{text}");
    }

    #[test]
    fn missing_exchange_is_a_difference() {
        let none = Transcript { case: "a/b".into(), exchanges: Vec::new() };
        let text = said(&transcript(200, json!({})), &none);
        assert!(text.contains("the exchange: \"GET /x\" on one, absent on other"), "{text}");
    }

    #[test]
    fn deliberate_differences_match_without_list_indices() {
        let deliberate = Deliberate { case: "a/b", field: "items.spec", reason: "" };
        assert!(deliberate.covers("a/b", "items[3].spec") && !deliberate.covers("a/c", "items[3].spec"));
        assert!(!deliberate.covers("a/b", "items.spec.x"));
    }
}
