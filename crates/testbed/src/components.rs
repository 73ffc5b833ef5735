//! The flags of each component.

use std::path::Path;

use crate::addresses::{HOST_ADDRESS, SERVICES};
use crate::error::Error;
use crate::options::Options;
use crate::pki::FRONT_PROXY;
use crate::ports;

/// The loopback port of each component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ports {
    /// The client port of etcd.
    pub etcd: u16,
    /// The peer port of etcd, which has no other members.
    pub etcd_peer: u16,
    /// The port of kube-apiserver.
    pub api_server: u16,
    /// The port of kube-controller-manager, for health and metrics.
    pub controller_manager: u16,
}

impl Ports {
    /// Returns ports that are free now. If another process takes one before the component does, the caller tries again.
    pub(crate) fn free() -> Result<Self, Error> {
        let [etcd, etcd_peer, api_server, controller_manager] = ports::several()?;
        Ok(Self { etcd, etcd_peer, api_server, controller_manager })
    }
}

pub(crate) fn etcd(ports: Ports, data: &Path) -> Vec<String> {
    let (client, peer) = (local("http", ports.etcd), local("http", ports.etcd_peer));
    vec![
        "--name=testbed".into(),
        format!("--data-dir={}", data.display()),
        format!("--listen-client-urls={client}"),
        format!("--advertise-client-urls={client}"),
        format!("--listen-peer-urls={peer}"),
        format!("--initial-advertise-peer-urls={peer}"),
        format!("--initial-cluster=testbed={peer}"),
        // etcd does not sync to disk, because its data need not survive a power failure.
        "--unsafe-no-fsync=true".into(),
        "--log-level=warn".into(),
    ]
}

pub(crate) fn api_server(ports: Ports, pki: &Path, options: &Options) -> Vec<String> {
    let file = |flag: &str, name: &str| format!("--{flag}={}", pki.join(name).display());
    let mut arguments = vec![
        format!("--etcd-servers={}", local("http", ports.etcd)),
        "--bind-address=127.0.0.1".into(),
        format!("--secure-port={}", ports.api_server),
        "--advertise-address=127.0.0.1".into(),
        // The API server does not write its own endpoints: these may not have loopback addresses, and no client in the cluster uses them.
        "--endpoint-reconciler-type=none".into(),
        "--service-cluster-ip-range=10.0.0.0/16".into(),
        "--allow-privileged=true".into(),
        "--authorization-mode=RBAC".into(),
        file("client-ca-file", "ca.crt"),
        file("tls-cert-file", "apiserver.crt"),
        file("tls-private-key-file", "apiserver.key"),
        "--service-account-issuer=https://kubernetes.default.svc".into(),
        file("service-account-key-file", "sa.pub"),
        file("service-account-signing-key-file", "sa.key"),
        file("requestheader-client-ca-file", "front-proxy-ca.crt"),
        format!("--requestheader-allowed-names={FRONT_PROXY}"),
        "--requestheader-username-headers=X-Remote-User".into(),
        "--requestheader-group-headers=X-Remote-Group".into(),
        "--requestheader-extra-headers-prefix=X-Remote-Extra-".into(),
        file("proxy-client-cert-file", "front-proxy-client.crt"),
        file("proxy-client-key-file", "front-proxy-client.key"),
        // Aggregator routing is off, so that a Service of type ExternalName leads to a server on this machine.
        "--enable-aggregator-routing=false".into(),
    ];
    if options.nodes.is_some() {
        arguments.extend(for_nodes(pki));
    }
    arguments.extend(feature_gates(options));
    arguments.extend(options.api_server_args.iter().cloned());
    arguments
}

/// The flags of kube-apiserver with real nodes, so that it and the nodes reach each other. They replace the flags for loopback.
fn for_nodes(pki: &Path) -> Vec<String> {
    let file = |flag: &str, name: &str| format!("--{flag}={}", pki.join(name).display());
    vec![
        format!("--bind-address={HOST_ADDRESS}"),
        format!("--advertise-address={HOST_ADDRESS}"),
        "--endpoint-reconciler-type=lease".into(),
        format!("--service-cluster-ip-range={SERVICES}"),
        // This authorization mode is added to RBAC.
        "--authorization-mode=Node".into(),
        "--enable-admission-plugins=NodeRestriction".into(),
        file("kubelet-client-certificate", "admin.crt"),
        file("kubelet-client-key", "admin.key"),
        file("kubelet-certificate-authority", "ca.crt"),
        "--kubelet-preferred-address-types=InternalIP".into(),
    ]
}

