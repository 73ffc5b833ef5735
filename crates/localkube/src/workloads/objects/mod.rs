//! What the controllers look at: slim views of objects. None is ever written back whole; writes are patches.

mod views;

use std::borrow::Cow;

use jiff::Timestamp;
pub(crate) use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::core::DynamicResourceScope;
use serde::Deserialize;
pub(crate) use views::*;

/// The kinds that are watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    Pod,
    Deployment,
    ReplicaSet,
    StatefulSet,
    Job,
}

/// Which object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    pub(crate) kind: Kind,
    pub(crate) namespace: String,
    pub(crate) name: String,
}

/// An object: its metadata, and of the rest what is needed.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Object<S, T> {
    pub(crate) metadata: ObjectMeta,
    pub(crate) spec: S,
    pub(crate) status: T,
}

/// A spec says what kind its object is.
pub(crate) trait Spec {
    /// That kind.
    const KIND: Kind;
}

pub(crate) type Pod = Object<PodSpec, PodStatus>;
pub(crate) type Deployment = Object<DeploymentSpec, DeploymentStatus>;
pub(crate) type ReplicaSet = Object<ReplicaSetSpec, ReplicaSetStatus>;
pub(crate) type StatefulSet = Object<StatefulSetSpec, StatefulSetStatus>;
pub(crate) type Job = Object<JobSpec, JobStatus>;

impl Kind {
    /// API group, version, kind and plural.
    pub(crate) const fn names(self) -> (&'static str, &'static str, &'static str, &'static str) {
        match self {
            Self::Pod => ("", "v1", "Pod", "pods"),
            Self::Deployment => ("apps", "v1", "Deployment", "deployments"),
            Self::ReplicaSet => ("apps", "v1", "ReplicaSet", "replicasets"),
            Self::StatefulSet => ("apps", "v1", "StatefulSet", "statefulsets"),
            Self::Job => ("batch", "v1", "Job", "jobs"),
        }
    }

    /// `apps/v1`.
    pub(crate) fn api_version(self) -> String {
        match self.names() {
            ("", version, ..) => version.to_owned(),
            (group, version, ..) => format!("{group}/{version}"),
        }
    }

    /// The kind that owns others under this name.
    pub(crate) fn of_owner(owner: &OwnerReference) -> Option<Self> {
        let owners = [Self::Deployment, Self::ReplicaSet, Self::StatefulSet, Self::Job];
        owners
            .into_iter()
            .find(|kind| owner.kind == kind.names().2 && owner.api_version == kind.api_version())
    }
}

macro_rules! specs {
    ($($spec:ident is $kind:ident),* $(,)?) => {
        $(impl Spec for $spec { const KIND: Kind = Kind::$kind; })*
    };
}

specs! {
    PodSpec is Pod,
    DeploymentSpec is Deployment,
    ReplicaSetSpec is ReplicaSet,
    StatefulSetSpec is StatefulSet,
    JobSpec is Job,
}

impl<S: Spec, T> kube::Resource for Object<S, T> {
    type DynamicType = ();
    type Scope = DynamicResourceScope;

    fn group((): &()) -> Cow<'_, str> {
        S::KIND.names().0.into()
    }

    fn version((): &()) -> Cow<'_, str> {
        S::KIND.names().1.into()
    }

    fn kind((): &()) -> Cow<'_, str> {
        S::KIND.names().2.into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        S::KIND.names().3.into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

impl<S, T> Object<S, T> {
    pub(crate) fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }

    pub(crate) fn namespace(&self) -> &str {
        self.metadata.namespace.as_deref().unwrap_or_default()
    }

    pub(crate) fn uid(&self) -> &str {
        self.metadata.uid.as_deref().unwrap_or_default()
    }

    pub(crate) fn generation(&self) -> i64 {
        self.metadata.generation.unwrap_or_default()
    }

    pub(crate) fn label(&self, name: &str) -> Option<&str> {
        self.metadata.labels.as_ref()?.get(name).map(String::as_str)
    }

    pub(crate) fn annotation(&self, name: &str) -> Option<&str> {
        self.metadata.annotations.as_ref()?.get(name).map(String::as_str)
    }

    pub(crate) fn created(&self) -> Option<Timestamp> {
        self.metadata.creation_timestamp.as_ref().map(|time| time.0)
    }

    pub(crate) fn is_deleting(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// The owner that manages it.
    pub(crate) fn controller(&self) -> Option<&OwnerReference> {
        self.metadata.owner_references.iter().flatten().find(|owner| owner.controller == Some(true))
    }

    /// What the server counts writes with.
    pub(crate) fn revision(&self) -> u64 {
        self.metadata.resource_version.as_deref().and_then(|text| text.parse().ok()).unwrap_or_default()
    }
}

impl<S: Spec, T> Object<S, T> {
    pub(crate) fn key(&self) -> Key {
        Key { kind: S::KIND, namespace: self.namespace().to_owned(), name: self.name().to_owned() }
    }
}
