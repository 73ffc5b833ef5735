//! A least-recently-used cache.

use std::collections::{BTreeMap, HashMap};

/// Holds at most `capacity` values.
#[derive(Debug)]
pub(super) struct Lru<V> {
    capacity: usize,
    values: HashMap<u64, (u64, V)>,
    /// Keys by the number of their last use.
    order: BTreeMap<u64, u64>,
    uses: u64,
}

impl<V> Lru<V> {
    pub(super) fn new(capacity: usize) -> Self {
        Self { capacity, values: HashMap::new(), order: BTreeMap::new(), uses: 0 }
    }

    /// The value of a key, inserted if it is missing.
    pub(super) fn entry(&mut self, key: u64, new: impl FnOnce() -> V) -> &mut V {
        self.uses += 1;
        let now = self.uses;
        if let Some((used, _)) = self.values.get(&key) {
            self.order.remove(used);
        } else if self.values.len() >= self.capacity
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.values.remove(&oldest);
        }
        self.order.insert(now, key);
        let (used, value) = self.values.entry(key).or_insert_with(|| (now, new()));
        *used = now;
        value
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        assert_eq!(self.values.len(), self.order.len());
        self.values.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_value_is_evicted() {
        let mut cache = Lru::new(3);
        for key in [1, 2, 3, 1, 4] {
            cache.entry(key, || key * 10);
        }
        assert_eq!(cache.len(), 3);
        for (key, expected) in [(1, 10), (3, 30), (4, 40)] {
            assert_eq!(*cache.entry(key, || 0), expected, "{key}");
        }
        assert_eq!(*cache.entry(2, || 0), 0, "2 was forgotten");
        assert_eq!(*cache.entry(3, || 0), 30);
        assert_eq!(*cache.entry(1, || 0), 0, "then 1");
        assert_eq!(cache.len(), 3);
    }
}
