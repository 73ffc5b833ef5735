//! The current certificate bundle, shared by all listeners and replaced while they run.

use std::fmt;
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{CertificateError as Wrong, Error};
use tokio::sync::watch;

use super::bundle::{CertificateBundle, verifier};
use super::pem::CertificateError;

/// The current certificate, key and CAs. Cheap to clone; all clones share one state.
#[derive(Clone)]
pub struct Keyring {
    pub(super) provider: Arc<CryptoProvider>,
    held: Arc<watch::Sender<KeyringState>>,
}

struct KeyringState {
    material: CertificateBundle,
    shown: Arc<CertifiedKey>,
    clients: Option<Arc<dyn ClientCertVerifier>>,
}

impl KeyringState {
    fn of(material: CertificateBundle, provider: &Arc<CryptoProvider>) -> Result<Self, CertificateError> {
        let shown = Arc::new(material.pem().pair(provider)?);
        let authorities = CertificateDer::pem_slice_iter(material.authorities.as_bytes()).flatten();
        let clients = verifier(authorities.map(CertificateDer::into_owned), provider);
        Ok(Self { material, shown, clients })
    }
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keyring").finish_non_exhaustive()
    }
}

/// Clones are equal.
impl PartialEq for Keyring {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.held, &other.held)
    }
}

impl Eq for Keyring {}

impl Keyring {
    /// A keyring with this bundle.
    pub fn new(material: CertificateBundle) -> Result<Self, CertificateError> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let held = Arc::new(watch::Sender::new(KeyringState::of(material, &provider)?));
        Ok(Self { provider, held })
    }

    /// Replaces the bundle; open connections stay. Returns whether it changed.
    pub fn replace(&self, material: CertificateBundle) -> Result<bool, CertificateError> {
        if self.held.borrow().material == material {
            return Ok(false);
        }
        let new = KeyringState::of(material, &self.provider)?;
        self.held.send_replace(new);
        Ok(true)
    }

    /// The CAs (PEM) that clients must trust.
    pub fn authorities(&self) -> String {
        self.held.borrow().material.authorities.clone()
    }

    /// Waits until the CAs differ from these.
    pub async fn other_authorities(&self, than: &str) {
        let mut held = self.held.subscribe();
        if held.wait_for(|held| held.material.authorities != than).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// The certificate and key for rustls.
    pub(super) fn pair(&self) -> Result<CertifiedKey, CertificateError> {
        self.held.borrow().material.pem().pair(&self.provider)
    }

    /// Verifies a client certificate by the current CAs.
    pub(super) fn verify_client(
        &self,
        own: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let clients = self.held.borrow().clients.clone();
        let clients = clients.ok_or(Error::InvalidCertificate(Wrong::UnknownIssuer))?;
        clients.verify_client_cert(own, between, now)
    }
}

impl ResolvesServerCert for Keyring {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.held.borrow().shown))
    }
}
