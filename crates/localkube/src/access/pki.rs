//! Certificates of a cluster and its users.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose,
};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};

/// Certificates could not be created or used.
#[derive(Debug, thiserror::Error)]
pub enum PkiError {
    /// A certificate could not be created.
    #[error("failed to make a certificate: {0}")]
    Make(#[from] rcgen::Error),
    /// A certificate or key is not usable for TLS.
    #[error("failed to set up TLS: {0}")]
    Tls(String),
}

/// A certificate and its private key, both as PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The certificate.
    pub certificate: String,
    /// The key (PKCS #8, ECDSA on P-256).
    pub key: String,
}

/// A certificate authority.
#[derive(Clone, Debug)]
pub struct Authority {
    name: String,
    identity: Identity,
}

/// All certificates of a cluster.
#[derive(Debug)]
pub struct Pki {
    /// Signs certificates of servers and users.
    pub cluster: Authority,
    /// Signs the client certificate for calls to aggregated APIs.
    pub front_proxy: Authority,
    /// The API server.
    pub server: Identity,
    /// The administrator.
    pub admin: Identity,
    /// The API server as a client of aggregated APIs.
    pub front_proxy_client: Identity,
}

/// The user name of the administrator.
pub(super) const ADMIN: &str = "kubernetes-admin";

/// The group whose members may do everything.
pub(super) const MASTERS: &str = "system:masters";

/// The common name of the client certificate for calls to aggregated APIs.
pub const FRONT_PROXY: &str = "front-proxy-client";

/// The name of cluster, user and context in a kubeconfig.
const KUBECONFIG_NAME: &str = "localkube";

/// The host names under which a cluster's workloads and this machine reach its API server.
pub const SERVER_NAMES: &[&str] = &[
    "127.0.0.1",
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
];

impl Authority {
    /// Creates an authority with a new key.
    pub fn new(name: &str) -> Result<Self, PkiError> {
        let key = KeyPair::generate()?;
        let certificate = authority_parameters(name).self_signed(&key)?.pem();
        Ok(Self::of(name, Identity { certificate, key: key.serialize_pem() }))
    }

    /// The existing authority with this name and identity.
    pub fn of(name: &str, identity: Identity) -> Self {
        Self { name: name.to_owned(), identity }
    }

    /// Its certificate and key.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Its certificate, which clients need to trust it.
    pub fn certificate(&self) -> &str {
        &self.identity.certificate
    }

    /// Issues a server certificate for these host names and addresses.
    pub fn server(&self, names: &[&str]) -> Result<Identity, PkiError> {
        let owned: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut parameters = CertificateParams::new(owned)?;
        parameters.distinguished_name = subject(names.first().copied().unwrap_or("server"), None);
        self.sign(parameters, ExtendedKeyUsagePurpose::ServerAuth)
    }

    /// Issues a client certificate: `name` is the user, `group` a group of the user.
    pub fn client(&self, name: &str, group: Option<&str>) -> Result<Identity, PkiError> {
        let mut parameters = CertificateParams::default();
        parameters.distinguished_name = subject(name, group);
        self.sign(parameters, ExtendedKeyUsagePurpose::ClientAuth)
    }

    fn sign(
        &self,
        mut parameters: CertificateParams,
        usage: ExtendedKeyUsagePurpose,
    ) -> Result<Identity, PkiError> {
        parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        parameters.extended_key_usages = vec![usage];
        parameters.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let issuer = Issuer::new(authority_parameters(&self.name), KeyPair::from_pem(&self.identity.key)?);
        let certificate = parameters.signed_by(&key, &issuer)?.pem();
        Ok(Identity { certificate, key: key.serialize_pem() })
    }
}

fn authority_parameters(name: &str) -> CertificateParams {
    let mut parameters = CertificateParams::default();
    parameters.distinguished_name = subject(name, None);
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    parameters.key_usages =
        vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    parameters
}

fn subject(name: &str, group: Option<&str>) -> DistinguishedName {
    let mut subject = DistinguishedName::new();
    subject.push(DnType::CommonName, name);
    // At most one group: rcgen keeps one value per attribute type.
    if let Some(group) = group {
        subject.push(DnType::OrganizationName, group);
    }
    subject
}

/// The TLS configuration of a server with HTTP/1.1 and HTTP/2. Client certificates are optional, and must be signed by one
/// of `clients`.
pub fn server_config(identity: &Identity, clients: Option<RootCertStore>) -> Result<ServerConfig, PkiError> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let verifier = match clients {
        None => WebPkiClientVerifier::no_client_auth(),
        Some(roots) => WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
            .allow_unauthenticated()
            .build()
            .map_err(tls)?,
    };
    let (chain, key) = parts(identity)?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(tls)?
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, key)
        .map_err(tls)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

