//! What may differ from one control plane to the next.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use crate::release::Release;

/// How a control plane is started.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where logs, certificates and data go; `None` is a folder in the cache that is removed at the end.
    pub state: Option<PathBuf>,
    /// The release of Kubernetes; `None` is the one of the environment ([`Release::chosen`]).
    pub release: Option<Release>,
    /// Whether kube-controller-manager runs at all. Without it there are no service accounts, and so no pods.
    pub controller_manager: bool,
    /// Whether Kubernetes' own HPA controller runs.
    pub hpa: bool,
    /// Feature gates, for kube-apiserver and kube-controller-manager alike.
    pub feature_gates: BTreeMap<String, bool>,
    /// Further flags of kube-apiserver; they come last.
    pub api_server_args: Vec<String>,
    /// Further flags of kube-controller-manager; they come last.
    pub controller_manager_args: Vec<String>,
    /// How long each component may take to become ready.
    pub deadline: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            state: None,
            release: None,
            controller_manager: true,
            hpa: false,
            feature_gates: BTreeMap::new(),
            api_server_args: Vec::new(),
            controller_manager_args: Vec::new(),
            // It takes four seconds on an idle machine; a busy one is no reason to fail.
            deadline: Duration::from_mins(2),
        }
    }
}
