//! Watched targets of common kinds, so that their scale need not be requested.

#[cfg(test)]
mod tests;

use api::selector::LabelSelector;
use api::wire::nullable;
use jiff::Timestamp;
use serde::Deserialize;

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
    /// Metadata.
    #[serde(deserialize_with = "nullable")]
    pub metadata: TargetMeta,
    /// Spec.
    #[serde(deserialize_with = "nullable")]
    pub spec: TargetSpec,
    /// Status.
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
    /// Set while the target is being deleted; its scale can be read and written until it is removed.
    pub deletion_timestamp: Option<Timestamp>,
}

/// The spec of a target.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct TargetSpec {
    /// Replicas; one if absent.
    pub replicas: Option<i32>,
    /// The pod selector.
    pub selector: Option<TargetSelector>,
}

/// The pod selector of a target.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum TargetSelector {
    /// Labels, as in a ReplicationController.
    Labels(api::map::StringMap),
    /// A selector object, as in all other kinds.
    Object(LabelSelector),
}

/// The status of a target.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct TargetStatus {
    /// Replicas.
    #[serde(deserialize_with = "nullable")]
    pub replicas: i32,
}

/// The scale of a watched target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachedScale {
    /// The scale for the engine; the selector has the form of the scale subresource.
    pub scale: engine::Scale,
    /// The version of the object.
    pub resource_version: String,
    /// The object's unique id.
    pub uid: String,
}

/// All targets of the watched kinds.
#[derive(Debug, Default)]
pub struct TargetIndex {
    pool: Pool<TargetRecord>,
    lists: [ListGeneration; 4],
}

/// One target.
#[derive(Debug)]
struct TargetRecord {
    kind: TargetKind,
    /// The number of the list that last contained it, or after which it was created.
    generation: u32,
    replicas: i32,
    existing: i32,
    namespace: Box<str>,
    name: Box<str>,
    uid: Box<str>,
    resource_version: Box<str>,
    /// The selector in the form of the scale subresource, if it can be derived.
    selector: Option<Box<str>>,
}

/// Lists of one kind.
#[derive(Clone, Copy, Debug, Default)]
struct ListGeneration {
    number: u32,
    open: bool,
}

impl TargetKind {
    /// All of them.
    pub const ALL: [Self; 4] =
        [Self::Deployment, Self::ReplicaSet, Self::StatefulSet, Self::ReplicationController];

    /// The watched kind of a group and kind as users write them (the kind may be in lower case).
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
        let record = TargetRecord {
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

    /// A target was deleted.
    pub fn remove(&mut self, kind: TargetKind, namespace: &str, name: &str) {
        if let Some(id) = self.find(kind, namespace, name) {
            self.pool.remove(id);
        }
    }

    /// A list of this kind begins: targets that are not applied before [`TargetIndex::listed`] are removed.
    pub fn listing(&mut self, kind: TargetKind) {
        let list = self.list_mut(kind);
        *list = ListGeneration { number: list.number.wrapping_add(1), open: true };
    }

    /// The list of this kind is complete.
    pub fn listed(&mut self, kind: TargetKind) {
        let list = self.list_mut(kind);
        if !std::mem::take(&mut list.open) {
            return;
        }
        let number = list.number;
        let unseen = |record: &TargetRecord| record.kind == kind && record.generation != number;
        let gone: Vec<Id> = self.pool.iter().filter(|(_, r)| unseen(r)).map(|(id, _)| id).collect();
        for id in gone {
            self.pool.remove(id);
        }
    }

    /// The scale of a target, if the target is known and its scale can be derived.
    pub fn scale(&self, kind: TargetKind, namespace: &str, name: &str) -> Option<CachedScale> {
        let record = self.pool.get(self.find(kind, namespace, name)?)?;
        Some(CachedScale {
            scale: engine::Scale {
                spec_replicas: record.replicas.into(),
                status_replicas: record.existing.into(),
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
        let is_it = |r: &TargetRecord| r.kind == kind && &*r.namespace == namespace && &*r.name == name;
        self.pool.find(self.pool.hash((kind, namespace, name)), is_it)
    }

    fn list(&self, kind: TargetKind) -> ListGeneration {
        let [deployments, replica_sets, stateful_sets, controllers] = self.lists;
        match kind {
            TargetKind::Deployment => deployments,
            TargetKind::ReplicaSet => replica_sets,
            TargetKind::StatefulSet => stateful_sets,
            TargetKind::ReplicationController => controllers,
        }
    }

    fn list_mut(&mut self, kind: TargetKind) -> &mut ListGeneration {
        let [deployments, replica_sets, stateful_sets, controllers] = &mut self.lists;
        match kind {
            TargetKind::Deployment => deployments,
            TargetKind::ReplicaSet => replica_sets,
            TargetKind::StatefulSet => stateful_sets,
            TargetKind::ReplicationController => controllers,
        }
    }
}

/// The selector as the scale subresource returns it and client-go parses it (docs/spec/hpa.md Appendix C.1); none if the server
/// would refuse it or answer with an error, so that the server is asked.
fn selector_text(kind: TargetKind, selector: Option<&TargetSelector>) -> Option<Box<str>> {
    let object = match (kind, selector?) {
        // An empty object decodes as no labels; no server stores one.
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
