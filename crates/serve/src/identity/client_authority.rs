//! The CA of clients of one service, in a file that is re-read.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use locks::MutexExt as _;
use runtime::Clock;
use rustls::crypto::CryptoProvider;
use tokio::time::Instant;

use super::authorities::{Authorities, AuthoritiesError};
use super::peer::Peer;

/// How often the file is read again.
const READ_PERIOD: Duration = Duration::from_mins(1);

/// Why the CA of clients cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("failed to read the CA of clients from {path}: {source}", path = path.display())]
pub struct ClientAuthorityError {
    path: PathBuf,
    source: Box<dyn std::error::Error + Send + Sync>,
}

/// The CA that must have signed the certificates of clients.
pub(crate) struct ClientAuthority {
    path: PathBuf,
    provider: Arc<CryptoProvider>,
    clock: Clock,
    current: Mutex<(Authorities, Instant)>,
}

impl ClientAuthority {
    /// Reads the CA from a file (PEM).
    pub(crate) fn open(path: &Path, clock: Clock) -> Result<Self, ClientAuthorityError> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let current = Mutex::new((read(path, &provider)?, Instant::now()));
        Ok(Self { path: path.to_owned(), provider, clock, current })
    }

    /// Whether the CA has signed the certificate of this client. A file that cannot be read any more changes nothing.
    pub(crate) fn has_signed(&self, peer: &Peer) -> bool {
        let mut current = self.current.locked();
        let now = Instant::now();
        if now >= current.1 + READ_PERIOD {
            current.1 = now;
            match read(&self.path, &self.provider) {
                Ok(authorities) => current.0 = authorities,
                Err(error) => tracing::warn!(%error, "the CA known before is used"),
            }
        }
        let authorities = current.0.clone();
        drop(current);
        peer.is_signed_by(&authorities, self.clock.now())
    }
}

fn read(path: &Path, provider: &Arc<CryptoProvider>) -> Result<Authorities, ClientAuthorityError> {
    let failed = |source| ClientAuthorityError { path: path.to_owned(), source };
    let pem = std::fs::read_to_string(path).map_err(|error| failed(error.into()))?;
    Authorities::new(&pem, provider).map_err(|error: AuthoritiesError| failed(error.into()))
}
