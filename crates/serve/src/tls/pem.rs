//! A certificate and its key in PEM.

use std::fmt;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use x509_parser::prelude::{FromDer as _, X509Certificate};

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A file cannot be read.
    #[error("failed to read {path}: {source}", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// Certificate or key is invalid, or they do not match.
    #[error("failed to use the certificate with its key: {0}")]
    InvalidPair(String),
    /// A file cannot be written.
    #[error("failed to write {path}: {source}; choose another folder with --cert-dir", path = path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// A certificate could not be issued.
    #[error("failed to issue a certificate: {0}")]
    Issue(#[from] rcgen::Error),
}

/// A certificate and its key as PEM text.
#[derive(PartialEq, Eq)]
pub(super) struct PemPair {
    pub(super) certificate: Vec<u8>,
    pub(super) key: Vec<u8>,
}

impl PemPair {
    pub(super) fn read(certificate: &Path, key: &Path) -> Result<Self, CertificateError> {
        Ok(Self { certificate: bytes(certificate)?, key: bytes(key)? })
    }

    /// Certificate and key for rustls; an error if they do not match.
    pub(super) fn pair(&self, provider: &CryptoProvider) -> Result<CertifiedKey, CertificateError> {
        let wrong = |error: &dyn fmt::Display| CertificateError::InvalidPair(error.to_string());
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&self.certificate).collect();
        let chain = chain.map_err(|error| wrong(&error))?;
        if chain.is_empty() {
            return Err(wrong(&"there is no certificate in the file"));
        }
        let key = PrivateKeyDer::from_pem_slice(&self.key).map_err(|error| wrong(&error))?;
        CertifiedKey::from_der(chain, key, provider).map_err(|error| wrong(&error))
    }

    /// The last certificate of the chain, which signs the others.
    pub(super) fn last(&self) -> Option<String> {
        const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
        let text = String::from_utf8_lossy(&self.certificate);
        text.rfind(BEGIN).and_then(|at| text.get(at..)).map(str::to_owned)
    }

    /// `notBefore` and `notAfter`.
    pub(super) fn validity(&self) -> Option<(Timestamp, Timestamp)> {
        let own = CertificateDer::from_pem_slice(&self.certificate).ok()?;
        let (_, own) = X509Certificate::from_der(&own).ok()?;
        let (from, until) = (own.validity().not_before.timestamp(), own.validity().not_after.timestamp());
        Some((Timestamp::from_second(from).ok()?, Timestamp::from_second(until).ok()?))
    }
}

fn bytes(path: &Path) -> Result<Vec<u8>, CertificateError> {
    std::fs::read(path).map_err(|source| CertificateError::File { path: path.to_owned(), source })
}
