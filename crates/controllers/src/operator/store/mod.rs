//! What was watched: plain data; changes go in, signals come out.

mod hpa;
mod interner;
mod jobs;
mod object_store;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use api::autoscaling::v2::HorizontalPodAutoscaler;
use api::keda::annotations::SCALED_OBJECT_NAME;
use api::keda::{
    AuthenticationRef, CloudEventSource, FINALIZER, ScaledJob, ScaledObject, TriggerAuthentication,
};
use api::map::StringMap;
use api::meta::ObjectMeta;
use cluster::index::{CachedScale, Target, TargetIndex, TargetKind};
use cluster::watch::WatchEvent;

use super::context::Small as _;
use super::id::{Id, Kind, Name};
use super::poll_scheduler::PollSchedule;
use super::scalers_cache::{group, interval};
pub(crate) use hpa::{Hpa, fingerprint};
use interner::ConditionInterner;
pub(crate) use jobs::{Job, JobPod, Jobs};
pub(crate) use object_store::{ObjectStore, StoreChange, Versioned};

/// What a change means for the loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StoreEvent {
    /// An object that was not known.
    New(Id),
    /// What an object asks for has changed, or something it depends on.
    Changed(Id),
    /// An object is gone.
    Gone(Id),
    /// An object cannot be read, and why.
    Unreadable(Id, String),
    /// A TriggerAuthentication or ClusterTriggerAuthentication (no namespace) has changed, come or gone; whether its spec
    /// is another than before.
    Authentication(Name, bool),
    /// A CloudEventSource has changed, come or gone.
    Destination,
    /// The HPA of a ScaledObject has changed, is new or is gone (none).
    Hpa(Id, Option<u64>),
    /// The target of a ScaledObject has come or gone.
    Target(Id),
}

macro_rules! versioned {
    ($($of:ty),*) => {
        $(impl Versioned for Arc<$of> {
            fn version(&self) -> &str {
                &self.metadata.resource_version
            }
        })*
    };
}
versioned!(ScaledObject, ScaledJob, TriggerAuthentication, CloudEventSource);

/// Everything that was watched.
#[derive(Debug, Default)]
pub(crate) struct Store {
    pub(crate) objects: ObjectStore<Arc<ScaledObject>>,
    pub(crate) scaled_jobs: ObjectStore<Arc<ScaledJob>>,
    /// Of all namespaces, and, without one, those of the cluster.
    pub(crate) authentications: ObjectStore<Arc<TriggerAuthentication>>,
    pub(crate) destinations: ObjectStore<Arc<CloudEventSource>>,
    pub(crate) cluster_destinations: ObjectStore<Arc<CloudEventSource>>,
    pub(crate) hpas: ObjectStore<Hpa>,
    pub(crate) targets: TargetIndex,
    pub(crate) jobs: Jobs,
    cluster_authentications: ObjectStore<Arc<TriggerAuthentication>>,
    /// Who uses a TriggerAuthentication; without namespace, one of the cluster.
    users: HashMap<Name, HashSet<Id>>,
    /// Who scales a target.
    scalers_of: HashMap<Name, Vec<Id>>,
    /// What many objects say in the same words.
    interner: ConditionInterner,
    /// The kinds of targets, until another object comes or one changes.
    kinds: Option<Arc<HashSet<TargetKind>>>,
}

impl Store {
    /// A ScaledObject.
    pub(crate) fn object(&self, id: &Id) -> Option<Arc<ScaledObject>> {
        self.objects.get(&id.full_name()).filter(|_| id.kind == Kind::Object).cloned()
    }

    /// A ScaledJob.
    pub(crate) fn scaled_job(&self, id: &Id) -> Option<Arc<ScaledJob>> {
        self.scaled_jobs.get(&id.full_name()).filter(|_| id.kind == Kind::Job).cloned()
    }

