//! The controllers' cache, updated by watches and by the responses to writes.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use api::selector::LabelSelector;
use serde_json::Value;

use super::objects::{
    Deployment, Job, ObjectMeta, ObjectRef, Pod, ReplicaSet, StatefulSet, WorkloadKind, WorkloadObject,
    WorkloadSpec,
};
use super::stateful_set;
use crate::list_watch::ListWatchEvent;

/// The cached objects of all kinds.
#[derive(Debug, Default)]
pub(crate) struct ObjectIndex {
    pub(crate) pods: KindIndex<Pod>,
    pub(crate) deployments: KindIndex<Deployment>,
    pub(crate) replica_sets: KindIndex<ReplicaSet>,
    pub(crate) stateful_sets: KindIndex<StatefulSet>,
    pub(crate) jobs: KindIndex<Job>,
    /// The templates of stateful sets by uid and revision: pods that are not updated yet are recreated from the
    /// previous one. (Kubernetes keeps them in ControllerRevisions.)
    templates: HashMap<String, BTreeMap<String, Value>>,
}

/// The objects of one kind, by name and by owner.
#[derive(Debug)]
pub(crate) struct KindIndex<T> {
    objects: BTreeMap<NamespacedName, Arc<T>>,
    children: HashMap<OwnerKey, BTreeSet<NamespacedName>>,
    /// The objects of a list in progress; `None` between lists.
    listed: Option<BTreeSet<NamespacedName>>,
    is_complete: bool,
    /// The newest revision that the watch reported.
    latest_revision: u64,
}

/// Namespace and name.
type NamespacedName = (String, String);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum OwnerKey {
    Uid(String),
    /// No controller: such objects wait for adoption, by namespace.
    None(String),
}

/// A watch event of an object.
#[derive(Debug)]
pub(crate) enum WatchedEvent {
    Pod(ListWatchEvent<Pod>),
    Deployment(ListWatchEvent<Deployment>),
    ReplicaSet(ListWatchEvent<ReplicaSet>),
    StatefulSet(ListWatchEvent<StatefulSet>),
    Job(ListWatchEvent<Job>),
}

/// An object as the server returned it after a write.
#[derive(Debug)]
pub(crate) enum WriteResult {
    Pod(Pod),
    Deployment(Deployment),
    ReplicaSet(ReplicaSet),
    StatefulSet(StatefulSet),
    Job(Job),
    /// Deleted or being deleted.
    Deleted(ObjectRef, String),
}

impl<T> Default for KindIndex<T> {
    fn default() -> Self {
        Self {
            objects: BTreeMap::new(),
            children: HashMap::new(),
            listed: None,
            is_complete: false,
            latest_revision: 0,
        }
    }
}

impl<S: WorkloadSpec, T> KindIndex<WorkloadObject<S, T>> {
    pub(crate) fn get(&self, namespace: &str, name: &str) -> Option<&Arc<WorkloadObject<S, T>>> {
        self.objects.get(&(namespace.to_owned(), name.to_owned()))
    }

    /// The objects in a namespace whose spec matches.
    fn selecting(&self, namespace: &str, fits: impl Fn(&S) -> bool) -> Vec<ObjectRef> {
        let objects = self.objects.range((namespace.to_owned(), String::new())..);
        let inside = objects.take_while(|(name, _)| name.0 == namespace);
        inside.filter(|(_, object)| fits(&object.spec)).map(|(_, object)| object.key()).collect()
    }

    /// The objects that an owner controls, by name.
    pub(crate) fn children(&self, owner: &str) -> Vec<Arc<WorkloadObject<S, T>>> {
        self.of(&OwnerKey::Uid(owner.to_owned()))
    }

    /// The objects of a namespace without a controller, by name.
    pub(crate) fn orphans(&self, namespace: &str) -> Vec<Arc<WorkloadObject<S, T>>> {
        self.of(&OwnerKey::None(namespace.to_owned()))
    }

    fn of(&self, owner: &OwnerKey) -> Vec<Arc<WorkloadObject<S, T>>> {
        let names = self.children.get(owner).into_iter().flatten();
        names.filter_map(|name| self.objects.get(name).cloned()).collect()
    }

