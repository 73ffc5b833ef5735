//! All objects of one kind, as list-and-watch delivers them.

use std::collections::{HashMap, HashSet};

use cluster::watch::WatchEvent;

use crate::operator::id::NamespacedName;

/// An object with a `resourceVersion`.
pub(crate) trait Versioned {
    /// Its `resourceVersion`.
    fn version(&self) -> &str;
}

/// All objects of one kind.
#[derive(Debug)]
pub(crate) struct ObjectStore<V> {
    items: HashMap<NamespacedName, V>,
    /// The names that a running list has delivered so far, by its namespace (empty for all).
    listing: HashMap<String, HashSet<NamespacedName>>,
}

/// The result of a change.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum StoreChange<V> {
    /// Nothing.
    Unchanged,
    /// An object was added, or replaced the old one.
    Applied(NamespacedName, Option<V>),
    /// Objects were removed.
    Removed(Vec<(NamespacedName, V)>),
    /// Decoding failed, so the object was removed; holds its previous value and the error.
    Undecodable(NamespacedName, Option<V>, String),
}

impl<V> Default for ObjectStore<V> {
    fn default() -> Self {
        Self { items: HashMap::new(), listing: HashMap::new() }
    }
}

impl<V: Versioned> ObjectStore<V> {
    pub(crate) fn get(&self, name: &NamespacedName) -> Option<&V> {
        self.items.get(name)
    }

    pub(crate) fn get_mut(&mut self, name: &NamespacedName) -> Option<&mut V> {
        self.items.get_mut(name)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&NamespacedName, &V)> {
        self.items.iter()
    }

    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    /// Applies a change that the watch of `scope` (a namespace, or empty for all) delivered.
    pub(crate) fn take(&mut self, scope: &str, change: WatchEvent<(NamespacedName, V)>) -> StoreChange<V> {
        match change {
            WatchEvent::Listing => {
                self.listing.insert(scope.to_owned(), HashSet::new());
                StoreChange::Unchanged
            }
            WatchEvent::Listed => {
                let Some(shown) = self.listing.remove(scope) else { return StoreChange::Unchanged };
                let stale = |name: &NamespacedName| {
                    (scope.is_empty() || &*name.namespace == scope) && !shown.contains(name)
                };
                let gone: Vec<(NamespacedName, V)> = self.items.extract_if(|name, _| stale(name)).collect();
                if gone.is_empty() { StoreChange::Unchanged } else { StoreChange::Removed(gone) }
            }
            WatchEvent::Applied((name, value)) => {
                if let Some(shown) = self.listing.get_mut(scope) {
                    shown.insert(name.clone());
                }
                // The store may hold our own write, which is newer.
                if self.items.get(&name).is_some_and(|held| older(value.version(), held.version())) {
                    return StoreChange::Unchanged;
                }
                let old = self.items.insert(name.clone(), value);
                StoreChange::Applied(name, old)
            }
            WatchEvent::Deleted { namespace, name } => {
                let name = NamespacedName::new(&namespace, &name);
                match self.items.remove(&name) {
                    Some(old) => StoreChange::Removed(vec![(name, old)]),
                    None => StoreChange::Unchanged,
                }
            }
            WatchEvent::Unreadable { namespace, name, error } => {
                let name = NamespacedName::new(&namespace, &name);
                let old = self.items.remove(&name);
                if let Some(shown) = self.listing.get_mut(scope) {
                    shown.insert(name.clone());
                }
                StoreChange::Undecodable(name, old, error)
            }
        }
    }

    /// Stores our own write before the watch delivers it. A removed object stays removed.
    pub(crate) fn wrote(&mut self, name: &NamespacedName, value: V) {
        if let Some(held) = self.items.get_mut(name)
            && !older(value.version(), held.version())
        {
            *held = value;
        }
    }
}

/// Whether a version is older than another, if both are numbers.
fn older(one: &str, other: &str) -> bool {
    matches!((one.parse::<u64>(), other.parse::<u64>()), (Ok(one), Ok(other)) if one < other)
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Versioned for &'static str {
        fn version(&self) -> &str {
            self
        }
    }

    fn name(name: &str) -> NamespacedName {
        NamespacedName::new("ns", name)
    }

    fn applied(of: &str, version: &'static str) -> WatchEvent<(NamespacedName, &'static str)> {
        WatchEvent::Applied((name(of), version))
    }

    #[test]
    fn objects_missing_in_a_list_are_removed_within_its_scope() {
        let mut object_store = ObjectStore::default();
        object_store.take("", applied("a", "1"));
        object_store.take("", applied("b", "2"));
        object_store.take("", WatchEvent::Applied((NamespacedName::new("other", "c"), "3")));
        object_store.take("ns", WatchEvent::Listing);
        object_store.take("ns", applied("b", "2"));
        assert_eq!(object_store.take("ns", WatchEvent::Listed), StoreChange::Removed(vec![(name("a"), "1")]));
        assert_eq!(object_store.len(), 2);
        assert_eq!(object_store.take("ns", WatchEvent::Listed), StoreChange::Unchanged);
    }

    #[test]
    fn older_versions_do_not_replace_newer_ones() {
        let mut object_store = ObjectStore::default();
        object_store.take("", applied("a", "7"));
        object_store.wrote(&name("a"), "9");
        assert_eq!(object_store.take("", applied("a", "8")), StoreChange::Unchanged);
        assert_eq!(object_store.get(&name("a")), Some(&"9"));
        assert_eq!(object_store.take("", applied("a", "10")), StoreChange::Applied(name("a"), Some("9")));
        object_store.take("", WatchEvent::Deleted { namespace: "ns".into(), name: "a".into() });
        object_store.wrote(&name("a"), "11");
        assert_eq!(object_store.get(&name("a")), None, "a late response does not restore a removed object");
    }

    #[test]
    fn undecodable_object_is_removed_and_survives_the_end_of_a_list() {
        let mut object_store = ObjectStore::default();
        object_store.take("", WatchEvent::Listing);
        object_store.take("", applied("a", "1"));
        let broken = WatchEvent::Unreadable { namespace: "ns".into(), name: "a".into(), error: "odd".into() };
        assert_eq!(
            object_store.take("", broken),
            StoreChange::Undecodable(name("a"), Some("1"), "odd".into())
        );
        assert_eq!(object_store.take("", WatchEvent::Listed), StoreChange::Unchanged);
        assert_eq!(object_store.get(&name("a")), None);
    }
}
