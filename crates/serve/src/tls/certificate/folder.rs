//! A self-signed certificate in a folder, reused after a restart.

use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};
use rustls::crypto::CryptoProvider;

use super::{CertificateError, CertificateIssuer, NOT_BEFORE_SKEW, PemPair};

/// A folder with a certificate and its key.
pub(super) struct CertificateFolder {
    path: PathBuf,
    names: Vec<String>,
    /// The issuer of the certificate, if this process issued it. Like metrics-server, the process does not store the CA
    /// key, so a certificate that was found is followed by one of a new CA.
    maker: Option<Box<CertificateIssuer>>,
    from: Timestamp,
    until: Timestamp,
}

impl CertificateFolder {
    /// The stored certificate if it is valid for a while, else a new one.
    pub(super) fn open(
        path: &Path,
        names: &[String],
        provider: &CryptoProvider,
        now: Timestamp,
    ) -> Result<(Self, PemPair), CertificateError> {
        let (path, names) = (path.to_owned(), names.to_vec());
        let mut folder = Self { path, names, maker: None, from: Timestamp::MIN, until: Timestamp::MIN };
        let found = PemPair::read(&folder.certificate(), &folder.key()).ok();
        if let Some(pem) = found.filter(|pem| pem.pair(provider).is_ok())
            && let Some((from, until)) = pem.validity()
        {
            (folder.from, folder.until) = (from, until);
            if folder.is_good(now) {
                tracing::info!(folder = %folder.path.display(), "serving with the stored certificate");
                return Ok((folder, pem));
            }
        }
        let made = folder.renew(now)?;
        Ok((folder, made))
    }

    /// Whether less than two thirds of its lifetime are over.
    pub(super) fn is_good(&self, now: Timestamp) -> bool {
        let whole = self.until.duration_since(self.from);
        let age = now.duration_since(self.from);
        age >= SignedDuration::ZERO && age < whole / 3 * 2
    }

    /// Issues a certificate and stores it. If it cannot be stored, it is used until the next start.
    pub(super) fn renew(&mut self, now: Timestamp) -> Result<PemPair, CertificateError> {
        let maker = match self.maker.take() {
            Some(maker) => maker,
            None => Box::new(CertificateIssuer::new(&self.names, now)?),
        };
        let mut pem = maker.make(now)?;
        pem.certificate.extend_from_slice(maker.authority.as_bytes());
        self.maker = Some(maker);
        (self.from, self.until) =
            pem.validity().unwrap_or((now.saturating_sub(NOT_BEFORE_SKEW).unwrap_or(now), now));
        if let Err(error) = self.keep(&pem) {
            tracing::warn!(%error, "the issued certificate is not stored and will be replaced at the next start");
        }
        Ok(pem)
    }

    /// Writes the key first: a process that reads in between finds a mismatch and issues a new pair.
    fn keep(&self, pem: &PemPair) -> Result<(), CertificateError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| CertificateError::Write { path, source }
        };
        std::fs::create_dir_all(&self.path).map_err(failed(&self.path))?;
        let (key, certificate) = (self.key(), self.certificate());
        secret(&key, &pem.key).map_err(failed(&key))?;
        std::fs::write(&certificate, &pem.certificate).map_err(failed(&certificate))
    }

    fn certificate(&self) -> PathBuf {
        self.path.join("apiserver.crt")
    }

    fn key(&self) -> PathBuf {
        self.path.join("apiserver.key")
    }
}

/// Writes a file with mode 0600 from the start.
fn secret(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    use std::io::Write as _;
    // An existing file would keep its mode.
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)?.write_all(bytes)
}
