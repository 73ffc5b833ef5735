//! All objects of one kind, kept as a watch tells them.

use std::collections::{HashMap, HashSet};

use cluster::watch::WatchEvent;

use crate::operator::id::Name;

/// Something that has a version, so that what is older than what we hold can be told.
pub(crate) trait Versioned {
    /// The version.
    fn version(&self) -> &str;
}

/// All objects of one kind.
#[derive(Debug)]
pub(crate) struct ObjectStore<V> {
    items: HashMap<Name, V>,
    /// What a list in progress has shown so far, by the namespace it is of (empty: all).
    listing: HashMap<String, HashSet<Name>>,
}

/// What a change has done.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum StoreChange<V> {
    /// Nothing.
    Unchanged,
    /// An object is there that was not, or is as it was not.
    Applied(Name, Option<V>),
    /// Objects are gone.
    Removed(Vec<(Name, V)>),
    /// An object cannot be read, and why; it is as if it were not there, as which it was before.
    Undecodable(Name, Option<V>, String),
}

impl<V> Default for ObjectStore<V> {
    fn default() -> Self {
        Self { items: HashMap::new(), listing: HashMap::new() }
    }
}

impl<V: Versioned> ObjectStore<V> {
    pub(crate) fn get(&self, name: &Name) -> Option<&V> {
        self.items.get(name)
    }

    pub(crate) fn get_mut(&mut self, name: &Name) -> Option<&mut V> {
        self.items.get_mut(name)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Name, &V)> {
        self.items.iter()
    }

    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    /// Takes in a change of the list of `scope` (a namespace, or all if empty).
    pub(crate) fn take(&mut self, scope: &str, change: WatchEvent<(Name, V)>) -> StoreChange<V> {
        match change {
            WatchEvent::Listing => {
                self.listing.insert(scope.to_owned(), HashSet::new());
                StoreChange::Unchanged
            }
            WatchEvent::Listed => {
                let Some(shown) = self.listing.remove(scope) else { return StoreChange::Unchanged };
                let stale =
                    |name: &Name| (scope.is_empty() || &*name.namespace == scope) && !shown.contains(name);
                let gone: Vec<(Name, V)> = self.items.extract_if(|name, _| stale(name)).collect();
                if gone.is_empty() { StoreChange::Unchanged } else { StoreChange::Removed(gone) }
            }
            WatchEvent::Applied((name, value)) => {
                if let Some(shown) = self.listing.get_mut(scope) {
                    shown.insert(name.clone());
                }
                // Our own write may have come back before what it was based on.
                if self.items.get(&name).is_some_and(|held| older(value.version(), held.version())) {
                    return StoreChange::Unchanged;
                }
                let old = self.items.insert(name.clone(), value);
                StoreChange::Applied(name, old)
            }
            WatchEvent::Deleted { namespace, name } => {
                let name = Name::new(&namespace, &name);
                match self.items.remove(&name) {
                    Some(old) => StoreChange::Removed(vec![(name, old)]),
                    None => StoreChange::Unchanged,
                }
            }
            WatchEvent::Unreadable { namespace, name, error } => {
                let name = Name::new(&namespace, &name);
                let old = self.items.remove(&name);
                if let Some(shown) = self.listing.get_mut(scope) {
                    shown.insert(name.clone());
                }
                StoreChange::Undecodable(name, old, error)
            }
        }
    }

    /// Our own write, before the watch tells it; an object that is gone stays gone.
    pub(crate) fn wrote(&mut self, name: &Name, value: V) {
        if let Some(held) = self.items.get_mut(name)
            && !older(value.version(), held.version())
        {
            *held = value;
        }
    }
}

/// Whether a version is older than another, as far as that can be told.
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

    fn name(name: &str) -> Name {
        Name::new("ns", name)
    }

    fn applied(of: &str, version: &'static str) -> WatchEvent<(Name, &'static str)> {
        WatchEvent::Applied((name(of), version))
    }

    #[test]
    fn what_a_list_does_not_show_is_gone_if_it_is_in_its_scope() {
        let mut object_store = ObjectStore::default();
        object_store.take("", applied("a", "1"));
        object_store.take("", applied("b", "2"));
        object_store.take("", WatchEvent::Applied((Name::new("other", "c"), "3")));
        object_store.take("ns", WatchEvent::Listing);
        object_store.take("ns", applied("b", "2"));
        assert_eq!(object_store.take("ns", WatchEvent::Listed), StoreChange::Removed(vec![(name("a"), "1")]));
        assert_eq!(object_store.len(), 2);
        assert_eq!(object_store.take("ns", WatchEvent::Listed), StoreChange::Unchanged);
    }

    #[test]
    fn nothing_goes_back_in_time() {
        let mut object_store = ObjectStore::default();
        object_store.take("", applied("a", "7"));
        object_store.wrote(&name("a"), "9");
        assert_eq!(object_store.take("", applied("a", "8")), StoreChange::Unchanged);
        assert_eq!(object_store.get(&name("a")), Some(&"9"));
        assert_eq!(object_store.take("", applied("a", "10")), StoreChange::Applied(name("a"), Some("9")));
        object_store.take("", WatchEvent::Deleted { namespace: "ns".into(), name: "a".into() });
        object_store.wrote(&name("a"), "11");
        assert_eq!(object_store.get(&name("a")), None, "what is gone is not brought back by a late answer");
    }

    #[test]
    fn what_cannot_be_read_is_not_there_but_not_forgotten_by_a_list() {
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
