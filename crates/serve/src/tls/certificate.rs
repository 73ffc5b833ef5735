//! The server's own certificate: given as files, which are read again when they change, or made here.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose,
};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use x509_parser::prelude::{FromDer as _, X509Certificate};

mod folder;

use folder::Folder;

use super::keyring::Keyring;

/// How often it is looked whether there is another one.
pub(crate) const PERIOD: Duration = Duration::from_secs(5);

/// How long a certificate made here is good.
const LIFE: SignedDuration = SignedDuration::from_hours(365 * 24);

/// How long the authority behind it is good.
const AUTHORITY_LIFE: SignedDuration = SignedDuration::from_hours(10 * 365 * 24);

/// Clocks differ: it is good from so long ago.
pub(super) const EARLIER: SignedDuration = SignedDuration::from_hours(24);

/// Where the server's certificate comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Certificate {
    /// PEM files.
    Files {
        /// The certificate, and those between it and its authority.
        certificate: PathBuf,
        /// Its key.
        key: PathBuf,
        /// Its authority, for whoever must trust it; absent: not known here.
        authority: Option<PathBuf>,
    },
    /// Made by this process, in memory, for these host names and addresses.
    SelfMade(Vec<String>),
    /// Made by this process and kept in a folder as `apiserver.crt` and `apiserver.key`; what is there already and good
    /// is used.
    Folder {
        /// The folder; it is made if it does not exist.
        path: PathBuf,
        /// Host names and addresses.
        names: Vec<String>,
    },
    /// What somebody else sees to, and may replace at any time.
    Shared(Keyring),
}

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A file cannot be read.
    #[error("failed to read {path}: {source}", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Certificate and key are not usable, or do not belong together.
    #[error("failed to use the certificate with its key: {0}")]
    Pair(String),
    /// A file cannot be written.
    #[error("failed to write {path}: {source}; choose another folder with --cert-dir", path = path.display())]
    Keep {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A certificate could not be made.
    #[error("failed to make a certificate: {0}")]
    Make(#[from] rcgen::Error),
}

/// What is shown to clients at this moment.
#[derive(Debug)]
pub(crate) struct Shown(RwLock<Arc<CertifiedKey>>);

impl ResolvesServerCert for Shown {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner)))
    }
}

/// Sees to it that what is shown is good.
pub(crate) struct Keeper {
    provider: Arc<CryptoProvider>,
    origin: Origin,
    shown: Arc<Shown>,
    authority: Option<String>,
}

enum Origin {
    Shared(Keyring),
    Files { certificate: PathBuf, key: PathBuf, seen: Pem },
    Made { maker: Box<Maker>, made: Timestamp },
    Kept(Folder),
}

/// A certificate and its key as they are written.
#[derive(PartialEq, Eq)]
pub(super) struct Pem {
    pub(super) certificate: Vec<u8>,
    pub(super) key: Vec<u8>,
}

impl fmt::Debug for Keeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keeper").finish_non_exhaustive()
    }
}

impl Keeper {
    /// The first certificate; without one there is nothing to serve with.
    pub(crate) fn new(
        from: &Certificate,
        provider: Arc<CryptoProvider>,
        now: Timestamp,
    ) -> Result<Self, CertificateError> {
        let (origin, first, authority) = match from {
            Certificate::Files { certificate, key, authority } => {
                let seen = Pem::read(certificate, key)?;
                let first = seen.pair(&provider)?;
                let authority = authority.as_deref().map(text).transpose()?;
                (Origin::Files { certificate: certificate.clone(), key: key.clone(), seen }, first, authority)
            }
            Certificate::SelfMade(names) => {
                let maker = Box::new(Maker::new(names, now)?);
                let first = maker.make(now)?.pair(&provider)?;
                let authority = Some(maker.authority.clone());
                (Origin::Made { maker, made: now }, first, authority)
            }
            Certificate::Folder { path, names } => {
                let (folder, pem) = Folder::open(path, names, &provider, now)?;
                let (first, authority) = (pem.pair(&provider)?, pem.last());
                (Origin::Kept(folder), first, authority)
            }
            Certificate::Shared(keyring) => {
                let (first, authority) = (keyring.pair()?, Some(keyring.authorities()));
                (Origin::Shared(keyring.clone()), first, authority)
            }
        };
        let shown = Arc::new(Shown(RwLock::new(Arc::new(first))));
        Ok(Self { provider, origin, shown, authority })
    }

    /// What is shown to clients.
    pub(crate) fn shown(&self) -> Arc<dyn ResolvesServerCert> {
        match &self.origin {
            Origin::Shared(keyring) => Arc::new(keyring.clone()),
            _ => Arc::clone(&self.shown) as Arc<dyn ResolvesServerCert>,
        }
    }

    /// The authority behind it (PEM), if it is known.
    pub(crate) fn authority(&self) -> Option<&str> {
        self.authority.as_deref()
    }

    /// Looks whether there is another one. What is not usable changes nothing.
    pub(crate) fn look(&mut self, now: Timestamp) {
        match self.renewed(now) {
            Ok(None) => {}
            Ok(Some(pair)) => {
                tracing::info!("serving with a new certificate");
                *self.shown.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(pair);
            }
            Err(error) => tracing::warn!(%error, "serving with the certificate known before"),
        }
    }