pub(crate) fn controller_manager(
    ports: Ports,
    pki: &Path,
    kubeconfig: &Path,
    options: &Options,
) -> Vec<String> {
    let file = |flag: &str, name: &str| format!("--{flag}={}", pki.join(name).display());
    let config = |flag: &str| format!("--{flag}={}", kubeconfig.display());
    let mut controllers = String::from("--controllers=*");
    if options.nodes.is_none() {
        // Most simulated nodes send no heartbeats, so the node lifecycle controller would taint them.
        controllers.push_str(",-node-lifecycle-controller");
    }
    if !options.hpa {
        controllers.push_str(",-horizontal-pod-autoscaler-controller");
    }
    let mut arguments = vec![
        config("kubeconfig"),
        config("authentication-kubeconfig"),
        config("authorization-kubeconfig"),
        "--bind-address=127.0.0.1".into(),
        format!("--secure-port={}", ports.controller_manager),
        // The certificate of the API server is used, because the names are the same.
        file("tls-cert-file", "apiserver.crt"),
        file("tls-private-key-file", "apiserver.key"),
        file("root-ca-file", "ca.crt"),
        file("cluster-signing-cert-file", "ca.crt"),
        file("cluster-signing-key-file", "ca.key"),
        file("service-account-private-key-file", "sa.key"),
        // The controllers use service accounts of their own, because most are not authorized otherwise.
        "--use-service-account-credentials=true".into(),
        "--leader-elect=false".into(),
        // The default of 20 requests a second makes the start three seconds longer, and delays tests that share a control plane.
        "--kube-api-qps=500".into(),
        "--kube-api-burst=1000".into(),
        controllers,
    ];
    arguments.extend(feature_gates(options));
    arguments.extend(options.controller_manager_args.iter().cloned());
    arguments
}

/// An address on loopback.
pub(crate) fn local(scheme: &str, port: u16) -> String {
    format!("{scheme}://127.0.0.1:{port}")
}

fn feature_gates(options: &Options) -> Option<String> {
    let gates: Vec<String> = options.feature_gates.iter().map(|(name, on)| format!("{name}={on}")).collect();
    (!gates.is_empty()).then(|| format!("--feature-gates={}", gates.join(",")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PORTS: Ports = Ports { etcd: 1, etcd_peer: 2, api_server: 3, controller_manager: 4 };

    fn has(arguments: &[String], wanted: &str) -> bool {
        arguments.iter().any(|argument| argument == wanted)
    }

    #[test]
    fn ports_are_distinct() {
        let ports = Ports::free().unwrap();
        let all = [ports.etcd, ports.etcd_peer, ports.api_server, ports.controller_manager];
        assert_eq!(all.iter().collect::<std::collections::BTreeSet<_>>().len(), 4, "{ports:?}");
    }

    #[test]
    fn hpa_controller_is_disabled_by_default() {
        let controllers = |hpa| {
            let options = Options { hpa, ..Options::default() };
            let all = controller_manager(PORTS, Path::new("/pki"), Path::new("/kubeconfig"), &options);
            all.into_iter().find(|argument| argument.starts_with("--controllers=")).unwrap()
        };
        assert!(controllers(false).contains(",-horizontal-pod-autoscaler-controller"));
        assert!(!controllers(true).contains("horizontal"));
    }

    #[test]
    fn feature_gates_reach_both_components_and_extra_flags_come_last() {
        let options = Options {
            feature_gates: [("B".to_owned(), false), ("A".to_owned(), true)].into(),
            api_server_args: vec!["--v=4".into()],
            controller_manager_args: vec!["--v=5".into()],
            ..Options::default()
        };
        let server = api_server(PORTS, Path::new("/pki"), &options);
        let manager = controller_manager(PORTS, Path::new("/pki"), Path::new("/kubeconfig"), &options);
        assert!(
            has(&server, "--feature-gates=A=true,B=false") && has(&manager, "--feature-gates=A=true,B=false")
        );
        assert_eq!(server.last().map(String::as_str), Some("--v=4"));
        assert_eq!(manager.last().map(String::as_str), Some("--v=5"));
        assert!(
            !api_server(PORTS, Path::new("/pki"), &Options::default())
                .iter()
                .any(|a| a.contains("feature-gates"))
        );
    }

    #[test]
    fn real_nodes_reach_the_api_server_and_have_a_life_cycle() {
        let options = Options { nodes: Some(crate::NodeOptions::default()), ..Options::default() };
        let server = api_server(PORTS, Path::new("/pki"), &options);
        // The last of two values of a flag is used.
        let bound = server.iter().rfind(|argument| argument.starts_with("--bind-address=")).unwrap();
        assert_eq!(bound, "--bind-address=10.213.0.1");
        assert!(has(&server, "--kubelet-client-key=/pki/admin.key"));
        let manager = controller_manager(PORTS, Path::new("/pki"), Path::new("/kubeconfig"), &options);
        assert!(has(&manager, "--controllers=*,-horizontal-pod-autoscaler-controller"));
    }

    #[test]
    fn all_addresses_are_on_loopback() {
        let server = api_server(PORTS, Path::new("/pki"), &Options::default());
        assert!(has(&server, "--etcd-servers=http://127.0.0.1:1") && has(&server, "--secure-port=3"));
        assert!(has(&server, "--bind-address=127.0.0.1"));
        let store = etcd(PORTS, Path::new("/data"));
        assert!(has(&store, "--listen-client-urls=http://127.0.0.1:1"));
        assert!(store.iter().all(|argument| !argument.contains("0.0.0.0")));
    }
}
