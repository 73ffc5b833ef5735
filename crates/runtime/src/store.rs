//! What a watch reports, and the objects of one kind as a watch reports them. Plain data, applied synchronously.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

/// What list-and-watch reports, in order.
#[derive(Clone, Debug, PartialEq)]
pub enum WatchEvent<T> {
    /// A list begins; objects that are not in it are deleted once [`WatchEvent::Listed`] comes. A list that is cut off begins
    /// again.
    Listing,
    /// The list is complete.
    Listed,
    /// An object of a list, or one that was created or changed.
    Applied(T),
    /// An object was deleted.
    Deleted {
        /// Namespace.
        namespace: String,
        /// Name.
        name: String,
    },
    /// An object cannot be decoded. It counts as deleted, and the watch goes on.
    Unreadable {
        /// Namespace, as far as it could be decoded.
        namespace: String,
        /// Name, as far as it could be decoded.
        name: String,
        /// The decoding error.
        error: String,
    },
}

impl<T> WatchEvent<T> {
    /// The same event with another form of the object.
    pub fn map<U>(self, convert: impl FnOnce(T) -> U) -> WatchEvent<U> {
        match self {
            Self::Listing => WatchEvent::Listing,
            Self::Listed => WatchEvent::Listed,
            Self::Applied(object) => WatchEvent::Applied(convert(object)),
            Self::Deleted { namespace, name } => WatchEvent::Deleted { namespace, name },
            Self::Unreadable { namespace, name, error } => WatchEvent::Unreadable { namespace, name, error },
        }
    }
}

/// An object with a resource version, so that an older state of it never replaces a newer one.
pub trait Versioned {
    /// `metadata.resourceVersion`.
    fn resource_version(&self) -> &str;
}

/// A key of objects of one kind: namespace and name.
pub trait ObjectKey: Clone + Eq + Hash {
    /// The key of an object.
    fn new(namespace: &str, name: &str) -> Self;
    /// Namespace; empty for objects without one.
    fn namespace(&self) -> &str;
}

/// All objects of one kind.
#[derive(Debug)]
pub struct ObjectStore<K, V> {
    objects: HashMap<K, V>,
    /// The keys that a list in progress has shown so far, by the namespace that is listed (empty: all).
    listing: HashMap<String, HashSet<K>>,
}

/// What an event changed in the store.
#[derive(Debug, PartialEq, Eq)]
pub enum StoreChange<K, V> {
    /// Nothing changed.
    Unchanged,
    /// An object was created or replaced; with the state before, if there was one.
    Applied(K, Option<V>),
    /// Objects were deleted.
    Deleted(Vec<(K, V)>),
    /// Decoding failed, so the object was removed; with the state before, if there was one, and the error.
    Unreadable(K, Option<V>, String),
}

impl<K, V> Default for ObjectStore<K, V> {
    fn default() -> Self {
        Self { objects: HashMap::new(), listing: HashMap::new() }
    }
}

impl<K: ObjectKey, V: Versioned> ObjectStore<K, V> {
    /// The object with this key.
    pub fn get(&self, key: &K) -> Option<&V> {
        self.objects.get(key)
    }

