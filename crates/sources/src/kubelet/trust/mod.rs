//! CA, client certificate and token for kubelets, read again when their files change.
//!
//! ```text
//! material  loads the files
//! verifier  verifies that a certificate belongs to the scraped node
//! ```

mod material;
#[cfg(test)]
mod tests;
mod verifier;

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use api::provider::Compat;
use http::HeaderValue;
use locks::MutexExt as _;
use rustls::ClientConfig;
use rustls::pki_types::pem;
use tokio::time::Instant;

use crate::http::Secret;
use material::TlsMaterial;
pub(crate) use verifier::CertificateNameMismatch;

/// Interval of checks for changed files.
const FILE_CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// PEM data.
#[derive(Clone, PartialEq, Eq)]
pub enum Pem {
    /// In a file that is read again when it changes.
    File(PathBuf),
    /// In memory.
    Inline(Vec<u8>),
}

impl fmt::Debug for Pem {
    /// Omits inline data, which may be a key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.fmt(f),
            Self::Inline(_) => f.write_str("(given)"),
        }
    }
}

/// Which server certificates are accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrustedAuthority {
    /// Certificates signed by this CA.
    Ca(Pem),
    /// All certificates (`--kubelet-insecure-tls`).
    Any,
}

/// A bearer token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BearerToken {
    /// In a file that is read again periodically and after a kubelet refused the token.
    File(PathBuf),
    /// In memory.
    Inline(Secret),
}

/// Settings of CA, client certificate and token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustSettings {
    /// Which server certificates are accepted.
    pub authority: TrustedAuthority,
    /// Client certificate and key.
    pub certificate: Option<(Pem, Pem)>,
    /// Bearer token.
    pub token: Option<BearerToken>,
    /// Outside strict mode a certificate may name the node instead of the address.
    pub compat: Compat,
}

/// Why the TLS material cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// A file cannot be read.
    #[error("failed to read {path}: {source}", path = path.display())]
    File {
        /// Path.
        path: PathBuf,
        /// Reason.
        source: std::io::Error,
    },
    /// The CA bundle has no certificate.
    #[error("failed to use the authority of the kubelets ({from}): no certificate in PEM form")]
    Authority {
        /// Source of the CA bundle.
        from: String,
    },
    /// The client certificate is not PEM data.
    #[error("failed to use the certificate for kubelets with its key: {0}")]
    Certificate(#[source] pem::Error),
    /// The file of the key has no key. Its content is not repeated, because it may be another secret.
    #[error("failed to use the certificate for kubelets with its key: no private key in PEM form")]
    Key,
    /// Client certificate and key are unusable or do not match.
    #[error("failed to use the certificate for kubelets with its key: {0}")]
    KeyPair(#[source] rustls::Error),
    /// The token is not a valid header value.
    #[error("failed to use the token for kubelets: it is empty, or has characters that no token has")]
    Token,
    /// TLS setup failed.
    #[error("failed to set up TLS: {0}")]
    Tls(#[source] rustls::Error),
}

/// CA, client certificate and token as loaded last.
pub struct KubeletTrust {
    settings: TrustSettings,
    now: Mutex<LoadedMaterial>,
}

struct LoadedMaterial {
    material: Arc<TlsMaterial>,
    read: Instant,
    /// Error of the last reload; logged once.
    wrong: Option<String>,
}

impl fmt::Debug for KubeletTrust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.settings.fmt(f)
    }
}

impl KubeletTrust {
    /// Loads the files, which must be readable now.
    pub fn new(settings: TrustSettings) -> Result<Self, TrustError> {
        let material = Arc::new(TlsMaterial::read(&settings, None)?);
        Ok(Self { settings, now: Mutex::new(LoadedMaterial { material, read: Instant::now(), wrong: None }) })
    }

    /// Number that changes with the CA and the client certificate, but not with the token.
    pub(crate) fn generation(&self) -> u64 {
        self.material(FILE_CHECK_INTERVAL).generation
    }

    /// Value of the `Authorization` header.
    pub(crate) fn token(&self) -> Option<HeaderValue> {
        self.material(FILE_CHECK_INTERVAL).token.clone()
    }

    /// TLS configuration for a node, and the current generation.
    pub(crate) fn tls_config(&self, node: &str) -> (Arc<ClientConfig>, u64) {
        let material = self.material(FILE_CHECK_INTERVAL);
        (material.config(node), material.generation)
    }

    /// Reloads the files after a kubelet refused the request; whether credentials changed.
    pub(crate) fn reload_after_refusal(&self, refused: Option<&HeaderValue>, generation: u64) -> bool {
        let material = self.material(Duration::from_secs(1));
        material.generation != generation || material.token.as_ref() != refused
    }

    /// Material that is at most `age` old. If a reload fails, the previous material stays.
    fn material(&self, age: Duration) -> Arc<TlsMaterial> {
        let mut now = self.now();
        if now.read.elapsed() >= age {
            now.read = Instant::now();
            match TlsMaterial::read(&self.settings, Some(&now.material)) {
                Ok(material) => {
                    if material.generation != now.material.generation {
                        tracing::info!("authority or certificate for kubelets has changed");
                    }
                    now.material = Arc::new(material);
                    now.wrong = None;
                }
                Err(error) => {
                    let error = error.to_string();
                    if now.wrong.as_ref() != Some(&error) {
                        tracing::warn!(error, "what was read before is used for kubelets");
                        now.wrong = Some(error);
                    }
                }
            }
        }
        Arc::clone(&now.material)
    }

    fn now(&self) -> MutexGuard<'_, LoadedMaterial> {
        self.now.locked()
    }
}
