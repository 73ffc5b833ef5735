//! Identity of this server, to avoid querying itself.

/// Service of this server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnService {
    /// Namespace; empty if unknown.
    pub namespace: String,
    /// Name; empty if unknown.
    pub service: String,
    /// Identifier shared by all replicas of this server only, such as the UID of the namespace `kube-system` plus
    /// namespace and name of the Service. Sent to upstreams to detect loops.
    pub id: String,
}

impl OwnService {
    /// Whether a host is the in-cluster name of this Service.
    pub fn is_at(&self, host: &str) -> bool {
        if self.namespace.is_empty() || self.service.is_empty() {
            return false;
        }
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        let name = format!("{}.{}", self.service, self.namespace);
        match host.strip_prefix(&name) {
            Some(rest) => rest.is_empty() || rest == ".svc" || rest.starts_with(".svc."),
            None => host == self.service,
        }
    }
}
