//! Real nodes: containerd, kubelet and kube-proxy, so that pods run as processes and Services lead to them.
//!
//! Each node has a network, mounts and processes of its own ([namespaces](https://man7.org/linux/man-pages/man7/namespaces.7.html)),
//! which the kernel removes when the node's first process ends. Creating them needs root.
//!
//! ```text
//! 10.213.0.1       the machine, where kube-apiserver listens
//! 10.213.0.11 …    the nodes
//! 10.213.1.0/24 …  the pods of each node
//! 10.214.0.0/16    Services
//! ```

mod config;
mod programs;

use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use self::programs::NodePrograms;
use crate::access::{Access, pki_folder};
use crate::addresses::{HOST_ADDRESS, SERVICES};
use crate::cache::Cache;
use crate::error::{Attempt, Error, make_folder};
use crate::oci;
use crate::options::{MAX_NODES, NodeOptions};
use crate::pki::write_private;
use crate::process::{CLEANUP_VARIABLE, Component};
use crate::progress::Progress;

/// An image that every node has: without arguments it is the first process of a pod; with `serve`, `load` or `burn` (see
/// `go/node-tool/main.go`) it is a workload for tests.
pub const TOOL_IMAGE: &str = "plimsoll.dev/node-tool:1";

/// The names of nodes, which are the names of their logs too.
const NODE_NAMES: [&str; MAX_NODES as usize] = ["node-1", "node-2", "node-3"];

const POLL_INTERVAL: Duration = Duration::from_millis(50);
const SCRIPTS: [(&str, &str); 3] = [
    ("enter.sh", include_str!("enter.sh")),
    ("run.sh", include_str!("run.sh")),
    ("leave.sh", include_str!("leave.sh")),
];

/// The nodes of one control plane. Only one control plane of a machine can have nodes at a time.
#[derive(Debug)]
pub(crate) struct Nodes {
    programs: NodePrograms,
    folder: PathBuf,
    layouts: Vec<NodeLayout>,
    components: Vec<Component>,
    // The lock of this folder claims the addresses of nodes and pods.
    _lock: File,
}

/// The folder and the addresses of a node.
#[derive(Debug, Clone)]
pub(crate) struct NodeLayout {
    name: &'static str,
    number: usize,
    folder: PathBuf,
    address: Ipv4Addr,
    pods: String,
}

impl NodeLayout {
    fn new(index: usize, name: &'static str, folder: &Path) -> Self {
        let number = index + 1;
        let last = u8::try_from(10 + number).unwrap_or(u8::MAX);
        Self {
            name,
            number,
            folder: folder.join(name),
            address: Ipv4Addr::new(10, 213, 0, last),
            pods: format!("10.213.{number}.0/24"),
        }
    }

    /// The control group of its pods.
    fn cgroup(&self) -> String {
        format!("plimsoll-{}", self.name)
    }
}

impl Nodes {
    /// Builds or fetches the programs that are missing, and claims the addresses.
    pub(crate) fn claim(options: &NodeOptions, folder: &Path, cache: &Cache) -> Result<Self, Error> {
        let programs = NodePrograms::ensure(cache, &mut Progress::stderr())?;
        let path = cache.root().join("nodes.lock");
        let lock = File::create(&path).attempt(|| format!("write {}", path.display()))?;
        if lock.try_lock().is_err() {
            return Err(Error::NodesBusy);
        }
        let folder = folder.join("nodes");
        let images = folder.join("images");
        make_folder(&images)?;
        for (name, text) in SCRIPTS {
            let path = folder.join(name);
            fs::write(&path, text).attempt(|| format!("write {}", path.display()))?;
        }
        write_tool_image(&folder, &programs.tool())?;
        for (number, image) in options.images.iter().enumerate() {
            let image = image.canonicalize().attempt(|| format!("find the image {}", image.display()))?;
            symlink(image, images.join(number.to_string())).attempt(|| "link an image".into())?;
        }
        let names = NODE_NAMES.into_iter().take(usize::from(options.count)).enumerate();
        let layouts = names.map(|(index, name)| NodeLayout::new(index, name, &folder)).collect();
        Ok(Self { programs, folder, layouts, components: Vec::new(), _lock: lock })
    }

    /// Creates the networks of the nodes. Afterwards the machine has the address [`HOST_ADDRESS`].
    pub(crate) fn enter(&mut self, state: &Path, deadline: Duration) -> Result<(), Error> {
        let script = self.folder.join("enter.sh").display().to_string();
        let (host, images) = (std::process::id().to_string(), self.folder.join("images"));
        for layout in &self.layouts {
            make_folder(&layout.folder.join("network"))?;
            let variables = [
                ("PATH", self.programs.search_path()),
                ("HOST", host.clone()),
                ("DEVICE", format!("plimsoll{}", layout.number)),
                ("HOST_ADDRESS", HOST_ADDRESS.to_string()),
                ("NODE_ADDRESS", layout.address.to_string()),
                ("PODS", layout.pods.clone()),
                // The machine reaches all Services through the first node.
                ("SERVICES", if layout.number == 1 { SERVICES.to_owned() } else { String::new() }),
                ("CGROUP", layout.cgroup()),
                (CLEANUP_VARIABLE, self.folder.join("leave.sh").display().to_string()),
                ("FOLDER", layout.folder.display().to_string()),
                ("LOGS", state.join("logs").display().to_string()),
                ("IMAGES", images.display().to_string()),
                ("NAME", layout.name.to_owned()),
            ];
            let variables: Vec<(&str, &str)> =
                variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
            let arguments = std::slice::from_ref(&script);
            let data = Some(layout.folder.as_path());
            let node =
                Component::start_with(layout.name, Path::new("sh"), arguments, &variables, state, data)?;
            self.components.push(node);
        }
        self.wait(deadline, || TcpListener::bind((HOST_ADDRESS, 0)).is_ok())
    }

