//! Watched objects: changes go in, events for the loop come out.

mod changes;
mod hpa;
mod interner;
mod jobs;
mod slim;
mod stored;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use api::autoscaling::v2::HorizontalPodAutoscaler;
use api::keda::{AuthenticationRef, CloudEventSource, ScaledJob, ScaledObject, TriggerAuthentication};
use cluster::index::{CachedScale, Target, TargetIndex, TargetKind};
use cluster::watch::WatchEvent;
use runtime::StoreChange;

use super::id::{NamespacedName, ResourceId, ResourceKind};
use super::poll_scheduler::PollSchedule;
use super::scaled_resource::{poll_interval, query_group};
use changes::{applied, differs, is_ours_alone, name_of, target_of};
pub(crate) use changes::{authentication_name, users_of};
pub(crate) use hpa::{Hpa, fingerprint};
use interner::ConditionInterner;
pub(crate) use jobs::{Job, JobPod, Jobs};
pub(crate) use slim::Slim;
use stored::Stored;

/// What a change means for the loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StoreEvent {
    /// A new object.
    New(ResourceId),
    /// An object, or something that it depends on, has changed.
    Changed(ResourceId),
    /// An object is gone.
    Gone(ResourceId),
    /// An object cannot be decoded, and why.
    Undecodable(ResourceId, String),
    /// A TriggerAuthentication, or a ClusterTriggerAuthentication (no namespace), is new, has changed or is gone.
    Authentication(NamespacedName, AuthenticationChange),
    /// A CloudEventSource is new, has changed or is gone.
    Destination,
    /// The HPA of a ScaledObject is new or has changed, with its fingerprint, or is gone (none).
    Hpa(ResourceId, Option<u64>),
    /// The target of a ScaledObject is new or gone.
    Target(ResourceId),
}

/// How a TriggerAuthentication has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum AuthenticationChange {
    /// Its spec was edited.
    SpecEdited,
    /// It is new or gone, or its metadata has changed.
    Other,
}

/// All objects of one kind.
pub(crate) type ObjectStore<V> = runtime::ObjectStore<NamespacedName, V>;

/// All watched objects.
#[derive(Debug, Default)]
pub(crate) struct Store {
    pub(crate) objects: ObjectStore<Stored<ScaledObject>>,
    pub(crate) scaled_jobs: ObjectStore<Stored<ScaledJob>>,
    /// TriggerAuthentications of all namespaces.
    pub(crate) authentications: ObjectStore<Stored<TriggerAuthentication>>,
    pub(crate) destinations: ObjectStore<Stored<CloudEventSource>>,
    pub(crate) cluster_destinations: ObjectStore<Stored<CloudEventSource>>,
    pub(crate) hpas: ObjectStore<Hpa>,
    pub(crate) targets: TargetIndex,
    pub(crate) jobs: Jobs,
    cluster_authentications: ObjectStore<Stored<TriggerAuthentication>>,
    /// The users of each TriggerAuthentication; those of the cluster have no namespace.
    users: HashMap<NamespacedName, HashSet<ResourceId>>,
    /// The ScaledObjects of each target.
    scalers_of: HashMap<NamespacedName, Vec<ResourceId>>,
    /// Shares equal lists of conditions.
    interner: ConditionInterner,
    /// The kinds of targets, until an object is added, removed or edited.
    kinds: Option<Arc<HashSet<TargetKind>>>,
}

impl Store {
    /// A ScaledObject.
    pub(crate) fn object(&self, id: &ResourceId) -> Option<Arc<ScaledObject>> {
        self.objects.get(&id.full_name()).filter(|_| id.kind == ResourceKind::Object).map(Stored::to_arc)
    }

    /// A ScaledJob.
    pub(crate) fn scaled_job(&self, id: &ResourceId) -> Option<Arc<ScaledJob>> {
        self.scaled_jobs.get(&id.full_name()).filter(|_| id.kind == ResourceKind::Job).map(Stored::to_arc)
    }

