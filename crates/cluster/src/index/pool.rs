//! Values with small ids, found by their hash: the storage of the indexes.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher, RandomState};

/// The id of a value in its [`Pool`]; it is reused after the value is removed.
pub(crate) type Id = u32;

/// No value.
pub(crate) const NONE: Id = Id::MAX;

/// Values that are stored once each and found by hash.
///
/// A map with whole keys would store the keys twice; this one has eight bytes per value and compares with the value itself.
#[derive(Debug)]
pub(crate) struct Pool<T> {
    slots: Vec<Slot<T>>,
    /// The first free slot.
    free: Id,
    used: usize,
    /// The first value of each hash; further ones follow through [`Slot::next`].
    first: HashMap<u32, Id, BuildHasherDefault<HashMixer>>,
    hasher: RandomState,
}

#[derive(Debug)]
struct Slot<T> {
    hash: u32,
    /// The next value of the same hash, or the next free slot.
    next: Id,
    value: Option<T>,
}

/// A hasher for numbers that are hashes already: it spreads them over all bits that the map uses.
#[derive(Debug, Default)]
pub(crate) struct HashMixer(u64);

impl Hasher for HashMixer {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u32(u32::from(*byte) ^ self.0 as u32);
        }
    }

    fn write_u32(&mut self, number: u32) {
        self.0 = u64::from(number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

impl<T> Default for Pool<T> {
    fn default() -> Self {
        Self { slots: Vec::new(), free: NONE, used: 0, first: HashMap::default(), hasher: RandomState::new() }
    }
}

impl<T> Pool<T> {
    /// The hash of what identifies a value.
    pub(crate) fn hash(&self, identity: impl Hash) -> u32 {
        self.hasher.hash_one(identity) as u32
    }

    /// The value of this hash for which `is_it` holds.
    pub(crate) fn find(&self, hash: u32, is_it: impl Fn(&T) -> bool) -> Option<Id> {
        let mut id = *self.first.get(&hash)?;
        loop {
            let slot = self.slots.get(id as usize)?;
            if slot.value.as_ref().is_some_and(&is_it) {
                return Some(id);
            }
            id = slot.next;
        }
    }

    /// Adds a value that is not in the pool.
    pub(crate) fn insert(&mut self, hash: u32, value: T) -> Id {
        let free = self.free;
        let next = self.first.get(&hash).copied().unwrap_or(NONE);
        let slot = Slot { hash, next, value: Some(value) };
        let id = match self.slots.get_mut(free as usize) {
            Some(reused) => {
                self.free = reused.next;
                *reused = slot;
                free
            }
            None => {
                self.slots.push(slot);
                (self.slots.len() - 1) as Id
            }
        };
        self.first.insert(hash, id);
        self.used += 1;
        id
    }

    /// Removes a value.
    pub(crate) fn remove(&mut self, id: Id) -> Option<T> {
        let slot = self.slots.get_mut(id as usize)?;
        let value = slot.value.take()?;
        let (hash, next) = (slot.hash, std::mem::replace(&mut slot.next, self.free));
        self.free = id;
        self.used -= 1;
        self.unchain(hash, id, next);
        if self.used == 0 {
            // The pool is empty: release the memory.
            *self = Self::default();
        }
        Some(value)
    }

    /// Unlinks `id`, which was followed by `next`, from the values of its hash.
    fn unchain(&mut self, hash: u32, id: Id, next: Id) {
        let Some(first) = self.first.get_mut(&hash) else { return };
        if *first == id {
            if next == NONE {
                self.first.remove(&hash);
            } else {
                *first = next;
            }
            return;
        }
        let mut at = *first;
        while let Some(slot) = self.slots.get_mut(at as usize) {
            if slot.next == id {
                slot.next = next;
                return;
            }
            at = slot.next;
        }
    }

    pub(crate) fn get(&self, id: Id) -> Option<&T> {
        self.slots.get(id as usize)?.value.as_ref()
    }

    pub(crate) fn get_mut(&mut self, id: Id) -> Option<&mut T> {
        self.slots.get_mut(id as usize)?.value.as_mut()
    }

    /// All values in the order of their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Id, &T)> {
        self.slots.iter().enumerate().filter_map(|(id, slot)| Some((id as Id, slot.value.as_ref()?)))
    }

    pub(crate) fn len(&self) -> usize {
        self.used
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_until_they_are_removed() {
        let mut pool = Pool::default();
        let (one, two) = (pool.insert(7, "one"), pool.insert(8, "two"));
        assert_eq!(pool.find(7, |v| *v == "one"), Some(one));
        assert_eq!(pool.find(7, |v| *v == "two"), None);
        assert_eq!(pool.remove(one), Some("one"));
        assert_eq!(pool.remove(one), None);
        assert_eq!(pool.find(7, |v| *v == "one"), None);
        assert_eq!(pool.insert(9, "three"), one, "the number is used again");
        assert_eq!(pool.iter().collect::<Vec<_>>(), [(one, &"three"), (two, &"two")]);
        assert_eq!(pool.len(), 2);
    }

    /// Hashes of 32 bits collide.
    #[test]
    fn values_of_one_hash_are_kept_apart() {
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let mut pool = Pool::default();
            let ids = ["a", "b", "c"].map(|value| pool.insert(1, value));
            for (done, which) in order.into_iter().enumerate() {
                assert!(pool.remove(ids[which]).is_some());
                for other in order.into_iter().skip(done + 1) {
                    let value = ["a", "b", "c"][other];
                    assert_eq!(pool.find(1, |v| *v == value), Some(ids[other]));
                }
            }
            assert_eq!(pool.len(), 0);
        }
    }
}
