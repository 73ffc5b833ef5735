//! Authorities, certificate and token as they are at this moment.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::Path;
use std::sync::Arc;

use http::HeaderValue;
use rustls::client::Resumption;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

use super::verifier::{Believed, Verifier};
use super::{Authority, Error, Pem, Settings, Token};

/// What the files say.
pub(super) struct Material {
    /// Changes with authorities and certificates.
    pub(super) generation: u64,
    pub(super) token: Option<HeaderValue>,
    /// For any node: only the address that was dialled counts.
    config: Arc<ClientConfig>,
    verifier: Verifier,
    /// What all this was made of, to see whether it has changed.
    digest: u64,
}

impl Material {
    /// Reads all files; `before` is used again as far as nothing has changed.
    pub(super) fn read(settings: &Settings, before: Option<&Self>) -> Result<Self, Error> {
        let authority = match &settings.authority {
            Authority::Known(pem) => Some(bytes(pem)?),
            Authority::Anybody => None,
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
        let believed = match (&authority, &settings.authority) {
            (Some(pem), Authority::Known(from)) => Believed::SignedBy(Arc::new(roots(pem, from)?)),
            _ => Believed::Anybody,
        };
        let verifier = Verifier::new(&provider, believed, settings.compat);
        let config = Arc::new(config(&provider, &verifier, own)?);
        let generation = before.map_or(0, |before| before.generation + 1);
        Ok(Self { generation, token, config, verifier, digest })
    }

    /// How to greet the kubelet of a node.
    pub(super) fn config(&self, node: &str) -> Arc<ClientConfig> {
        match self.verifier.for_node(node) {
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
    verifier: &Verifier,
    own: Option<(Vec<u8>, Vec<u8>)>,
) -> Result<ClientConfig, Error> {
    let builder = ClientConfig::builder_with_provider(Arc::clone(provider))
        .with_safe_default_protocol_versions()
        .map_err(Error::Tls)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier.clone()));
    let mut config = match own {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&certificate).collect();
            let chain = chain.map_err(|error| Error::Certificate(error.to_string()))?;
            // What a wrong key file holds is not repeated: it may be another secret.
            let key = PrivateKeyDer::from_pem_slice(&key)
                .map_err(|_| Error::Certificate("no private key in PEM form".to_owned()))?;
            builder
                .with_client_auth_cert(chain, key)
                .map_err(|error| Error::Certificate(error.to_string()))?
        }
    };
    // Connections are kept, so little is won by resuming; and what is resumed is not verified again.
    config.resumption = Resumption::disabled();
    Ok(config)
}

fn roots(pem: &[u8], from: &Pem) -> Result<RootCertStore, Error> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let mut roots = RootCertStore::empty();
    let (good, _) = roots.add_parsable_certificates(found.unwrap_or_default());
    if good == 0 {
        return Err(Error::Authority { from: format!("{from:?}") });
    }
    Ok(roots)
}

fn header(token: &Token) -> Result<HeaderValue, Error> {
    let text = match token {
        Token::Given(secret) => secret.reveal().as_bytes().to_vec(),
        Token::File(path) => file(path)?,
    };
    let text = text.trim_ascii();
    if text.is_empty() {
        return Err(Error::Token);
    }
    let mut header = HeaderValue::from_bytes(&[b"Bearer ", text].concat()).map_err(|_| Error::Token)?;
    header.set_sensitive(true);
    Ok(header)
}

fn bytes(pem: &Pem) -> Result<Vec<u8>, Error> {
    match pem {
        Pem::Given(bytes) => Ok(bytes.clone()),
        Pem::File(path) => file(path),
    }
}

fn file(path: &Path) -> Result<Vec<u8>, Error> {
    std::fs::read(path).map_err(|source| Error::File { path: path.to_owned(), source })
}
