//! What an object of ours is called.

use std::fmt;
use std::sync::Arc;

/// Which of the two kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// ScaledObject.
    Object,
    /// ScaledJob.
    Job,
}

impl Kind {
    /// As the API calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Object => "ScaledObject",
            Self::Job => "ScaledJob",
        }
    }

    /// As it stands in paths.
    pub fn plural(self) -> &'static str {
        match self {
            Self::Object => "scaledobjects",
            Self::Job => "scaledjobs",
        }
    }

    /// As it stands in labels of figures.
    pub fn label(self) -> &'static str {
        match self {
            Self::Object => "scaledobject",
            Self::Job => "scaledjob",
        }
    }
}

/// Namespace and name. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name {
    /// Namespace; empty for objects outside of any.
    pub namespace: Arc<str>,
    /// Name.
    pub name: Arc<str>,
}

impl Name {
    /// These two.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

/// Names one ScaledObject or ScaledJob. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id {
    /// Which kind.
    pub kind: Kind,
    /// Namespace.
    pub namespace: Arc<str>,
    /// Name.
    pub name: Arc<str>,
}

impl Id {
    /// A ScaledObject.
    pub fn object(namespace: &str, name: &str) -> Self {
        Self { kind: Kind::Object, namespace: namespace.into(), name: name.into() }
    }

    /// A ScaledJob.
    pub fn job(namespace: &str, name: &str) -> Self {
        Self { kind: Kind::Job, namespace: namespace.into(), name: name.into() }
    }

    /// One of these.
    pub fn of(kind: Kind, name: &Name) -> Self {
        Self { kind, namespace: name.namespace.clone(), name: name.name.clone() }
    }

    /// Its namespace and name.
    pub fn full_name(&self) -> Name {
        Name { namespace: self.namespace.clone(), name: self.name.clone() }
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}", self.kind.name(), self.namespace, self.name)
    }
}