    /// The object with this key.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.objects.get_mut(key)
    }

    /// All objects, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.objects.iter()
    }

    /// The number of objects.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Whether there are no objects.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// Applies an event of the watch of `scope` (a namespace, or all namespaces if empty).
    pub fn apply(&mut self, scope: &str, event: WatchEvent<(K, V)>) -> StoreChange<K, V> {
        match event {
            WatchEvent::Listing => {
                self.listing.insert(scope.to_owned(), HashSet::new());
                StoreChange::Unchanged
            }
            WatchEvent::Listed => {
                let Some(shown) = self.listing.remove(scope) else { return StoreChange::Unchanged };
                let is_deleted =
                    |key: &K| (scope.is_empty() || key.namespace() == scope) && !shown.contains(key);
                let deleted: Vec<(K, V)> = self.objects.extract_if(|key, _| is_deleted(key)).collect();
                if deleted.is_empty() { StoreChange::Unchanged } else { StoreChange::Deleted(deleted) }
            }
            WatchEvent::Applied((key, object)) => {
                if let Some(shown) = self.listing.get_mut(scope) {
                    shown.insert(key.clone());
                }
                // The response to our own write may have arrived before the events that precede it.
                if self.objects.get(&key).is_some_and(|held| is_older(&object, held)) {
                    return StoreChange::Unchanged;
                }
                let before = self.objects.insert(key.clone(), object);
                StoreChange::Applied(key, before)
            }
            WatchEvent::Deleted { namespace, name } => {
                let key = K::new(&namespace, &name);
                match self.objects.remove(&key) {
                    Some(before) => StoreChange::Deleted(vec![(key, before)]),
                    None => StoreChange::Unchanged,
                }
            }
            WatchEvent::Unreadable { namespace, name, error } => {
                let key = K::new(&namespace, &name);
                let before = self.objects.remove(&key);
                if let Some(shown) = self.listing.get_mut(scope) {
                    shown.insert(key.clone());
                }
                StoreChange::Unreadable(key, before, error)
            }
        }
    }

    /// Applies our own write before the watch reports it; an object that was deleted stays deleted.
    pub fn apply_own_write(&mut self, key: &K, object: V) {
        if let Some(held) = self.objects.get_mut(key)
            && !is_older(&object, held)
        {
            *held = object;
        }
    }
}

/// Whether a state is older than another; false if the versions are not numbers.
fn is_older<V: Versioned>(one: &V, other: &V) -> bool {
    let version = |object: &V| object.resource_version().parse::<u64>();
    matches!((version(one), version(other)), (Ok(one), Ok(other)) if one < other)
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Versioned for &'static str {
        fn resource_version(&self) -> &str {
            self
        }
    }

    impl ObjectKey for (String, String) {
        fn new(namespace: &str, name: &str) -> Self {
            (namespace.to_owned(), name.to_owned())
        }

        fn namespace(&self) -> &str {
            &self.0
        }
    }

    type Key = (String, String);

    fn key(name: &str) -> Key {
        Key::new("ns", name)
    }

    fn applied(name: &str, version: &'static str) -> WatchEvent<(Key, &'static str)> {
        WatchEvent::Applied((key(name), version))
    }

    #[test]
    fn objects_that_a_list_does_not_show_are_deleted_within_its_scope() {
        let mut store = ObjectStore::default();
        store.apply("", applied("a", "1"));
        store.apply("", applied("b", "2"));
        store.apply("", WatchEvent::Applied((Key::new("other", "c"), "3")));
        store.apply("ns", WatchEvent::Listing);
        store.apply("ns", applied("b", "2"));
        assert_eq!(store.apply("ns", WatchEvent::Listed), StoreChange::Deleted(vec![(key("a"), "1")]));
        assert_eq!(store.len(), 2);
        assert_eq!(store.apply("ns", WatchEvent::Listed), StoreChange::Unchanged);
    }

    #[test]
    fn an_older_version_does_not_replace_a_newer_one() {
        let mut store = ObjectStore::default();
        store.apply("", applied("a", "7"));
        store.apply_own_write(&key("a"), "9");
        assert_eq!(store.apply("", applied("a", "8")), StoreChange::Unchanged);
        assert_eq!(store.get(&key("a")), Some(&"9"));
        assert_eq!(store.apply("", applied("a", "10")), StoreChange::Applied(key("a"), Some("9")));
        store.apply("", WatchEvent::Deleted { namespace: "ns".into(), name: "a".into() });
        store.apply_own_write(&key("a"), "11");
        assert_eq!(store.get(&key("a")), None, "a late response does not bring a deleted object back");
    }

    #[test]
    fn an_undecodable_object_is_removed_and_counts_as_listed() {
        let mut store = ObjectStore::default();
        store.apply("", WatchEvent::Listing);
        store.apply("", applied("a", "1"));
        let broken = WatchEvent::Unreadable { namespace: "ns".into(), name: "a".into(), error: "odd".into() };
        let change = StoreChange::Unreadable(key("a"), Some("1"), "odd".into());
        assert_eq!(store.apply("", broken), change);
        assert_eq!(store.apply("", WatchEvent::Listed), StoreChange::Unchanged);
        assert_eq!(store.get(&key("a")), None);
    }
}