    /// All objects and their poll schedules.
    pub(crate) fn ids(&self) -> Vec<(ResourceId, PollSchedule)> {
        let schedule = |seconds, triggers| PollSchedule {
            interval: poll_interval(seconds),
            group: query_group(triggers),
        };
        let objects = self.objects.iter().map(|(name, object)| {
            (
                ResourceId::of(ResourceKind::Object, name),
                schedule(object.spec.polling_interval, &object.spec.triggers),
            )
        });
        let jobs = self.scaled_jobs.iter().map(|(name, job)| {
            (ResourceId::of(ResourceKind::Job, name), schedule(job.spec.polling_interval, &job.spec.triggers))
        });
        objects.chain(jobs).collect()
    }

    /// A TriggerAuthentication or a ClusterTriggerAuthentication.
    pub(crate) fn authentication(
        &self,
        namespace: &str,
        of: &AuthenticationRef,
    ) -> Option<Arc<TriggerAuthentication>> {
        let name = authentication_name(namespace, of);
        let object_store =
            if name.namespace.is_empty() { &self.cluster_authentications } else { &self.authentications };
        object_store.get(&name).map(Stored::to_arc)
    }

    /// The names of all TriggerAuthentications, then of all ClusterTriggerAuthentications, which have no namespace.
    pub(crate) fn authentication_names(&self) -> impl Iterator<Item = &NamespacedName> {
        self.authentications.iter().chain(self.cluster_authentications.iter()).map(|(name, _)| name)
    }

    /// Stores the result of our own write, unless the spec was edited: the watch reports an edit.
    pub(crate) fn wrote_authentication(&mut self, name: &NamespacedName, object: Arc<TriggerAuthentication>) {
        let of_cluster = name.namespace.is_empty();
        let object_store =
            if of_cluster { &mut self.cluster_authentications } else { &mut self.authentications };
        if object_store.get(name).is_some_and(|held| held.spec == object.spec) {
            object_store.apply_own_write(name, Stored::from(object));
        }
    }

    /// Stores the result of our own write. If it contains an edit of another client, it is left to the watch, which reports the edit.
    pub(crate) fn wrote_object(&mut self, name: &NamespacedName, mut object: ScaledObject) {
        if self.objects.get(name).is_some_and(|held| is_ours_alone(&held.metadata, &object.metadata)) {
            self.interner.intern(&mut object);
            self.objects.apply_own_write(name, Stored::new(object));
        }
    }

    /// The same for a ScaledJob.
    pub(crate) fn wrote_scaled_job(&mut self, name: &NamespacedName, object: ScaledJob) {
        if self.scaled_jobs.get(name).is_some_and(|held| is_ours_alone(&held.metadata, &object.metadata)) {
            self.scaled_jobs.apply_own_write(name, Stored::new(object));
        }
    }

    /// The users of a TriggerAuthentication.
    pub(crate) fn users(&self, of: &NamespacedName) -> Vec<ResourceId> {
        self.users.get(of).map(|users| users.iter().cloned().collect()).unwrap_or_default()
    }

    /// The scale of a target, if it is watched.
    pub(crate) fn scale(&self, kind: TargetKind, namespace: &str, name: &str) -> Option<CachedScale> {
        self.targets.scale(kind, namespace, name)
    }

    /// The kinds of targets that can be watched.
    pub(crate) fn target_kinds(&mut self) -> Arc<HashSet<TargetKind>> {
        let kind = |object: &ScaledObject| {
            let group = api::scale::group_of(object.target_api_version()).ok()?;
            TargetKind::of(group, object.target_kind())
        };
        let find = || Arc::new(self.objects.iter().filter_map(|(_, object)| kind(object)).collect());
        Arc::clone(self.kinds.get_or_insert_with(find))
    }

