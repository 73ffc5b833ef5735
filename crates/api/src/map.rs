//! A sorted map for few entries: labels, annotations, parameters.
//!
//! Most of these maps have one to four entries, and each stored object has several. A `BTreeMap` allocates room for eleven
//! entries at once, so a sorted vector saves memory.

use std::borrow::Borrow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};

/// A sorted map for few entries.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Map<V>(Vec<(String, V)>);

/// Labels or annotations.
pub type StringMap = Map<String>;

impl<V> Map<V> {
    /// An empty map.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Sorts the entries and drops spare capacity. Of several values of a key the last one counts.
    fn of(mut entries: Vec<(String, V)>) -> Self {
        if !entries.is_sorted_by(|(one, _), (next, _)| one < next) {
            entries.reverse();
            entries.sort_by(|(one, _), (other, _)| one.cmp(other));
            entries.dedup_by(|(later, _), (one, _)| later == one);
        }
        entries.shrink_to_fit();
        Self(entries)
    }

    fn find(&self, key: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(own, _)| own.as_str().cmp(key))
    }

    /// The value of a key.
    pub fn get<K: Borrow<str> + ?Sized>(&self, key: &K) -> Option<&V> {
        let place = self.find(key.borrow()).ok()?;
        self.0.get(place).map(|(_, value)| value)
    }

    /// The mutable value of a key.
    pub fn get_mut<K: Borrow<str> + ?Sized>(&mut self, key: &K) -> Option<&mut V> {
        let place = self.find(key.borrow()).ok()?;
        self.0.get_mut(place).map(|(_, value)| value)
    }

    /// Whether the key exists.
    pub fn contains_key<K: Borrow<str> + ?Sized>(&self, key: &K) -> bool {
        self.find(key.borrow()).is_ok()
    }

    /// Sets a value and returns the previous one.
    pub fn insert(&mut self, key: String, value: V) -> Option<V> {
        match self.find(&key) {
            Ok(place) => self.0.get_mut(place).map(|(_, own)| std::mem::replace(own, value)),
            Err(place) => {
                self.0.reserve_exact(1);
                self.0.insert(place, (key, value));
                None
            }
        }
    }

    /// Removes an entry.
    pub fn remove<K: Borrow<str> + ?Sized>(&mut self, key: &K) -> Option<V> {
        let place = self.find(key.borrow()).ok()?;
        Some(self.0.remove(place).1)
    }

    /// Removes all entries for which the function returns false.
    pub fn retain(&mut self, mut keep: impl FnMut(&String, &mut V) -> bool) {
        self.0.retain_mut(|(key, value)| keep(key, value));
    }

    /// Removes all entries.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the map is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All entries, in order of their keys.
    pub fn iter(&self) -> Iter<'_, V> {
        self.0.iter().map(|(key, value)| (key, value))
    }

    /// All keys, in order.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &String> + Clone {
        self.0.iter().map(|(key, _)| key)
    }

    /// All values, in order of their keys.
    pub fn values(&self) -> impl ExactSizeIterator<Item = &V> {
        self.0.iter().map(|(_, value)| value)
    }

    /// All mutable values.
    pub fn values_mut(&mut self) -> impl ExactSizeIterator<Item = &mut V> {
        self.0.iter_mut().map(|(_, value)| value)
    }
}

/// Iterator over all entries.
pub type Iter<'a, V> =
    std::iter::Map<std::slice::Iter<'a, (String, V)>, fn(&'a (String, V)) -> (&'a String, &'a V)>;

impl<V> Default for Map<V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<V: fmt::Debug> fmt::Debug for Map<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<V> std::ops::Index<&str> for Map<V> {
    type Output = V;

    /// Panics if the key does not exist, as standard maps do.
    #[expect(clippy::expect_used)]
    fn index(&self, key: &str) -> &V {
        self.get(key).expect("there is such a key")
    }
}

impl<V> FromIterator<(String, V)> for Map<V> {
    /// Of several values of a key the last one counts.
    fn from_iter<I: IntoIterator<Item = (String, V)>>(entries: I) -> Self {
        Self::of(entries.into_iter().collect())
    }
}

impl<V> Extend<(String, V)> for Map<V> {
    fn extend<I: IntoIterator<Item = (String, V)>>(&mut self, entries: I) {
        for (key, value) in entries {
            self.insert(key, value);
        }
    }
}

impl<V, const N: usize> From<[(String, V); N]> for Map<V> {
    fn from(entries: [(String, V); N]) -> Self {
        entries.into_iter().collect()
    }
}

impl<V> IntoIterator for Map<V> {
    type Item = (String, V);
    type IntoIter = std::vec::IntoIter<(String, V)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a, V> IntoIterator for &'a Map<V> {
    type Item = (&'a String, &'a V);
    type IntoIter = Iter<'a, V>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<V: Serialize> Serialize for Map<V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self)
    }
}

impl<'de, V: Deserialize<'de>> Deserialize<'de> for Map<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MapVisitor(PhantomData))
    }
}

struct MapVisitor<V>(PhantomData<V>);

impl<'de, V: Deserialize<'de>> Visitor<'de> for MapVisitor<V> {
    type Value = Map<V>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut all: A) -> Result<Map<V>, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = all.next_entry()? {
            entries.push(entry);
        }
        Ok(Map::of(entries))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The map behaves like a `BTreeMap`.
        #[test]
        fn map_behaves_like_a_btree_map(steps in prop::collection::vec((0..3, "[a-e]", 0..9), 0..40)) {
            let (mut map, mut model) = (Map::new(), BTreeMap::new());
            for (what, key, value) in steps {
                if what == 0 {
                    prop_assert_eq!(map.remove(&key), model.remove(&key));
                } else {
                    prop_assert_eq!(map.insert(key.clone(), value), model.insert(key, value));
                }
                prop_assert!(map.iter().eq(model.iter()));
                prop_assert_eq!(map.len(), model.len());
            }
            for key in ["a", "b", "z"] {
                prop_assert_eq!(map.get(key), model.get(key));
                prop_assert_eq!(map.contains_key(key), model.contains_key(key));
            }
            let text = serde_json::to_string(&map).unwrap();
            prop_assert_eq!(&text, &serde_json::to_string(&model).unwrap());
            prop_assert_eq!(serde_json::from_str::<Map<i32>>(&text).unwrap(), map);
        }
    }

    #[test]
    fn the_last_value_of_a_key_counts() {
        let map: Map<i32> = serde_json::from_str(r#"{"b":1,"a":2,"b":3}"#).unwrap();
        assert!(map.iter().eq([(&"a".to_owned(), &2), (&"b".to_owned(), &3)]));
        assert_eq!(format!("{map:?}"), r#"{"a": 2, "b": 3}"#);
    }

    #[test]
    fn a_map_has_no_spare_capacity() {
        let map: StringMap = [("a".to_owned(), String::new()), ("b".to_owned(), String::new())].into();
        assert_eq!((map.0.len(), map.0.capacity()), (2, 2));
    }
}
