//! The kubeconfig: address of the cluster and credentials of a client.

use crate::pki::Identity;

/// The name of the cluster, user and context in a kubeconfig.
const NAME: &str = "plimsoll-testbed";

/// Writes a kubeconfig that embeds all certificates and keys, so that it can be copied to another machine.
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
