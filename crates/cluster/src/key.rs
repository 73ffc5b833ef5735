//! What an autoscaler is called.

use std::fmt;
use std::sync::Arc;

/// Which API an autoscaler comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// `autoscaling` HorizontalPodAutoscaler.
    Hpa,
    /// `plimsoll.dev` Autoscaler.
    Autoscaler,
}

/// Names one autoscaler. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Which API.
    pub kind: Kind,
    /// Namespace.
    pub namespace: Arc<str>,
    /// Name.
    pub name: Arc<str>,
}

impl Key {
    /// The key of an HPA.
    pub fn hpa(namespace: &str, name: &str) -> Self {
        Self { kind: Kind::Hpa, namespace: namespace.into(), name: name.into() }
    }

    /// The key of an Autoscaler.
    pub fn autoscaler(namespace: &str, name: &str) -> Self {
        Self { kind: Kind::Autoscaler, namespace: namespace.into(), name: name.into() }
    }
}

impl Kind {
    /// How people write it before a name: `hpa/web`.
    pub fn short(self) -> &'static str {
        match self {
            Self::Hpa => "hpa",
            Self::Autoscaler => "autoscaler",
        }
    }
}

/// As messages name it: an HPA as Kubernetes does, `namespace/name`.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.kind == Kind::Autoscaler {
            f.write_str("autoscaler:")?;
        }
        write!(f, "{}/{}", self.namespace, self.name)
    }
}
