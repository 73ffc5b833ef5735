//! The key of an autoscaler.

use std::fmt;
use std::sync::Arc;

/// The API of an autoscaler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AutoscalerKind {
    /// `autoscaling` HorizontalPodAutoscaler.
    Hpa,
    /// `plimsoll.dev` Autoscaler.
    Autoscaler,
    /// `keda.sh` ScaledObject.
    ScaledObject,
    /// `keda.sh` ScaledJob.
    ScaledJob,
}

/// The key of one autoscaler. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AutoscalerKey {
    /// The API.
    pub kind: AutoscalerKind,
    /// Namespace.
    pub namespace: Arc<str>,
    /// Name.
    pub name: Arc<str>,
}

impl AutoscalerKey {
    /// The key of an HPA.
    pub fn hpa(namespace: &str, name: &str) -> Self {
        Self { kind: AutoscalerKind::Hpa, namespace: namespace.into(), name: name.into() }
    }

    /// The key of an Autoscaler.
    pub fn autoscaler(namespace: &str, name: &str) -> Self {
        Self { kind: AutoscalerKind::Autoscaler, namespace: namespace.into(), name: name.into() }
    }

    /// The name in records and logs: `hpa.web`.
    pub fn record_name(&self) -> String {
        format!("{}.{}", self.kind.short(), self.name)
    }
}

impl runtime::work_queue::SpreadKey for AutoscalerKey {
    fn group(&self) -> &str {
        &self.namespace
    }
}

impl AutoscalerKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Hpa, Self::Autoscaler, Self::ScaledObject, Self::ScaledJob];

    /// The short name that users write before the object's name: `hpa/web`.
    pub fn short(self) -> &'static str {
        match self {
            Self::Hpa => "hpa",
            Self::Autoscaler => "autoscaler",
            Self::ScaledObject => "so",
            Self::ScaledJob => "sj",
        }
    }

    /// Group and version of its objects.
    pub fn api_version(self) -> &'static str {
        match self {
            Self::Hpa => api::autoscaling::v2::API_VERSION,
            Self::Autoscaler => api::plimsoll::API_VERSION,
            Self::ScaledObject | Self::ScaledJob => api::keda::API_VERSION,
        }
    }

    /// The `kind` of its objects.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hpa => api::autoscaling::KIND,
            Self::Autoscaler => api::plimsoll::KIND,
            Self::ScaledObject => "ScaledObject",
            Self::ScaledJob => "ScaledJob",
        }
    }

    /// The plural name in paths.
    pub fn plural(self) -> &'static str {
        match self {
            Self::Hpa => "horizontalpodautoscalers",
            Self::Autoscaler => "autoscalers",
            Self::ScaledObject => "scaledobjects",
            Self::ScaledJob => "scaledjobs",
        }
    }

    /// The group and version under which the process that reconciles it serves its decisions.
    pub fn decisions(self) -> &'static str {
        match self {
            Self::Hpa | Self::Autoscaler => api::decisions::API_VERSION,
            Self::ScaledObject | Self::ScaledJob => api::decisions::OPERATOR_API_VERSION,
        }
    }

    /// Whether the operator polls its triggers. Its status has neither metrics nor a count.
    pub fn has_triggers(self) -> bool {
        matches!(self, Self::ScaledObject | Self::ScaledJob)
    }
}

/// The name in messages: `namespace/name` for an HPA, as in Kubernetes.
impl fmt::Display for AutoscalerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.kind != AutoscalerKind::Hpa {
            write!(f, "{}:", self.kind.short())?;
        }
        write!(f, "{}/{}", self.namespace, self.name)
    }
}
