//! What is known of the cluster: told by watches, and by the answers to our own writes.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use api::selector::LabelSelector;
use serde_json::Value;

use super::objects::{Deployment, Job, Key, Kind, Object, ObjectMeta, Pod, ReplicaSet, Spec, StatefulSet};
use super::stateful_set;
use crate::list_watch::ListWatchEvent;

/// The objects of all kinds.
#[derive(Debug, Default)]
pub(crate) struct Index {
    pub(crate) pods: Table<Pod>,
    pub(crate) deployments: Table<Deployment>,
    pub(crate) replica_sets: Table<ReplicaSet>,
    pub(crate) stateful_sets: Table<StatefulSet>,
    pub(crate) jobs: Table<Job>,
    /// The templates of stateful sets, by uid and revision: pods that are not to be updated yet are made anew from the one
    /// before. (Kubernetes keeps them in ControllerRevisions.)
    templates: HashMap<String, BTreeMap<String, Value>>,
}

/// The objects of one kind, by name and by owner.
#[derive(Debug)]
pub(crate) struct Table<T> {
    objects: BTreeMap<Name, Arc<T>>,
    children: HashMap<Owner, BTreeSet<Name>>,
    /// What a list that is under way has named; `None` between lists.
    listed: Option<BTreeSet<Name>>,
    is_complete: bool,
    /// The newest revision that a watch told of.
    told: u64,
}

/// Namespace and name.
type Name = (String, String);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Owner {
    Uid(String),
    /// Nobody: such objects wait, by namespace, for somebody to take them in.
    None(String),
}

/// One thing that was heard of an object.
#[derive(Debug)]
pub(crate) enum News {
    Pod(ListWatchEvent<Pod>),
    Deployment(ListWatchEvent<Deployment>),
    ReplicaSet(ListWatchEvent<ReplicaSet>),
    StatefulSet(ListWatchEvent<StatefulSet>),
    Job(ListWatchEvent<Job>),
}

/// An object that was just written, as the server answered.
#[derive(Debug)]
pub(crate) enum Written {
    Pod(Pod),
    Deployment(Deployment),
    ReplicaSet(ReplicaSet),
    StatefulSet(StatefulSet),
    Job(Job),
    /// Deleted, now or soon.
    Deleted(Key, String),
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { objects: BTreeMap::new(), children: HashMap::new(), listed: None, is_complete: false, told: 0 }
    }
}

impl<S: Spec, T> Table<Object<S, T>> {
    pub(crate) fn get(&self, namespace: &str, name: &str) -> Option<&Arc<Object<S, T>>> {
        self.objects.get(&(namespace.to_owned(), name.to_owned()))
    }

    /// The objects in a namespace.
    pub(crate) fn inside(&self, namespace: &str) -> impl Iterator<Item = &Arc<Object<S, T>>> {
        let first = (namespace.to_owned(), String::new());
        self.objects
            .range(first.clone()..)
            .take_while(move |(name, _)| name.0 == first.0)
            .map(|(_, object)| object)
    }

    /// The objects that an owner manages, by name.
    pub(crate) fn children(&self, owner: &str) -> Vec<Arc<Object<S, T>>> {
        self.of(&Owner::Uid(owner.to_owned()))
    }

    /// The objects of a namespace that nobody manages, by name.
    pub(crate) fn orphans(&self, namespace: &str) -> Vec<Arc<Object<S, T>>> {
        self.of(&Owner::None(namespace.to_owned()))
    }

    fn of(&self, owner: &Owner) -> Vec<Arc<Object<S, T>>> {
        let names = self.children.get(owner).into_iter().flatten();
        names.filter_map(|name| self.objects.get(name).cloned()).collect()
    }

