//! Placeholders in transcripts for values that differ from run to run.
//!
//! Placeholders keep relations: equal uids have equal placeholders, and resource versions are numbered in
//! their order, so that the transcript shows a write that changed one unexpectedly or decreased it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::transcript::{Exchange, Transcript};

/// How a value is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Placeholder {
    /// `<NAME N>`, N by first appearance.
    Numbered(&'static str),
    /// `<rv N>`, N by the order of all resource versions of objects in the case. The version of a list or a bookmark is
    /// that of the whole store, which other clients change too. It is only checked not to be below those of the objects in the list.
    Version,
    /// The same placeholder for every value.
    Fixed(&'static str),
    /// The field is removed.
    Dropped,
}

/// Fields that differ from run to run, wherever they are.
const FIELDS: &[(&str, Placeholder)] = &[
    ("resourceVersion", Placeholder::Version),
    ("continue", Placeholder::Fixed("<continue>")),
    ("clusterIP", Placeholder::Numbered("ip")),
    ("clusterIPs", Placeholder::Numbered("ip")),
    ("nodePort", Placeholder::Numbered("port")),
    ("healthCheckNodePort", Placeholder::Numbered("port")),
    ("pod-template-hash", Placeholder::Numbered("hash")),
    // localkube does not set it when it is called within the process.
    ("serverAddress", Placeholder::Dropped),
    // This hash describes the storage in etcd; clients do not use it.
    ("storageVersionHash", Placeholder::Dropped),
];

/// Resource versions in texts, by the text that precedes them.
const VERSIONS_IN_TEXT: &[&str] = &[
    "does not match the ResourceVersion in record (",
    "too old resource version: 1 (",
    "Too large resource version: 999999999, current: ",
];

/// The begin of an object that a text contains in Go syntax. Such objects end with a quote and are removed.
const OBJECT_IN_TEXT: &str = "Invalid value: \"{\\\"";

/// Columns of tables that contain ages.
const AGES: &[&str] = &["Age", "Duration", "First Seen", "Last Seen"];

// In any text: uuids (`<uid N>`), times since 2025 (`<time>`, `<micro time>`; older ones are the case's own), the
// namespace of the case (`{ns}`), names made by the server from a generateName (`PREFIX<name N>`).

/// Times before this year were written by a case and are kept.
const FIRST_YEAR_OF_RUNS: &[u8] = b"2025";

#[derive(Default)]
struct Normaliser {
    namespace: String,
    /// The rank of each resource version.
    versions: BTreeMap<u64, usize>,
    /// Names that the server generated, longest first, and their placeholders.
    names: Vec<(String, String)>,
    /// The values so far, by kind of placeholder.
    values: BTreeMap<&'static str, Vec<String>>,
    /// Columns of the current table that hold ages; a watch sends the column definitions only once.
    ages: Vec<usize>,
}

/// Returns the transcript of a case, with placeholders for volatile values.
pub(crate) fn normalise(case: &str, namespace: &str, exchanges: &[Exchange]) -> Transcript {
    let mut normaliser = Normaliser { namespace: namespace.to_owned(), ..Normaliser::default() };
    let mut versions = BTreeSet::new();
    for exchange in exchanges {
        collect(&exchange.body, &mut versions, &mut normaliser.names);
    }
    normaliser.versions = versions.into_iter().zip(1..).collect();
    normaliser.names.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    let exchanges = exchanges.iter().map(|exchange| Exchange {
        body: normaliser.value("", &exchange.body),
        warnings: exchange.warnings.iter().map(|text| normaliser.text(text)).collect(),
        ..exchange.clone()
    });
    Transcript { case: case.to_owned(), exchanges: exchanges.collect() }
}

fn number(value: &Value) -> Option<u64> {
    value.as_str().and_then(|text| text.parse().ok())
}

/// Whether the resource version in its metadata is that of the store (a list or a table) and not of one object.
fn is_of_store(fields: &Map<String, Value>) -> bool {
    fields.get("items").is_some_and(Value::is_array) || fields.get("rows").is_some_and(Value::is_array)
}

/// Collects resource versions of objects, and names that the server generated.
fn collect(value: &Value, versions: &mut BTreeSet<u64>, names: &mut Vec<(String, String)>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect(item, versions, names)),
        Value::Object(fields) => {
            let bookmark = fields.get("type").is_some_and(|kind| kind == "BOOKMARK");
            if bookmark {
                return;
            }
            let text = |name: &str| fields.get(name).and_then(Value::as_str);
            if let (Some(prefix), Some(name)) = (text("generateName"), text("name"))
                && name.len() > prefix.len()
                && name.starts_with(prefix)
                && names.iter().all(|(known, _)| known != name)
            {
                names.push((name.to_owned(), format!("{prefix}<name {}>", names.len() + 1)));
            }
            let store = is_of_store(fields);
            for (name, field) in fields {
                if name == "resourceVersion" {
                    versions.extend(number(field));
                } else if !(store && name == "metadata") {
                    collect(field, versions, names);
                }
            }
        }
        _ => {}
    }
}

