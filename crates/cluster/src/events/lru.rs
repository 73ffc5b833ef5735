//! A cache that forgets what was not used for longest.

use std::collections::{BTreeMap, HashMap};

/// Holds at most `most` values.
#[derive(Debug)]
pub(super) struct Lru<V> {
    most: usize,
    values: HashMap<u64, (u64, V)>,
    /// Keys by when they were last used.
    order: BTreeMap<u64, u64>,
    uses: u64,
}

impl<V> Lru<V> {
    pub(super) fn new(most: usize) -> Self {
        Self { most, values: HashMap::new(), order: BTreeMap::new(), uses: 0 }
    }

    /// The value of a key, which is made if it is not there.
    pub(super) fn entry(&mut self, key: u64, new: impl FnOnce() -> V) -> &mut V {
        self.uses += 1;
        let now = self.uses;
        if let Some((used, _)) = self.values.get(&key) {
            self.order.remove(used);
        } else if self.values.len() >= self.most
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
    fn what_was_not_used_for_longest_is_forgotten() {
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
