//! What is shown to others and whom to believe at this moment: shared by all listeners, replaced while they listen.

use std::fmt;
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{CertificateError as Wrong, Error, ServerConfig};
use tokio::sync::watch;

use super::bundle::{CertificateBundle, verifier};
use super::certificate::CertificateError;
use super::handshake::Clients;

/// What is shown to others and whom to believe. Cheap to clone; all clones change together.
#[derive(Clone)]
pub struct Keyring {
    provider: Arc<CryptoProvider>,
    held: Arc<watch::Sender<Held>>,
}

struct Held {
    material: CertificateBundle,
    shown: Arc<CertifiedKey>,
    clients: Option<Arc<dyn ClientCertVerifier>>,
}

impl Held {
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

/// Those are equal that change together.
impl PartialEq for Keyring {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.held, &other.held)
    }
}

impl Eq for Keyring {}

impl Keyring {
    /// Begins with this.
    pub fn new(material: CertificateBundle) -> Result<Self, CertificateError> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let held = Arc::new(watch::Sender::new(Held::of(material, &provider)?));
        Ok(Self { provider, held })
    }

    /// Goes on with this; connections that are open stay. True if it is another than before.
    pub fn replace(&self, material: CertificateBundle) -> Result<bool, CertificateError> {
        if self.held.borrow().material == material {
            return Ok(false);
        }
        let new = Held::of(material, &self.provider)?;
        self.held.send_replace(new);
        Ok(true)
    }

    /// The authorities (PEM), for whoever must trust what is shown.
    pub fn authorities(&self) -> String {
        self.held.borrow().material.authorities.clone()
    }

    /// Waits until the authorities are others than these.
    pub async fn other_authorities(&self, than: &str) {
        let mut held = self.held.subscribe();
        if held.wait_for(|held| held.material.authorities != than).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// What is shown, in the form TLS wants.
    pub(super) fn pair(&self) -> Result<CertifiedKey, CertificateError> {
        self.held.borrow().material.pem().pair(&self.provider)
    }

    /// How to speak with those who show a certificate of our authorities, and with nobody else.
    pub(crate) fn mutual(&self) -> Result<ServerConfig, Error> {
        let clients = Clients { provider: Arc::clone(&self.provider), only: Some(self.clone()) };
        clients.config(Arc::new(self.clone()), &[b"h2"])
    }

    /// Whether one of the authorities has signed what a client shows.
    pub(super) fn believes(
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