    /// Applies a watch event; returns the affected objects, before and after.
    pub(crate) fn apply(
        &mut self,
        event: ListWatchEvent<WorkloadObject<S, T>>,
    ) -> Vec<Arc<WorkloadObject<S, T>>> {
        match event {
            ListWatchEvent::ListStarted => {
                self.listed = Some(BTreeSet::new());
                Vec::new()
            }
            ListWatchEvent::Listed(object) => {
                if let Some(listed) = &mut self.listed {
                    listed.insert(name_of(&object));
                }
                self.apply_update(object)
            }
            ListWatchEvent::ListDone => {
                self.is_complete = true;
                let listed = self.listed.take().unwrap_or_default();
                let gone: Vec<NamespacedName> =
                    self.objects.keys().filter(|name| !listed.contains(*name)).cloned().collect();
                gone.iter().filter_map(|name| self.remove(name)).collect()
            }
            ListWatchEvent::Applied(object) => self.apply_update(object),
            ListWatchEvent::Deleted(object) => {
                self.latest_revision = self.latest_revision.max(object.revision());
                let name = name_of(&object);
                let is_it = self.objects.get(&name).is_some_and(|known| known.uid() == object.uid());
                if is_it { self.remove(&name).into_iter().collect() } else { Vec::new() }
            }
        }
    }

    /// Applies the response to a write, so that the next plan knows it before the watch reports it.
    pub(crate) fn apply_write(&mut self, object: WorkloadObject<S, T>) -> Vec<Arc<WorkloadObject<S, T>>> {
        // The watch reported this revision already, and possibly a later deletion.
        if object.revision() <= self.latest_revision { Vec::new() } else { self.put(object) }
    }

    fn apply_update(&mut self, object: WorkloadObject<S, T>) -> Vec<Arc<WorkloadObject<S, T>>> {
        self.latest_revision = self.latest_revision.max(object.revision());
        self.put(object)
    }

    fn put(&mut self, mut object: WorkloadObject<S, T>) -> Vec<Arc<WorkloadObject<S, T>>> {
        // Managed fields are not needed and are most of the size.
        object.metadata.managed_fields = None;
        let name = name_of(&object);
        if let Some(known) = self.objects.get(&name).filter(|known| known.uid() == object.uid()) {
            if known.revision() > object.revision() {
                return Vec::new();
            }
            // A deletion is permanent; a write's response may report it before the watch.
            if known.is_deleting() && !object.is_deleting() {
                object.metadata.deletion_timestamp.clone_from(&known.metadata.deletion_timestamp);
            }
        }
        let before = self.remove(&name);
        self.children.entry(owner_of(&object)).or_default().insert(name.clone());
        let object = Arc::new(object);
        self.objects.insert(name, Arc::clone(&object));
        before.into_iter().chain([object]).collect()
    }

    fn remove(&mut self, name: &NamespacedName) -> Option<Arc<WorkloadObject<S, T>>> {
        let object = self.objects.remove(name)?;
        let owner = owner_of(&object);
        if let Some(names) = self.children.get_mut(&owner) {
            names.remove(name);
            if names.is_empty() {
                self.children.remove(&owner);
            }
        }
        Some(object)
    }
}

impl<S: WorkloadSpec + Clone, T: Clone> KindIndex<WorkloadObject<S, T>> {
    /// Applies a deletion. The object stays, as being deleted, until the watch reports that it is gone.
    fn apply_deletion(&mut self, key: &ObjectRef, uid: &str) -> Vec<Arc<WorkloadObject<S, T>>> {
        let name = (key.namespace.clone(), key.name.clone());
        let Some(known) = self.objects.get_mut(&name).filter(|known| known.uid() == uid) else {
            return Vec::new();
        };
        let object = Arc::make_mut(known);
        let time = || object.metadata.creation_timestamp.clone();
        object.metadata.deletion_timestamp = object.metadata.deletion_timestamp.clone().or_else(time);
        vec![Arc::clone(known)]
    }
}

fn name_of<S, T>(object: &WorkloadObject<S, T>) -> NamespacedName {
    (object.namespace().to_owned(), object.name().to_owned())
}

fn owner_of<S, T>(object: &WorkloadObject<S, T>) -> OwnerKey {
    match object.controller() {
        Some(owner) => OwnerKey::Uid(owner.uid.clone()),
        None => OwnerKey::None(object.namespace().to_owned()),
    }
}

impl ObjectIndex {
    /// Whether all kinds were listed once; before that, a missing object may only be unknown.
    pub(crate) fn is_complete(&self) -> bool {
        self.pods.is_complete
            && self.deployments.is_complete
            && self.replica_sets.is_complete
            && self.stateful_sets.is_complete
            && self.jobs.is_complete
    }

    /// Applies a watch event; returns the objects to reconcile.
    pub(crate) fn apply(&mut self, event: WatchedEvent) -> BTreeSet<ObjectRef> {
        match event {
            WatchedEvent::Pod(event) => {
                let touched = self.pods.apply(event);
                self.wake_for_pods(&touched)
            }
            WatchedEvent::ReplicaSet(event) => {
                let touched = self.replica_sets.apply(event);
                self.wake_for_sets(&touched)
            }
            WatchedEvent::Deployment(event) => keys(&self.deployments.apply(event)),
            WatchedEvent::StatefulSet(event) => {
                let touched = self.stateful_sets.apply(event);
                for set in &touched {
                    self.remember_template(set);
                }
                keys(&touched)
            }
            WatchedEvent::Job(event) => keys(&self.jobs.apply(event)),
        }
    }

