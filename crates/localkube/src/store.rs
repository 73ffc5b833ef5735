//! The object store: objects with revisions, and the changes since a revision, for watches.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::ops::Bound;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;

/// The id of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceId(pub u32);

/// Identifies an object of a resource. Lists are in this order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// Namespace; empty for objects outside of any.
    pub namespace: String,
    /// Name.
    pub name: String,
}

/// Counts writes to the whole store: the `resourceVersion`.
pub type Revision = u64;

/// A stored object: its JSON text, and the values that are needed without parsing it.
#[derive(Debug, PartialEq, Eq)]
pub struct StoredObject {
    /// The JSON text.
    pub text: Bytes,
    /// The revision of the write.
    pub revision: Revision,
    /// Its `metadata.uid`.
    pub uid: Box<str>,
    /// Its labels.
    pub labels: Box<[(Box<str>, Box<str>)]>,
    /// The values of the selectable fields, in the order of the table of kinds.
    pub fields: Box<[Box<str>]>,
    /// The uids of its owners.
    pub owners: Box<[Box<str>]>,
    /// Whether it has a deletion timestamp.
    pub deleting: bool,
}

/// A change of an object.
#[derive(Debug)]
pub struct ChangeRecord {
    /// The revision of the change.
    pub revision: Revision,
    /// The object.
    pub key: ObjectKey,
    /// The object before; `None` if it was created.
    pub before: Option<Arc<StoredObject>>,
    /// The object after; `None` if it was deleted.
    pub after: Option<Arc<StoredObject>>,
    /// The last state of a deleted object, with the revision of the deletion.
    pub gone: Option<Arc<StoredObject>>,
    /// The encoded watch event, created by the first watcher that needs it and shared.
    pub event: OnceLock<Bytes>,
}

/// A write was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// The object exists.
    #[error("the object exists")]
    Exists,
    /// The object does not exist.
    #[error("the object does not exist")]
    Missing,
    /// The object has another revision.
    #[error("the object was changed in between")]
    Stale,
}

/// The requested changes are no longer kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("changes are known from revision {oldest} on")]
pub struct RevisionExpired {
    /// The oldest revision with complete changes.
    pub oldest: Revision,
}

/// All objects. The store has no lock of its own.
#[derive(Debug)]
pub struct Store {
    revision: Revision,
    resources: BTreeMap<ResourceId, ResourceStore>,
    /// Resource and key by uid.
    by_uid: HashMap<Box<str>, (ResourceId, ObjectKey)>,
    /// The objects by owner uid.
    owned: HashMap<Box<str>, BTreeSet<(ResourceId, ObjectKey)>>,
    /// How many changes of each resource are kept.
    watch_history: usize,
}

/// The objects of one resource.
#[derive(Debug)]
struct ResourceStore {
    objects: BTreeMap<ObjectKey, Arc<StoredObject>>,
    log: VecDeque<Arc<ChangeRecord>>,
    oldest: Revision,
}

impl ObjectKey {
    /// An object in a namespace; cluster-scoped if that is empty.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.to_owned(), name: name.to_owned() }
    }
}

impl StoredObject {
    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.labels.iter().find(|(name, _)| **name == *key).map(|(_, value)| &**value)
    }
}

impl Store {
    /// An empty store that keeps this many changes per resource.
    pub fn new(watch_history: usize) -> Self {
        Self {
            revision: 1,
            resources: BTreeMap::new(),
            by_uid: HashMap::new(),
            owned: HashMap::new(),
            watch_history,
        }
    }

    /// The revision of the last write.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// One object.
    pub fn get(&self, resource: ResourceId, key: &ObjectKey) -> Option<Arc<StoredObject>> {
        self.resources.get(&resource)?.objects.get(key).cloned()
    }

