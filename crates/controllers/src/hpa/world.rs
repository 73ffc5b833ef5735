//! What was watched: autoscalers, pods and targets. Plain data; changes go in, signals come out.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use cluster::index::{CachedScale, Pods, Target, TargetKind, Targets};
use cluster::watch::Change;
use cluster::{Key, Kind};

use super::autoscaler::{Entry, Object};
use super::settings::Settings;

/// What a change means for the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// An autoscaler that was not known.
    New(Key),
    /// What an autoscaler asks for has changed.
    Changed(Key),
    /// An autoscaler cannot be read, and why.
    Unreadable(Key, String),
}

/// Everything that was watched.
#[derive(Debug, Default)]
pub(crate) struct World {
    autoscalers: HashMap<Key, Entry>,
    /// Those that cannot be read, and why: whoever comes to lead must say so.
    unreadable: HashMap<Key, String>,
    pub(crate) pods: Pods,
    pub(crate) targets: Targets,
    /// How many autoscalers of each namespace need resource metrics.
    askers: HashMap<Arc<str>, usize>,
    /// What a list in progress has shown so far, by kind and the namespace it is of.
    listing: HashMap<(Kind, String), HashSet<Key>>,
}

impl World {
    pub(crate) fn get(&self, key: &Key) -> Option<&Entry> {
        self.autoscalers.get(key)
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.autoscalers.keys()
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.autoscalers.values()
    }

    /// Autoscalers that cannot be read, and why.
    pub(crate) fn unreadable(&self) -> impl Iterator<Item = (&Key, &String)> {
        self.unreadable.iter()
    }

    pub(crate) fn len(&self) -> usize {
        self.autoscalers.len()
    }

    /// Whether several autoscalers of a namespace need resource metrics.
    pub(crate) fn share_metrics(&self, namespace: &str) -> bool {
        self.askers.get(namespace).is_some_and(|askers| *askers > 1)
    }

    /// A change of autoscalers of one kind, in the list of `scope` (a namespace, or all if empty).
    pub(crate) fn autoscaler(
        &mut self,
        kind: Kind,
        scope: &str,
        settings: &Settings,
        change: Change<Entry>,
    ) -> Option<Signal> {
        match change {
            Change::Listing => {
                self.listing.insert((kind, scope.to_owned()), HashSet::new());
                None
            }
            Change::Listed => {
                let shown = self.listing.remove(&(kind, scope.to_owned()))?;
                let in_scope = |key: &Key| key.kind == kind && (scope.is_empty() || &*key.namespace == scope);
                let gone: Vec<Key> =
                    self.keys().filter(|key| in_scope(key) && !shown.contains(*key)).cloned().collect();
                for key in &gone {
                    self.remove(key);
                }
                self.unreadable.retain(|key, _| !in_scope(key) || shown.contains(key));
                None
            }
            Change::Applied(entry) => {
                if !settings.covers(&entry.key.namespace) {
                    return None;
                }
                if let Some(shown) = self.listing.get_mut(&(kind, scope.to_owned())) {
                    shown.insert(entry.key.clone());
                }
                self.insert(entry)
            }
            Change::Deleted { namespace, name } => {
                self.remove(&Key { kind, namespace: namespace.into(), name: name.into() });
                None
            }
            Change::Unreadable { namespace, name, error } => {
                let key = Key { kind, namespace: namespace.into(), name: name.into() };
                // What it asks for now is not known, so nothing may be decided for it.
                let known = self.unreadable.get(&key).cloned();
                self.remove(&key);
                if !settings.covers(&key.namespace) {
                    return None;
                }
                if let Some(shown) = self.listing.get_mut(&(kind, scope.to_owned())) {
                    shown.insert(key.clone());
                }
                // A new list shows it again; that is nothing new.
                self.unreadable.insert(key.clone(), error.clone());
                (known.as_ref() != Some(&error)).then_some(Signal::Unreadable(key, error))
            }
        }
    }

    fn insert(&mut self, entry: Entry) -> Option<Signal> {
        let key = entry.key.clone();
        self.pods.register(&key);
        self.unreadable.remove(&key);
        if entry.wants_resources {
            *self.askers.entry(key.namespace.clone()).or_default() += 1;
        }
        let Some(old) = self.autoscalers.insert(key.clone(), entry) else { return Some(Signal::New(key)) };
        if old.wants_resources {
            self.one_asker_less(&key);
        }
        let same = self.autoscalers.get(&key).is_some_and(|new| new.asks_the_same(&old));
        (!same).then_some(Signal::Changed(key))
    }