    /// All objects, and how they are polled.
    pub(crate) fn ids(&self) -> Vec<(Id, PollSchedule)> {
        let schedule =
            |seconds, triggers| PollSchedule { interval: interval(seconds), group: group(triggers) };
        let objects = self.objects.iter().map(|(name, object)| {
            (Id::of(Kind::Object, name), schedule(object.spec.polling_interval, &object.spec.triggers))
        });
        let jobs = self.scaled_jobs.iter().map(|(name, job)| {
            (Id::of(Kind::Job, name), schedule(job.spec.polling_interval, &job.spec.triggers))
        });
        objects.chain(jobs).collect()
    }

    /// A TriggerAuthentication of a namespace, or one of the cluster.
    pub(crate) fn authentication(
        &self,
        namespace: &str,
        of: &AuthenticationRef,
    ) -> Option<Arc<TriggerAuthentication>> {
        let name = authentication_name(namespace, of);
        let object_store =
            if name.namespace.is_empty() { &self.cluster_authentications } else { &self.authentications };
        object_store.get(&name).cloned()
    }

    /// All of them, those of the cluster last.
    pub(crate) fn all_authentications(&self) -> impl Iterator<Item = (&Name, &Arc<TriggerAuthentication>)> {
        self.authentications.iter().chain(self.cluster_authentications.iter())
    }

    /// Our own write to one of them.
    pub(crate) fn wrote_authentication(&mut self, name: &Name, object: TriggerAuthentication) {
        let of_cluster = name.namespace.is_empty();
        let object_store =
            if of_cluster { &mut self.cluster_authentications } else { &mut self.authentications };
        if object_store.get(name).is_some_and(|held| held.spec == object.spec) {
            object_store.wrote(name, Arc::new(object));
        }
    }

    /// Our own write to a ScaledObject. What somebody else has written before it comes back with it; that is left to the
    /// watch, which tells it as the news that it is.
    pub(crate) fn wrote_object(&mut self, name: &Name, mut object: ScaledObject) {
        if self.objects.get(name).is_some_and(|held| is_ours_alone(&held.metadata, &object.metadata)) {
            self.interner.share(&mut object);
            self.objects.wrote(name, Arc::new(object));
        }
    }

    /// The same of a ScaledJob.
    pub(crate) fn wrote_scaled_job(&mut self, name: &Name, object: Arc<ScaledJob>) {
        if self.scaled_jobs.get(name).is_some_and(|held| is_ours_alone(&held.metadata, &object.metadata)) {
            self.scaled_jobs.wrote(name, object);
        }
    }

    /// Who uses a TriggerAuthentication.
    pub(crate) fn users(&self, of: &Name) -> Vec<Id> {
        self.users.get(of).map(|users| users.iter().cloned().collect()).unwrap_or_default()
    }

    /// The scale of a target as it was last seen.
    pub(crate) fn scale(&self, kind: TargetKind, namespace: &str, name: &str) -> Option<CachedScale> {
        self.targets.scale(kind, namespace, name)
    }

    /// The kinds of targets that are worth a watch.
    pub(crate) fn target_kinds(&mut self) -> Arc<HashSet<TargetKind>> {
        let kind = |object: &Arc<ScaledObject>| {
            let group = api::scale::group_of(object.target_api_version()).ok()?;
            TargetKind::of(group, object.target_kind())
        };
        let find = || Arc::new(self.objects.iter().filter_map(|(_, object)| kind(object)).collect());
        Arc::clone(self.kinds.get_or_insert_with(find))
    }

