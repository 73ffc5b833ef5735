//! The store of watched autoscalers, pods and targets: watch events in, changes for the work queue out.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use cluster::index::{CachedScale, PodIndex, Target, TargetIndex, TargetKind};
use cluster::watch::WatchEvent;
use cluster::{AutoscalerKey, AutoscalerKind};

use super::autoscaler::{AutoscalerEntry, AutoscalerObject};
use super::settings::HpaSettings;

/// A change that concerns the work queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AutoscalerChange {
    /// A new autoscaler.
    New(AutoscalerKey),
    /// The spec of an autoscaler has changed.
    Changed(AutoscalerKey),
    /// An autoscaler cannot be decoded, and why.
    Unreadable(AutoscalerKey, String),
}

/// Watched autoscalers, pods and targets.
#[derive(Debug, Default)]
pub(crate) struct AutoscalerStore {
    autoscalers: HashMap<AutoscalerKey, AutoscalerEntry>,
    /// Autoscalers that cannot be decoded, and why: a new leader reports them.
    unreadable: HashMap<AutoscalerKey, String>,
    pub(crate) pods: PodIndex,
    pub(crate) targets: TargetIndex,
    /// The number of autoscalers with resource metrics by namespace.
    resource_users: HashMap<Arc<str>, usize>,
    /// The keys of lists in progress, by kind and namespace of the list.
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

    /// Autoscalers that cannot be decoded, and why.
    pub(crate) fn unreadable(&self) -> impl Iterator<Item = (&AutoscalerKey, &String)> {
        self.unreadable.iter()
    }

    pub(crate) fn len(&self) -> usize {
        self.autoscalers.len()
    }

    /// Whether several autoscalers of a namespace have resource metrics.
    pub(crate) fn has_shared_metrics(&self, namespace: &str) -> bool {
        self.resource_users.get(namespace).is_some_and(|resource_users| *resource_users > 1)
    }

    /// Applies an event of autoscalers of one kind, from the watch of `scope` (a namespace, or all if empty).
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
                // Its current spec is unknown, so it must not be scaled.
                let known = self.unreadable.get(&key).cloned();
                self.remove(&key);
                if !settings.covers(&key.namespace) {
                    return None;
                }
                if let Some(shown) = self.listing.get_mut(&(kind, scope.to_owned())) {
                    shown.insert(key.clone());
                }
                // A new list repeats it, which is not a change.
                self.unreadable.insert(key.clone(), error.clone());
                (known.as_ref() != Some(&error)).then_some(AutoscalerChange::Unreadable(key, error))
            }
        }
    }

    fn insert(&mut self, entry: AutoscalerEntry) -> Option<AutoscalerChange> {
        let key = entry.key.clone();
        self.pods.register(&key);
        self.unreadable.remove(&key);
        if entry.has_resource_metrics {
            *self.resource_users.entry(key.namespace.clone()).or_default() += 1;
        }
        let Some(old) = self.autoscalers.insert(key.clone(), entry) else {
            return Some(AutoscalerChange::New(key));
        };
        if old.has_resource_metrics {
            self.remove_resource_user(&key);
        }
        let same = self.autoscalers.get(&key).is_some_and(|new| new.decides_the_same(&old));
        (!same).then_some(AutoscalerChange::Changed(key))
    }

    fn remove(&mut self, key: &AutoscalerKey) {
        self.unreadable.remove(key);
        if let Some(old) = self.autoscalers.remove(key) {
            self.pods.forget(key);
            if old.has_resource_metrics {
                self.remove_resource_user(key);
            }
        }
    }

    fn remove_resource_user(&mut self, key: &AutoscalerKey) {
        if let Some(resource_users) = self.resource_users.get_mut(&key.namespace) {
            *resource_users -= 1;
            if *resource_users == 0 {
                self.resource_users.remove(&key.namespace);
            }
        }
    }

    /// Applies our own write before its watch event arrives, unless the object has changed since.
    pub(crate) fn wrote(&mut self, key: &AutoscalerKey, from_version: &str, object: AutoscalerObject) {
        if let Some(entry) = self.autoscalers.get_mut(key)
            && entry.object.metadata().resource_version == from_version
        {
            entry.object = Arc::new(object);
        }
    }

    /// Applies an event of pods.
    pub(crate) fn pod(&mut self, change: WatchEvent<api::pod::Pod>) {
        match change {
            WatchEvent::Listing => self.pods.listing(),
            WatchEvent::Listed => self.pods.listed(),
            WatchEvent::Applied(pod) => self.pods.apply(&pod),
            // A pod that cannot be decoded is removed; the health of the watch counts it.
            WatchEvent::Deleted { namespace, name } | WatchEvent::Unreadable { namespace, name, .. } => {
                self.pods.remove(&namespace, &name);
            }
        }
    }

    /// Applies an event of targets.
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

    /// All autoscalers that share a pod with this one and whose writes disturb it, itself included, sorted.
    pub(crate) fn conflicts(&self, entry: &AutoscalerEntry, settings: &HpaSettings) -> Vec<AutoscalerKey> {
        let mut sharing = self.pods.sharing(&entry.key);
        sharing.retain(|key| {
            *key == entry.key || self.get(key).is_some_and(|other| entry.conflicts_with(other, settings))
        });
        sharing
    }

    /// The scale of a watched target.
    pub(crate) fn scale(&self, kind: TargetKind, namespace: &str, name: &str) -> Option<CachedScale> {
        self.targets.scale(kind, namespace, name)
    }

    /// The watched kinds that are targets of autoscalers.
    pub(crate) fn target_kinds(&self) -> HashSet<TargetKind> {
        self.entries().filter_map(|entry| target_kind(&entry.object)).collect()
    }
}

