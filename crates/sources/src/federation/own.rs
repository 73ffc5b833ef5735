//! Who we are, so that we do not ask ourselves.

/// Our own Service, as others see it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Own {
    /// Its namespace; empty if it is not known.
    pub namespace: String,
    /// Its name; empty if it is not known.
    pub service: String,
    /// What all our replicas have in common and nobody else has: for example the UID of the namespace `kube-system`, a
    /// slash, and namespace and name of the Service. Sent to upstreams, to find out that one of them is us.
    pub id: String,
}

impl Own {
    /// Whether a host is the name of our Service inside the cluster.
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
