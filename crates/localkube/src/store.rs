//! Objects with revisions, and what changed since one: all that watches need.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde_json::Value;

/// Which resource, by its place in the table of kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Resource(pub u32);

/// Which object of a resource. Lists are in this order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Namespace; empty for objects outside of any.
    pub namespace: String,
    /// Name.
    pub name: String,
}

/// Counts writes to the whole store; the `resourceVersion` of what was written.
pub type Revision = u64;

/// One write.
#[derive(Clone, Debug)]
pub struct Change {
    /// When, in revisions.
    pub revision: Revision,
    /// Which resource.
    pub resource: Resource,
    /// Which object.
    pub key: Key,
    /// The object before, unless it is new.
    pub before: Option<Arc<Value>>,
    /// The object after, unless it is gone.
    pub after: Option<Arc<Value>>,
}

/// Why a write was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The name is taken.
    #[error("the object exists")]
    Exists,
    /// There is no such object.
    #[error("there is no such object")]
    Missing,
    /// Somebody else wrote in between.
    #[error("the object has another revision")]
    Stale,
}

/// The revision asked for is older than what is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("changes are known from revision {oldest} on")]
pub struct Forgotten {
    /// The oldest revision from which changes are complete.
    pub oldest: Revision,
}

/// All objects. Plain data: whoever shares it puts a lock around it.
#[derive(Debug)]
pub struct Store {
    revision: Revision,
    resources: BTreeMap<Resource, BTreeMap<Key, Entry>>,
    log: VecDeque<Arc<Change>>,
    /// How many changes are remembered.
    memory: usize,
    oldest: Revision,
}

#[derive(Debug)]
struct Entry {
    object: Arc<Value>,
    revision: Revision,
}

impl Key {
    /// An object in a namespace, or outside of any if that is empty.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.to_owned(), name: name.to_owned() }
    }
}

impl Store {
    /// An empty store that remembers so many changes.
    pub fn new(memory: usize) -> Self {
        Self { revision: 1, resources: BTreeMap::new(), log: VecDeque::new(), memory, oldest: 1 }
    }

    /// The revision of the last write.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// One object.
    pub fn get(&self, resource: Resource, key: &Key) -> Option<Arc<Value>> {
        self.entry(resource, key).map(|entry| Arc::clone(&entry.object))
    }

