//! A certificate that is made once and found again at the next start.

use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};
use rustls::crypto::CryptoProvider;

use super::{CertificateError, EARLIER, Maker, Pem};

/// A folder with a certificate and its key.
pub(super) struct Folder {
    path: PathBuf,
    names: Vec<String>,
    /// Whoever signed the certificate, if that was this process: the authority's key is not kept, as those who are
    /// replaced do not keep it. A certificate that was found is followed by one of another authority.
    maker: Option<Box<Maker>>,
    from: Timestamp,
    until: Timestamp,
}

impl Folder {
    /// What is there and good for a while, else a new one.
    pub(super) fn open(
        path: &Path,
        names: &[String],
        provider: &CryptoProvider,
        now: Timestamp,
    ) -> Result<(Self, Pem), CertificateError> {
        let (path, names) = (path.to_owned(), names.to_vec());
        let mut folder = Self { path, names, maker: None, from: Timestamp::MIN, until: Timestamp::MIN };
        let found = Pem::read(&folder.certificate(), &folder.key()).ok();
        if let Some(pem) = found.filter(|pem| pem.pair(provider).is_ok())
            && let Some((from, until)) = pem.validity()
        {
            (folder.from, folder.until) = (from, until);
            if folder.is_good(now) {
                tracing::info!(folder = %folder.path.display(), "serving with the certificate found");
                return Ok((folder, pem));
            }
        }
        let made = folder.renew(now)?;
        Ok((folder, made))
    }

    /// Whether less than two thirds of its time are over.
    pub(super) fn is_good(&self, now: Timestamp) -> bool {
        let whole = self.until.duration_since(self.from);
        let age = now.duration_since(self.from);
        age >= SignedDuration::ZERO && age < whole / 3 * 2
    }

    /// Makes another and puts it into the folder. One that cannot be kept serves all the same, until the next start.
    pub(super) fn renew(&mut self, now: Timestamp) -> Result<Pem, CertificateError> {
        let maker = match self.maker.take() {
            Some(maker) => maker,
            None => Box::new(Maker::new(&self.names, now)?),
        };
        let mut pem = maker.make(now)?;
        pem.certificate.extend_from_slice(maker.authority.as_bytes());
        self.maker = Some(maker);
        (self.from, self.until) = pem.validity().unwrap_or((now.saturating_sub(EARLIER).unwrap_or(now), now));
        if let Err(error) = self.keep(&pem) {
            tracing::warn!(%error, "the certificate made here will not be found at the next start");
        }
        Ok(pem)
    }

    /// The key first: who reads in between finds two that do not belong together, and makes others.
    fn keep(&self, pem: &Pem) -> Result<(), CertificateError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| CertificateError::Keep { path, source }
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

/// Writes a file that nobody else may read, not even before it is whole.
fn secret(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    use std::io::Write as _;
    // One that exists may be readable by others, and would stay so.
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
