//! Slim views of the objects that controllers read. Objects are never written back as a whole; writes are patches.

mod views;

use std::borrow::Cow;

use jiff::Timestamp;
pub(crate) use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::core::DynamicResourceScope;
use serde::Deserialize;
pub(crate) use views::*;

/// The watched kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum WorkloadKind {
    Pod,
    Deployment,
    ReplicaSet,
    StatefulSet,
    Job,
}

/// The object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ObjectRef {
    pub(crate) kind: WorkloadKind,
    pub(crate) namespace: String,
    pub(crate) name: String,
}

/// An object with the needed parts of its spec and status.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WorkloadObject<S, T> {
    pub(crate) metadata: ObjectMeta,
    pub(crate) spec: S,
    pub(crate) status: T,
}

/// A spec type determines the kind of its object.
pub(crate) trait WorkloadSpec {
    /// The kind.
    const KIND: WorkloadKind;
}

pub(crate) type Pod = WorkloadObject<PodSpec, PodStatus>;
pub(crate) type Deployment = WorkloadObject<DeploymentSpec, DeploymentStatus>;
pub(crate) type ReplicaSet = WorkloadObject<ReplicaSetSpec, ReplicaSetStatus>;
pub(crate) type StatefulSet = WorkloadObject<StatefulSetSpec, StatefulSetStatus>;
pub(crate) type Job = WorkloadObject<JobSpec, JobStatus>;

impl WorkloadKind {
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

    /// The workload kind of an owner reference.
    pub(crate) fn of_owner(owner: &OwnerReference) -> Option<Self> {
        let owners = [Self::Deployment, Self::ReplicaSet, Self::StatefulSet, Self::Job];
        owners
            .into_iter()
            .find(|kind| owner.kind == kind.names().2 && owner.api_version == kind.api_version())
    }
}

macro_rules! specs {
    ($($spec:ident is $kind:ident),* $(,)?) => {
        $(impl WorkloadSpec for $spec { const KIND: WorkloadKind = WorkloadKind::$kind; })*
    };
}

specs! {
    PodSpec is Pod,
    DeploymentSpec is Deployment,
    ReplicaSetSpec is ReplicaSet,
    StatefulSetSpec is StatefulSet,
    JobSpec is Job,
}

impl<S: WorkloadSpec, T> kube::Resource for WorkloadObject<S, T> {
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

impl<S, T> WorkloadObject<S, T> {
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

    /// The controlling owner.
    pub(crate) fn controller(&self) -> Option<&OwnerReference> {
        self.metadata.owner_references.iter().flatten().find(|owner| owner.controller == Some(true))
    }

    /// The resource version as a number.
    pub(crate) fn revision(&self) -> u64 {
        self.metadata.resource_version.as_deref().and_then(|text| text.parse().ok()).unwrap_or_default()
    }
}

impl<S: WorkloadSpec, T> WorkloadObject<S, T> {
    pub(crate) fn key(&self) -> ObjectRef {
        ObjectRef { kind: S::KIND, namespace: self.namespace().to_owned(), name: self.name().to_owned() }
    }
}
