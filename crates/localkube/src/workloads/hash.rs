//! Short hashes of templates.

use serde_json::Value;

use crate::random::letters;

/// Number of letters of a hash.
const HASH_LENGTH: usize = 10;

/// A short, stable hash of a template, independent of the order of fields.
pub(crate) fn of(template: &Value) -> String {
    let mut state = Fnv::default();
    state.value(template);
    letters(state.0, HASH_LENGTH)
}

/// FNV-1a.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
        // Separates texts: "ab", "c" differs from "a", "bc".
        self.0 = (self.0 ^ 0xff).wrapping_mul(0x0100_0000_01b3);
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Object(fields) => {
                let mut sorted: Vec<_> = fields.iter().filter(|(_, value)| !value.is_null()).collect();
                sorted.sort_by_key(|(name, _)| name.as_str());
                self.bytes(b"{");
                for (name, value) in sorted {
                    self.bytes(name.as_bytes());
                    self.value(value);
                }
                self.bytes(b"}");
            }
            Value::Array(items) => {
                self.bytes(b"[");
                for item in items {
                    self.value(item);
                }
                self.bytes(b"]");
            }
            Value::String(text) => self.bytes(text.as_bytes()),
            other => self.bytes(other.to_string().as_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn equal_templates_have_equal_hashes() {
        let name = of(&json!({"a": 1, "b": {"c": [1, "x"], "d": null}}));
        assert_eq!(name, of(&json!({"b": {"c": [1, "x"]}, "a": 1})));
        assert_eq!(name.len(), HASH_LENGTH);
        assert!(name.bytes().all(|letter| crate::random::LETTERS.contains(&letter)), "{name}");
        for other in [json!({}), json!({"a": 2}), json!({"a": 1, "b": {"c": [1, "y"]}}), json!({"a1": ""})] {
            assert_ne!(name, of(&other));
        }
        assert_ne!(of(&json!({"a": [["b"], "c"]})), of(&json!({"a": [["b", "c"]]})));
    }
}