    /// Applies an event of the watch of ScaledObjects.
    pub(crate) fn apply_object(&mut self, scope: &str, event: WatchEvent<ScaledObject>) -> Vec<StoreEvent> {
        let event = event.map(|object| {
            let mut object = object.slim();
            self.interner.intern(&mut object);
            (name_of(&object.metadata), Stored::new(object))
        });
        match self.objects.apply(scope, event) {
            StoreChange::Unchanged => Vec::new(),
            StoreChange::Applied(name, old) => {
                let Some(new) = self.objects.get(&name).map(Stored::to_arc) else { return Vec::new() };
                let id = ResourceId::of(ResourceKind::Object, &name);
                let was = old.as_ref().map(|old| (users_of(&name, &old.spec.triggers), target_of(old)));
                let (users, target) = (users_of(&name, &new.spec.triggers), target_of(&new));
                if was.as_ref().is_none_or(|was| (&was.0, &was.1) != (&users, &target)) {
                    if let Some((users, target)) = was {
                        self.unlink(&id, &users, Some(&target));
                    }
                    self.link(&id, users, Some(target));
                }
                let is_edited =
                    |old: &Stored<ScaledObject>| old.metadata.generation != new.metadata.generation;
                if old.as_ref().is_none_or(is_edited) {
                    self.kinds = None;
                }
                applied(id, old.map(|old| differs(&old.metadata, &new.metadata)))
            }
            StoreChange::Deleted(gone) => {
                self.kinds = None;
                let mut events = Vec::new();
                for (name, old) in gone {
                    let id = ResourceId::of(ResourceKind::Object, &name);
                    self.unlink(&id, &users_of(&name, &old.spec.triggers), Some(&target_of(&old)));
                    events.push(StoreEvent::Gone(id));
                }
                events
            }
            StoreChange::Unreadable(name, old, error) => {
                let id = ResourceId::of(ResourceKind::Object, &name);
                if let Some(old) = old {
                    self.unlink(&id, &users_of(&name, &old.spec.triggers), Some(&target_of(&old)));
                }
                vec![StoreEvent::Undecodable(id, error)]
            }
        }
    }

    /// Applies an event of the watch of ScaledJobs.
    pub(crate) fn apply_scaled_job(&mut self, scope: &str, event: WatchEvent<ScaledJob>) -> Vec<StoreEvent> {
        let event = event.map(|object| (name_of(&object.metadata), Stored::new(object.slim())));
        match self.scaled_jobs.apply(scope, event) {
            StoreChange::Unchanged => Vec::new(),
            StoreChange::Applied(name, old) => {
                let Some(new) = self.scaled_jobs.get(&name).map(Stored::to_arc) else { return Vec::new() };
                let id = ResourceId::of(ResourceKind::Job, &name);
                if let Some(old) = &old {
                    self.unlink(&id, &users_of(&name, &old.spec.triggers), None);
                }
                self.link(&id, users_of(&name, &new.spec.triggers), None);
                applied(id, old.map(|old| differs(&old.metadata, &new.metadata)))
            }
            StoreChange::Deleted(gone) => {
                let mut events = Vec::new();
                for (name, old) in gone {
                    let id = ResourceId::of(ResourceKind::Job, &name);
                    self.unlink(&id, &users_of(&name, &old.spec.triggers), None);
                    events.push(StoreEvent::Gone(id));
                }
                events
            }
            StoreChange::Unreadable(name, old, error) => {
                let id = ResourceId::of(ResourceKind::Job, &name);
                if let Some(old) = old {
                    self.unlink(&id, &users_of(&name, &old.spec.triggers), None);
                }
                vec![StoreEvent::Undecodable(id, error)]
            }
        }
    }

    /// Applies an event of the watch of TriggerAuthentications or ClusterTriggerAuthentications.
    pub(crate) fn apply_authentication(
        &mut self,
        of_cluster: bool,
        scope: &str,
        event: WatchEvent<TriggerAuthentication>,
    ) -> Vec<StoreEvent> {
        let event = event.map(|object| (name_of(&object.metadata), Stored::new(object)));
        let object_store =
            if of_cluster { &mut self.cluster_authentications } else { &mut self.authentications };
        let mut kind = AuthenticationChange::Other;
        let names = match object_store.apply(scope, event) {
            StoreChange::Unchanged => return Vec::new(),
            StoreChange::Applied(name, old) => {
                // A change of the status is our own write.
                let same = |old: &Stored<TriggerAuthentication>| {
                    object_store.get(&name).is_some_and(|new| {
                        new.spec == old.spec
                            && new.metadata.finalizers == old.metadata.finalizers
                            && new.metadata.deletion_timestamp == old.metadata.deletion_timestamp
                    })
                };
                if old.as_ref().is_some_and(same) {
                    return Vec::new();
                }
                if old.is_some_and(|old| object_store.get(&name).is_some_and(|new| new.spec != old.spec)) {
                    kind = AuthenticationChange::SpecEdited;
                }
                vec![name]
            }
            StoreChange::Deleted(gone) => gone.into_iter().map(|(name, _)| name).collect(),
            StoreChange::Unreadable(name, ..) => vec![name],
        };
        names.into_iter().map(|name| StoreEvent::Authentication(name, kind)).collect()
    }

