//! The programs of a node.

use std::path::PathBuf;

use crate::cache::Cache;
use crate::error::Error;
use crate::parts::{GoModule, Part, Source, TreeProgram};
use crate::progress::Progress;

/// kubelet, kube-proxy and kube-scheduler.
const KUBERNETES_NODE: Part = Part {
    name: "kubernetes-node",
    version: "1.36.4",
    source: Source::Go(GoModule {
        manifest: include_str!("../../go/kubernetes-node/go.mod"),
        sums: include_str!("../../go/kubernetes-node/go.sum"),
        link_flags: &[
            "-X k8s.io/component-base/version.gitVersion=v1.36.4",
            "-X k8s.io/component-base/version.gitMajor=1",
            "-X k8s.io/component-base/version.gitMinor=36",
        ],
        programs: &[
            ("k8s.io/kubernetes/cmd/kubelet", "kubelet"),
            ("k8s.io/kubernetes/cmd/kube-proxy", "kube-proxy"),
            ("k8s.io/kubernetes/cmd/kube-scheduler", "kube-scheduler"),
        ],
        files: &[],
    }),
};

/// Shell lines before a program of the package iptables. Without them it loads its modules from a fixed folder.
const MODULES_OF_IPTABLES: &str =
    "for folder in \"$root\"/usr/lib/*/xtables; do XTABLES_LIBDIR=$folder; done\nexport XTABLES_LIBDIR";

const fn iptables(name: &'static str, path: &'static str) -> TreeProgram {
    TreeProgram { name, path, before: MODULES_OF_IPTABLES }
}

const fn plain(name: &'static str, path: &'static str) -> TreeProgram {
    TreeProgram { name, path, before: "" }
}

/// The container runtime, its network plugins, and the programs that kube-proxy calls. They come from Debian, because a runc built from its
/// Go module lacks seccomp.
const CONTAINERS: Part = Part {
    name: "containers",
    version: "debian",
    source: Source::DebianTree {
        packages: &["containerd", "runc", "containernetworking-plugins", "iptables"],
        programs: &[
            plain("containerd", "usr/bin/containerd"),
            plain("ctr", "usr/bin/ctr"),
            plain("containerd-shim-runc-v2", "usr/bin/containerd-shim-runc-v2"),
            plain("runc", "usr/sbin/runc"),
            iptables("iptables", "usr/sbin/iptables-nft"),
            iptables("iptables-save", "usr/sbin/iptables-nft-save"),
            iptables("iptables-restore", "usr/sbin/iptables-nft-restore"),
            iptables("ip6tables", "usr/sbin/ip6tables-nft"),
            iptables("ip6tables-save", "usr/sbin/ip6tables-nft-save"),
            iptables("ip6tables-restore", "usr/sbin/ip6tables-nft-restore"),
        ],
    },
};

/// The program of the image for tests: the first process of each pod, and workloads that use CPU or serve requests.
const NODE_TOOL: Part = Part {
    name: "node-tool",
    version: "1",
    source: Source::Go(GoModule {
        manifest: include_str!("../../go/node-tool/go.mod"),
        sums: "",
        link_flags: &["-s -w"],
        programs: &[("plimsoll.dev/testbed/node-tool", "node-tool")],
        files: &[("main.go", include_str!("../../go/node-tool/main.go"))],
    }),
};

/// The folders with the programs of a node.
#[derive(Debug, Clone)]
pub(crate) struct NodePrograms {
    kubernetes: PathBuf,
    containers: PathBuf,
    tool: PathBuf,
}

impl NodePrograms {
    /// Builds or fetches the programs that are missing.
    pub(crate) fn ensure(cache: &Cache, progress: &mut Progress) -> Result<Self, Error> {
        Ok(Self {
            kubernetes: cache.ensure(&KUBERNETES_NODE, progress)?,
            containers: cache.ensure(&CONTAINERS, progress)?,
            tool: cache.ensure(&NODE_TOOL, progress)?,
        })
    }

    pub(crate) fn scheduler(&self) -> PathBuf {
        self.kubernetes.join("kube-scheduler")
    }

    pub(crate) fn tool(&self) -> PathBuf {
        self.tool.join("node-tool")
    }

    /// The folder of the network plugins.
    pub(crate) fn network_plugins(&self) -> PathBuf {
        self.containers.join("root/usr/lib/cni")
    }

    /// The search path of a node: its own programs first, then those of the machine.
    pub(crate) fn search_path(&self) -> String {
        let (kubernetes, containers) = (self.kubernetes.display(), self.containers.display());
        let path = std::env::var("PATH").unwrap_or_default();
        format!("{kubernetes}:{containers}:{path}:/usr/sbin:/sbin")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::KUBERNETES;

    #[test]
    fn node_has_the_release_of_the_control_plane() {
        assert_eq!(KUBERNETES_NODE.version, KUBERNETES.version);
        let Source::Go(module) = KUBERNETES_NODE.source else { panic!("no Go module") };
        assert!(module.manifest.contains(&format!("k8s.io/kubernetes v{}", KUBERNETES.version)));
        for (package, _) in module.programs {
            assert!(module.manifest.contains(package), "{package} is no tool");
        }
    }
}