    /// The objects of a resource after `after`, in one namespace or in all, in order.
    pub fn list<'a>(
        &'a self,
        resource: ResourceId,
        namespace: Option<&'a str>,
        after: Option<&'a ObjectKey>,
    ) -> impl Iterator<Item = (&'a ObjectKey, &'a Arc<StoredObject>)> {
        let first = match (after, namespace) {
            (Some(after), _) => Bound::Excluded(after.clone()),
            (None, Some(namespace)) => Bound::Included(ObjectKey::new(namespace, "")),
            (None, None) => Bound::Unbounded,
        };
        let objects_of = self.resources.get(&resource).into_iter();
        objects_of
            .flat_map(move |objects_of| objects_of.objects.range((first.clone(), Bound::Unbounded)))
            .take_while(move |(key, _)| namespace.is_none_or(|namespace| key.namespace == namespace))
    }

    /// The objects of a resource at a revision.
    pub fn list_at(
        &self,
        resource: ResourceId,
        at: Revision,
    ) -> Result<BTreeMap<ObjectKey, Arc<StoredObject>>, RevisionExpired> {
        let mut then =
            self.resources.get(&resource).map(|objects_of| objects_of.objects.clone()).unwrap_or_default();
        let later: Vec<&Arc<ChangeRecord>> = self.changes(resource, at)?.collect();
        for change in later.into_iter().rev() {
            match &change.before {
                Some(before) => then.insert(change.key.clone(), Arc::clone(before)),
                None => then.remove(&change.key),
            };
        }
        Ok(then)
    }

    /// How many objects a resource has.
    pub fn count(&self, resource: ResourceId) -> usize {
        self.resources.get(&resource).map_or(0, |objects_of| objects_of.objects.len())
    }

    /// Creates an object; `make` builds it with its revision.
    pub fn create(
        &mut self,
        resource: ResourceId,
        key: ObjectKey,
        make: impl FnOnce(Revision) -> StoredObject,
    ) -> Result<Arc<StoredObject>, WriteError> {
        if self.get(resource, &key).is_some() {
            return Err(WriteError::Exists);
        }
        Ok(self.put(resource, key, None, make))
    }

    /// Replaces an object that has the `expected` revision.
    pub fn update(
        &mut self,
        resource: ResourceId,
        key: ObjectKey,
        expected: Revision,
        make: impl FnOnce(Revision) -> StoredObject,
    ) -> Result<Arc<StoredObject>, WriteError> {
        let before = self.current(resource, &key, expected)?;
        Ok(self.put(resource, key, Some(before), make))
    }

    /// Deletes an object that has the `expected` revision. `make` builds its last state, which is recorded and
    /// returned.
    pub fn delete(
        &mut self,
        resource: ResourceId,
        key: &ObjectKey,
        expected: Revision,
        make: impl FnOnce(Revision) -> StoredObject,
    ) -> Result<Arc<StoredObject>, WriteError> {
        let before = self.current(resource, key, expected)?;
        self.revision += 1;
        let gone = Arc::new(make(self.revision));
        self.objects_of(resource).objects.remove(key);
        self.unlink(resource, key, &before);
        self.note(resource, key.clone(), Some(before), None, Some(Arc::clone(&gone)));
        Ok(gone)
    }

    /// The changes of a resource after `since`, oldest first.
    pub fn changes(
        &self,
        resource: ResourceId,
        since: Revision,
    ) -> Result<impl Iterator<Item = &Arc<ChangeRecord>>, RevisionExpired> {
        let objects_of = self.resources.get(&resource);
        if let Some(oldest) = objects_of.map(|objects_of| objects_of.oldest).filter(|oldest| since < *oldest)
        {
            return Err(RevisionExpired { oldest });
        }
        let first = objects_of
            .map_or(0, |objects_of| objects_of.log.partition_point(|change| change.revision <= since));
        Ok(objects_of.into_iter().flat_map(move |objects_of| objects_of.log.iter().skip(first)))
    }

    /// Resource and key by uid.
    pub fn find_by_uid(&self, uid: &str) -> Option<&(ResourceId, ObjectKey)> {
        self.by_uid.get(uid)
    }

    /// The objects by owner uid.
    pub fn owned_by(&self, uid: &str) -> impl Iterator<Item = &(ResourceId, ObjectKey)> {
        self.owned.get(uid).into_iter().flatten()
    }

    /// Starts the history of a resource at the current revision.
    pub fn begin_resource(&mut self, resource: ResourceId) {
        let now = self.revision;
        self.objects_of(resource).oldest = now;
    }

    /// Drops a resource with all its objects; watches learn of it from the catalog.
    pub fn drop_resource(&mut self, resource: ResourceId) {
        self.resources.remove(&resource);
    }

    fn link(&mut self, resource: ResourceId, key: &ObjectKey, object: &StoredObject) {
        self.by_uid.insert(object.uid.clone(), (resource, key.clone()));
        for owner in &object.owners {
            self.owned.entry(owner.clone()).or_default().insert((resource, key.clone()));
        }
    }

    fn unlink(&mut self, resource: ResourceId, key: &ObjectKey, object: &StoredObject) {
        self.by_uid.remove(&object.uid);
        for owner in &object.owners {
            if let Some(owned) = self.owned.get_mut(owner) {
                owned.remove(&(resource, key.clone()));
                if owned.is_empty() {
                    self.owned.remove(owner);
                }
            }
        }
    }

    fn objects_of(&mut self, resource: ResourceId) -> &mut ResourceStore {
        let empty = || ResourceStore { objects: BTreeMap::new(), log: VecDeque::new(), oldest: 1 };
        self.resources.entry(resource).or_insert_with(empty)
    }

    fn current(
        &self,
        resource: ResourceId,
        key: &ObjectKey,
        expected: Revision,
    ) -> Result<Arc<StoredObject>, WriteError> {
        let object = self.get(resource, key).ok_or(WriteError::Missing)?;
        if object.revision == expected { Ok(object) } else { Err(WriteError::Stale) }
    }

    fn put(
        &mut self,
        resource: ResourceId,
        key: ObjectKey,
        before: Option<Arc<StoredObject>>,
        make: impl FnOnce(Revision) -> StoredObject,
    ) -> Arc<StoredObject> {
        self.revision += 1;
        let object = Arc::new(make(self.revision));
        if let Some(before) = &before {
            self.unlink(resource, &key, before);
        }
        self.link(resource, &key, &object);
        self.objects_of(resource).objects.insert(key.clone(), Arc::clone(&object));
        self.note(resource, key, before, Some(Arc::clone(&object)), None);
        object
    }

    fn note(
        &mut self,
        resource: ResourceId,
        key: ObjectKey,
        before: Option<Arc<StoredObject>>,
        after: Option<Arc<StoredObject>>,
        gone: Option<Arc<StoredObject>>,
    ) {
        let (revision, watch_history) = (self.revision, self.watch_history);
        let objects_of = self.objects_of(resource);
        let event = OnceLock::new();
        objects_of.log.push_back(Arc::new(ChangeRecord { revision, key, before, after, gone, event }));
        while objects_of.log.len() > watch_history {
            if let Some(forgotten) = objects_of.log.pop_front() {
                objects_of.oldest = forgotten.revision;
            }
        }
    }
}

#[cfg(test)]
mod tests;
