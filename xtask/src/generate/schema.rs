//! Reads a `.schema` file: the compact form in which the structural schemas of custom resources are written down.
//!
//! ```text
//! FIELD TYPE MODIFIER… -- description      a field; `FIELD!` is required
//!   FIELD …                                fields of an object, indented by two spaces
//!   - TYPE …                               the items of a list
//!   * TYPE …                               the values of a map
//!   rule CEL => message                    a validation rule of an object
//! define NAME TYPE …                       a type that fields name; a field may have another description
//! ```
//!
//! Types are `string bool int32 int64 time quantity any-quantity measured-quantity object list map` and defined ones.
//! Modifiers are `enum=A,B default=JSON min=N max=N non-empty atomic nullable`; a value `@/POINTER` is taken from the
//! Rust types. Order is kept: generated files are compared byte for byte.

use std::collections::BTreeMap;

use anyhow::{Context, bail};
use serde_json::{Map, Value, json};

/// Quantities without a sign.
const QUANTITY: &str = r"([0-9]+\.?[0-9]*|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$";

/// The pattern of quantities in Kubernetes' own custom resources.
pub(super) const ANY_QUANTITY: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

/// One line of a file, with the lines that are indented below it.
pub(super) struct SchemaLine<'a> {
    /// Words before the description.
    pub(super) words: Vec<&'a str>,
    pub(super) description: Option<&'a str>,
    pub(super) children: Vec<SchemaLine<'a>>,
    text: &'a str,
}

/// Builds schemas from lines.
pub(super) struct SchemaReader {
    defined: BTreeMap<String, Map<String, Value>>,
    /// The JSON into which `@/POINTER` points.
    values: Value,
}

/// The lines of a file as trees.
pub(super) fn parse(text: &str) -> Vec<SchemaLine<'_>> {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    trees(&lines, 0)
}

fn trees<'a>(lines: &[&'a str], depth: usize) -> Vec<SchemaLine<'a>> {
    let indent = |line: &str| (line.len() - line.trim_start().len()) / 2;
    let mut found = Vec::new();
    let mut rest = lines;
    while let Some((line, below)) = rest.split_first() {
        let count = below.iter().take_while(|line| indent(line) > depth).count();
        let (children, behind) = below.split_at_checked(count).unwrap_or((below, &[]));
        let text = line.trim_start();
        let (head, description) =
            text.split_once(" -- ").map_or((text, None), |(head, description)| (head, Some(description)));
        let words = head.split_whitespace().collect();
        found.push(SchemaLine { words, description, children: trees(children, depth + 1), text });
        rest = behind;
    }
    found
}

impl SchemaReader {
    pub(super) fn new(values: Value) -> Self {
        Self { defined: BTreeMap::new(), values }
    }

    /// Makes a schema known by a name.
    pub(super) fn define(&mut self, name: &str, body: Map<String, Value>) {
        self.defined.insert(name.to_owned(), body);
    }

