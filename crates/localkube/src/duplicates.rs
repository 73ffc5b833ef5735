//! JSON objects with duplicate fields: the last value wins, objects are merged, and the paths are reported.

use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Parses JSON; returns the paths of duplicate fields as well.
pub(crate) fn read(text: &[u8]) -> Result<(Value, Vec<String>), ()> {
    let mut found = DuplicateFields::default();
    // Invalid UTF-8 is replaced, as in Go.
    let text = String::from_utf8_lossy(text);
    let mut reader = serde_json::Deserializer::from_str(&text);
    let value = ValueSeed { found: &mut found, old: None }.deserialize(&mut reader).map_err(drop)?;
    reader.end().map_err(drop)?;
    Ok((value, found.twice))
}

#[derive(Default)]
struct DuplicateFields {
    path: Vec<String>,
    twice: Vec<String>,
}

impl DuplicateFields {
    fn note(&mut self, field: &str) {
        let mut path = String::new();
        for step in self.path.iter().map(String::as_str).chain([field]) {
            if !path.is_empty() && !step.starts_with('[') {
                path.push('.');
            }
            path.push_str(step);
        }
        self.twice.push(path);
    }
}

/// Deserializes a value into an earlier value of the same field, if there is one.
struct ValueSeed<'a> {
    found: &'a mut DuplicateFields,
    old: Option<Value>,
}

impl<'de> DeserializeSeed<'de> for ValueSeed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueSeed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("not a number"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        loop {
            self.found.path.push(format!("[{}]", list.len()));
            let next = items.next_element_seed(ValueSeed { found: self.found, old: None })?;
            self.found.path.pop();
            match next {
                Some(item) => list.push(item),
                None => return Ok(Value::Array(list)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut map = match self.old {
            Some(Value::Object(map)) => map,
            _ => Map::new(),
        };
        let mut seen: HashSet<String> = HashSet::new();
        while let Some(field) = fields.next_key::<String>()? {
            if seen.contains(&field) {
                self.found.note(&field);
            }
            let old = map.get_mut(&field).map(Value::take);
            self.found.path.push(field.clone());
            let value = fields.next_value_seed(ValueSeed { found: self.found, old })?;
            self.found.path.pop();
            map.insert(field.clone(), value);
            seen.insert(field);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn duplicate_fields_are_merged_and_reported() {
        let text = br#"{"data": {"a": "1", "a": "2"}, "list": [{"b": 1, "b": 2}], "data": {"c": "3"}}"#;
        let (value, twice) = read(text).unwrap();
        assert_eq!(value, json!({"data": {"a": "2", "c": "3"}, "list": [{"b": 2}]}));
        assert_eq!(twice, ["data.a", "list[0].b", "data"]);
    }

    #[test]
    fn numbers_keep_their_type() {
        let text = br#"{"a": 1, "b": -1, "c": 1.5, "d": 1.0, "e": true, "f": null}"#;
        assert_eq!(read(text).unwrap().0, serde_json::from_slice::<Value>(text).unwrap());
        assert_eq!(read(b"{\"a\": \"\xff\"}").unwrap().0, json!({"a": "\u{fffd}"}));
        assert!(read(b"{} x").is_err() && read(b"").is_err());
    }
}
