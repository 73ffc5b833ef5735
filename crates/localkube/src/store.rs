//! Objects with revisions, and what changed since one: all that watches need.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::ops::Bound;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;

/// Which resource, by its place in the catalog.
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

/// An object as it is kept: its JSON text, and what is asked of it so often that it must not be parsed for it.
#[derive(Debug, PartialEq, Eq)]
pub struct Object {
    /// The JSON text.
    pub text: Bytes,
    /// The write that made it.
    pub revision: Revision,
    /// Its `metadata.uid`.
    pub uid: Box<str>,
    /// Its labels.
    pub labels: Box<[(Box<str>, Box<str>)]>,
    /// The values of the fields its kind can be selected by, in the order of the table.
    pub fields: Box<[Box<str>]>,
    /// The uids of its owners.
    pub owners: Box<[Box<str>]>,
    /// Whether it is marked to be deleted.
    pub going: bool,
}

/// One write.
#[derive(Debug)]
pub struct Change {
    /// When, in revisions.
    pub revision: Revision,
    /// Which object.
    pub key: Key,
    /// The object before, unless it is new.
    pub before: Option<Arc<Object>>,
    /// The object after, unless it is gone.
    pub after: Option<Arc<Object>>,
    /// The object as it went, if it is gone: that before, with the revision of its end.
    pub gone: Option<Arc<Object>>,
    /// The event on the wire, made by the first watcher that needs it and shared by all.
    pub event: OnceLock<Bytes>,
}

/// Why a write was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The name is taken.
    #[error("the object exists")]
    Exists,
    /// There is no such object.
    #[error("the object does not exist")]
    Missing,
    /// Somebody else wrote in between.
    #[error("the object was changed in between")]
    Stale,
}

/// The changes asked for are no longer remembered.
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
    shelves: BTreeMap<Resource, Shelf>,
    /// Where the object with a uid is.
    places: HashMap<Box<str>, (Resource, Key)>,
    /// The objects that name a uid as their owner.
    owned: HashMap<Box<str>, BTreeSet<(Resource, Key)>>,
    /// How many changes of each resource are remembered.
    memory: usize,
}

/// The objects of one resource.
#[derive(Debug)]
struct Shelf {
    objects: BTreeMap<Key, Arc<Object>>,
    log: VecDeque<Arc<Change>>,
    oldest: Revision,
}

impl Key {
    /// An object in a namespace, or outside of any if that is empty.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.to_owned(), name: name.to_owned() }
    }
}

impl Object {
    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.labels.iter().find(|(name, _)| **name == *key).map(|(_, value)| &**value)
    }
}

impl Store {
    /// An empty store that remembers so many changes of each resource.
    pub fn new(memory: usize) -> Self {
        Self { revision: 1, shelves: BTreeMap::new(), places: HashMap::new(), owned: HashMap::new(), memory }
    }

    /// The revision of the last write.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// One object.
    pub fn get(&self, resource: Resource, key: &Key) -> Option<Arc<Object>> {
        self.shelves.get(&resource)?.objects.get(key).cloned()
    }

