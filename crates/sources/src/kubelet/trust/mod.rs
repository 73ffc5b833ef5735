//! Whom we trust, and who we are: authorities, certificate and token, read again when they change.
//!
//! ```text
//! material  where they come from, and what they are at this moment
//! verifier  whether a certificate is that of the node that was asked
//! ```

mod material;
#[cfg(test)]
mod tests;
mod verifier;

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use api::provider::Compat;
use http::HeaderValue;
use rustls::ClientConfig;
use tokio::time::Instant;

use crate::http::Secret;
use material::Material;
pub(crate) use verifier::WrongName;

/// How often it is looked whether files have changed.
const PERIOD: Duration = Duration::from_secs(10);

/// Something in PEM form.
#[derive(Clone, PartialEq, Eq)]
pub enum Pem {
    /// In a file, which is read again when it changes.
    File(PathBuf),
    /// Given.
    Given(Vec<u8>),
}

impl fmt::Debug for Pem {
    /// Without what was given: it may be a key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.fmt(f),
            Self::Given(_) => f.write_str("(given)"),
        }
    }
}

/// Whose certificates are trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Authority {
    /// Those signed by one of these.
    Known(Pem),
    /// All (`--kubelet-insecure-tls`).
    Anybody,
}

/// A bearer token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Token {
    /// In a file, which is read again every now and then, and when a kubelet refuses it.
    File(PathBuf),
    /// Given.
    Given(Secret),
}

/// Whom we trust, and who we are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Whose certificates are trusted.
    pub authority: Authority,
    /// Our certificate and its key.
    pub certificate: Option<(Pem, Pem)>,
    /// Our token.
    pub token: Option<Token>,
    /// Whether a certificate may name the node instead of the address that was dialled (not in strict mode).
    pub compat: Compat,
}

/// Why there is nothing to trust.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read.
    #[error("failed to read {path}: {source}", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// There is no certificate of an authority.
    #[error("failed to use the authority of the kubelets ({from}): no certificate in PEM form")]
    Authority {
        /// Where it was looked for.
        from: String,
    },
    /// Our certificate and its key are not usable, or do not belong together.
    #[error("failed to use the certificate for kubelets with its key: {0}")]
    Certificate(String),
    /// The token cannot be sent.
    #[error("failed to use the token for kubelets: it is empty, or has characters that no token has")]
    Token,
    /// TLS itself cannot be used.
    #[error("failed to set up TLS: {0}")]
    Tls(rustls::Error),
}

/// Whom we trust and who we are at this moment.
pub struct Trust {
    settings: Settings,
    now: Mutex<Now>,
}

struct Now {
    material: Arc<Material>,
    read: Instant,
    /// What was wrong when the files were read last; said once.
    wrong: Option<String>,
}

impl fmt::Debug for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.settings.fmt(f)
    }
}

impl Trust {
    /// With files that can be read now.
    pub fn new(settings: Settings) -> Result<Self, Error> {
        let material = Arc::new(Material::read(&settings, None)?);
        Ok(Self { settings, now: Mutex::new(Now { material, read: Instant::now(), wrong: None }) })
    }

    /// What counts now; a number that changes with authorities and certificates, but not with tokens.
    pub(crate) fn generation(&self) -> u64 {
        self.material(PERIOD).generation
    }

    /// The header that shows who we are.
    pub(crate) fn token(&self) -> Option<HeaderValue> {
        self.material(PERIOD).token.clone()
    }

    /// How to greet the kubelet of a node, and the generation that counts now.
    pub(crate) fn greeting(&self, node: &str) -> (Arc<ClientConfig>, u64) {
        let material = self.material(PERIOD);
        (material.config(node), material.generation)
    }

    /// Reads the files again because a kubelet refused us; whether we are somebody else now.
    pub(crate) fn renewed(&self, refused: Option<&HeaderValue>, generation: u64) -> bool {
        let material = self.material(Duration::from_secs(1));
        material.generation != generation || material.token.as_ref() != refused
    }

    /// What the files said at most so long ago. Files that cannot be used are as if they had not changed.
    fn material(&self, age: Duration) -> Arc<Material> {
        let mut now = self.now();
        if now.read.elapsed() >= age {
            now.read = Instant::now();
            match Material::read(&self.settings, Some(&now.material)) {
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

    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