    /// A change of ScaledObjects.
    pub(crate) fn take_object(&mut self, scope: &str, change: WatchEvent<ScaledObject>) -> Vec<StoreEvent> {
        let change = keyed(change, |object| {
            let mut object = object.small();
            self.interner.share(&mut object);
            (name_of(&object.metadata), Arc::new(object))
        });
        let done = self.objects.take(scope, change);
        match done {
            StoreChange::Unchanged => Vec::new(),
            StoreChange::Applied(name, old) => {
                let Some(new) = self.objects.get(&name).cloned() else { return Vec::new() };
                let id = Id::of(Kind::Object, &name);
                let was = old.as_ref().map(|old| (users_of(&name, &old.spec.triggers), target_of(old)));
                let (users, target) = (users_of(&name, &new.spec.triggers), target_of(&new));
                if was.as_ref().is_none_or(|was| (&was.0, &was.1) != (&users, &target)) {
                    if let Some((users, target)) = was {
                        self.unlink(&id, &users, Some(&target));
                    }
                    self.link(&id, users, Some(target));
                }
                let is_edited = |old: &Arc<ScaledObject>| old.metadata.generation != new.metadata.generation;
                if old.as_ref().is_none_or(is_edited) {
                    self.kinds = None;
                }
                applied(id, old.map(|old| differs(&old.metadata, &new.metadata)))
            }
            StoreChange::Removed(gone) => {
                self.kinds = None;
                let mut signals = Vec::new();
                for (name, old) in gone {
                    let id = Id::of(Kind::Object, &name);
                    self.unlink(&id, &users_of(&name, &old.spec.triggers), Some(&target_of(&old)));
                    signals.push(StoreEvent::Gone(id));
                }
                signals
            }
            StoreChange::Undecodable(name, old, error) => {
                let id = Id::of(Kind::Object, &name);
                if let Some(old) = old {
                    self.unlink(&id, &users_of(&name, &old.spec.triggers), Some(&target_of(&old)));
                }
                vec![StoreEvent::Unreadable(id, error)]
            }
        }
    }

    /// A change of ScaledJobs.
    pub(crate) fn take_scaled_job(&mut self, scope: &str, change: WatchEvent<ScaledJob>) -> Vec<StoreEvent> {
        let change = keyed(change, |object| (name_of(&object.metadata), Arc::new(object.small())));
        let done = self.scaled_jobs.take(scope, change);
        match done {
            StoreChange::Unchanged => Vec::new(),
            StoreChange::Applied(name, old) => {
                let Some(new) = self.scaled_jobs.get(&name).cloned() else { return Vec::new() };
                let id = Id::of(Kind::Job, &name);
                if let Some(old) = &old {
                    self.unlink(&id, &users_of(&name, &old.spec.triggers), None);
                }
                self.link(&id, users_of(&name, &new.spec.triggers), None);
                applied(id, old.map(|old| differs(&old.metadata, &new.metadata)))
            }
            StoreChange::Removed(gone) => {
                let mut signals = Vec::new();
                for (name, old) in gone {
                    let id = Id::of(Kind::Job, &name);
                    self.unlink(&id, &users_of(&name, &old.spec.triggers), None);
                    signals.push(StoreEvent::Gone(id));
                }
                signals
            }
            StoreChange::Undecodable(name, old, error) => {
                let id = Id::of(Kind::Job, &name);
                if let Some(old) = old {
                    self.unlink(&id, &users_of(&name, &old.spec.triggers), None);
                }
                vec![StoreEvent::Unreadable(id, error)]
            }
        }
    }

    /// A change of TriggerAuthentications, or of those of the cluster.
    pub(crate) fn take_authentication(
        &mut self,
        of_cluster: bool,
        scope: &str,
        change: WatchEvent<TriggerAuthentication>,
    ) -> Vec<StoreEvent> {
        let change = keyed(change, |object| (name_of(&object.metadata), Arc::new(object)));
        let object_store =
            if of_cluster { &mut self.cluster_authentications } else { &mut self.authentications };
        let done = object_store.take(scope, change);
        let mut is_edited = false;
        let names = match done {
            StoreChange::Unchanged => return Vec::new(),
            StoreChange::Applied(name, old) => {
                // Our own notes in its status are nothing new.
                let same = |old: &Arc<TriggerAuthentication>| {
                    object_store.get(&name).is_some_and(|new| {
                        new.spec == old.spec
                            && new.metadata.finalizers == old.metadata.finalizers
                            && new.metadata.deletion_timestamp == old.metadata.deletion_timestamp
                    })
                };
                if old.as_ref().is_some_and(same) {
                    return Vec::new();
                }
                is_edited =
                    old.is_some_and(|old| object_store.get(&name).is_some_and(|new| new.spec != old.spec));
                vec![name]
            }
            StoreChange::Removed(gone) => gone.into_iter().map(|(name, _)| name).collect(),
            StoreChange::Undecodable(name, ..) => vec![name],
        };
        names.into_iter().map(|name| StoreEvent::Authentication(name, is_edited)).collect()
    }

