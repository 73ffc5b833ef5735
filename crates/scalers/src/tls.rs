//! TLS settings of triggers: CA certificates, client certificate and key as PEM.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, RootCertStore};
use sources::http::{self, AcceptAnyCertificate, CertVerifier, Secret, system_roots};

use crate::ScalerError;

/// How the server certificate is checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum CertificateCheck {
    /// CA and host name are checked.
    #[default]
    Full,
    /// Only the CA is checked.
    Authority,
    /// Nothing is checked.
    Anything,
}

/// TLS settings of a connection. They have no Debug, because they contain a key.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct TlsSettings {
    /// CA certificates that are trusted in addition to the system's (PEM); empty if none.
    pub(crate) authorities: String,
    /// Client certificate (PEM); empty if none.
    pub(crate) certificate: String,
    /// Private key of the client certificate (PEM).
    pub(crate) key: Secret,
    /// How the server certificate is checked.
    pub(crate) certificate_check: CertificateCheck,
}

impl TlsSettings {
    /// Adds CA certificates (PEM) that the process trusts in addition to those of the trigger.
    pub(crate) fn trusting(mut self, authorities: &[u8]) -> Self {
        if !authorities.is_empty() {
            self.authorities.push('\n');
            self.authorities.push_str(&String::from_utf8_lossy(authorities));
        }
        self
    }

    /// The rustls configuration with these ALPN protocols.
    pub(crate) fn config(&self, protocols: &[&[u8]]) -> Result<Arc<ClientConfig>, ScalerError> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| ScalerError::caused_by(format!("TLS cannot be used: {error}"), error))?
            .dangerous()
            .with_custom_certificate_verifier(self.verifier(&provider)?);
        let mut config = match (self.certificate.is_empty(), self.key.reveal().is_empty()) {
            (true, true) => builder.with_no_client_auth(),
            (false, false) => {
                let chain = certificates(&self.certificate, "the client certificate cannot be used")?;
                builder.with_client_auth_cert(chain, self.private_key()?).map_err(|error| {
                    ScalerError::caused_by(format!("the client certificate cannot be used: {error}"), error)
                })?
            }
            (false, true) => bail!("a client certificate needs its key, too"),
            (true, false) => bail!("a client key needs its certificate, too"),
        };
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        Ok(Arc::new(config))
    }

    /// The verifier of the server certificate.
    pub(crate) fn verifier(
        &self,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Arc<dyn ServerCertVerifier>, ScalerError> {
        if self.certificate_check == CertificateCheck::Anything {
            return Ok(Arc::new(CertVerifier::new(provider, AcceptAnyCertificate)));
        }
        let mut store = RootCertStore::clone(&system_roots());
        if !self.authorities.trim().is_empty() {
            let given = certificates(&self.authorities, "the CA certificate cannot be used")?;
            if store.add_parsable_certificates(given).0 == 0 {
                bail!("the CA certificate cannot be used: it is no certificate");
            }
        }
        if store.is_empty() {
            bail!("no CA certificate is known: give one, or install those of the system");
        }
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(store), Arc::clone(provider))
            .build()
            .map_err(|error| {
                ScalerError::caused_by(format!("the CA certificate cannot be used: {error}"), error)
            })?;
        match self.certificate_check {
            CertificateCheck::Authority => Ok(Arc::new(CertVerifier::new(provider, AcceptAnyName(verifier)))),
            _ => Ok(verifier),
        }
    }

    fn private_key(&self) -> Result<PrivateKeyDer<'static>, ScalerError> {
        let text = self.key.reveal();
        if text.contains("ENCRYPTED") {
            bail!("the client key is encrypted, and keyPassword does not open it");
        }
        // The content is not quoted, because it may be another secret.
        PrivateKeyDer::from_pem_slice(text.as_bytes())
            .map_err(|_| scaler_error!("the client key cannot be used: it is no private key in PEM form"))
    }
}

/// Decodes PEM certificates; `what` is the beginning of the error.
fn certificates(pem: &str, what: &str) -> Result<Vec<CertificateDer<'static>>, ScalerError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    match found {
        Ok(found) if found.is_empty() => Err(scaler_error!("{what}: no certificate in PEM form")),
        Ok(found) => Ok(found),
        Err(error) => Err(ScalerError::caused_by(format!("{what}: {error}"), error)),
    }
}

/// Accepts every certificate that a trusted CA has signed, whichever host it names.
#[derive(Debug)]
struct AcceptAnyName(Arc<WebPkiServerVerifier>);

impl http::CertificateCheck for AcceptAnyName {
    fn check(
        &self,
        certificate: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        now: UnixTime,
    ) -> Result<(), rustls::Error> {
        match self.0.verify_server_cert(certificate, chain, name, &[], now) {
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(()),
            other => other.map(|_| ()),
        }
    }
}
