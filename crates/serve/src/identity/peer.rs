//! The certificate somebody showed.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustls::RootCertStore;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use tokio::time::Instant;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::trust::Trust;
use super::user::User;
use crate::digest;

/// How long a certificate that was checked is taken to be good; it may expire or lose its authority meanwhile.
const CHECKED: Duration = Duration::from_mins(1);

/// Whoever holds the other end of a connection, by his certificate. That he has its key is certain; nothing else is.
pub(crate) struct Peer {
    chain: Vec<CertificateDer<'static>>,
    name: String,
    organizations: Vec<String>,
    checked: Mutex<Option<(u64, Instant, Standing)>>,
}

/// Whom a certificate chains to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Standing {
    /// To the authority of front proxies.
    pub(super) proxy: bool,
    /// To the authority of users.
    pub(super) client: bool,
}

impl Peer {
    /// None if the certificate cannot be read.
    pub(crate) fn new(chain: Vec<CertificateDer<'static>>) -> Option<Self> {
        let (_, certificate) = X509Certificate::from_der(chain.first()?.as_ref()).ok()?;
        let subject = certificate.subject();
        // Of several names Go takes the last.
        let name = subject.iter_common_name().last().and_then(|name| name.as_str().ok());
        let name = name.unwrap_or_default().to_owned();
        let organizations = subject.iter_organization().filter_map(|name| name.as_str().ok());
        let organizations = organizations.map(str::to_owned).collect();
        Some(Self { chain, name, organizations, checked: Mutex::default() })
    }

    /// The common name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The user it is the certificate of.
    pub(super) fn user(&self) -> Option<User> {
        let own = self.chain.first().filter(|_| !self.name.is_empty())?;
        let credential = format!("X509SHA256={}", digest::hex(&digest::sha256(own)));
        let extra = [("authentication.kubernetes.io/credential-id".to_owned(), vec![credential])];
        Some(User {
            name: self.name.clone(),
            uid: String::new(),
            groups: self.organizations.clone(),
            extra: extra.into(),
        })
    }

    /// Whom it chains to, at this moment or one not long ago.
    pub(super) fn standing(&self, trust: &Trust) -> Standing {
        let now = Instant::now();
        let mut checked = self.checked.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((generation, until, standing)) = *checked
            && generation == trust.generation
            && now < until
        {
            return standing;
        }
        let vouched =
            |authorities: Option<&Authorities>| authorities.is_some_and(|them| them.vouch(&self.chain));
        let standing = Standing {
            proxy: vouched(trust.proxy.as_ref().map(|proxy| &proxy.authorities)),
            client: vouched(trust.clients.as_ref()),
        };
        *checked = Some((trust.generation, now + CHECKED, standing));
        standing
    }
}

/// Whose signatures are trusted.
#[derive(Clone)]
pub(crate) struct Authorities(Arc<dyn ClientCertVerifier>);

impl fmt::Debug for Authorities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Authorities")
    }
}

impl Authorities {
    /// Those in a bundle, which must hold at least one.
    pub(super) fn new(pem: &str, provider: &Arc<CryptoProvider>) -> Result<Self, String> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
            let certificate = certificate.map_err(|error| error.to_string())?;
            roots.add(certificate).map_err(|error| error.to_string())?;
        }
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
        verifier
            .build()
            .map(|verifier| Self(verifier as Arc<dyn ClientCertVerifier>))
            .map_err(|error| error.to_string())
    }

    fn vouch(&self, chain: &[CertificateDer<'_>]) -> bool {
        let Some((own, between)) = chain.split_first() else { return false };
        self.0.verify_client_cert(own, between, UnixTime::now()).is_ok()
    }
}