    /// A change of CloudEventSources, or of those of the cluster.
    pub(crate) fn take_destination(
        &mut self,
        of_cluster: bool,
        scope: &str,
        change: WatchEvent<CloudEventSource>,
    ) -> Vec<StoreEvent> {
        let change = keyed(change, |object| (name_of(&object.metadata), Arc::new(object)));
        let object_store = if of_cluster { &mut self.cluster_destinations } else { &mut self.destinations };
        match object_store.take(scope, change) {
            StoreChange::Unchanged => Vec::new(),
            _ => vec![StoreEvent::Destination],
        }
    }

    /// A change of HPAs; only those of ScaledObjects are told.
    pub(crate) fn take_hpa(
        &mut self,
        scope: &str,
        change: WatchEvent<HorizontalPodAutoscaler>,
    ) -> Vec<StoreEvent> {
        let change = keyed(change, |hpa| (name_of(&hpa.metadata), Hpa::of(hpa)));
        match self.hpas.take(scope, change) {
            StoreChange::Applied(name, old) => {
                let Some(new) = self.hpas.get_mut(&name) else { return Vec::new() };
                let known = old.as_ref().is_some_and(|old| old.fingerprint == new.fingerprint);
                if known && old.as_ref().is_some_and(|old| old.full.is_none()) {
                    // It was found to be right, and only its status has changed.
                    new.full = None;
                }
                if known {
                    return Vec::new();
                }
                let before = old.and_then(|old| old.owner).filter(|old| new.owner.as_ref() != Some(old));
                let now = new.owner.clone().map(|owner| StoreEvent::Hpa(owner, Some(new.fingerprint)));
                before.map(|owner| StoreEvent::Hpa(owner, None)).into_iter().chain(now).collect()
            }
            StoreChange::Removed(gone) => gone
                .into_iter()
                .filter_map(|(_, old)| old.owner)
                .map(|owner| StoreEvent::Hpa(owner, None))
                .collect(),
            StoreChange::Unchanged | StoreChange::Undecodable(..) => Vec::new(),
        }
    }

    /// An HPA was found to be as it should: all of it need not be kept.
    pub(crate) fn checked_hpa(&mut self, name: &Name, fingerprint: u64) {
        if let Some(hpa) = self.hpas.get_mut(name).filter(|hpa| hpa.fingerprint == fingerprint) {
            hpa.full = None;
        }
    }

    /// A change of targets of one kind: who scales a target that comes or goes is told.
    pub(crate) fn take_target(&mut self, kind: TargetKind, change: WatchEvent<Target>) -> Vec<StoreEvent> {
        let (namespace, name) = match change {
            WatchEvent::Listing => {
                self.targets.listing(kind);
                return Vec::new();
            }
            WatchEvent::Listed => {
                self.targets.listed(kind);
                return Vec::new();
            }
            WatchEvent::Applied(target) => {
                let (namespace, name) = (target.metadata.namespace.clone(), target.metadata.name.clone());
                let known = self.targets.scale(kind, &namespace, &name).is_some();
                self.targets.apply(kind, &target);
                if known {
                    return Vec::new();
                }
                (namespace, name)
            }
            WatchEvent::Deleted { namespace, name } | WatchEvent::Unreadable { namespace, name, .. } => {
                self.targets.remove(kind, &namespace, &name);
                (namespace, name)
            }
        };
        let scalers = self.scalers_of.get(&Name::new(&namespace, &name));
        scalers.into_iter().flatten().cloned().map(StoreEvent::Target).collect()
    }

