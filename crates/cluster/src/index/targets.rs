//! Common targets as they were last seen, so that their scale need not be asked for.

use serde::Deserialize;

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
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Target {}

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
pub struct Targets {}

impl TargetKind {
    /// The watched kind behind a group and kind as users write them (the kind may be in lower case).
    pub fn of(group: &str, kind: &str) -> Option<Self> {
        let _ = (group, kind);
        todo!()
    }

    /// The path of its collection over all namespaces.
    pub fn path(self) -> &'static str {
        todo!()
    }
}

impl Targets {
    /// A target was created or has changed.
    pub fn apply(&mut self, kind: TargetKind, target: &Target) {
        let _ = (kind, target);
        todo!()
    }

    /// A target is gone.
    pub fn remove(&mut self, kind: TargetKind, namespace: &str, name: &str) {
        let _ = (kind, namespace, name);
        todo!()
    }

    /// A list of this kind begins.
    pub fn listing(&mut self, kind: TargetKind) {
        let _ = kind;
        todo!()
    }

    /// The list of this kind is complete.
    pub fn listed(&mut self, kind: TargetKind) {
        let _ = kind;
        todo!()
    }

    /// A target's scale, if the target was seen and its scale can be told from it.
    pub fn scale(&self, kind: TargetKind, namespace: &str, name: &str) -> Option<CachedScale> {
        let _ = (kind, namespace, name);
        todo!()
    }
}