    /// Takes in what a watch says; returns the objects that came, changed or went, as they were and as they are.
    pub(crate) fn apply(&mut self, event: ListWatchEvent<Object<S, T>>) -> Vec<Arc<Object<S, T>>> {
        match event {
            ListWatchEvent::ListStarted => {
                self.listed = Some(BTreeSet::new());
                Vec::new()
            }
            ListWatchEvent::Listed(object) => {
                if let Some(listed) = &mut self.listed {
                    listed.insert(name_of(&object));
                }
                self.told(object)
            }
            ListWatchEvent::ListDone => {
                self.is_complete = true;
                let listed = self.listed.take().unwrap_or_default();
                let gone: Vec<Name> =
                    self.objects.keys().filter(|name| !listed.contains(*name)).cloned().collect();
                gone.iter().filter_map(|name| self.remove(name)).collect()
            }
            ListWatchEvent::Applied(object) => self.told(object),
            ListWatchEvent::Deleted(object) => {
                self.told = self.told.max(object.revision());
                let name = name_of(&object);
                let is_it = self.objects.get(&name).is_some_and(|known| known.uid() == object.uid());
                if is_it { self.remove(&name).into_iter().collect() } else { Vec::new() }
            }
        }
    }

    /// Takes in the answer to a write of our own, so that the next plan knows of it before the watch tells.
    pub(crate) fn learn(&mut self, object: Object<S, T>) -> Vec<Arc<Object<S, T>>> {
        // What the watch has passed it has told, and it may since have told of the end of it.
        if object.revision() <= self.told { Vec::new() } else { self.put(object) }
    }

    fn told(&mut self, object: Object<S, T>) -> Vec<Arc<Object<S, T>>> {
        self.told = self.told.max(object.revision());
        self.put(object)
    }

