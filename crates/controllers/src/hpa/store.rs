//! What was watched: autoscalers, pods and targets. Plain data; changes go in, signals come out.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use cluster::index::{CachedScale, PodIndex, Target, TargetIndex, TargetKind};
use cluster::watch::WatchEvent;
use cluster::{AutoscalerKey, AutoscalerKind};

use super::autoscaler::{AutoscalerEntry, AutoscalerObject};
use super::settings::HpaSettings;

/// What a change means for the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AutoscalerChange {
    /// An autoscaler that was not known.
    New(AutoscalerKey),
    /// What an autoscaler asks for has changed.
    Changed(AutoscalerKey),
    /// An autoscaler cannot be read, and why.
    Unreadable(AutoscalerKey, String),
}

/// Everything that was watched.
#[derive(Debug, Default)]
pub(crate) struct AutoscalerStore {
    autoscalers: HashMap<AutoscalerKey, AutoscalerEntry>,
    /// Those that cannot be read, and why: whoever comes to lead must say so.
    unreadable: HashMap<AutoscalerKey, String>,
    pub(crate) pods: PodIndex,
    pub(crate) targets: TargetIndex,
    /// How many autoscalers of each namespace need resource metrics.
    askers: HashMap<Arc<str>, usize>,
    /// What a list in progress has shown so far, by kind and the namespace it is of.
    listing: HashMap<(AutoscalerKind, String), HashSet<AutoscalerKey>>,
}