    /// Applies the response to a write; returns the objects to reconcile.
    pub(crate) fn apply_write(&mut self, written: WriteResult) -> BTreeSet<ObjectRef> {
        match written {
            WriteResult::Pod(pod) => {
                let touched = self.pods.apply_write(pod);
                self.wake_for_pods(&touched)
            }
            WriteResult::ReplicaSet(set) => {
                let touched = self.replica_sets.apply_write(set);
                self.wake_for_sets(&touched)
            }
            WriteResult::Deployment(object) => keys(&self.deployments.apply_write(object)),
            WriteResult::StatefulSet(object) => keys(&self.stateful_sets.apply_write(object)),
            WriteResult::Job(object) => keys(&self.jobs.apply_write(object)),
            WriteResult::Deleted(key, uid) => match key.kind {
                WorkloadKind::Pod => {
                    let touched = self.pods.apply_deletion(&key, &uid);
                    self.wake_for_pods(&touched)
                }
                WorkloadKind::ReplicaSet => {
                    let touched = self.replica_sets.apply_deletion(&key, &uid);
                    self.wake_for_sets(&touched)
                }
                _ => BTreeSet::new(),
            },
        }
    }

    fn remember_template(&mut self, set: &StatefulSet) {
        if self.stateful_sets.get(set.namespace(), set.name()).is_none_or(|known| known.uid() != set.uid()) {
            self.templates.remove(set.uid());
            return;
        }
        let revision = stateful_set::revision(set);
        let known = self.templates.entry(set.uid().to_owned()).or_default();
        known.retain(|old, _| *old == revision || *old == set.status.current_revision);
        known.entry(revision).or_insert_with(|| set.spec.template.clone());
    }

    /// The template of the current revision of a set, if it differs from the spec's.
    pub(crate) fn template_before(&self, set: &StatefulSet) -> Option<&Value> {
        if set.status.current_revision == stateful_set::revision(set) {
            return None;
        }
        self.templates.get(set.uid())?.get(&set.status.current_revision)
    }

    fn wake_for_pods(&self, pods: &[Arc<Pod>]) -> BTreeSet<ObjectRef> {
        let mut woken = BTreeSet::new();
        for pod in pods {
            let owner = owner_key(pod);
            if let Some(key) = owner.as_ref().filter(|key| key.kind == WorkloadKind::ReplicaSet) {
                // A deployment may wait for the last of its old pods.
                let set = self.replica_sets.get(&key.namespace, &key.name);
                woken.extend(set.and_then(owner_key));
            }
            if pod.controller().is_none() {
                let fits = |selector: &LabelSelector| may_match(selector, &pod.metadata);
                woken.extend(self.replica_sets.selecting(pod.namespace(), |spec| fits(&spec.selector)));
                woken.extend(self.stateful_sets.selecting(pod.namespace(), |spec| fits(&spec.selector)));
                woken.extend(self.jobs.selecting(pod.namespace(), |spec| fits(&spec.selector)));
            }
            woken.extend(owner);
        }
        woken
    }

    fn wake_for_sets(&self, sets: &[Arc<ReplicaSet>]) -> BTreeSet<ObjectRef> {
        let mut woken = BTreeSet::new();
        for set in sets {
            woken.insert(set.key());
            woken.extend(owner_key(set));
            if set.controller().is_none() {
                let fits = |selector: &LabelSelector| may_match(selector, &set.metadata);
                woken.extend(self.deployments.selecting(set.namespace(), |spec| fits(&spec.selector)));
            }
        }
        woken
    }
}

/// A cheap pre-check of a selector: there may be many objects without an owner, and many selectors.
fn may_match(selector: &LabelSelector, metadata: &ObjectMeta) -> bool {
    let label = |name: &String| metadata.labels.as_ref().and_then(|labels| labels.get(name));
    selector.match_labels.iter().all(|(name, value)| label(name) == Some(value))
}

fn keys<S: WorkloadSpec, T>(objects: &[Arc<WorkloadObject<S, T>>]) -> BTreeSet<ObjectRef> {
    objects.iter().map(|object| object.key()).collect()
}

fn owner_key<S, T>(object: &Arc<WorkloadObject<S, T>>) -> Option<ObjectRef> {
    let owner = object.controller()?;
    let kind = WorkloadKind::of_owner(owner)?;
    Some(ObjectRef { kind, namespace: object.namespace().to_owned(), name: owner.name.clone() })
}
