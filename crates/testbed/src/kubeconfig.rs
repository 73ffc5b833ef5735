//! The kubeconfig: address of the cluster and credentials of a client.

use crate::pki::Identity;

/// The name of cluster, user and context.
const NAME: &str = "plimsoll-testbed";

/// A kubeconfig with everything inside, so that it can be copied.
pub(crate) fn text(server: &str, authority: &str, identity: &Identity) -> String {
    localkube::access::kubeconfig(NAME, server, authority, identity)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kubeconfig_has_server_ca_and_identity() {
        let identity = Identity { certificate: "cert".into(), key: "key".into() };
        let text = text("https://127.0.0.1:6443", "ca", &identity);
        assert!(text.contains("    server: \"https://127.0.0.1:6443\"\n"), "{text}");
        assert!(text.contains("    certificate-authority-data: Y2E=\n"), "{text}");
        assert!(
            text.contains("    client-certificate-data: Y2VydA==\n    client-key-data: a2V5\n"),
            "{text}"
        );
        assert!(text.ends_with("current-context: plimsoll-testbed\n"), "{text}");
    }
}