    fn link(&mut self, id: &Id, users: HashSet<Name>, target: Option<Name>) {
        for name in users {
            self.users.entry(name).or_default().insert(id.clone());
        }
        if let Some(target) = target {
            let scalers = self.scalers_of.entry(target).or_default();
            // Mostly it is the only one.
            scalers.reserve_exact(1);
            scalers.push(id.clone());
        }
    }

    fn unlink(&mut self, id: &Id, users: &HashSet<Name>, target: Option<&Name>) {
        for name in users {
            if let Some(of) = self.users.get_mut(name) {
                of.remove(id);
                if of.is_empty() {
                    self.users.remove(name);
                }
            }
        }
        if let Some(target) = target
            && let Some(of) = self.scalers_of.get_mut(target)
        {
            of.retain(|own| own != id);
            if of.is_empty() {
                self.scalers_of.remove(target);
            }
        }
    }
}

/// Where a TriggerAuthentication is: those of the cluster have no namespace.
pub(crate) fn authentication_name(namespace: &str, of: &AuthenticationRef) -> Name {
    match of.kind.as_str() {
        "ClusterTriggerAuthentication" => Name::new("", &of.name),
        _ => Name::new(namespace, &of.name),
    }
}

/// The TriggerAuthentications that triggers name.
pub(crate) fn users_of(object: &Name, triggers: &[api::keda::Trigger]) -> HashSet<Name> {
    let named = triggers.iter().filter_map(|trigger| trigger.authentication_ref.as_ref());
    named.map(|of| authentication_name(&object.namespace, of)).collect()
}

fn target_of(object: &ScaledObject) -> Name {
    Name::new(&object.metadata.namespace, &object.spec.scale_target_ref.name)
}

fn name_of(metadata: &ObjectMeta) -> Name {
    Name::new(&metadata.namespace, &metadata.name)
}

fn applied(id: Id, changed: Option<bool>) -> Vec<StoreEvent> {
    match changed {
        None => vec![StoreEvent::New(id)],
        Some(true) => vec![StoreEvent::Changed(id)],
        Some(false) => Vec::new(),
    }
}

/// Whether what an object asks for has changed (docs/spec/keda.md 2.1). Labels and annotations are on the HPA too.
fn differs(old: &ObjectMeta, new: &ObjectMeta) -> bool {
    let changed = |of: fn(&ObjectMeta) -> &StringMap| of(old) != of(new);
    old.uid != new.uid
        || old.generation != new.generation
        || old.deletion_timestamp != new.deletion_timestamp
        || old.finalizers != new.finalizers
        || changed(|meta| &meta.annotations)
        || changed(|meta| &meta.labels)
}

/// Whether nothing but what we write ourselves is different.
fn is_ours_alone(old: &ObjectMeta, new: &ObjectMeta) -> bool {
    let plain = |meta: &ObjectMeta| {
        let mut meta = meta.clone();
        meta.labels.remove(SCALED_OBJECT_NAME);
        meta.finalizers.retain(|finalizer| finalizer != FINALIZER);
        meta
    };
    !differs(&plain(old), &plain(new))
}

fn keyed<T, U>(change: WatchEvent<T>, with: impl FnOnce(T) -> (Name, U)) -> WatchEvent<(Name, U)> {
    match change {
        WatchEvent::Listing => WatchEvent::Listing,
        WatchEvent::Listed => WatchEvent::Listed,
        WatchEvent::Applied(object) => WatchEvent::Applied(with(object)),
        WatchEvent::Deleted { namespace, name } => WatchEvent::Deleted { namespace, name },
        WatchEvent::Unreadable { namespace, name, error } => {
            WatchEvent::Unreadable { namespace, name, error }
        }
    }
}
