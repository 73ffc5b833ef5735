//! Settings of the operator, with the defaults of KEDA (docs/spec/keda.md Appendix A).

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use api::keda::KedaProfile;
use api::provider::Compat;

use super::operator_identity::IdentityRules;

/// What scales the targets of ScaledObjects. An annotation overrides it for one object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ScalingMode {
    /// An HPA scales from 1 to N, the operator from 0 to 1.
    #[default]
    Hpa,
    /// The operator scales from 0 to N; there is no HPA.
    Direct,
}

impl ScalingMode {
    /// Parses the value of the annotation or flag.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "hpa" => Some(Self::Hpa),
            "direct" => Some(Self::Direct),
            _ => None,
        }
    }
}

/// The settings in effect.
#[derive(Clone, Debug, PartialEq)]
pub struct OperatorSettings {
    /// Namespaces that are watched; empty for all (`WATCH_NAMESPACE`).
    pub namespaces: Vec<String>,
    /// Label selector of the ScaledObjects, ScaledJobs and HPAs that are watched; empty for all (`WATCH_LABEL_SELECTOR`).
    pub label_selector: String,
    /// The same of TriggerAuthentications and ClusterTriggerAuthentications (`WATCH_LABEL_SELECTOR_FOR_TRIGGERAUTH`).
    pub authentication_selector: String,
    /// What scales the targets, unless an annotation overrides it.
    pub scaling_mode: ScalingMode,
    /// Whether KEDA's behaviour is imitated exactly.
    pub compat: Compat,
    /// The release of KEDA whose triggers are read (`--keda-profile`).
    pub profile: KedaProfile,
    /// Configuration of the engine in scaling mode `direct`.
    pub config: Arc<engine::ControllerConfig>,
    /// Objects that are processed concurrently, without those that wait for a slow source.
    pub concurrency: usize,
    /// Objects with a slow source that are processed concurrently, divided among their namespaces.
    pub slow_concurrency: usize,
    /// Timeout of HTTP requests of scalers, unless a trigger overrides it (`KEDA_HTTP_DEFAULT_TIMEOUT`).
    pub http_timeout: Duration,
    /// Time limit of one query of a source.
    pub source_deadline: Duration,
    /// Maximum age of a sample that an HPA is served.
    pub sample_age: Duration,
    /// Namespace of the Secrets of ClusterTriggerAuthentications (`KEDA_CLUSTER_OBJECT_NAMESPACE`).
    pub cluster_object_namespace: String,
    /// Whether Secrets are read only there (`KEDA_RESTRICT_SECRET_ACCESS`).
    pub restrict_secret_access: bool,
    /// Folder of the files of ClusterTriggerAuthentications (`--filepath-auth-root-path`).
    pub file_root: Option<PathBuf>,
    /// Folder of the files that triggers may name (`--tenant-files-dir`).
    pub tenant_files: Option<PathBuf>,
    /// Lifetime of requested service account tokens (`KEDA_BOUND_SERVICE_ACCOUNT_TOKEN_EXPIRY`).
    pub token_expiry: Duration,
    /// Which objects may use credentials of the operator, and for which destinations.
    pub identity: IdentityRules,
    /// The cluster's name in CloudEvents (`--k8s-cluster-name`).
    pub cluster_name: String,
    /// Interval of checks for changed Secrets and ConfigMaps; zero for none.
    pub secrets_check: Duration,
    /// Whether durations of requests name objects and metrics (`--enable-high-cardinality-metrics-labels`).
    pub high_cardinality_labels: bool,
}

impl Default for OperatorSettings {
    fn default() -> Self {
        Self {
            namespaces: Vec::new(),
            label_selector: String::new(),
            authentication_selector: String::new(),
            scaling_mode: ScalingMode::default(),
            compat: Compat::default(),
            profile: KedaProfile::default(),
            config: Arc::default(),
            concurrency: 256,
            slow_concurrency: 256,
            http_timeout: Duration::from_secs(3),
            source_deadline: Duration::from_secs(10),
            // An HPA requests its metrics a little more than 15 s after the last time, so a smaller value would miss every other sample.
            sample_age: Duration::from_secs(16),
            cluster_object_namespace: "keda".to_owned(),
            restrict_secret_access: false,
            file_root: None,
            tenant_files: None,
            token_expiry: Duration::from_hours(1),
            identity: IdentityRules::default(),
            cluster_name: "kubernetes-default".to_owned(),
            secrets_check: Duration::from_mins(1),
            high_cardinality_labels: false,
        }
    }
}

impl OperatorSettings {
    /// The maximum age of a reused sample. KEDA reuses none.
    pub(crate) fn max_age(&self, age: Duration) -> Duration {
        if self.compat.is_strict() { Duration::ZERO } else { age }
    }

    /// Interval of checks for changed Secrets and ConfigMaps. KEDA reads them only when it builds a scaler.
    pub(crate) fn secrets_check_interval(&self) -> Duration {
        self.max_age(self.secrets_check)
    }

    /// Whether a namespace is watched.
    pub fn covers(&self, namespace: &str) -> bool {
        self.namespaces.is_empty() || self.namespaces.iter().any(|own| own == namespace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scaling_modes_are_parsed() {
        assert_eq!(ScalingMode::parse("direct"), Some(ScalingMode::Direct));
        assert_eq!(ScalingMode::parse("hpa"), Some(ScalingMode::Hpa));
        assert_eq!(ScalingMode::parse("Direct"), None);
    }
}