impl Normaliser {
    fn value(&mut self, name: &str, value: &Value) -> Value {
        let placeholder =
            FIELDS.iter().find(|(field, _)| *field == name).map(|(_, placeholder)| *placeholder);
        match (placeholder, value) {
            (Some(placeholder), Value::String(_) | Value::Number(_)) => self.placeholder(placeholder, value),
            (_, Value::Array(items)) => {
                let mut items: Vec<Value> = items.iter().map(|item| self.value(name, item)).collect();
                if name == "managedFields" {
                    // The server orders these by time, of which only whole seconds are visible.
                    items.sort_by_key(ToString::to_string);
                }
                Value::Array(items)
            }
            (_, Value::Object(fields)) => self.object(fields),
            (_, Value::String(text)) => self.text(text).into(),
            (_, other) => other.clone(),
        }
    }

    fn object(&mut self, fields: &Map<String, Value>) -> Value {
        if let Some(columns) = fields.get("columnDefinitions").and_then(Value::as_array) {
            let is_age =
                |column: &Value| AGES.iter().any(|age| column.get("name") == Some(&Value::from(*age)));
            self.ages = (0..columns.len()).filter(|at| columns.get(*at).is_some_and(is_age)).collect();
        }
        // Fields are processed in alphabetical order, so that numbers do not depend on the order in which a server writes them.
        let mut names: Vec<&str> = fields.keys().map(String::as_str).collect();
        names.sort_unstable();
        let mut normal = Map::new();
        for name in names {
            let Some(field) = fields.get(name).filter(|_| !FIELDS.contains(&(name, Placeholder::Dropped)))
            else {
                continue;
            };
            let field = match (name, field) {
                ("metadata", Value::Object(metadata)) if is_of_store(fields) => {
                    self.of_store(fields, metadata)
                }
                ("object", Value::Object(object)) if fields.get("type").is_some_and(|t| t == "BOOKMARK") => {
                    self.bookmark(object)
                }
                ("cells", Value::Array(cells)) => {
                    (0..).zip(cells).map(|(at, cell)| self.cell(at, cell)).collect()
                }
                _ => self.value(name, field),
            };
            normal.insert(self.text(name), field);
        }
        Value::Object(normal)
    }

    fn of_store(&mut self, list: &Map<String, Value>, metadata: &Map<String, Value>) -> Value {
        let mut normal = self.object(metadata);
        if let Some(version) = metadata.get("resourceVersion").and_then(number) {
            let mut inside = BTreeSet::new();
            for (name, field) in list {
                if name != "metadata" {
                    collect(field, &mut inside, &mut Vec::new());
                }
            }
            let behind = inside.last().is_some_and(|last| version < *last);
            let placeholder = if behind { "<list rv behind its items>" } else { "<list rv>" };
            set(&mut normal, "resourceVersion", placeholder);
        }
        normal
    }

    fn bookmark(&mut self, object: &Map<String, Value>) -> Value {
        let mut normal = self.object(object);
        if let Some(metadata) = normal.get_mut("metadata") {
            set(metadata, "resourceVersion", "<list rv>");
        }
        normal
    }

