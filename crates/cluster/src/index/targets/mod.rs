//! Common targets as they were last seen, so that their scale need not be asked for.

#[cfg(test)]
mod tests;

use api::selector::LabelSelector;
use jiff::Timestamp;
use serde::{Deserialize, Deserializer};

use super::pool::{Id, Pool};
use crate::watch::View;

/// Kinds of targets that are watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TargetKind {
    /// `apps` Deployment.
    Deployment,
    /// `apps` ReplicaSet.
    ReplicaSet,
    /// `apps` StatefulSet.
    StatefulSet,
    /// Core ReplicationController.
    ReplicationController,
}

/// A slim view of a target.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Target {
    /// What it is called.
    #[serde(deserialize_with = "nullable")]
    pub metadata: TargetMeta,
    /// What is asked for.
    #[serde(deserialize_with = "nullable")]
    pub spec: TargetSpec,
    /// What is there.
    #[serde(deserialize_with = "nullable")]
    pub status: TargetStatus,
}

/// Metadata of a target.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct TargetMeta {
    /// Name.
    #[serde(deserialize_with = "nullable")]
    pub name: String,
    /// Namespace.
    #[serde(deserialize_with = "nullable")]
    pub namespace: String,
    /// Unique id.
    #[serde(deserialize_with = "nullable")]
    pub uid: String,
    /// Version.
    #[serde(deserialize_with = "nullable")]
    pub resource_version: String,
    /// Set while the target is being deleted; its scale can be read and written until it is gone.
    pub deletion_timestamp: Option<Timestamp>,
}

/// What is asked for of a target.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct TargetSpec {
    /// How many pods; one if absent.
    pub replicas: Option<i32>,
    /// Which pods.
    pub selector: Option<TargetSelector>,
}

/// Which pods belong to a target.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum TargetSelector {
    /// Plain labels, as a ReplicationController has them.
    Labels(api::map::StringMap),
    /// A selector object, as all others have it.
    Object(LabelSelector),
}

/// What is there of a target.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct TargetStatus {
    /// How many pods.
    #[serde(deserialize_with = "nullable")]
    pub replicas: i32,
}

/// A target's scale as it was last seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachedScale {
    /// What the engine looks at; the selector in the form the scale subresource would have.
    pub scale: engine::Scale,
    /// The version of the object.
    pub resource_version: String,
    /// The object's unique id.
    pub uid: String,
}

/// All targets of the watched kinds.
#[derive(Debug, Default)]
pub struct TargetIndex {
    pool: Pool<Record>,
    lists: [Generation; 4],
}

/// One target.
#[derive(Debug)]
struct Record {
    kind: TargetKind,
    /// The list it was last in or came after.
    generation: u32,
    replicas: i32,
    existing: i32,
    namespace: Box<str>,
    name: Box<str>,
    uid: Box<str>,
    resource_version: Box<str>,
    /// In the form the scale subresource would have, if it can be told.
    selector: Option<Box<str>>,
}

/// Lists of one kind.
#[derive(Clone, Copy, Debug, Default)]
struct Generation {
    number: u32,
    open: bool,
}

impl TargetKind {
    /// All of them.
    pub const ALL: [Self; 4] =
        [Self::Deployment, Self::ReplicaSet, Self::StatefulSet, Self::ReplicationController];

    /// The watched kind behind a group and kind as users write them (the kind may be in lower case).
    pub fn of(group: &str, kind: &str) -> Option<Self> {
        let named = |known: &Self| known.name() == kind || known.name().to_lowercase() == kind;
        Self::ALL.into_iter().find(|known| known.group() == group && named(known))
    }

    /// Its API group; empty for the core one.
    pub fn group(self) -> &'static str {
        if self == Self::ReplicationController { "" } else { "apps" }
    }

    /// Its kind.
    pub fn name(self) -> &'static str {
        match self {
            Self::Deployment => "Deployment",
            Self::ReplicaSet => "ReplicaSet",
            Self::StatefulSet => "StatefulSet",
            Self::ReplicationController => "ReplicationController",
        }
    }

    /// The path of its collection over all namespaces.
    pub fn path(self) -> &'static str {
        match self {
            Self::Deployment => "/apis/apps/v1/deployments",
            Self::ReplicaSet => "/apis/apps/v1/replicasets",
            Self::StatefulSet => "/apis/apps/v1/statefulsets",
            Self::ReplicationController => "/api/v1/replicationcontrollers",
        }
    }
}

impl View for Target {
    fn key(&self) -> (&str, &str) {
        (&self.metadata.namespace, &self.metadata.name)
    }
}

