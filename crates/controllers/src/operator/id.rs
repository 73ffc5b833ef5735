//! Names of the objects that the operator works on.

use std::fmt;
use std::sync::Arc;

/// The two kinds of scaled resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ResourceKind {
    /// ScaledObject.
    Object,
    /// ScaledJob.
    Job,
}

impl ResourceKind {
    /// The `kind` in the API.
    pub fn name(self) -> &'static str {
        match self {
            Self::Object => "ScaledObject",
            Self::Job => "ScaledJob",
        }
    }

    /// The plural name in request paths.
    pub fn plural(self) -> &'static str {
        match self {
            Self::Object => "scaledobjects",
            Self::Job => "scaledjobs",
        }
    }

    /// The value of the label `type` of exported metrics.
    pub fn label(self) -> &'static str {
        match self {
            Self::Object => "scaledobject",
            Self::Job => "scaledjob",
        }
    }
}

/// The kind of the object that an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventSubject {
    Object,
    Job,
    Authentication,
    ClusterAuthentication,
}

impl EventSubject {
    pub(crate) fn kind(self) -> &'static str {
        match self {
            Self::Object => "ScaledObject",
            Self::Job => "ScaledJob",
            Self::Authentication => "TriggerAuthentication",
            Self::ClusterAuthentication => "ClusterTriggerAuthentication",
        }
    }
}

impl EventSubject {
    /// The subject of events about a TriggerAuthentication, or a ClusterTriggerAuthentication (no namespace).
    pub(crate) fn authentication(name: &NamespacedName) -> Self {
        if name.namespace.is_empty() { Self::ClusterAuthentication } else { Self::Authentication }
    }
}

impl From<ResourceKind> for EventSubject {
    fn from(kind: ResourceKind) -> Self {
        match kind {
            ResourceKind::Object => Self::Object,
            ResourceKind::Job => Self::Job,
        }
    }
}

/// Identifies a CloudEventSource or ClusterCloudEventSource.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct DestinationId {
    pub(crate) of_cluster: bool,
    pub(crate) name: NamespacedName,
}

/// Namespace and name. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NamespacedName {
    /// Namespace; empty for cluster-scoped objects.
    pub namespace: Arc<str>,
    /// Name.
    pub name: Arc<str>,
}

impl NamespacedName {
    /// Joins a namespace and a name.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl runtime::ObjectKey for NamespacedName {
    fn new(namespace: &str, name: &str) -> Self {
        Self::new(namespace, name)
    }

    fn namespace(&self) -> &str {
        &self.namespace
    }
}

/// Identifies one ScaledObject or ScaledJob. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceId {
    /// ScaledObject or ScaledJob.
    pub kind: ResourceKind,
    /// Namespace.
    pub namespace: Arc<str>,
    /// Name.
    pub name: Arc<str>,
}

impl ResourceId {
    /// Identifies a ScaledObject.
    pub fn object(namespace: &str, name: &str) -> Self {
        Self { kind: ResourceKind::Object, namespace: namespace.into(), name: name.into() }
    }

    /// Identifies a ScaledJob.
    pub fn job(namespace: &str, name: &str) -> Self {
        Self { kind: ResourceKind::Job, namespace: namespace.into(), name: name.into() }
    }

    /// Identifies an object of `kind` by its name.
    pub fn of(kind: ResourceKind, name: &NamespacedName) -> Self {
        Self { kind, namespace: name.namespace.clone(), name: name.name.clone() }
    }

    /// The name in records and logs: `so.worker`.
    pub fn record_name(&self) -> String {
        let short = match self.kind {
            ResourceKind::Object => "so",
            ResourceKind::Job => "sj",
        };
        format!("{short}.{}", self.name)
    }

    /// Namespace and name without the kind.
    pub fn full_name(&self) -> NamespacedName {
        NamespacedName { namespace: self.namespace.clone(), name: self.name.clone() }
    }
}

impl fmt::Display for ResourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}", self.kind.name(), self.namespace, self.name)
    }
}
