//! The configuration of the programs of a node.

use std::path::Path;

use super::{NodeLayout, TOOL_IMAGE};

/// The socket of the container runtime. It is in the node's own /run, because a path below the state folder may be too long for a socket.
const RUNTIME_SOCKET: &str = "/run/containerd/containerd.sock";

pub(super) fn containerd(layout: &NodeLayout, plugins: &Path) -> String {
    let (folder, plugins) = (layout.folder.display(), plugins.display());
    format!(
        "version = 2
root = \"{folder}/containerd\"
state = \"/run/containerd\"
[grpc]
  address = \"{RUNTIME_SOCKET}\"
[plugins.\"io.containerd.internal.v1.opt\"]
  path = \"/run/containerd/opt\"
[plugins.\"io.containerd.grpc.v1.cri\"]
  sandbox_image = \"{TOOL_IMAGE}\"
  # Without this, runc fails where CAP_SYS_RESOURCE is missing.
  restrict_oom_score_adj = true
  [plugins.\"io.containerd.grpc.v1.cri\".cni]
    bin_dir = \"{plugins}\"
    conf_dir = \"{folder}/network\"
"
    )
}

/// The CNI configuration. Each pod is reached through its own route, so that neither a bridge nor its kernel settings are needed.
pub(super) fn network(layout: &NodeLayout) -> String {
    format!(
        r#"{{"cniVersion": "0.4.0", "name": "pods", "plugins": [{{"type": "ptp", "ipam": {{
  "type": "host-local", "subnet": "{pods}", "dataDir": "/run/cni", "routes": [{{"dst": "0.0.0.0/0"}}]}}}}]}}
"#,
        pods = layout.pods
    )
}

pub(super) fn kube_proxy(layout: &NodeLayout) -> String {
    let folder = layout.folder.display();
    format!(
        "apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: iptables
clientConnection: {{kubeconfig: {folder}/kube-proxy.kubeconfig}}
# Answers to the machine return through the node that led it to the Service.
iptables: {{masqueradeAll: true}}
# These are settings of the whole machine.
conntrack: {{maxPerCore: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}}
metricsBindAddress: 127.0.0.1:10249
"
    )
}

pub(super) fn kubelet(layout: &NodeLayout, authority: &Path) -> String {
    let (folder, authority, address) = (layout.folder.display(), authority.display(), layout.address);
    format!(
        "apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: {address}
authentication:
  anonymous: {{enabled: false}}
  webhook: {{enabled: true}}
  x509: {{clientCAFile: {authority}}}
authorization: {{mode: Webhook}}
tlsCertFile: {folder}/serving.crt
tlsPrivateKeyFile: {folder}/serving.key
containerRuntimeEndpoint: unix://{RUNTIME_SOCKET}
cgroupDriver: cgroupfs
cgroupRoot: /{cgroup}
failCgroupV1: false
failSwapOn: false
enforceNodeAllocatable: []
# Pods get no DNS: there is no server for it.
resolvConf: \"\"
volumePluginDir: /run/kubelet/volumeplugins
# A full disk of a developer is no reason to evict the pods of a test.
evictionHard: {{memory.available: 0%, nodefs.available: 0%, nodefs.inodesFree: 0%, imagefs.available: 0%}}
imageGCHighThresholdPercent: 100
nodeStatusUpdateFrequency: 4s
",
        cgroup = layout.cgroup()
    )
}
