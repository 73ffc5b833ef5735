//! The server's certificate: files that are reloaded when they change, or self-signed.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use locks::RwLockExt as _;
use rcgen::{BasicConstraints, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustls::crypto::CryptoProvider;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

mod folder;

use folder::CertificateFolder;

use super::issue::{NOT_BEFORE_SKEW, parameters};
use super::keyring::Keyring;
use super::pem::{CertificateError, PemPair};

/// How often the certificate is reloaded or renewed if needed.
pub(crate) const RELOAD_PERIOD: Duration = Duration::from_secs(5);

/// The lifetime of an issued certificate.
const CERTIFICATE_LIFETIME: SignedDuration = SignedDuration::from_hours(365 * 24);

/// The lifetime of its CA.
const CA_LIFETIME: SignedDuration = SignedDuration::from_hours(10 * 365 * 24);

/// Where the server's certificate comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Certificate {
    /// PEM files.
    Files {
        /// The certificate and its intermediates.
        certificate: PathBuf,
        /// Its key.
        key: PathBuf,
        /// Its CA, for clients that must trust it; absent if it is not known.
        authority: Option<PathBuf>,
    },
    /// Issued by this process, in memory, for these host names and addresses.
    SelfSigned(Vec<String>),
    /// Issued by this process and stored in a folder as `apiserver.crt` and `apiserver.key`; a valid stored certificate
    /// is reused.
    Folder {
        /// The folder; it is created if it does not exist.
        path: PathBuf,
        /// Host names and addresses.
        names: Vec<String>,
    },
    /// A keyring that its owner may replace at any time.
    Shared(Keyring),
}

/// The current certificate.
#[derive(Debug)]
pub(crate) struct CurrentCertificate(RwLock<Arc<CertifiedKey>>);

impl ResolvesServerCert for CurrentCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0.read_locked()))
    }
}

/// Reloads and renews the certificate.
pub(crate) struct CertificateReloader {
    provider: Arc<CryptoProvider>,
    origin: CertificateOrigin,
    shown: Arc<CurrentCertificate>,
    authority: Option<String>,
}

enum CertificateOrigin {
    Shared(Keyring),
    Files { certificate: PathBuf, key: PathBuf, seen: PemPair },
    Made { maker: Box<CertificateIssuer>, made: Timestamp },
    Kept(CertificateFolder),
}

impl fmt::Debug for CertificateReloader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CertificateReloader").finish_non_exhaustive()
    }
}

impl CertificateReloader {
    /// Loads or issues the first certificate.
    pub(crate) fn new(
        from: &Certificate,
        provider: Arc<CryptoProvider>,
        now: Timestamp,
    ) -> Result<Self, CertificateError> {
        let (origin, first, authority) = match from {
            Certificate::Files { certificate, key, authority } => {
                let seen = PemPair::read(certificate, key)?;
                let first = seen.pair(&provider)?;
                let authority = authority.as_deref().map(text).transpose()?;
                (
                    CertificateOrigin::Files { certificate: certificate.clone(), key: key.clone(), seen },
                    first,
                    authority,
                )
            }
            Certificate::SelfSigned(names) => {
                let maker = Box::new(CertificateIssuer::new(names, now)?);
                let first = maker.make(now)?.pair(&provider)?;
                let authority = Some(maker.authority.clone());
                (CertificateOrigin::Made { maker, made: now }, first, authority)
            }
            Certificate::Folder { path, names } => {
                let (folder, pem) = CertificateFolder::open(path, names, &provider, now)?;
                let (first, authority) = (pem.pair(&provider)?, pem.last());
                (CertificateOrigin::Kept(folder), first, authority)
            }
            Certificate::Shared(keyring) => {
                let (first, authority) = (keyring.pair()?, Some(keyring.authorities()));
                (CertificateOrigin::Shared(keyring.clone()), first, authority)
            }
        };
        let shown = Arc::new(CurrentCertificate(RwLock::new(Arc::new(first))));
        Ok(Self { provider, origin, shown, authority })
    }

    /// The resolver for rustls.
    pub(crate) fn shown(&self) -> Arc<dyn ResolvesServerCert> {
        match &self.origin {
            CertificateOrigin::Shared(keyring) => Arc::new(keyring.clone()),
            _ => Arc::clone(&self.shown) as Arc<dyn ResolvesServerCert>,
        }
    }

    /// The CA (PEM), if it is known.
    pub(crate) fn authority(&self) -> Option<&str> {
        self.authority.as_deref()
    }

    /// Reloads or renews the certificate if needed. An unusable certificate changes nothing.
    pub(crate) fn reload(&mut self, now: Timestamp) {
        match self.renewed(now) {
            Ok(None) => {}
            Ok(Some(pair)) => {
                tracing::info!("serving with a new certificate");
                *self.shown.0.write_locked() = Arc::new(pair);
            }
            Err(error) => tracing::warn!(%error, "keeping the previous certificate"),
        }
    }

    fn renewed(&mut self, now: Timestamp) -> Result<Option<CertifiedKey>, CertificateError> {
        match &mut self.origin {
            CertificateOrigin::Shared(_) => Ok(None),
            CertificateOrigin::Files { certificate, key, seen } => {
                // A missing file may be about to be replaced.
                let Ok(found) = PemPair::read(certificate, key) else { return Ok(None) };
                if found == *seen {
                    return Ok(None);
                }
                *seen = found;
                seen.pair(&self.provider).map(Some)
            }
            CertificateOrigin::Made { maker, made } => {
                let age = now.duration_since(*made);
                if age < CERTIFICATE_LIFETIME / 3 * 2 && age > -NOT_BEFORE_SKEW {
                    return Ok(None);
                }
                *made = now;
                maker.make(now)?.pair(&self.provider).map(Some)
            }
            CertificateOrigin::Kept(folder) if folder.is_good(now) => Ok(None),
            CertificateOrigin::Kept(folder) => folder.renew(now)?.pair(&self.provider).map(Some),
        }
    }
}

fn text(path: &Path) -> Result<String, CertificateError> {
    std::fs::read_to_string(path).map_err(|source| CertificateError::File { path: path.to_owned(), source })
}

/// Issues certificates that are signed by one CA of this process.
struct CertificateIssuer {
    names: Vec<String>,
    issuer: Issuer<'static, KeyPair>,
    authority: String,
}

impl CertificateIssuer {
    fn new(names: &[String], now: Timestamp) -> Result<Self, rcgen::Error> {
        let names = if names.is_empty() { vec!["localhost".to_owned()] } else { names.to_vec() };
        let key = KeyPair::generate()?;
        let mut parameters = parameters(Vec::new(), "plimsoll-serving-ca", now, CA_LIFETIME)?;
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let authority = parameters.self_signed(&key)?.pem();
        Ok(Self { names, issuer: Issuer::new(parameters, key), authority })
    }

    fn make(&self, now: Timestamp) -> Result<PemPair, rcgen::Error> {
        let first = self.names.first().map_or("plimsoll", String::as_str);
        let mut parameters = parameters(self.names.clone(), first, now, CERTIFICATE_LIFETIME)?;
        parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        parameters.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let certificate = parameters.signed_by(&key, &self.issuer)?.pem().into_bytes();
        Ok(PemPair { certificate, key: key.serialize_pem().into_bytes() })
    }
}

#[cfg(test)]
mod tests;