    fn put(&mut self, mut object: Object<S, T>) -> Vec<Arc<Object<S, T>>> {
        // Bookkeeping of the server, and most of the size.
        object.metadata.managed_fields = None;
        let name = name_of(&object);
        if let Some(known) = self.objects.get(&name).filter(|known| known.uid() == object.uid()) {
            if known.revision() > object.revision() {
                return Vec::new();
            }
            // Nothing comes back from deletion: we may know of it before the watch does.
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

    fn remove(&mut self, name: &Name) -> Option<Arc<Object<S, T>>> {
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

impl<S: Spec + Clone, T: Clone> Table<Object<S, T>> {
    /// Takes in that an object was deleted. It stays, as one that is going, until the watch tells that it went.
    fn learn_deletion(&mut self, key: &Key, uid: &str) -> Vec<Arc<Object<S, T>>> {
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

fn name_of<S, T>(object: &Object<S, T>) -> Name {
    (object.namespace().to_owned(), object.name().to_owned())
}

fn owner_of<S, T>(object: &Object<S, T>) -> Owner {
    match object.controller() {
        Some(owner) => Owner::Uid(owner.uid.clone()),
        None => Owner::None(object.namespace().to_owned()),
    }
}

impl Index {
    /// Whether everything has been listed once: before that, what is missing may only be unknown.
    pub(crate) fn is_complete(&self) -> bool {
        self.pods.is_complete
            && self.deployments.is_complete
            && self.replica_sets.is_complete
            && self.stateful_sets.is_complete
            && self.jobs.is_complete
    }

    /// Takes in what a watch says; returns whom to look at.
    pub(crate) fn apply(&mut self, news: News) -> BTreeSet<Key> {
        match news {
            News::Pod(event) => {
                let touched = self.pods.apply(event);
                self.wake_for_pods(&touched)
            }
            News::ReplicaSet(event) => {
                let touched = self.replica_sets.apply(event);
                self.wake_for_sets(&touched)
            }
            News::Deployment(event) => {
                self.deployments.apply(event).iter().map(|object| object.key()).collect()
            }
            News::StatefulSet(event) => {
                let touched = self.stateful_sets.apply(event);
                for set in &touched {
                    self.remember_template(set);
                }
                touched.iter().map(|set| set.key()).collect()
            }
            News::Job(event) => self.jobs.apply(event).iter().map(|object| object.key()).collect(),
        }
    }

    /// Takes in the answer to a write; returns whom to look at.
    pub(crate) fn learn(&mut self, written: Written) -> BTreeSet<Key> {
        match written {
            Written::Pod(pod) => {
                let touched = self.pods.learn(pod);
                self.wake_for_pods(&touched)
            }
            Written::ReplicaSet(set) => {
                let touched = self.replica_sets.learn(set);
                self.wake_for_sets(&touched)
            }
            Written::Deployment(object) => self.deployments.learn(object).iter().map(|o| o.key()).collect(),
            Written::StatefulSet(object) => {
                self.stateful_sets.learn(object).iter().map(|o| o.key()).collect()
            }
            Written::Job(object) => self.jobs.learn(object).iter().map(|o| o.key()).collect(),
            Written::Deleted(key, uid) => match key.kind {
                Kind::Pod => {
                    let touched = self.pods.learn_deletion(&key, &uid);
                    self.wake_for_pods(&touched)
                }
                Kind::ReplicaSet => {
                    let touched = self.replica_sets.learn_deletion(&key, &uid);
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

    /// The template of the current revision of a set, if that is not the one it has now.
    pub(crate) fn template_before(&self, set: &StatefulSet) -> Option<&Value> {
        if set.status.current_revision == stateful_set::revision(set) {
            return None;
        }
        self.templates.get(set.uid())?.get(&set.status.current_revision)
    }

    fn wake_for_pods(&self, pods: &[Arc<Pod>]) -> BTreeSet<Key> {
        let mut woken = BTreeSet::new();
        for pod in pods {
            let owner = owner_key(pod);
            if let Some(key) = owner.as_ref().filter(|key| key.kind == Kind::ReplicaSet) {
                // A deployment may wait for the last of its old pods.
                let set = self.replica_sets.get(&key.namespace, &key.name);
                woken.extend(set.and_then(owner_key));
            }
            if pod.controller().is_none() {
                let fits = |selector: &LabelSelector| may_match(selector, &pod.metadata);
                let (sets, stateful) = (&self.replica_sets, &self.stateful_sets);
                woken
                    .extend(sets.inside(pod.namespace()).filter(|o| fits(&o.spec.selector)).map(|o| o.key()));
                woken.extend(
                    stateful.inside(pod.namespace()).filter(|o| fits(&o.spec.selector)).map(|o| o.key()),
                );
                woken.extend(
                    self.jobs.inside(pod.namespace()).filter(|o| fits(&o.spec.selector)).map(|o| o.key()),
                );
            }
            woken.extend(owner);
        }
        woken
    }

    fn wake_for_sets(&self, sets: &[Arc<ReplicaSet>]) -> BTreeSet<Key> {
        let mut woken = BTreeSet::new();
        for set in sets {
            woken.insert(set.key());
            woken.extend(owner_key(set));
            if set.controller().is_none() {
                let fits = |selector: &LabelSelector| may_match(selector, &set.metadata);
                let deployments = self.deployments.inside(set.namespace());
                woken.extend(deployments.filter(|o| fits(&o.spec.selector)).map(|o| o.key()));
            }
        }
        woken
    }
}

/// A quick look whether a selector could match: there may be many objects without an owner, and many selectors.
fn may_match(selector: &LabelSelector, metadata: &ObjectMeta) -> bool {
    let label = |name: &String| metadata.labels.as_ref().and_then(|labels| labels.get(name));
    selector.match_labels.iter().all(|(name, value)| label(name) == Some(value))
}

fn owner_key<S, T>(object: &Arc<Object<S, T>>) -> Option<Key> {
    let owner = object.controller()?;
    let kind = Kind::of_owner(owner)?;
    Some(Key { kind, namespace: object.namespace().to_owned(), name: owner.name.clone() })
}