    fn remove(&mut self, key: &Key) {
        self.unreadable.remove(key);
        if let Some(old) = self.autoscalers.remove(key) {
            self.pods.forget(key);
            if old.wants_resources {
                self.one_asker_less(key);
            }
        }
    }

    fn one_asker_less(&mut self, key: &Key) {
        if let Some(askers) = self.askers.get_mut(&key.namespace) {
            *askers -= 1;
            if *askers == 0 {
                self.askers.remove(&key.namespace);
            }
        }
    }

    /// Our own write, before the watch tells it; one that somebody else has overtaken is ignored.
    pub(crate) fn wrote(&mut self, key: &Key, from_version: &str, object: Object) {
        if let Some(entry) = self.autoscalers.get_mut(key)
            && entry.object.metadata().resource_version == from_version
        {
            entry.object = Arc::new(object);
        }
    }

    /// A change of pods.
    pub(crate) fn pod(&mut self, change: Change<api::pod::Pod>) {
        match change {
            Change::Listing => self.pods.listing(),
            Change::Listed => self.pods.listed(),
            Change::Applied(pod) => self.pods.apply(&pod),
            // A pod that cannot be read is not counted; that it is there at all is in the watch's own figures.
            Change::Deleted { namespace, name } | Change::Unreadable { namespace, name, .. } => {
                self.pods.remove(&namespace, &name);
            }
        }
    }

    /// A change of targets.
    pub(crate) fn target(&mut self, kind: TargetKind, change: Change<Target>) {
        match change {
            Change::Listing => self.targets.listing(kind),
            Change::Listed => self.targets.listed(kind),
            Change::Applied(target) => self.targets.apply(kind, &target),
            Change::Deleted { namespace, name } | Change::Unreadable { namespace, name, .. } => {
                self.targets.remove(kind, &namespace, &name);
            }
        }
    }

    /// The scale of a watched target as it was last seen.
    pub(crate) fn scale(&self, kind: TargetKind, namespace: &str, name: &str) -> Option<CachedScale> {
        self.targets.scale(kind, namespace, name)
    }

    /// The watched kinds that some autoscaler targets.
    pub(crate) fn target_kinds(&self) -> HashSet<TargetKind> {
        self.entries().filter_map(|entry| target_kind(&entry.object)).collect()
    }
}

/// The watched kind that an autoscaler targets, if it is one.
pub(crate) fn target_kind(object: &Object) -> Option<TargetKind> {
    let target = object.target();
    TargetKind::of(api::scale::group_of(&target.api_version).ok()?, &target.kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(error: &str) -> Change<Entry> {
        Change::Unreadable { namespace: "ns".into(), name: "web".into(), error: error.into() }
    }

    fn readable() -> Change<Entry> {
        let mut hpa = api::autoscaling::v2::HorizontalPodAutoscaler::default();
        hpa.metadata.namespace = "ns".into();
        hpa.metadata.name = "web".into();
        Change::Applied(Entry::of_hpa(hpa))
    }

    #[test]
    fn what_cannot_be_read_is_told_once_and_known_until_it_can_or_is_gone() {
        let (mut world, settings) = (World::default(), Settings::default());
        let tell = |world: &mut World, change| world.autoscaler(Kind::Hpa, "", &settings, change);
        let key = Key::hpa("ns", "web");
        let said = |why: &str| Some(Signal::Unreadable(key.clone(), why.to_owned()));
        assert_eq!(tell(&mut world, broken("bad")), said("bad"));
        assert_eq!(tell(&mut world, broken("bad")), None);
        assert_eq!(tell(&mut world, broken("worse")), said("worse"));
        assert_eq!((world.len(), world.unreadable().count()), (0, 1));
        // A list that shows it again is nothing new; one that does not means that it is gone.
        tell(&mut world, Change::Listing);
        assert_eq!(tell(&mut world, broken("worse")), None);
        tell(&mut world, Change::Listed);
        assert_eq!(world.unreadable().count(), 1);
        tell(&mut world, Change::Listing);
        tell(&mut world, Change::Listed);
        assert_eq!(world.unreadable().count(), 0);
        tell(&mut world, broken("bad"));
        assert_eq!(tell(&mut world, readable()), Some(Signal::New(key.clone())));
        assert_eq!((world.len(), world.unreadable().count()), (1, 0));
        assert_eq!(tell(&mut world, broken("bad")), said("bad"));
        assert_eq!(world.len(), 0, "what it asks for now is not known");
    }
}