    /// Applies an event of the watch of CloudEventSources or ClusterCloudEventSources.
    pub(crate) fn apply_destination(
        &mut self,
        of_cluster: bool,
        scope: &str,
        event: WatchEvent<CloudEventSource>,
    ) -> Vec<StoreEvent> {
        let event = event.map(|object| (name_of(&object.metadata), Stored::new(object)));
        let object_store = if of_cluster { &mut self.cluster_destinations } else { &mut self.destinations };
        match object_store.apply(scope, event) {
            StoreChange::Unchanged => Vec::new(),
            _ => vec![StoreEvent::Destination],
        }
    }

    /// Applies an event of the watch of HPAs; only HPAs of ScaledObjects cause events.
    pub(crate) fn apply_hpa(
        &mut self,
        scope: &str,
        event: WatchEvent<HorizontalPodAutoscaler>,
    ) -> Vec<StoreEvent> {
        let event = event.map(|hpa| (name_of(&hpa.metadata), Hpa::of(hpa)));
        match self.hpas.apply(scope, event) {
            StoreChange::Applied(name, old) => {
                let Some(new) = self.hpas.get_mut(&name) else { return Vec::new() };
                let known = old.as_ref().is_some_and(|old| old.fingerprint == new.fingerprint);
                if known && old.as_ref().is_some_and(|old| old.full.is_none()) {
                    // The HPA was found correct before, and only its status has changed.
                    new.full = None;
                }
                if known {
                    return Vec::new();
                }
                let before = old.and_then(|old| old.owner).filter(|old| new.owner.as_ref() != Some(old));
                let now = new.owner.clone().map(|owner| StoreEvent::Hpa(owner, Some(new.fingerprint)));
                before.map(|owner| StoreEvent::Hpa(owner, None)).into_iter().chain(now).collect()
            }
            StoreChange::Deleted(gone) => gone
                .into_iter()
                .filter_map(|(_, old)| old.owner)
                .map(|owner| StoreEvent::Hpa(owner, None))
                .collect(),
            StoreChange::Unchanged | StoreChange::Unreadable(..) => Vec::new(),
        }
    }

    /// Drops the full copy of an HPA that was found correct.
    pub(crate) fn checked_hpa(&mut self, name: &NamespacedName, fingerprint: u64) {
        if let Some(hpa) = self.hpas.get_mut(name).filter(|hpa| hpa.fingerprint == fingerprint) {
            hpa.full = None;
        }
    }

    /// Applies an event of the watch of targets of one kind; an event follows for the ScaledObjects of a target that is new or gone.
    pub(crate) fn apply_target(&mut self, kind: TargetKind, event: WatchEvent<Target>) -> Vec<StoreEvent> {
        let (namespace, name) = match event {
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
        let scalers = self.scalers_of.get(&NamespacedName::new(&namespace, &name));
        scalers.into_iter().flatten().cloned().map(StoreEvent::Target).collect()
    }

    fn link(&mut self, id: &ResourceId, users: HashSet<NamespacedName>, target: Option<NamespacedName>) {
        for name in users {
            self.users.entry(name).or_default().insert(id.clone());
        }
        if let Some(target) = target {
            let scalers = self.scalers_of.entry(target).or_default();
            // Most targets have one ScaledObject.
            scalers.reserve_exact(1);
            scalers.push(id.clone());
        }
    }

    fn unlink(&mut self, id: &ResourceId, users: &HashSet<NamespacedName>, target: Option<&NamespacedName>) {
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