    fn cell(&mut self, at: usize, cell: &Value) -> Value {
        let ago = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
        match cell {
            Value::String(text) if self.ages.contains(&at) && ago(text) => "<age>".into(),
            _ => self.value("", cell),
        }
    }

    fn placeholder(&mut self, placeholder: Placeholder, value: &Value) -> Value {
        match placeholder {
            Placeholder::Fixed(text) if value != "" => text.into(),
            Placeholder::Numbered(kind) if value != "" && value != "None" => {
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                self.numbered(kind, &text).into()
            }
            Placeholder::Version => match number(value).and_then(|version| self.versions.get(&version)) {
                Some(rank) => format!("<rv {rank}>").into(),
                None => value.clone(),
            },
            _ => value.clone(),
        }
    }

    fn numbered(&mut self, kind: &'static str, text: &str) -> String {
        let values = self.values.entry(kind).or_default();
        let at = values.iter().position(|known| known == text).unwrap_or_else(|| {
            values.push(text.to_owned());
            values.len() - 1
        });
        format!("<{kind} {}>", at + 1)
    }

    fn text(&mut self, text: &str) -> String {
        let mut text = text.to_owned();
        for (name, placeholder) in &self.names {
            text = text.replace(name, placeholder);
        }
        text = text.replace(&self.namespace, "{ns}");
        for before in VERSIONS_IN_TEXT {
            if let Some((head, tail)) = text.split_once(before) {
                text = format!("{head}{before}<rv>{}", tail.trim_start_matches(|c: char| c.is_ascii_digit()));
            }
        }
        self.shapes(&without_object(&text))
    }

    /// Replaces uuids and times in a text.
    fn shapes(&mut self, text: &str) -> String {
        let mut normal = String::new();
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let uid = uuid(rest.as_bytes());
            let time = time(rest.as_bytes());
            let length = uid.or(time).unwrap_or(first.len_utf8());
            let (head, tail) = rest.split_at_checked(length).unwrap_or((rest, ""));
            if uid.is_some() {
                normal += &self.numbered("uid", head);
            } else if time.is_some() {
                normal += if head.contains('.') { "<micro time>" } else { "<time>" };
            } else {
                normal += head;
            }
            rest = tail;
        }
        normal
    }
}

fn without_object(text: &str) -> String {
    let Some((head, tail)) = text.split_once(OBJECT_IN_TEXT) else { return text.to_owned() };
    let mut escaped = false;
    let end = tail.find(|c: char| {
        let ends = c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        ends
    });
    let rest = end.and_then(|end| tail.get(end..)).unwrap_or_default();
    format!("{head}Invalid value: \"<object>{}", without_object(rest))
}

fn set(object: &mut Value, field: &str, value: &str) {
    if let Some(fields) = object.as_object_mut() {
        fields.insert(field.to_owned(), value.into());
    }
}

/// The length of the prefix of a text that matches `pattern`, in which `x` is a hexadecimal digit and `0` a digit.
fn matching_length(text: &[u8], pattern: &[u8]) -> Option<usize> {
    let fits = |(byte, wanted): (&u8, &u8)| match wanted {
        b'x' => byte.is_ascii_digit() || (b'a'..=b'f').contains(byte),
        b'0' => byte.is_ascii_digit(),
        exact => byte == exact,
    };
    (text.len() >= pattern.len() && text.iter().zip(pattern).all(fits)).then_some(pattern.len())
}

fn uuid(text: &[u8]) -> Option<usize> {
    matching_length(text, b"xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx")
}

