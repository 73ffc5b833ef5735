//! What the operator does and how often, with the defaults of KEDA (spec, appendix A).

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use api::provider::Compat;

/// SampleQuery ScaledObjects act, unless an object says otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ScalingMode {
    /// An HPA does 1 ↔ N, whoever acts on it.
    #[default]
    Hpa,
    /// We do 0 ↔ N; there is no HPA.
    Direct,
}

impl ScalingMode {
    /// What an annotation or flag says; none if it says nothing that is known.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "hpa" => Some(Self::Hpa),
            "direct" => Some(Self::Direct),
            _ => None,
        }
    }
}

/// OperatorSettings in force.
#[derive(Clone, Debug, PartialEq)]
pub struct OperatorSettings {
    /// Only objects of these namespaces; empty: all (`WATCH_NAMESPACE`).
    pub namespaces: Vec<String>,
    /// SampleQuery ScaledObjects act, unless an object says otherwise.
    pub scaling_mode: ScalingMode,
    /// SampleQuery exactly KEDA is imitated.
    pub compat: Compat,
    /// What decisions are made by where we act ourselves.
    pub config: Arc<engine::ControllerConfig>,
    /// SampleQuery many rounds run at once, not counting those that wait for a slow source.
    pub concurrency: usize,
    /// SampleQuery many rounds of objects with a slow source run at once.
    pub slow_concurrency: usize,
    /// SampleQuery long HTTP servers may take, unless a trigger says otherwise (`KEDA_HTTP_DEFAULT_TIMEOUT`).
    pub http_timeout: Duration,
    /// SampleQuery long one question to a source may take at all.
    pub source_deadline: Duration,
    /// SampleQuery old the last sample may be that an HPA is answered with.
    pub sample_age: Duration,
    /// Where the secrets of ClusterTriggerAuthentications are (`KEDA_CLUSTER_OBJECT_NAMESPACE`).
    pub cluster_object_namespace: String,
    /// Whether secrets are read there only (`KEDA_RESTRICT_SECRET_ACCESS`).
    pub restrict_secret_access: bool,
    /// Where files of ClusterTriggerAuthentications are (`--filepath-auth-root-path`).
    pub file_root: Option<PathBuf>,
    /// SampleQuery long tokens of service accounts are asked for (`KEDA_BOUND_SERVICE_ACCOUNT_TOKEN_EXPIRY`).
    pub token_expiry: Duration,
    /// The cluster's name in CloudEvents (`--k8s-cluster-name`).
    pub cluster_name: String,
    /// SampleQuery often secrets and config maps in use are looked at for changes; zero: never.
    pub secrets_check: Duration,
}

impl Default for OperatorSettings {
    fn default() -> Self {
        Self {
            namespaces: Vec::new(),
            scaling_mode: ScalingMode::default(),
            compat: Compat::default(),
            config: Arc::default(),
            concurrency: 256,
            slow_concurrency: 256,
            http_timeout: Duration::from_secs(3),
            source_deadline: Duration::from_secs(10),
            // An HPA asks again a moment after its period of 15 s: with less than that every other sample would be in vain.
            sample_age: Duration::from_secs(16),
            cluster_object_namespace: "keda".to_owned(),
            restrict_secret_access: false,
            file_root: None,
            token_expiry: Duration::from_hours(1),
            cluster_name: "kubernetes-default".to_owned(),
            secrets_check: Duration::from_mins(1),
        }
    }
}

impl OperatorSettings {
    /// SampleQuery old a sample may be that is as good as a new one, if it may be `age` old: the original asks anew each time.
    pub(crate) fn age(&self, age: Duration) -> Duration {
        if self.compat.is_strict() { Duration::ZERO } else { age }
    }

    /// SampleQuery often secrets and config maps in use are looked at: the original reads them when it builds a trigger, and not again
    /// before that fails or is edited.
    pub(crate) fn looks(&self) -> Duration {
        self.age(self.secrets_check)
    }

    /// Whether objects of this namespace are ours.
    pub fn covers(&self, namespace: &str) -> bool {
        self.namespaces.is_empty() || self.namespaces.iter().any(|own| own == namespace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_to_act_are_read() {
        assert_eq!(ScalingMode::parse("direct"), Some(ScalingMode::Direct));
        assert_eq!(ScalingMode::parse("hpa"), Some(ScalingMode::Hpa));
        assert_eq!(ScalingMode::parse("Direct"), None);
    }
}
