//! Certificate authorities that sign client certificates.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rustls::RootCertStore;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{VerifierBuilderError, WebPkiClientVerifier};

/// Why a CA bundle cannot be used.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(crate) enum AuthoritiesError {
    Pem(#[from] pem::Error),
    Certificate(#[from] rustls::Error),
    Verifier(#[from] VerifierBuilderError),
}

/// CAs whose client certificates are trusted.
#[derive(Clone)]
pub(crate) struct Authorities(Arc<dyn ClientCertVerifier>);

impl fmt::Debug for Authorities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Authorities")
    }
}

impl Authorities {
    /// The CAs of a bundle, which must have at least one.
    pub(super) fn new(pem: &str, provider: &Arc<CryptoProvider>) -> Result<Self, AuthoritiesError> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
            roots.add(certificate?)?;
        }
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
        Ok(Self(verifier.build()?))
    }

    /// Whether these CAs signed the first certificate of the chain, and it is valid now.
    pub(super) fn verify(&self, chain: &[CertificateDer<'_>], now: Timestamp) -> bool {
        let Some((own, between)) = chain.split_first() else { return false };
        let since_1970 = Duration::from_secs(u64::try_from(now.as_second()).unwrap_or_default());
        self.0.verify_client_cert(own, between, UnixTime::since_unix_epoch(since_1970)).is_ok()
    }
}
