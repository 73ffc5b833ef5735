//! Settings of the controller, with the defaults of kube-controller-manager.

use std::sync::Arc;
use std::time::Duration;

use api::decisions::DecisionMode;
use engine::ControllerConfig;

/// Settings of the controller; they can be replaced while it runs.
#[derive(Clone, Debug, PartialEq)]
pub struct HpaSettings {
    /// The configuration of decisions.
    pub config: Arc<ControllerConfig>,
    /// The period of autoscalers that do not set their own.
    pub period: Duration,
    /// The maximum number of concurrent reconciles.
    pub concurrency: usize,
    /// The mode of autoscalers that do not set their own.
    pub mode: DecisionMode,
    /// The namespaces whose autoscalers are reconciled; empty for all.
    pub namespaces: Vec<String>,
    /// Whether windows and scale events are persisted on the object, to survive a restart.
    pub remember: bool,
}

impl Default for HpaSettings {
    fn default() -> Self {
        Self {
            config: Arc::new(ControllerConfig::default()),
            period: Duration::from_secs(15),
            // kube-controller-manager has 5; here a waiting reconcile costs no thread.
            concurrency: 64,
            mode: DecisionMode::Active,
            namespaces: Vec::new(),
            remember: true,
        }
    }
}

impl HpaSettings {
    /// Whether autoscalers of this namespace are reconciled.
    pub fn covers(&self, namespace: &str) -> bool {
        self.namespaces.is_empty() || self.namespaces.iter().any(|n| n == namespace)
    }
}
