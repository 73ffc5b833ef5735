//! What the controller does and how often, with the defaults of kube-controller-manager.

use std::sync::Arc;
use std::time::Duration;

use api::decisions::DecisionMode;
use engine::ControllerConfig;

/// HpaSettings in force; a new value replaces the old one while the controller runs.
#[derive(Clone, Debug, PartialEq)]
pub struct HpaSettings {
    /// What decisions are made by.
    pub config: Arc<ControllerConfig>,
    /// Time between two decisions of an autoscaler that does not say otherwise.
    pub period: Duration,
    /// How many passes run at once.
    pub concurrency: usize,
    /// What is done with decisions, where the object does not say otherwise.
    pub mode: DecisionMode,
    /// Only autoscalers of these namespaces; empty: all.
    pub namespaces: Vec<String>,
    /// Whether windows and scale events are kept on the object, to survive a restart.
    pub remember: bool,
}

impl Default for HpaSettings {
    fn default() -> Self {
        Self {
            config: Arc::new(ControllerConfig::default()),
            period: Duration::from_secs(15),
            // kube-controller-manager has 5; here a pass that waits costs nothing.
            concurrency: 64,
            mode: DecisionMode::Active,
            namespaces: Vec::new(),
            remember: true,
        }
    }
}

impl HpaSettings {
    /// Whether autoscalers of this namespace are ours.
    pub fn covers(&self, namespace: &str) -> bool {
        self.namespaces.is_empty() || self.namespaces.iter().any(|n| n == namespace)
    }
}
