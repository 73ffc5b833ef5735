//! Loads CA, client certificate and token.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::Path;
use std::sync::Arc;

use http::HeaderValue;
use rustls::client::Resumption;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

use super::verifier::{KubeletCertCheck, KubeletCertVerifier, for_node};
use super::{BearerToken, Pem, TrustError, TrustSettings, TrustedAuthority};

/// Loaded TLS material.
pub(super) struct TlsMaterial {
    /// Changes with CA and client certificate.
    pub(super) generation: u64,
    pub(super) token: Option<HeaderValue>,
    /// Configuration that verifies the address only, not the node name.
    config: Arc<ClientConfig>,
    verifier: KubeletCertVerifier,
    /// Hash of the inputs, to detect changes.
    digest: u64,
}

impl TlsMaterial {
    /// Loads all files; reuses `before` as far as inputs are unchanged.
    pub(super) fn read(settings: &TrustSettings, before: Option<&Self>) -> Result<Self, TrustError> {
        let authority = match &settings.authority {
            TrustedAuthority::Ca(pem) => Some(bytes(pem)?),
            TrustedAuthority::Any => None,
        };
        let own = match &settings.certificate {
            Some((certificate, key)) => Some((bytes(certificate)?, bytes(key)?)),
            None => None,
        };
        let token = settings.token.as_ref().map(header).transpose()?;
        let mut hasher = DefaultHasher::new();
        (&authority, &own).hash(&mut hasher);
        let digest = hasher.finish();
        if let Some(before) = before.filter(|before| before.digest == digest) {
            let (config, verifier) = (Arc::clone(&before.config), before.verifier.clone());
            return Ok(Self { generation: before.generation, token, config, verifier, digest });
        }
        let provider = Arc::new(aws_lc_rs::default_provider());
        let trusted = match (&authority, &settings.authority) {
            (Some(pem), TrustedAuthority::Ca(from)) => Some(Arc::new(roots(pem, from)?)),
            _ => None,
        };
        let verifier = KubeletCertCheck::verifier(&provider, trusted, settings.compat);
        let config = Arc::new(config(&provider, &verifier, own)?);
        let generation = before.map_or(0, |before| before.generation + 1);
        Ok(Self { generation, token, config, verifier, digest })
    }

    /// TLS configuration for a node.
    pub(super) fn config(&self, node: &str) -> Arc<ClientConfig> {
        match for_node(&self.verifier, node) {
            None => Arc::clone(&self.config),
            Some(verifier) => {
                let mut config = ClientConfig::clone(&self.config);
                config.dangerous().set_certificate_verifier(Arc::new(verifier));
                Arc::new(config)
            }
        }
    }
}

fn config(
    provider: &Arc<CryptoProvider>,
    verifier: &KubeletCertVerifier,
    own: Option<(Vec<u8>, Vec<u8>)>,
) -> Result<ClientConfig, TrustError> {
    let builder = ClientConfig::builder_with_provider(Arc::clone(provider))
        .with_safe_default_protocol_versions()
        .map_err(TrustError::Tls)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier.clone()));
    let mut config = match own {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&certificate).collect();
            let chain = chain.map_err(TrustError::Certificate)?;
            let key = PrivateKeyDer::from_pem_slice(&key).map_err(|_| TrustError::Key)?;
            builder.with_client_auth_cert(chain, key).map_err(TrustError::KeyPair)?
        }
    };
    // Resumption is disabled: connections are kept alive, and resumed sessions skip certificate verification.
    config.resumption = Resumption::disabled();
    Ok(config)
}

fn roots(pem: &[u8], from: &Pem) -> Result<RootCertStore, TrustError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let mut roots = RootCertStore::empty();
    let (good, _) = roots.add_parsable_certificates(found.unwrap_or_default());
    if good == 0 {
        return Err(TrustError::Authority { from: format!("{from:?}") });
    }
    Ok(roots)
}

fn header(token: &BearerToken) -> Result<HeaderValue, TrustError> {
    let text = match token {
        BearerToken::Inline(secret) => secret.reveal().as_bytes().to_vec(),
        BearerToken::File(path) => file(path)?,
    };
    let text = text.trim_ascii();
    if text.is_empty() {
        return Err(TrustError::Token);
    }
    let mut header = HeaderValue::from_bytes(&[b"Bearer ", text].concat()).map_err(|_| TrustError::Token)?;
    header.set_sensitive(true);
    Ok(header)
}

fn bytes(pem: &Pem) -> Result<Vec<u8>, TrustError> {
    match pem {
        Pem::Inline(bytes) => Ok(bytes.clone()),
        Pem::File(path) => file(path),
    }
}

fn file(path: &Path) -> Result<Vec<u8>, TrustError> {
    std::fs::read(path).map_err(|source| TrustError::File { path: path.to_owned(), source })
}
