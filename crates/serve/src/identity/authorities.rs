//! Certificate authorities that sign client certificates.

use std::fmt;
use std::sync::Arc;

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

    pub(super) fn vouch(&self, chain: &[CertificateDer<'_>]) -> bool {
        let Some((own, between)) = chain.split_first() else { return false };
        self.0.verify_client_cert(own, between, UnixTime::now()).is_ok()
    }
}
