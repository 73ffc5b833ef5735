//! JSON as a tree of bounded size: `[1,1,…]` needs about forty times its length in memory.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// Maximum memory of the tree of one response, in bytes.
pub(crate) const MAX_TREE_BYTES: usize = 32 << 20;
/// Memory of a value in a list.
const ITEM_BYTES: usize = size_of::<Value>();
/// Memory of a member of an object in addition to its name: value, name, hash, and its place in the table.
const MEMBER_BYTES: usize = ITEM_BYTES + size_of::<String>() + 4 * size_of::<usize>();

/// The memory that a tree may still take.
#[derive(Debug)]
pub(crate) struct TreeBudget {
    left: Cell<usize>,
    exhausted: Cell<bool>,
}

/// A tree needs more than [`MAX_TREE_BYTES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the answer has too many values: a tree of them needs more than {} MiB", MAX_TREE_BYTES >> 20)]
pub struct TreeTooLarge;

/// Why there is no tree.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TreeError {
    /// The tree would be too large.
    #[error(transparent)]
    TooLarge(#[from] TreeTooLarge),
    /// The text is not JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

impl Default for TreeBudget {
    fn default() -> Self {
        Self { left: Cell::new(MAX_TREE_BYTES), exhausted: Cell::new(false) }
    }
}

impl TreeBudget {
    /// Takes memory for an item with so many bytes of text.
    pub(crate) fn item(&self, text: usize) -> Result<(), TreeTooLarge> {
        self.take(ITEM_BYTES.saturating_add(text))
    }

    /// Takes memory for a member whose name and text have so many bytes.
    pub(crate) fn member(&self, text: usize) -> Result<(), TreeTooLarge> {
        self.take(MEMBER_BYTES.saturating_add(text))
    }

    fn take(&self, bytes: usize) -> Result<(), TreeTooLarge> {
        match self.left.get().checked_sub(bytes) {
            Some(left) => self.left.set(left),
            None => {
                self.exhausted.set(true);
                return Err(TreeTooLarge);
            }
        }
        Ok(())
    }

    /// Whether a tree did not fit.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.exhausted.get()
    }
}

/// Decodes JSON into a tree of bounded size.
pub(crate) fn from_slice(body: &[u8]) -> Result<Value, TreeError> {
    let budget = TreeBudget::default();
    let mut json = serde_json::Deserializer::from_slice(body);
    match BoundedTree(&budget).deserialize(&mut json) {
        Ok(tree) => {
            json.end()?;
            Ok(tree)
        }
        Err(_) if budget.is_exhausted() => Err(TreeTooLarge.into()),
        Err(error) => Err(error.into()),
    }
}

/// Refuses a body that may have more values than a tree, for responses that are decoded into types: lists of those can be as
/// large. Marks in texts count too.
pub(crate) fn check_values(body: &[u8]) -> Result<(), TreeTooLarge> {
    let marks = body.iter().filter(|byte| matches!(byte, b',' | b':' | b'[' | b'{')).count();
    if marks > MAX_TREE_BYTES / MEMBER_BYTES { Err(TreeTooLarge) } else { Ok(()) }
}

/// Builds a tree within a budget.
#[derive(Clone, Copy)]
pub(crate) struct BoundedTree<'a>(pub(crate) &'a TreeBudget);

impl<'de> DeserializeSeed<'de> for BoundedTree<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for BoundedTree<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any valid JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        self.0.take(text.len()).map_err(E::custom)?;
        Ok(Value::String(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            self.0.item(0).map_err(A::Error::custom)?;
            all.push(item);
        }
        Ok(Value::Array(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut all = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            self.0.member(name.len()).map_err(A::Error::custom)?;
            let value = members.next_value_seed(self)?;
            all.insert(name, value);
        }
        Ok(Value::Object(all))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn trees_are_bounded() {
        let many = |item: &str, count: usize| format!("[{item}{}]", format!(",{item}").repeat(count - 1));
        assert_eq!(from_slice(many("1", 100_000).as_bytes()).unwrap().as_array().unwrap().len(), 100_000);
        for item in ["1", "[]", "{}", "\"\"", "{\"a\":1}", "null"] {
            let error = from_slice(many(item, 1_000_000).as_bytes()).unwrap_err();
            assert!(matches!(error, TreeError::TooLarge(_)), "{error}");
        }
        let members: Vec<String> = (0..500_000).map(|number| format!("\"{number}\":0")).collect();
        assert!(from_slice(format!("{{{}}}", members.join(",")).as_bytes()).is_err());
        assert!(from_slice("[".repeat(100_000).as_bytes()).is_err());
        assert!(check_values(many("1", 1_000_000).as_bytes()).is_err());
        assert!(check_values(many("{\"a\":[1]}", 10_000).as_bytes()).is_ok());
        // One long text is not many values.
        assert!(from_slice(format!("\"{}\"", "x".repeat(8 << 20)).as_bytes()).is_ok());
    }

    proptest! {
        #[test]
        fn trees_are_those_of_serde_json(text in "[\\[\\]{}\":,a0-9.eE+\\- tnul\\\\]{0,40}") {
            let own = from_slice(text.as_bytes()).map_err(|error| error.to_string());
            let theirs = serde_json::from_str::<Value>(&text).map_err(|error| error.to_string());
            prop_assert_eq!(own, theirs);
        }
    }

    #[test]
    fn valid_json_gives_the_tree_of_serde_json() {
        let text = r#"{"b":[1,-2,3.5,1e300,18446744073709551615,true,null,"é\n"],"a":{"b":{},"b":[]},"":0}"#;
        assert_eq!(from_slice(text.as_bytes()).unwrap(), serde_json::from_str::<Value>(text).unwrap());
    }
}