    fn renewed(&mut self, now: Timestamp) -> Result<Option<CertifiedKey>, CertificateError> {
        match &mut self.origin {
            Origin::Shared(_) => Ok(None),
            Origin::Files { certificate, key, seen } => {
                // A file that is not there may be just about to be replaced.
                let Ok(found) = Pem::read(certificate, key) else { return Ok(None) };
                if found == *seen {
                    return Ok(None);
                }
                *seen = found;
                seen.pair(&self.provider).map(Some)
            }
            Origin::Made { maker, made } => {
                let age = now.duration_since(*made);
                if age < LIFE / 3 * 2 && age > -EARLIER {
                    return Ok(None);
                }
                *made = now;
                maker.make(now)?.pair(&self.provider).map(Some)
            }
            Origin::Kept(folder) if folder.is_good(now) => Ok(None),
            Origin::Kept(folder) => folder.renew(now)?.pair(&self.provider).map(Some),
        }
    }
}

impl Pem {
    fn read(certificate: &Path, key: &Path) -> Result<Self, CertificateError> {
        Ok(Self { certificate: bytes(certificate)?, key: bytes(key)? })
    }

    /// In the form TLS wants; an error if they do not belong together.
    pub(super) fn pair(&self, provider: &CryptoProvider) -> Result<CertifiedKey, CertificateError> {
        let wrong = |error: &dyn fmt::Display| CertificateError::Pair(error.to_string());
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&self.certificate).collect();
        let chain = chain.map_err(|error| wrong(&error))?;
        if chain.is_empty() {
            return Err(wrong(&"there is no certificate in the file"));
        }
        let key = PrivateKeyDer::from_pem_slice(&self.key).map_err(|error| wrong(&error))?;
        CertifiedKey::from_der(chain, key, provider).map_err(|error| wrong(&error))
    }
}

fn bytes(path: &Path) -> Result<Vec<u8>, CertificateError> {
    std::fs::read(path).map_err(|source| CertificateError::File { path: path.to_owned(), source })
}

fn text(path: &Path) -> Result<String, CertificateError> {
    std::fs::read_to_string(path).map_err(|source| CertificateError::File { path: path.to_owned(), source })
}

impl Pem {
    /// The last certificate of the chain: whoever trusts it trusts the others.
    fn last(&self) -> Option<String> {
        const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
        let text = String::from_utf8_lossy(&self.certificate);
        text.rfind(BEGIN).and_then(|at| text.get(at..)).map(str::to_owned)
    }

    /// From when until when the certificate is good.
    fn validity(&self) -> Option<(Timestamp, Timestamp)> {
        let own = CertificateDer::from_pem_slice(&self.certificate).ok()?;
        let (_, own) = X509Certificate::from_der(&own).ok()?;
        let (from, until) = (own.validity().not_before.timestamp(), own.validity().not_after.timestamp());
        Some((Timestamp::from_second(from).ok()?, Timestamp::from_second(until).ok()?))
    }
}

/// Makes certificates: all are signed by one authority that lives as long as the process.
struct Maker {
    names: Vec<String>,
    issuer: Issuer<'static, KeyPair>,
    authority: String,
}

impl Maker {
    fn new(names: &[String], now: Timestamp) -> Result<Self, rcgen::Error> {
        let names = if names.is_empty() { vec!["localhost".to_owned()] } else { names.to_vec() };
        let key = KeyPair::generate()?;
        let mut parameters = parameters(Vec::new(), "plimsoll-serving-ca", now, AUTHORITY_LIFE)?;
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let authority = parameters.self_signed(&key)?.pem();
        Ok(Self { names, issuer: Issuer::new(parameters, key), authority })
    }

    fn make(&self, now: Timestamp) -> Result<Pem, rcgen::Error> {
        let first = self.names.first().map_or("plimsoll", String::as_str);
        let mut parameters = parameters(self.names.clone(), first, now, LIFE)?;
        parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        parameters.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let certificate = parameters.signed_by(&key, &self.issuer)?.pem().into_bytes();
        Ok(Pem { certificate, key: key.serialize_pem().into_bytes() })
    }
}

pub(super) fn parameters(
    names: Vec<String>,
    name: &str,
    now: Timestamp,
    life: SignedDuration,
) -> Result<CertificateParams, rcgen::Error> {
    let date = |at: Timestamp| {
        let at = at.to_zoned(TimeZone::UTC);
        let second = at.duration_since(&at.start_of_day().unwrap_or_else(|_| at.clone())).as_secs();
        let midnight = rcgen::date_time_ymd(i32::from(at.year()), at.month() as u8, at.day() as u8);
        midnight + Duration::from_secs(u64::try_from(second).unwrap_or_default())
    };
    let mut parameters = CertificateParams::new(names)?;
    parameters.distinguished_name = DistinguishedName::new();
    parameters.distinguished_name.push(DnType::CommonName, name);
    parameters.not_before = date(now.saturating_sub(EARLIER).unwrap_or(now));
    parameters.not_after = date(now.saturating_add(life).unwrap_or(now));
    Ok(parameters)
}

#[cfg(test)]
mod tests;
