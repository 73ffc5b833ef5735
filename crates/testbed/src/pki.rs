//! The certificates of a control plane on loopback.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use localkube::access::SERVER_NAMES;
pub use localkube::access::{Authority, FRONT_PROXY, Identity};
use rcgen::KeyPair;

use crate::addresses::{API_SERVICE_ADDRESS, HOST_ADDRESS};
use crate::error::{Attempt, Error, make_folder, read};

/// All certificates and keys of a control plane.
#[derive(Debug, Clone)]
pub(crate) struct Pki {
    pub(crate) cluster: Authority,
    pub(crate) front_proxy: Authority,
    pub(crate) server: Identity,
    pub(crate) admin: Identity,
    pub(crate) controller_manager: Identity,
    pub(crate) front_proxy_client: Identity,
    pub(crate) service_account_key: String,
    pub(crate) service_account_public: String,
}

const CLUSTER_CA: &str = "plimsoll-testbed-ca";
const FRONT_PROXY_CA: &str = "plimsoll-testbed-front-proxy-ca";
impl Pki {
    pub(crate) fn new() -> Result<Self, Error> {
        let cluster = Authority::new(CLUSTER_CA)?;
        let front_proxy = Authority::new(FRONT_PROXY_CA)?;
        let service_account = KeyPair::generate()?;
        let host = HOST_ADDRESS.to_string();
        let names = [SERVER_NAMES, &[host.as_str(), API_SERVICE_ADDRESS]].concat();
        Ok(Self {
            server: cluster.server(&names)?,
            admin: cluster.client("admin", Some("system:masters"))?,
            controller_manager: cluster.client("system:kube-controller-manager", None)?,
            front_proxy_client: front_proxy.client(FRONT_PROXY, None)?,
            service_account_key: service_account.serialize_pem(),
            service_account_public: service_account.public_key_pem(),
            cluster,
            front_proxy,
        })
    }

    /// The name and the content of each file.
    fn files(&self) -> [(&'static str, &str); 14] {
        [
            ("ca.crt", &self.cluster.identity().certificate),
            ("ca.key", &self.cluster.identity().key),
            ("front-proxy-ca.crt", &self.front_proxy.identity().certificate),
            ("front-proxy-ca.key", &self.front_proxy.identity().key),
            ("apiserver.crt", &self.server.certificate),
            ("apiserver.key", &self.server.key),
            ("admin.crt", &self.admin.certificate),
            ("admin.key", &self.admin.key),
            ("controller-manager.crt", &self.controller_manager.certificate),
            ("controller-manager.key", &self.controller_manager.key),
            ("front-proxy-client.crt", &self.front_proxy_client.certificate),
            ("front-proxy-client.key", &self.front_proxy_client.key),
            ("sa.key", &self.service_account_key),
            ("sa.pub", &self.service_account_public),
        ]
    }

    pub(crate) fn write(&self, folder: &Path) -> Result<(), Error> {
        make_folder(folder)?;
        self.files().iter().try_for_each(|(name, text)| write_private(&folder.join(name), text))
    }

    pub(crate) fn read(folder: &Path) -> Result<Self, Error> {
        let identity = |name: &str| -> Result<Identity, Error> {
            let file = |end: &str| read(&folder.join(format!("{name}.{end}")));
            Ok(Identity { certificate: file("crt")?, key: file("key")? })
        };
        Ok(Self {
            cluster: Authority::of(CLUSTER_CA, identity("ca")?),
            front_proxy: Authority::of(FRONT_PROXY_CA, identity("front-proxy-ca")?),
            server: identity("apiserver")?,
            admin: identity("admin")?,
            controller_manager: identity("controller-manager")?,
            front_proxy_client: identity("front-proxy-client")?,
            service_account_key: read(&folder.join("sa.key"))?,
            service_account_public: read(&folder.join("sa.pub"))?,
        })
    }
}

/// Writes a file that only its owner may read.
pub(crate) fn write_private(path: &Path, text: &str) -> Result<(), Error> {
    let write = || -> std::io::Result<()> {
        if path.exists() {
            fs::remove_file(path)?;
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        file.write_all(text.as_bytes())
    };
    write().attempt(|| format!("write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn files_are_read_back_and_private() {
        let folder = std::env::temp_dir().join(format!("testbed-pki-{}", std::process::id()));
        let pki = Pki::new().unwrap();
        pki.write(&folder).unwrap();
        pki.write(&folder).unwrap();
        assert_eq!(Pki::read(&folder).unwrap().files(), pki.files());
        assert_eq!(fs::metadata(folder.join("admin.key")).unwrap().permissions().mode() & 0o777, 0o600);
        // An authority that was read from files can sign certificates that the written one verifies.
        assert!(Pki::read(&folder).unwrap().cluster.client("ada", None).is_ok());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn keys_are_unique() {
        let pki = Pki::new().unwrap();
        let keys: std::collections::BTreeSet<&str> = pki
            .files()
            .iter()
            .filter(|(name, _)| name.split_once('.').is_some_and(|(_, end)| end == "key"))
            .map(|(_, text)| *text)
            .collect();
        assert_eq!(keys.len(), 7);
        assert!(keys.iter().all(|key| key.starts_with("-----BEGIN PRIVATE KEY-----")));
    }
}