/// The watched kind of the target of an autoscaler, if it is one.
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
    fn an_unreadable_autoscaler_is_reported_once_and_kept_until_readable_or_deleted() {
        let (mut store, settings) = (AutoscalerStore::default(), HpaSettings::default());
        let apply = |store: &mut AutoscalerStore, change| {
            store.autoscaler(AutoscalerKind::Hpa, "", &settings, change)
        };
        let key = AutoscalerKey::hpa("ns", "web");
        let unreadable = |why: &str| Some(AutoscalerChange::Unreadable(key.clone(), why.to_owned()));
        assert_eq!(apply(&mut store, broken("bad")), unreadable("bad"));
        assert_eq!(apply(&mut store, broken("bad")), None);
        assert_eq!(apply(&mut store, broken("worse")), unreadable("worse"));
        assert_eq!((store.len(), store.unreadable().count()), (0, 1));
        // A list that repeats it is no change; a list without it removes it.
        apply(&mut store, WatchEvent::Listing);
        assert_eq!(apply(&mut store, broken("worse")), None);
        apply(&mut store, WatchEvent::Listed);
        assert_eq!(store.unreadable().count(), 1);
        apply(&mut store, WatchEvent::Listing);
        apply(&mut store, WatchEvent::Listed);
        assert_eq!(store.unreadable().count(), 0);
        apply(&mut store, broken("bad"));
        assert_eq!(apply(&mut store, readable()), Some(AutoscalerChange::New(key.clone())));
        assert_eq!((store.len(), store.unreadable().count()), (1, 0));
        assert_eq!(apply(&mut store, broken("bad")), unreadable("bad"));
        assert_eq!(store.len(), 0, "what it requires now is not known");
    }

    /// An HPA or an Autoscaler of `web`, with a mode annotation and `spec.dryRun`.
    fn on_web(name: &str, kind: AutoscalerKind, mode: Option<&str>, dry_run: bool) -> AutoscalerEntry {
        let mut object = serde_json::json!({
            "metadata": {"namespace": "ns", "name": name, "annotations": {}},
            "spec": {"maxReplicas": 9, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}
        });
        if let Some(mode) = mode {
            object["metadata"]["annotations"]["plimsoll.dev/mode"] = mode.into();
        }
        if kind == AutoscalerKind::Hpa {
            return AutoscalerEntry::of_hpa(serde_json::from_value(object).unwrap());
        }
        object["spec"]["dryRun"] = dry_run.into();
        AutoscalerEntry::of_autoscaler(serde_json::from_value(object).unwrap())
    }

    /// How many autoscalers conflict with the HPA `web` and with `other`.
    fn conflicts(settings: &HpaSettings, web: Option<&str>, other: &AutoscalerEntry) -> (usize, usize) {
        let mut store = AutoscalerStore::default();
        let pod =
            serde_json::json!({"metadata": {"namespace": "ns", "name": "web-0", "labels": {"app": "web"}}});
        store.pod(WatchEvent::Applied(serde_json::from_value(pod).unwrap()));
        let web = on_web("web", AutoscalerKind::Hpa, web, false);
        for entry in [&web, other] {
            store.autoscaler(entry.key.kind, "", settings, WatchEvent::Applied(entry.clone()));
            store.pods.select(&entry.key, &api::selector::Selector::parse("app=web").unwrap());
        }
        (store.conflicts(&web, settings).len(), store.conflicts(other, settings).len())
    }

    #[test]
    fn only_autoscalers_that_write_make_a_writing_one_ambiguous() {
        use AutoscalerKind::{Autoscaler, Hpa};
        let active = HpaSettings::default();
        for kind in [Hpa, Autoscaler] {
            assert_eq!(conflicts(&active, None, &on_web("too", kind, None, false)), (2, 2));
            for mode in ["shadow", "dry-run", "off"] {
                assert_eq!(
                    conflicts(&active, None, &on_web("too", kind, Some(mode), false)),
                    (1, 1),
                    "{mode}"
                );
            }
        }
        assert_eq!(conflicts(&active, None, &on_web("too", Autoscaler, None, true)), (1, 1));
    }

    #[test]
    fn ambiguous_autoscalers_are_found_before_activation() {
        use AutoscalerKind::{Autoscaler, Hpa};
        use api::decisions::DecisionMode::{DryRun, Shadow};
        let settings = |mode| HpaSettings { mode, ..HpaSettings::default() };
        for mode in [DryRun, Shadow] {
            assert_eq!(
                conflicts(&settings(mode), None, &on_web("too", Hpa, None, false)),
                (2, 2),
                "{mode:?}"
            );
            assert_eq!(conflicts(&settings(mode), None, &on_web("too", Autoscaler, None, true)), (1, 1));
            assert_eq!(conflicts(&settings(mode), Some("active"), &on_web("too", Hpa, None, false)), (1, 1));
        }
        // The controller that acts does not know Autoscalers.
        assert_eq!(conflicts(&settings(Shadow), None, &on_web("too", Autoscaler, None, false)), (1, 2));
    }
}