impl Pki {
    /// Creates new authorities and all certificates that they sign.
    pub fn new() -> Result<Self, PkiError> {
        let cluster = Authority::new("localkube-ca")?;
        let front_proxy = Authority::new("localkube-front-proxy-ca")?;
        Ok(Self {
            server: cluster.server(SERVER_NAMES)?,
            admin: cluster.client(ADMIN, Some(MASTERS))?,
            front_proxy_client: front_proxy.client(FRONT_PROXY, None)?,
            cluster,
            front_proxy,
        })
    }

    /// The CA certificate behind the certificates of the server and of users.
    pub fn ca_pem(&self) -> String {
        self.cluster.certificate().to_owned()
    }

    /// The CA certificate behind the client certificate for aggregated APIs.
    pub fn front_proxy_ca_pem(&self) -> String {
        self.front_proxy.certificate().to_owned()
    }

    /// The TLS configuration of the server, with optional client certificates.
    pub fn server_config(&self) -> Result<ServerConfig, PkiError> {
        server_config(&self.server, Some(roots(self.cluster.certificate().as_bytes())?))
    }

    /// A kubeconfig for the administrator.
    pub fn kubeconfig(&self, url: &str) -> String {
        kubeconfig(KUBECONFIG_NAME, url, self.cluster.certificate(), &self.admin)
    }
}

fn tls(error: impl std::fmt::Display) -> PkiError {
    PkiError::Tls(error.to_string())
}

/// The root certificates in a PEM file, which must contain at least one.
pub fn roots(pem: &[u8]) -> Result<RootCertStore, PkiError> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        roots.add(certificate.map_err(tls)?).map_err(tls)?;
    }
    if roots.is_empty() { Err(tls("there is no certificate in the bundle")) } else { Ok(roots) }
}

/// An identity in rustls' types.
pub(crate) fn parts(
    identity: &Identity,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), PkiError> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(identity.certificate.as_bytes()).collect();
    Ok((chain.map_err(tls)?, PrivateKeyDer::from_pem_slice(identity.key.as_bytes()).map_err(tls)?))
}

/// A self-contained kubeconfig; `name` is the name of its cluster, user and context.
pub fn kubeconfig(name: &str, url: &str, authority: &str, identity: &Identity) -> String {
    let url = serde_json::Value::from(url);
    let [authority, certificate, key] =
        [authority, &identity.certificate, &identity.key].map(|text| STANDARD.encode(text));
    format!(
        "apiVersion: v1
kind: Config
clusters:
- name: {name}
  cluster:
    server: {url}
    certificate-authority-data: {authority}
users:
- name: {name}
  user:
    client-certificate-data: {certificate}
    client-key-data: {key}
contexts:
- name: {name}
  context:
    cluster: {name}
    user: {name}
current-context: {name}
"
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::access::User;

    #[test]
    fn certificates_identify_their_users() {
        let pki = Pki::new().unwrap();
        let user =
            |identity: &Identity| User::of_certificate(parts(identity).unwrap().0.first().unwrap()).unwrap();
        let admin = user(&pki.admin);
        assert_eq!(
            (admin.name.as_str(), admin.groups.as_slice()),
            (ADMIN, &[MASTERS.to_owned(), "system:authenticated".to_owned()][..])
        );
        assert_eq!(user(&pki.front_proxy_client).name, FRONT_PROXY);
        assert_eq!(User::of_certificate(b"no certificate"), None);
    }

    #[test]
    fn server_config_can_be_built() {
        let pki = Pki::new().unwrap();
        assert_eq!(pki.server_config().unwrap().alpn_protocols.len(), 2);
        assert_ne!(pki.ca_pem(), pki.front_proxy_ca_pem());
        assert!(roots(b"").is_err());
    }

    #[test]
    fn kubeconfig_contains_server_authority_and_identity() {
        let identity = Identity { certificate: "cert".into(), key: "key".into() };
        let text = kubeconfig("local", "https://127.0.0.1:6443", "ca", &identity);
        assert!(text.contains("    server: \"https://127.0.0.1:6443\"\n"), "{text}");
        assert!(text.contains("    certificate-authority-data: Y2E=\n"), "{text}");
        assert!(
            text.contains("    client-certificate-data: Y2VydA==\n    client-key-data: a2V5\n"),
            "{text}"
        );
    }
}