impl TargetIndex {
    /// A target was created or has changed.
    pub fn apply(&mut self, kind: TargetKind, target: &Target) {
        let meta = &target.metadata;
        let record = Record {
            kind,
            generation: self.list(kind).number,
            replicas: target.spec.replicas.unwrap_or(1),
            existing: target.status.replicas,
            namespace: meta.namespace.as_str().into(),
            name: meta.name.as_str().into(),
            uid: meta.uid.as_str().into(),
            resource_version: meta.resource_version.as_str().into(),
            selector: selector_text(kind, target.spec.selector.as_ref()),
        };
        match self.find(kind, &meta.namespace, &meta.name).and_then(|id| self.pool.get_mut(id)) {
            Some(known) => *known = record,
            None => {
                let hash = self.pool.hash((kind, &meta.namespace, &meta.name));
                self.pool.insert(hash, record);
            }
        }
    }

    /// A target is gone.
    pub fn remove(&mut self, kind: TargetKind, namespace: &str, name: &str) {
        if let Some(id) = self.find(kind, namespace, name) {
            self.pool.remove(id);
        }
    }

    /// A list of this kind begins: what is not applied until [`TargetIndex::listed`] is gone.
    pub fn listing(&mut self, kind: TargetKind) {
        let list = self.list_mut(kind);
        *list = Generation { number: list.number.wrapping_add(1), open: true };
    }

    /// The list of this kind is complete.
    pub fn listed(&mut self, kind: TargetKind) {
        let list = self.list_mut(kind);
        if !std::mem::take(&mut list.open) {
            return;
        }
        let number = list.number;
        let unseen = |record: &Record| record.kind == kind && record.generation != number;
        let gone: Vec<Id> = self.pool.iter().filter(|(_, r)| unseen(r)).map(|(id, _)| id).collect();
        for id in gone {
            self.pool.remove(id);
        }
    }

    /// A target's scale, if the target was seen and its scale can be told from it.
    pub fn scale(&self, kind: TargetKind, namespace: &str, name: &str) -> Option<CachedScale> {
        let record = self.pool.get(self.find(kind, namespace, name)?)?;
        Some(CachedScale {
            scale: engine::Scale {
                spec_replicas: record.replicas,
                status_replicas: record.existing,
                selector: record.selector.as_deref()?.to_owned(),
            },
            resource_version: record.resource_version.to_string(),
            uid: record.uid.to_string(),
        })
    }

    /// How many targets there are.
    pub fn len(&self) -> usize {
        self.pool.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn find(&self, kind: TargetKind, namespace: &str, name: &str) -> Option<Id> {
        let is_it = |r: &Record| r.kind == kind && &*r.namespace == namespace && &*r.name == name;
        self.pool.find(self.pool.hash((kind, namespace, name)), is_it)
    }

    fn list(&self, kind: TargetKind) -> Generation {
        let [deployments, replica_sets, stateful_sets, controllers] = self.lists;
        match kind {
            TargetKind::Deployment => deployments,
            TargetKind::ReplicaSet => replica_sets,
            TargetKind::StatefulSet => stateful_sets,
            TargetKind::ReplicationController => controllers,
        }
    }

    fn list_mut(&mut self, kind: TargetKind) -> &mut Generation {
        let [deployments, replica_sets, stateful_sets, controllers] = &mut self.lists;
        match kind {
            TargetKind::Deployment => deployments,
            TargetKind::ReplicaSet => replica_sets,
            TargetKind::StatefulSet => stateful_sets,
            TargetKind::ReplicationController => controllers,
        }
    }
}

/// The selector as the scale subresource tells it and client-go then reads it (docs/spec/hpa.md Appendix C.1). What the server would not
/// accept or answer with an error is left for it to judge.
fn selector_text(kind: TargetKind, selector: Option<&TargetSelector>) -> Option<Box<str>> {
    let object = match (kind, selector?) {
        // An empty object reads as no labels at all; no server stores one.
        (_, TargetSelector::Labels(labels)) if labels.is_empty() => return None,
        (TargetKind::ReplicationController, TargetSelector::Labels(labels)) => {
            &LabelSelector { match_labels: labels.clone(), ..LabelSelector::default() }
        }
        (TargetKind::ReplicationController, _) | (_, TargetSelector::Labels(_)) => return None,
        (_, TargetSelector::Object(object)) => object,
    };
    let served = object.to_selector().ok()?.to_string();
    api::scale::normalize_selector(&served).ok().map(String::into_boxed_str)
}

/// Reads `null` as the empty value, as Go does for every field.
fn nullable<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}