impl AutoscalerStore {
    pub(crate) fn get(&self, key: &AutoscalerKey) -> Option<&AutoscalerEntry> {
        self.autoscalers.get(key)
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &AutoscalerKey> {
        self.autoscalers.keys()
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = &AutoscalerEntry> {
        self.autoscalers.values()
    }

    /// Autoscalers that cannot be read, and why.
    pub(crate) fn unreadable(&self) -> impl Iterator<Item = (&AutoscalerKey, &String)> {
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
        kind: AutoscalerKind,
        scope: &str,
        settings: &HpaSettings,
        change: WatchEvent<AutoscalerEntry>,
    ) -> Option<AutoscalerChange> {
        match change {
            WatchEvent::Listing => {
                self.listing.insert((kind, scope.to_owned()), HashSet::new());
                None
            }
            WatchEvent::Listed => {
                let shown = self.listing.remove(&(kind, scope.to_owned()))?;
                let in_scope =
                    |key: &AutoscalerKey| key.kind == kind && (scope.is_empty() || &*key.namespace == scope);
                let gone: Vec<AutoscalerKey> =
                    self.keys().filter(|key| in_scope(key) && !shown.contains(*key)).cloned().collect();
                for key in &gone {
                    self.remove(key);
                }
                self.unreadable.retain(|key, _| !in_scope(key) || shown.contains(key));
                None
            }
            WatchEvent::Applied(entry) => {
                if !settings.covers(&entry.key.namespace) {
                    return None;
                }
                if let Some(shown) = self.listing.get_mut(&(kind, scope.to_owned())) {
                    shown.insert(entry.key.clone());
                }
                self.insert(entry)
            }
            WatchEvent::Deleted { namespace, name } => {
                self.remove(&AutoscalerKey { kind, namespace: namespace.into(), name: name.into() });
                None
            }
            WatchEvent::Unreadable { namespace, name, error } => {
                let key = AutoscalerKey { kind, namespace: namespace.into(), name: name.into() };
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
                (known.as_ref() != Some(&error)).then_some(AutoscalerChange::Unreadable(key, error))
            }
        }
    }

    fn insert(&mut self, entry: AutoscalerEntry) -> Option<AutoscalerChange> {
        let key = entry.key.clone();
        self.pods.register(&key);
        self.unreadable.remove(&key);
        if entry.wants_resources {
            *self.askers.entry(key.namespace.clone()).or_default() += 1;
        }
        let Some(old) = self.autoscalers.insert(key.clone(), entry) else {
            return Some(AutoscalerChange::New(key));
        };
        if old.wants_resources {
            self.one_asker_less(&key);
        }
        let same = self.autoscalers.get(&key).is_some_and(|new| new.asks_the_same(&old));
        (!same).then_some(AutoscalerChange::Changed(key))
    }

    fn remove(&mut self, key: &AutoscalerKey) {
        self.unreadable.remove(key);
        if let Some(old) = self.autoscalers.remove(key) {
            self.pods.forget(key);
            if old.wants_resources {
                self.one_asker_less(key);
            }
        }
    }

    fn one_asker_less(&mut self, key: &AutoscalerKey) {
        if let Some(askers) = self.askers.get_mut(&key.namespace) {
            *askers -= 1;
            if *askers == 0 {
                self.askers.remove(&key.namespace);
            }
        }
    }

    /// Our own write, before the watch tells it; one that somebody else has overtaken is ignored.
    pub(crate) fn wrote(&mut self, key: &AutoscalerKey, from_version: &str, object: AutoscalerObject) {
        if let Some(entry) = self.autoscalers.get_mut(key)
            && entry.object.metadata().resource_version == from_version
        {
            entry.object = Arc::new(object);
        }
    }

    /// A change of pods.
    pub(crate) fn pod(&mut self, change: WatchEvent<api::pod::Pod>) {
        match change {
            WatchEvent::Listing => self.pods.listing(),
            WatchEvent::Listed => self.pods.listed(),
            WatchEvent::Applied(pod) => self.pods.apply(&pod),
            // A pod that cannot be read is not counted; that it is there at all is in the watch's own figures.
            WatchEvent::Deleted { namespace, name } | WatchEvent::Unreadable { namespace, name, .. } => {
                self.pods.remove(&namespace, &name);
            }
        }
    }

    /// A change of targets.
    pub(crate) fn target(&mut self, kind: TargetKind, change: WatchEvent<Target>) {
        match change {
            WatchEvent::Listing => self.targets.listing(kind),
            WatchEvent::Listed => self.targets.listed(kind),
            WatchEvent::Applied(target) => self.targets.apply(kind, &target),
            WatchEvent::Deleted { namespace, name } | WatchEvent::Unreadable { namespace, name, .. } => {
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
pub(crate) fn target_kind(object: &AutoscalerObject) -> Option<TargetKind> {
    let target = object.target();
    TargetKind::of(api::scale::group_of(&target.api_version).ok()?, &target.kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(error: &str) -> WatchEvent<AutoscalerEntry> {
        WatchEvent::Unreadable { namespace: "ns".into(), name: "web".into(), error: error.into() }
    }

    fn readable() -> WatchEvent<AutoscalerEntry> {
        let mut hpa = api::autoscaling::v2::HorizontalPodAutoscaler::default();
        hpa.metadata.namespace = "ns".into();
        hpa.metadata.name = "web".into();
        WatchEvent::Applied(AutoscalerEntry::of_hpa(hpa))
    }

    #[test]
    fn what_cannot_be_read_is_told_once_and_known_until_it_can_or_is_gone() {
        let (mut store, settings) = (AutoscalerStore::default(), HpaSettings::default());
        let tell = |store: &mut AutoscalerStore, change| {
            store.autoscaler(AutoscalerKind::Hpa, "", &settings, change)
        };
        let key = AutoscalerKey::hpa("ns", "web");
        let said = |why: &str| Some(AutoscalerChange::Unreadable(key.clone(), why.to_owned()));
        assert_eq!(tell(&mut store, broken("bad")), said("bad"));
        assert_eq!(tell(&mut store, broken("bad")), None);
        assert_eq!(tell(&mut store, broken("worse")), said("worse"));
        assert_eq!((store.len(), store.unreadable().count()), (0, 1));
        // A list that shows it again is nothing new; one that does not means that it is gone.
        tell(&mut store, WatchEvent::Listing);
        assert_eq!(tell(&mut store, broken("worse")), None);
        tell(&mut store, WatchEvent::Listed);
        assert_eq!(store.unreadable().count(), 1);
        tell(&mut store, WatchEvent::Listing);
        tell(&mut store, WatchEvent::Listed);
        assert_eq!(store.unreadable().count(), 0);
        tell(&mut store, broken("bad"));
        assert_eq!(tell(&mut store, readable()), Some(AutoscalerChange::New(key.clone())));
        assert_eq!((store.len(), store.unreadable().count()), (1, 0));
        assert_eq!(tell(&mut store, broken("bad")), said("bad"));
        assert_eq!(store.len(), 0, "what it asks for now is not known");
    }
}