    /// Starts kubelets and the scheduler, and returns when all nodes are ready.
    pub(crate) fn join(&mut self, access: &Access, deadline: Duration) -> Result<(), Error> {
        for layout in &self.layouts {
            configure(layout, access, &self.programs.network_plugins())?;
        }
        let kubeconfig = self.folder.join("kube-scheduler.kubeconfig");
        let scheduler = access.authority().client("system:kube-scheduler", None)?;
        write_private(&kubeconfig, &access.kubeconfig_for(&scheduler))?;
        let config = |flag: &str| format!("--{flag}={}", kubeconfig.display());
        let arguments = [
            config("kubeconfig"),
            config("authentication-kubeconfig"),
            config("authorization-kubeconfig"),
            "--leader-elect=false".into(),
            "--secure-port=0".into(),
        ];
        let program = self.programs.scheduler();
        self.components.push(Component::start("kube-scheduler", &program, &arguments, &access.folder, None)?);
        let count = self.layouts.len();
        self.wait(deadline, || ready_nodes(access) == count)
    }

    /// Returns an error if a node has ended.
    pub(crate) fn check(&mut self) -> Result<(), Error> {
        for component in &mut self.components {
            if let Some(status) = component.ended() {
                return Err(component.failure(format!("ended by itself ({status})")));
            }
        }
        Ok(())
    }

    pub(crate) fn end(&mut self) {
        self.components.iter_mut().for_each(Component::release);
        self.components.iter_mut().for_each(Component::wait);
        self.components.clear();
    }

    fn wait(&mut self, deadline: Duration, ready: impl Fn() -> bool) -> Result<(), Error> {
        let until = Instant::now() + deadline;
        while !ready() {
            self.check()?;
            if Instant::now() > until
                && let Some(last) = self.components.last()
            {
                return Err(last.failure(format!("was not ready after {} s", deadline.as_secs())));
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        Ok(())
    }
}

/// Writes the configuration files of a node's programs. The node waits for the last file, and then starts the programs.
fn configure(layout: &NodeLayout, access: &Access, plugins: &Path) -> Result<(), Error> {
    let authority = access.authority();
    let node = authority.client(&format!("system:node:{}", layout.name), Some("system:nodes"))?;
    let proxy = authority.client("system:kube-proxy", None)?;
    let serving = authority.server(&[layout.name, &layout.address.to_string()])?;
    let ca = pki_folder(&access.folder).join("ca.crt");
    let files = [
        ("kubelet.kubeconfig", access.kubeconfig_for(&node)),
        ("kube-proxy.kubeconfig", access.kubeconfig_for(&proxy)),
        ("serving.crt", serving.certificate),
        ("serving.key", serving.key),
        ("containerd.toml", config::containerd(layout, plugins)),
        ("network/pods.conflist", config::network(layout)),
        ("kube-proxy.yaml", config::kube_proxy(layout)),
        ("kubelet.yaml", config::kubelet(layout, &ca)),
        ("configured", String::new()),
    ];
    files.iter().try_for_each(|(name, text)| write_private(&layout.folder.join(name), text))
}

fn ready_nodes(access: &Access) -> usize {
    let path = r#"jsonpath={.items[*].status.conditions[?(@.type=="Ready")].status}"#;
    let said = access.run_kubectl(&["get", "nodes", "--output", path]).unwrap_or_default();
    said.split_whitespace().filter(|status| *status == "True").count()
}

/// Writes the image of `program` to `folder/images`.
fn write_tool_image(folder: &Path, program: &Path) -> Result<(), Error> {
    let (root, image) = (folder.join("tool-rootfs"), folder.join("tool"));
    make_folder(&root)?;
    let file = root.join("node-tool");
    fs::copy(program, &file).attempt(|| format!("copy {}", program.display()))?;
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755))
        .attempt(|| format!("write {}", file.display()))?;
    let config = oci::ImageConfig {
        name: TOOL_IMAGE,
        entrypoint: "/node-tool",
        title: "node-tool",
        version: "1",
        architecture: oci::architecture(),
    };
    oci::write(&image, &root, &config)?;
    symlink(image.join("oci"), folder.join("images/tool")).attempt(|| "link an image".into())
}

/// Whether this process runs as root, and so may create nodes.
pub fn is_root() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let users = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    users.and_then(|users| users.split_whitespace().nth(1)) == Some("0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_nodes_and_pods_are_unique() {
        let layouts: Vec<NodeLayout> = NODE_NAMES
            .into_iter()
            .enumerate()
            .map(|(index, name)| NodeLayout::new(index, name, Path::new("/state")))
            .collect();
        let last = layouts.last().unwrap();
        assert_eq!(
            (last.address.to_string(), last.pods.as_str()),
            ("10.213.0.13".to_owned(), "10.213.3.0/24")
        );
        assert_eq!(last.cgroup(), "plimsoll-node-3");
        assert_eq!(last.folder, Path::new("/state/node-3"));
    }

    #[test]
    fn configuration_is_what_its_readers_parse() {
        let layout = NodeLayout::new(0, "node-1", Path::new("/state"));
        let network: serde_json::Value = serde_json::from_str(&config::network(&layout)).unwrap();
        assert_eq!(network["plugins"][0]["ipam"]["subnet"], "10.213.1.0/24");
        let kubelet = config::kubelet(&layout, Path::new("/pki/ca.crt"));
        assert!(kubelet.contains("\ncgroupRoot: /plimsoll-node-1\n"), "{kubelet}");
        assert!(kubelet.contains("x509: {clientCAFile: /pki/ca.crt}\n"), "{kubelet}");
    }
}
