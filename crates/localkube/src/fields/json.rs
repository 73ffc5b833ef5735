//! The JSON of field sets: `FieldsV1`.

use serde_json::{Map, Value};

use super::{FieldSet, PathStep};

impl FieldSet {
    /// The `FieldsV1` JSON of the set.
    pub fn to_json(&self) -> Value {
        let mut map = Map::with_capacity(self.children.len());
        for (step, below) in &self.children {
            let mut inner = below.to_json();
            // A leaf needs no `.` entry.
            if let Value::Object(inner) = &mut inner
                && below.member
                && !inner.is_empty()
            {
                inner.shift_insert(0, ".".to_owned(), Value::Object(Map::new()));
            }
            map.insert(step.to_text(), inner);
        }
        Value::Object(map)
    }

    /// Whether this set is a subset of a set in JSON.
    pub(super) fn is_within(&self, json: &Value) -> bool {
        self.children.iter().all(|(step, below)| {
            let there = json.get(step.to_text());
            there.is_some_and(|there| (!below.member || is_member(there)) && below.is_within(there))
        })
    }

    /// Whether this set intersects a set in JSON.
    pub(super) fn touches(&self, json: &Value) -> bool {
        self.children.iter().any(|(step, below)| {
            let there = json.get(step.to_text());
            there.is_some_and(|there| (below.member && is_member(there)) || below.touches(there))
        })
    }

    /// Parses `FieldsV1` JSON; invalid keys are skipped.
    pub fn from_json(json: &Value) -> Self {
        let mut set = Self::default();
        for (key, below) in json.as_object().into_iter().flatten() {
            if key == "." {
                set.member = true;
            } else if let Some(step) = PathStep::from_text(key) {
                let mut inner = Self::from_json(below);
                inner.member |= inner.children.is_empty();
                set.children.insert(step, inner);
            }
        }
        set
    }
}

/// Whether the JSON at a path contains the path itself.
fn is_member(json: &Value) -> bool {
    json.as_object().is_some_and(|map| map.is_empty() || map.contains_key("."))
}

impl PathStep {
    fn to_text(&self) -> String {
        match self {
            Self::Field(name) => format!("f:{name}"),
            Self::Key(pairs) => {
                let map: Map<String, Value> = pairs.iter().cloned().collect();
                format!("k:{}", Value::Object(map))
            }
            Self::Value(value) => format!("v:{value}"),
            Self::Index(index) => format!("i:{index}"),
        }
    }

    fn from_text(text: &str) -> Option<Self> {
        let (kind, rest) = text.split_once(':')?;
        match kind {
            "f" => Some(Self::Field(rest.to_owned())),
            "v" => serde_json::from_str(rest).ok().map(Self::Value),
            "i" => rest.parse().ok().map(Self::Index),
            "k" => {
                let mut pairs: Vec<(String, Value)> =
                    serde_json::from_str::<Map<String, Value>>(rest).ok()?.into_iter().collect();
                pairs.sort_by(|one, other| one.0.cmp(&other.0));
                Some(Self::Key(pairs))
            }
            _ => None,
        }
    }
}
