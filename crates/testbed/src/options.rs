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
    /// Real nodes, for which root is needed.
    pub nodes: Option<NodeOptions>,
    /// Feature gates, for kube-apiserver and kube-controller-manager alike.
    pub feature_gates: BTreeMap<String, bool>,
    /// Further flags of kube-apiserver; they come last.
    pub api_server_args: Vec<String>,
    /// Further flags of kube-controller-manager; they come last.
    pub controller_manager_args: Vec<String>,
    /// How long each component may take to become ready.
    pub deadline: Duration,
}

/// The most real nodes that a control plane can have.
pub const MAX_NODES: u8 = 3;

/// Real nodes of a control plane.
#[derive(Debug, Clone, Default)]
pub struct NodeOptions {
    /// How many, at most [`MAX_NODES`].
    pub count: u8,
    /// Images for them: OCI layouts, or archives that `ctr images import` takes.
    pub images: Vec<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            state: None,
            release: None,
            controller_manager: true,
            hpa: false,
            nodes: None,
            feature_gates: BTreeMap::new(),
            api_server_args: Vec::new(),
            controller_manager_args: Vec::new(),
            // It takes four seconds on an idle machine; a busy one is no reason to fail.
            deadline: Duration::from_mins(2),
        }
    }
}
