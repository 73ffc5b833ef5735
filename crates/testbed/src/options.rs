//! The options of a control plane.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use crate::release::Release;

/// How a control plane is started.
#[derive(Debug, Clone)]
pub struct Options {
    /// The folder of logs, certificates and data; `None` is a folder in the cache that is removed at the end.
    pub state: Option<PathBuf>,
    /// The release of Kubernetes; `None` is that of the environment variable ([`Release::chosen`]).
    pub release: Option<Release>,
    /// Whether kube-controller-manager runs. Without it there are no service accounts, and so no pods.
    pub controller_manager: bool,
    /// Whether Kubernetes' own HPA controller runs.
    pub hpa: bool,
    /// The real nodes, which need root.
    pub nodes: Option<NodeOptions>,
    /// The feature gates of both kube-apiserver and kube-controller-manager.
    pub feature_gates: BTreeMap<String, bool>,
    /// Further flags of kube-apiserver, which come last.
    pub api_server_args: Vec<String>,
    /// Further flags of kube-controller-manager, which come last.
    pub controller_manager_args: Vec<String>,
    /// How long each component may take to become ready.
    pub deadline: Duration,
}

/// The maximum number of real nodes of a control plane.
pub const MAX_NODES: u8 = 3;

/// The real nodes of a control plane.
#[derive(Debug, Clone, Default)]
pub struct NodeOptions {
    /// The number of nodes, at most [`MAX_NODES`].
    pub count: u8,
    /// The images that the nodes get: OCI layouts, or archives that `ctr images import` accepts.
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
            // A control plane is ready after four seconds on an idle machine; the timeout is long because machines may be busy.
            deadline: Duration::from_mins(2),
        }
    }
}