fn time(text: &[u8]) -> Option<usize> {
    let length = matching_length(text, b"0000-00-00T00:00:00.000000Z")
        .or_else(|| matching_length(text, b"0000-00-00T00:00:00Z"))?;
    (text.get(..4)? >= FIRST_YEAR_OF_RUNS).then_some(length)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn bodies(bodies: &[Value]) -> Vec<Value> {
        let exchange = |body: &Value| Exchange { body: body.clone(), ..Exchange::default() };
        let exchanges: Vec<Exchange> = bodies.iter().map(exchange).collect();
        normalise("a/b", "space-7", &exchanges).exchanges.into_iter().map(|e| e.body).collect()
    }

    const ONE: &str = "11111111-2222-3333-4444-555555555555";
    const TWO: &str = "aaaaaaaa-2222-3333-4444-555555555555";

    #[test]
    fn equal_uids_have_equal_placeholders() {
        let seen =
            bodies(&[json!({"uid": TWO}), json!({"message": format!("uid {ONE}, not {TWO}")}), json!(ONE)]);
        assert_eq!(
            seen,
            [json!({"uid": "<uid 1>"}), json!({"message": "uid <uid 2>, not <uid 1>"}), json!("<uid 2>")]
        );
    }

    #[test]
    fn placeholders_of_resource_versions_keep_their_order() {
        let object = |rv: &str| json!({"metadata": {"resourceVersion": rv}});
        let seen = bodies(&[object("900"), object("1000"), object("900"), object("mine")]);
        assert_eq!(seen, [object("<rv 1>"), object("<rv 2>"), object("<rv 1>"), object("mine")]);
    }

    #[test]
    fn list_version_is_not_older_than_its_items() {
        let list = |rv: &str| json!({"metadata": {"resourceVersion": rv}, "items": [{"metadata": {"resourceVersion": "7"}}]});
        let seen = bodies(&[list("7"), list("6")]);
        assert_eq!(seen[0]["metadata"]["resourceVersion"], "<list rv>");
        assert_eq!(seen[1]["metadata"]["resourceVersion"], "<list rv behind its items>");
        assert_eq!(seen[0]["items"][0]["metadata"]["resourceVersion"], "<rv 1>");
    }

    #[test]
    fn times_written_by_a_case_are_kept() {
        let seen =
            bodies(&[json!(["2026-01-02T03:04:05Z", "2026-01-02T03:04:05.123456Z", "2001-01-02T03:04:05Z"])]);
        assert_eq!(seen, [json!(["<time>", "<micro time>", "2001-01-02T03:04:05Z"])]);
    }

    #[test]
    fn generated_names_and_namespace_are_replaced_in_texts() {
        let seen = bodies(&[
            json!({"metadata": {"generateName": "web-", "name": "web-x7f2k", "namespace": "space-7"}}),
            json!({"message": "pods \"web-x7f2k\" not found in space-7"}),
        ]);
        assert_eq!(seen[0]["metadata"]["name"], "web-<name 1>");
        assert_eq!(seen[1]["message"], "pods \"web-<name 1>\" not found in {ns}");
    }

    #[test]
    fn ages_are_recognized_by_their_column() {
        let table = json!({
            "columnDefinitions": [{"name": "Name"}, {"name": "Age"}],
            "rows": [{"cells": ["3s", "3s"]}, {"cells": ["a", "<unknown>"]}],
        });
        let seen = bodies(&[table, json!({"rows": [{"cells": ["b", "12m"]}]})]);
        assert_eq!(seen[0]["rows"], json!([{"cells": ["3s", "<age>"]}, {"cells": ["a", "<unknown>"]}]));
        assert_eq!(seen[1]["rows"], json!([{"cells": ["b", "<age>"]}]));
    }

    #[test]
    fn go_dumps_of_objects_are_removed_from_texts() {
        let text = r#"patch: Invalid value: "{\"apiVersion\":\"v1\",\"a\":\"\\\"\"}": no; more: Invalid value: "x": no"#;
        let cut = r#"patch: Invalid value: "<object>": no; more: Invalid value: "x": no"#;
        assert_eq!(bodies(&[json!(text)]), [json!(cut)]);
    }

    #[test]
    fn similar_texts_are_kept() {
        for text in ["", "ä", "2026-01-02", "11111111-2222-3333-4444-55555555555"] {
            assert_eq!(bodies(&[json!(text)]), [json!(text)]);
        }
    }
}