    /// The objects of a resource after `after` (of all namespaces if none is given), in order.
    pub fn list<'a>(
        &'a self,
        resource: Resource,
        namespace: Option<&'a str>,
        after: Option<&'a Key>,
    ) -> impl Iterator<Item = (&'a Key, &'a Arc<Value>)> {
        let all = self.resources.get(&resource).into_iter().flatten();
        let skipped = all.skip_while(move |(key, _)| after.is_some_and(|after| *key <= after));
        skipped
            .filter(move |(key, _)| namespace.is_none_or(|namespace| key.namespace == namespace))
            .map(|(key, entry)| (key, &entry.object))
    }

    /// Puts a new object in. `stamp` writes the revision into it.
    pub fn create(
        &mut self,
        resource: Resource,
        key: Key,
        object: Value,
        stamp: impl FnOnce(&mut Value, Revision),
    ) -> Result<Arc<Value>, Refusal> {
        if self.entry(resource, &key).is_some() {
            return Err(Refusal::Exists);
        }
        Ok(self.put(resource, key, None, object, stamp))
    }

    /// Puts another object in the place of one, if that still has the `expected` revision (if one is expected).
    pub fn update(
        &mut self,
        resource: Resource,
        key: Key,
        expected: Option<Revision>,
        object: Value,
        stamp: impl FnOnce(&mut Value, Revision),
    ) -> Result<Arc<Value>, Refusal> {
        let before = self.current(resource, &key, expected)?;
        Ok(self.put(resource, key, Some(before), object, stamp))
    }

    /// Takes an object out, if it still has the `expected` revision (if one is expected). The change, and what is
    /// returned, shows it with the revision of its end.
    pub fn delete(
        &mut self,
        resource: Resource,
        key: &Key,
        expected: Option<Revision>,
        stamp: impl FnOnce(&mut Value, Revision),
    ) -> Result<Arc<Value>, Refusal> {
        let object = self.current(resource, key, expected)?;
        self.revision += 1;
        let mut last = (*object).clone();
        stamp(&mut last, self.revision);
        let last = Arc::new(last);
        if let Some(objects) = self.resources.get_mut(&resource) {
            objects.remove(key);
        }
        self.note(resource, key.clone(), Some(Arc::clone(&last)), None);
        Ok(last)
    }

    /// The changes of a resource after `since`, oldest first.
    pub fn changes(
        &self,
        resource: Resource,
        since: Revision,
    ) -> Result<impl Iterator<Item = &Arc<Change>>, Forgotten> {
        if since < self.oldest {
            return Err(Forgotten { oldest: self.oldest });
        }
        let first = self.log.partition_point(|change| change.revision <= since);
        Ok(self.log.iter().skip(first).filter(move |change| change.resource == resource))
    }

    fn entry(&self, resource: Resource, key: &Key) -> Option<&Entry> {
        self.resources.get(&resource)?.get(key)
    }

    fn current(
        &self,
        resource: Resource,
        key: &Key,
        expected: Option<Revision>,
    ) -> Result<Arc<Value>, Refusal> {
        let entry = self.entry(resource, key).ok_or(Refusal::Missing)?;
        if expected.is_some_and(|expected| expected != entry.revision) {
            return Err(Refusal::Stale);
        }
        Ok(Arc::clone(&entry.object))
    }

    fn put(
        &mut self,
        resource: Resource,
        key: Key,
        before: Option<Arc<Value>>,
        mut object: Value,
        stamp: impl FnOnce(&mut Value, Revision),
    ) -> Arc<Value> {
        self.revision += 1;
        stamp(&mut object, self.revision);
        let object = Arc::new(object);
        let entry = Entry { object: Arc::clone(&object), revision: self.revision };
        self.resources.entry(resource).or_default().insert(key.clone(), entry);
        self.note(resource, key, before, Some(Arc::clone(&object)));
        object
    }

    fn note(&mut self, resource: Resource, key: Key, before: Option<Arc<Value>>, after: Option<Arc<Value>>) {
        self.log.push_back(Arc::new(Change { revision: self.revision, resource, key, before, after }));
        while self.log.len() > self.memory {
            if let Some(forgotten) = self.log.pop_front() {
                self.oldest = forgotten.revision;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const PODS: Resource = Resource(0);
    const NODES: Resource = Resource(1);

    fn stamp(object: &mut Value, revision: Revision) {
        object["metadata"]["resourceVersion"] = json!(revision.to_string());
    }

    fn pod(name: &str) -> Value {
        json!({"metadata": {"name": name}})
    }

    #[test]
    fn writes_count_revisions_and_refuse_what_is_stale() {
        let mut store = Store::new(100);
        let key = || Key::new("default", "a");
        let made = store.create(PODS, key(), pod("a"), stamp).unwrap();
        assert_eq!(made["metadata"]["resourceVersion"], "2");
        assert_eq!(store.create(PODS, key(), pod("a"), stamp).unwrap_err(), Refusal::Exists);
        store.update(PODS, key(), Some(2), pod("a"), stamp).unwrap();
        assert_eq!(store.update(PODS, key(), Some(2), pod("a"), stamp).unwrap_err(), Refusal::Stale);
        assert_eq!(store.delete(PODS, &key(), Some(2), stamp).unwrap_err(), Refusal::Stale);
        assert_eq!(store.delete(PODS, &key(), None, stamp).unwrap()["metadata"]["resourceVersion"], "4");
        assert_eq!(store.update(PODS, key(), None, pod("a"), stamp).unwrap_err(), Refusal::Missing);
        assert_eq!(store.revision(), 4);
    }

    #[test]
    fn lists_are_in_order_and_go_on_after_a_key() {
        let mut store = Store::new(100);
        for (namespace, name) in [("b", "x"), ("a", "y"), ("a", "x")] {
            store.create(PODS, Key::new(namespace, name), pod(name), stamp).unwrap();
        }
        store.create(NODES, Key::new("", "n"), pod("n"), stamp).unwrap();
        let names = |namespace, after: Option<&Key>| {
            let listed = store.list(PODS, namespace, after);
            listed.map(|(key, _)| format!("{}/{}", key.namespace, key.name)).collect::<Vec<_>>()
        };
        assert_eq!(names(None, None), ["a/x", "a/y", "b/x"]);
        assert_eq!(names(Some("a"), None), ["a/x", "a/y"]);
        assert_eq!(names(None, Some(&Key::new("a", "x"))), ["a/y", "b/x"]);
    }

    #[test]
    fn changes_are_told_from_any_revision_that_is_remembered() {
        let mut store = Store::new(2);
        for name in ["a", "b", "c"] {
            store.create(PODS, Key::new("", name), pod(name), stamp).unwrap();
        }
        assert_eq!(store.changes(PODS, 1).err(), Some(Forgotten { oldest: 2 }));
        let names: Vec<_> = store.changes(PODS, 2).unwrap().map(|c| c.key.name.clone()).collect();
        assert_eq!(names, ["b", "c"]);
        assert_eq!(store.changes(NODES, 2).unwrap().count(), 0);
        store.delete(PODS, &Key::new("", "a"), None, stamp).unwrap();
        let last = store.changes(PODS, 4).unwrap().next().cloned().unwrap();
        assert!(last.after.is_none());
        assert_eq!(last.before.as_ref().unwrap()["metadata"]["resourceVersion"], "5");
    }

    proptest! {
        /// Whoever lists once and then follows changes has what is there.
        #[test]
        fn following_changes_leads_to_what_is_there(writes in prop::collection::vec((0..5_u8, 0..3_u8), 0..60), at in 0..60_usize) {
            let mut store = Store::new(1000);
            let mut copy: Option<(Revision, BTreeMap<Key, Arc<Value>>)> = None;
            for (index, (name, what)) in writes.iter().enumerate() {
                if index == at.min(writes.len().saturating_sub(1)) {
                    let listed = store.list(PODS, None, None).map(|(k, v)| (k.clone(), Arc::clone(v))).collect();
                    copy = Some((store.revision(), listed));
                }
                let key = Key::new("", &name.to_string());
                let _ = match what {
                    0 => store.create(PODS, key, pod("x"), stamp),
                    1 => store.update(PODS, key, None, pod("y"), stamp),
                    _ => store.delete(PODS, &key, None, stamp),
                };
            }
            if let Some((revision, mut objects)) = copy {
                for change in store.changes(PODS, revision).unwrap() {
                    match &change.after {
                        Some(object) => objects.insert(change.key.clone(), Arc::clone(object)),
                        None => objects.remove(&change.key),
                    };
                }
                let there: BTreeMap<Key, Arc<Value>> =
                    store.list(PODS, None, None).map(|(k, v)| (k.clone(), Arc::clone(v))).collect();
                prop_assert_eq!(objects, there);
            }
        }
    }
}
