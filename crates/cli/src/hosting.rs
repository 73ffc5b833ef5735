//! Whether a role has its process for itself, or shares server, certificate and samples with other roles (`plimsoll run`).

use cluster::metrics::LocalMetrics;
use serve::Keyring;

/// What a role shares with the other roles of its process. The default is a role that is alone.
#[derive(Clone, Default)]
pub(crate) struct Hosting {
    /// The server of all roles; a role that is alone has a server and a certificate of its own.
    pub(crate) common_server: Option<CommonServer>,
    /// The providers of a metrics role in this process.
    pub(crate) local_metrics: LocalMetrics,
}

/// The one server of several roles.
#[derive(Clone)]
pub(crate) struct CommonServer {
    /// The certificate, if replicas share one.
    pub(crate) keyring: Option<Keyring>,
    /// Whether a metrics role serves external metrics, also those of the operator.
    pub(crate) has_metrics_role: bool,
}

impl Hosting {
    /// Whether other roles run in this process.
    pub(crate) fn is_common(&self) -> bool {
        self.common_server.is_some()
    }
}
