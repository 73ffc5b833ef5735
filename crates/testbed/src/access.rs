//! Access to a running control plane.

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::components::Ports;
use crate::ensure::Parts;
use crate::error::{Attempt, Error, read};
use crate::pki::{Authority, Identity, Pki, write_private};
use crate::{kubeconfig, state};

/// Addresses and credentials of a control plane, and the keys to create further client certificates.
#[derive(Debug, Clone)]
pub struct Access {
    /// The state folder.
    pub folder: PathBuf,
    /// The kubeconfig of an administrator (group `system:masters`).
    pub kubeconfig: PathBuf,
    /// The URL of kube-apiserver.
    pub server: String,
    /// The address of kube-apiserver: loopback, unless there are real nodes.
    pub address: Ipv4Addr,
    /// The port of each component.
    pub ports: Ports,
    /// The folder with one log per component.
    pub logs: PathBuf,
    /// The programs of the control plane.
    pub parts: Parts,
    pki: Pki,
}

/// The file with the ports, so that another process can find them.
const PORTS_FILE: &str = "ports";
const POLL_INTERVAL: Duration = Duration::from_millis(20);

impl Access {
    pub(crate) fn new(folder: &Path, address: Ipv4Addr, ports: Ports, pki: Pki, parts: Parts) -> Self {
        Self {
            folder: folder.to_owned(),
            kubeconfig: folder.join("kubeconfig"),
            server: format!("https://{address}:{}", ports.api_server),
            address,
            ports,
            logs: folder.join("logs"),
            parts,
            pki,
        }
    }

    /// Opens a control plane that another process runs in `folder`.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        if state::holder(folder).is_none() || !state::is_held(folder)? {
            return Err(Error::NotRunning(folder.to_owned()));
        }
        let folder = folder.canonicalize().attempt(|| format!("find {}", folder.display()))?;
        let path = folder.join(PORTS_FILE);
        let (address, ports) = parse(&read(&path)?).ok_or_else(|| Error::Io {
            attempt: format!("read {}", path.display()),
            source: std::io::ErrorKind::InvalidData.into(),
        })?;
        Ok(Self::new(&folder, address, ports, Pki::read(&pki_folder(&folder))?, Parts::ensure()?))
    }

    /// Writes the files that `open` reads, and the kubeconfigs.
    pub(crate) fn write(&self) -> Result<(), Error> {
        let path = self.folder.join(PORTS_FILE);
        fs::write(&path, print(self.address, self.ports)).attempt(|| format!("write {}", path.display()))?;
        self.pki.write(&pki_folder(&self.folder))?;
        write_private(&self.kubeconfig, &self.kubeconfig_for(&self.pki.admin))?;
        write_private(
            &self.controller_manager_kubeconfig(),
            &self.kubeconfig_for(&self.pki.controller_manager),
        )
    }

    pub(crate) fn controller_manager_kubeconfig(&self) -> PathBuf {
        self.folder.join("controller-manager.kubeconfig")
    }

    /// The text of a kubeconfig for another client, such as one signed by [`Access::authority`].
    pub fn kubeconfig_for(&self, identity: &Identity) -> String {
        kubeconfig::text(&self.server, self.pki.cluster.certificate(), identity)
    }

    /// The cluster's authority: it signed the server's certificate and signs client certificates of users.
    pub fn authority(&self) -> &Authority {
        &self.pki.cluster
    }

    /// The authority of the front proxy: its clients may impersonate others with `X-Remote-*` headers.
    pub fn front_proxy_authority(&self) -> &Authority {
        &self.pki.front_proxy
    }

    /// The identity of the administrator.
    pub fn admin(&self) -> &Identity {
        &self.pki.admin
    }

    /// The identity with which kube-apiserver calls aggregated servers.
    pub fn front_proxy_client(&self) -> &Identity {
        &self.pki.front_proxy_client
    }

    /// A kubectl command as the administrator, without the settings of the user.
    pub fn kubectl(&self) -> Command {
        let mut command = Command::new(&self.parts.kubectl);
        command.env("KUBECONFIG", &self.kubeconfig).env("KUBERC", "off");
        // The discovery cache is in the state folder, because another control plane may have used the same address before.
        command.env("KUBECACHEDIR", self.folder.join("kubectl-cache"));
        command.stdin(Stdio::null());
        command
    }

    /// Runs kubectl and returns its output.
    pub fn run_kubectl(&self, arguments: &[&str]) -> Result<String, Error> {
        let output = self.kubectl().args(arguments).output().attempt(|| "run kubectl".into())?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Err(Error::Kubectl { arguments: arguments.join(" "), output: said })
    }

    /// Creates a namespace whose name begins with `prefix`, and waits for the service account that pods need.
    pub fn namespace(&self, prefix: &str) -> Result<String, Error> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("{prefix}-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        self.run_kubectl(&["create", "namespace", &name])?;
        let until = Instant::now() + Duration::from_mins(1);
        let path = format!("/api/v1/namespaces/{name}/serviceaccounts/default");
        while let Err(error) = self.run_kubectl(&["get", "--raw", &path]) {
            if Instant::now() > until {
                return Err(error);
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        Ok(name)
    }
}

pub(crate) fn pki_folder(folder: &Path) -> PathBuf {
    folder.join("pki")
}

fn print(address: Ipv4Addr, ports: Ports) -> String {
    format!(
        "address {address}\netcd {}\netcd-peer {}\nkube-apiserver {}\nkube-controller-manager {}\n",
        ports.etcd, ports.etcd_peer, ports.api_server, ports.controller_manager
    )
}

fn parse(text: &str) -> Option<(Ipv4Addr, Ports)> {
    let value = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    let port = |name: &str| value(name).and_then(|number| number.parse().ok());
    let ports = Ports {
        etcd: port("etcd")?,
        etcd_peer: port("etcd-peer")?,
        api_server: port("kube-apiserver")?,
        controller_manager: port("kube-controller-manager")?,
    };
    Some((value("address")?.parse().ok()?, ports))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_file_is_read_back() {
        let ports = Ports { etcd: 1, etcd_peer: 2, api_server: 3, controller_manager: 65535 };
        let written = print(Ipv4Addr::LOCALHOST, ports);
        assert_eq!(parse(&written), Some((Ipv4Addr::LOCALHOST, ports)));
        assert_eq!(parse("etcd 1\n"), None);
        assert_eq!(parse(&written.replace("65535", "65536")), None);
    }

    #[test]
    fn opening_a_folder_without_a_control_plane_fails() {
        let folder = std::env::temp_dir().join(format!("testbed-access-{}", std::process::id()));
        assert!(matches!(Access::open(&folder), Err(Error::NotRunning(_))));
        assert!(!folder.exists());
    }
}