    /// The schemas of the fields of an object, and the names of the required ones.
    pub(super) fn fields(
        &self,
        lines: &[SchemaLine<'_>],
    ) -> anyhow::Result<(Map<String, Value>, Vec<String>)> {
        let (mut properties, mut required) = (Map::new(), Vec::new());
        for line in lines.iter().filter(|line| line.words.first() != Some(&"rule")) {
            let name = line.words.first().context("a line is empty")?;
            let plain = name.trim_end_matches('!');
            if plain != *name {
                required.push(plain.to_owned());
            }
            properties.insert(plain.to_owned(), self.read(line, 1)?.into());
        }
        Ok((properties, required))
    }

    /// The schema of a line whose type is the word at this place.
    pub(super) fn read(&self, line: &SchemaLine<'_>, at: usize) -> anyhow::Result<Map<String, Value>> {
        let kind = *line.words.get(at).with_context(|| format!("there is no type in: {}", line.text))?;
        let mut body = Map::new();
        if let Some(description) = line.description {
            body.insert("description".to_owned(), description.into());
        }
        let plain = |kind: &str, format: Option<&str>| {
            let mut map = Map::new();
            map.insert("type".to_owned(), kind.into());
            map.extend(format.map(|format| ("format".to_owned(), format.into())));
            map
        };
        match kind {
            "string" | "object" => body.extend(plain(kind, None)),
            "list" => body.extend(plain("array", None)),
            "map" => body.extend(plain("object", None)),
            "bool" => body.extend(plain("boolean", None)),
            "int32" | "int64" => body.extend(plain("integer", Some(kind))),
            "time" => body.extend(plain("string", Some("date-time"))),
            "quantity" => body.extend(int_or_string(format!(r"^\+?{QUANTITY}"))),
            "measured-quantity" => body.extend(int_or_string(format!("^[+-]?{QUANTITY}"))),
            "any-quantity" => body.extend(int_or_string(ANY_QUANTITY.to_owned())),
            name => {
                let defined = self.defined.get(name);
                let described = body.shift_remove("description");
                body.extend(defined.with_context(|| format!("no type is called {name}"))?.clone());
                if let (Some(description), Some(place)) = (described, body.get_mut("description")) {
                    *place = description;
                }
            }
        }
        self.children(line, &mut body)?;
        for modifier in line.words.iter().skip(at + 1) {
            let (key, value) = self.modifier(kind, modifier).with_context(|| line.text.to_owned())?;
            body.insert(key.to_owned(), value);
        }
        Ok(body)
    }

    fn children(&self, line: &SchemaLine<'_>, body: &mut Map<String, Value>) -> anyhow::Result<()> {
        let Some(first) = line.children.first().and_then(|child| child.words.first()) else { return Ok(()) };
        match (*first, line.children.first()) {
            ("-", Some(items)) => drop(body.insert("items".to_owned(), self.read(items, 1)?.into())),
            ("*", Some(values)) => {
                body.insert("additionalProperties".to_owned(), self.read(values, 1)?.into());
            }
            _ => {
                let (properties, required) = self.fields(&line.children)?;
                if !required.is_empty() {
                    body.insert("required".to_owned(), required.into());
                }
                body.insert("properties".to_owned(), properties.into());
            }
        }
        let rules =
            line.children.iter().filter_map(|child| child.text.strip_prefix("rule ")?.split_once(" => "));
        let rules: Vec<Value> =
            rules.map(|(rule, message)| json!({"rule": rule, "message": message})).collect();
        if !rules.is_empty() {
            body.insert("x-kubernetes-validations".to_owned(), rules.into());
        }
        Ok(())
    }

    fn modifier(&self, kind: &str, modifier: &str) -> anyhow::Result<(&'static str, Value)> {
        let (name, value) = modifier.split_once('=').unwrap_or((modifier, ""));
        let from_types = value.strip_prefix('@').map(|pointer| self.values.pointer(pointer));
        let from_types = from_types.map(|found| found.cloned().context("no such value")).transpose()?;
        let number = || value.parse::<i64>().context("not a number");
        Ok(match name {
            "enum" => {
                let words = || value.split(',').map(Value::from).collect();
                ("enum", from_types.unwrap_or_else(words))
            }
            "default" => ("default", from_types.map_or_else(|| serde_json::from_str(value), Ok)?),
            "min" => ("minimum", number()?.into()),
            "max" => ("maximum", number()?.into()),
            "non-empty" if kind == "list" => ("minItems", 1.into()),
            "non-empty" => ("minLength", 1.into()),
            "atomic" => ("x-kubernetes-list-type", "atomic".into()),
            "nullable" => ("nullable", true.into()),
            _ => bail!("no modifier is called {name}"),
        })
    }
}

fn int_or_string(pattern: String) -> Map<String, Value> {
    let mut body = Map::new();
    body.insert("anyOf".to_owned(), json!([{"type": "integer"}, {"type": "string"}]));
    body.insert("pattern".to_owned(), pattern.into());
    body.insert("x-kubernetes-int-or-string".to_owned(), true.into());
    body
}