    /// The objects of a resource after `after` (of all namespaces if none is given), in order.
    pub fn list<'a>(
        &'a self,
        resource: Resource,
        namespace: Option<&'a str>,
        after: Option<&'a Key>,
    ) -> impl Iterator<Item = (&'a Key, &'a Arc<Object>)> {
        let first = match (after, namespace) {
            (Some(after), _) => Bound::Excluded(after.clone()),
            (None, Some(namespace)) => Bound::Included(Key::new(namespace, "")),
            (None, None) => Bound::Unbounded,
        };
        let shelf = self.shelves.get(&resource).into_iter();
        shelf
            .flat_map(move |shelf| shelf.objects.range((first.clone(), Bound::Unbounded)))
            .take_while(move |(key, _)| namespace.is_none_or(|namespace| key.namespace == namespace))
    }

    /// The objects of a resource as they were at a revision.
    pub fn list_at(&self, resource: Resource, at: Revision) -> Result<BTreeMap<Key, Arc<Object>>, Forgotten> {
        let mut then = self.shelves.get(&resource).map(|shelf| shelf.objects.clone()).unwrap_or_default();
        let later: Vec<&Arc<Change>> = self.changes(resource, at)?.collect();
        for change in later.into_iter().rev() {
            match &change.before {
                Some(before) => then.insert(change.key.clone(), Arc::clone(before)),
                None => then.remove(&change.key),
            };
        }
        Ok(then)
    }

    /// How many objects a resource has.
    pub fn count(&self, resource: Resource) -> usize {
        self.shelves.get(&resource).map_or(0, |shelf| shelf.objects.len())
    }

    /// Puts a new object in; `make` makes it with the revision it gets.
    pub fn create(
        &mut self,
        resource: Resource,
        key: Key,
        make: impl FnOnce(Revision) -> Object,
    ) -> Result<Arc<Object>, Refusal> {
        if self.get(resource, &key).is_some() {
            return Err(Refusal::Exists);
        }
        Ok(self.put(resource, key, None, make))
    }

    /// Puts another object in the place of one, if that still has the `expected` revision.
    pub fn update(
        &mut self,
        resource: Resource,
        key: Key,
        expected: Revision,
        make: impl FnOnce(Revision) -> Object,
    ) -> Result<Arc<Object>, Refusal> {
        let before = self.current(resource, &key, expected)?;
        Ok(self.put(resource, key, Some(before), make))
    }

    /// Takes an object out, if it still has the `expected` revision. `make` makes its last form, which the change
    /// shows and which is returned.
    pub fn delete(
        &mut self,
        resource: Resource,
        key: &Key,
        expected: Revision,
        make: impl FnOnce(Revision) -> Object,
    ) -> Result<Arc<Object>, Refusal> {
        let before = self.current(resource, key, expected)?;
        self.revision += 1;
        let gone = Arc::new(make(self.revision));
        self.shelf(resource).objects.remove(key);
        self.unlink(resource, key, &before);
        self.note(resource, key.clone(), Some(before), None, Some(Arc::clone(&gone)));
        Ok(gone)
    }

    /// The changes of a resource after `since`, oldest first.
    pub fn changes(
        &self,
        resource: Resource,
        since: Revision,
    ) -> Result<impl Iterator<Item = &Arc<Change>>, Forgotten> {
        let shelf = self.shelves.get(&resource);
        if let Some(oldest) = shelf.map(|shelf| shelf.oldest).filter(|oldest| since < *oldest) {
            return Err(Forgotten { oldest });
        }
        let first = shelf.map_or(0, |shelf| shelf.log.partition_point(|change| change.revision <= since));
        Ok(shelf.into_iter().flat_map(move |shelf| shelf.log.iter().skip(first)))
    }

    /// Where the object with a uid is.
    pub fn place(&self, uid: &str) -> Option<&(Resource, Key)> {
        self.places.get(uid)
    }

    /// The objects that name a uid as their owner.
    pub fn owned_by(&self, uid: &str) -> impl Iterator<Item = &(Resource, Key)> {
        self.owned.get(uid).into_iter().flatten()
    }

    /// Says that a resource begins now: nothing is known of it from before.
    pub fn begin_resource(&mut self, resource: Resource) {
        let now = self.revision;
        self.shelf(resource).oldest = now;
    }

    /// Forgets a resource with all its objects; those who watch it are told by the catalog.
    pub fn drop_resource(&mut self, resource: Resource) {
        self.shelves.remove(&resource);
    }

    fn link(&mut self, resource: Resource, key: &Key, object: &Object) {
        self.places.insert(object.uid.clone(), (resource, key.clone()));
        for owner in &object.owners {
            self.owned.entry(owner.clone()).or_default().insert((resource, key.clone()));
        }
    }

    fn unlink(&mut self, resource: Resource, key: &Key, object: &Object) {
        self.places.remove(&object.uid);
        for owner in &object.owners {
            if let Some(owned) = self.owned.get_mut(owner) {
                owned.remove(&(resource, key.clone()));
                if owned.is_empty() {
                    self.owned.remove(owner);
                }
            }
        }
    }

    fn shelf(&mut self, resource: Resource) -> &mut Shelf {
        let empty = || Shelf { objects: BTreeMap::new(), log: VecDeque::new(), oldest: 1 };
        self.shelves.entry(resource).or_insert_with(empty)
    }

    fn current(&self, resource: Resource, key: &Key, expected: Revision) -> Result<Arc<Object>, Refusal> {
        let object = self.get(resource, key).ok_or(Refusal::Missing)?;
        if object.revision == expected { Ok(object) } else { Err(Refusal::Stale) }
    }

    fn put(
        &mut self,
        resource: Resource,
        key: Key,
        before: Option<Arc<Object>>,
        make: impl FnOnce(Revision) -> Object,
    ) -> Arc<Object> {
        self.revision += 1;
        let object = Arc::new(make(self.revision));
        if let Some(before) = &before {
            self.unlink(resource, &key, before);
        }
        self.link(resource, &key, &object);
        self.shelf(resource).objects.insert(key.clone(), Arc::clone(&object));
        self.note(resource, key, before, Some(Arc::clone(&object)), None);
        object
    }

    fn note(
        &mut self,
        resource: Resource,
        key: Key,
        before: Option<Arc<Object>>,
        after: Option<Arc<Object>>,
        gone: Option<Arc<Object>>,
    ) {
        let (revision, memory) = (self.revision, self.memory);
        let shelf = self.shelf(resource);
        let event = OnceLock::new();
        shelf.log.push_back(Arc::new(Change { revision, key, before, after, gone, event }));
        while shelf.log.len() > memory {
            if let Some(forgotten) = shelf.log.pop_front() {
                shelf.oldest = forgotten.revision;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PODS: Resource = Resource(0);
    const NODES: Resource = Resource(1);

    fn object(text: &'static str) -> impl FnOnce(Revision) -> Object {
        move |revision| Object {
            text: Bytes::from_static(text.as_bytes()),
            revision,
            uid: "".into(),
            labels: Box::default(),
            fields: Box::default(),
            owners: Box::default(),
            going: false,
        }
    }

    #[test]
    fn writes_count_revisions_and_refuse_what_is_stale() {
        let mut store = Store::new(100);
        let key = || Key::new("default", "a");
        assert_eq!(store.create(PODS, key(), object("1")).unwrap().revision, 2);
        assert_eq!(store.create(PODS, key(), object("1")).unwrap_err(), Refusal::Exists);
        store.update(PODS, key(), 2, object("2")).unwrap();
        assert_eq!(store.update(PODS, key(), 2, object("2")).unwrap_err(), Refusal::Stale);
        assert_eq!(store.delete(PODS, &key(), 2, object("2")).unwrap_err(), Refusal::Stale);
        assert_eq!(store.delete(PODS, &key(), 3, object("2")).unwrap().revision, 4);
        assert_eq!(store.update(PODS, key(), 4, object("2")).unwrap_err(), Refusal::Missing);
        assert_eq!((store.revision(), store.count(PODS)), (4, 0));
    }

    #[test]
    fn lists_are_in_order_and_go_on_after_a_key() {
        let mut store = Store::new(100);
        for (namespace, name) in [("b", "x"), ("a", "y"), ("a", "x"), ("ab", "x")] {
            store.create(PODS, Key::new(namespace, name), object("")).unwrap();
        }
        store.create(NODES, Key::new("", "n"), object("")).unwrap();
        let names = |namespace, after: Option<&Key>| {
            let listed = store.list(PODS, namespace, after);
            listed.map(|(key, _)| format!("{}/{}", key.namespace, key.name)).collect::<Vec<_>>()
        };
        assert_eq!(names(None, None), ["a/x", "a/y", "ab/x", "b/x"]);
        assert_eq!(names(Some("a"), None), ["a/x", "a/y"]);
        assert_eq!(names(Some("a"), Some(&Key::new("a", "x"))), ["a/y"]);
        assert_eq!(names(None, Some(&Key::new("a", "y"))), ["ab/x", "b/x"]);
    }

    #[test]
    fn changes_are_told_from_any_revision_that_is_remembered() {
        let mut store = Store::new(2);
        for name in ["a", "b", "c"] {
            store.create(PODS, Key::new("", name), object("")).unwrap();
        }
        assert_eq!(store.changes(PODS, 1).err(), Some(Forgotten { oldest: 2 }));
        let names: Vec<_> = store.changes(PODS, 2).unwrap().map(|c| c.key.name.clone()).collect();
        assert_eq!(names, ["b", "c"]);
        assert_eq!(store.changes(NODES, 1).unwrap().count(), 0);
        store.delete(PODS, &Key::new("", "a"), 2, object("last")).unwrap();
        let last = store.changes(PODS, 4).unwrap().next().cloned().unwrap();
        assert!(last.after.is_none());
        assert_eq!(last.gone.as_ref().unwrap().revision, 5);
        store.drop_resource(PODS);
        assert_eq!(store.count(PODS), 0);
    }

    #[test]
    fn what_was_can_be_listed_as_long_as_it_is_remembered() {
        let mut store = Store::new(3);
        store.create(PODS, Key::new("", "a"), object("1")).unwrap();
        store.create(PODS, Key::new("", "b"), object("2")).unwrap();
        store.update(PODS, Key::new("", "a"), 2, object("3")).unwrap();
        store.delete(PODS, &Key::new("", "b"), 3, object("2")).unwrap();
        let texts = |at| -> Vec<Bytes> {
            store.list_at(PODS, at).unwrap().into_values().map(|object| object.text.clone()).collect()
        };
        assert_eq!(texts(2), ["1"]);
        assert_eq!(texts(3), ["1", "2"]);
        assert_eq!(texts(4), ["3", "2"]);
        assert_eq!(texts(5), ["3"]);
        assert_eq!(store.list_at(PODS, 1).unwrap_err().oldest, 2);
    }

    #[test]
    fn owners_and_owned_find_each_other() {
        let mut store = Store::new(10);
        let with = |uid: &'static str, owners: &'static [&'static str]| {
            move |revision| Object {
                uid: uid.into(),
                owners: owners.iter().map(|owner| (*owner).into()).collect(),
                ..object("")(revision)
            }
        };
        let (owner, child) = (Key::new("a", "owner"), Key::new("a", "child"));
        store.create(NODES, owner.clone(), with("1", &[])).unwrap();
        store.create(PODS, child.clone(), with("2", &["1"])).unwrap();
        assert_eq!(store.place("1"), Some(&(NODES, owner.clone())));
        assert_eq!(store.owned_by("1").collect::<Vec<_>>(), [&(PODS, child.clone())]);
        store.update(PODS, child.clone(), 3, with("2", &[])).unwrap();
        assert_eq!(store.owned_by("1").count(), 0);
        store.update(PODS, child.clone(), 4, with("2", &["1"])).unwrap();
        store.delete(PODS, &child, 5, with("2", &["1"])).unwrap();
        assert_eq!((store.owned_by("1").count(), store.place("2")), (0, None));
    }

    proptest! {
        /// Whoever lists once and then follows changes has what is there.
        #[test]
        fn following_changes_leads_to_what_is_there(
            writes in prop::collection::vec((0..5_u8, 0..3_u8), 0..60),
            at in 0..60_usize,
        ) {
            let mut store = Store::new(1000);
            let mut copy: Option<(Revision, BTreeMap<Key, Arc<Object>>)> = None;
            for (index, (name, what)) in writes.iter().enumerate() {
                if index == at.min(writes.len().saturating_sub(1)) {
                    let listed = store.list(PODS, None, None).map(|(k, v)| (k.clone(), Arc::clone(v))).collect();
                    copy = Some((store.revision(), listed));
                }
                let key = Key::new("", &name.to_string());
                let now = store.get(PODS, &key).map_or(0, |object| object.revision);
                let _ = match what {
                    0 => store.create(PODS, key, object("x")),
                    1 => store.update(PODS, key, now, object("y")),
                    _ => store.delete(PODS, &key, now, object("z")),
                };
            }
            if let Some((revision, mut objects)) = copy {
                for change in store.changes(PODS, revision).unwrap() {
                    match &change.after {
                        Some(object) => objects.insert(change.key.clone(), Arc::clone(object)),
                        None => objects.remove(&change.key),
                    };
                }
                let there: BTreeMap<Key, Arc<Object>> =
                    store.list(PODS, None, None).map(|(k, v)| (k.clone(), Arc::clone(v))).collect();
                prop_assert_eq!(objects, there);
            }
        }
    }
}
