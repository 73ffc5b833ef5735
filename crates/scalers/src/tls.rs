//! TLS as triggers describe it: authorities, certificate and key as texts.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use sources::http::Secret;

use crate::Error;

/// Where systems keep the authorities that everybody trusts.
const SYSTEM_BUNDLES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// How much of a server's certificate is believed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Belief {
    /// Authority and name are checked.
    #[default]
    Full,
    /// The authority is checked, the name is not.
    Authority,
    /// Anything is believed.
    Anything,
}

/// How to speak TLS with a server. Not printed: it has a key in it.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Tls {
    /// Authorities that are trusted besides the system's (PEM); empty if none.
    pub(crate) authorities: String,
    /// Our certificate (PEM); empty if none.
    pub(crate) certificate: String,
    /// Its key (PEM).
    pub(crate) key: Secret,
    /// How much of the server's certificate is believed.
    pub(crate) belief: Belief,
}

impl Tls {
    /// With authorities (PEM) that the process trusts besides those of the trigger.
    pub(crate) fn trusting(mut self, authorities: &[u8]) -> Self {
        if !authorities.is_empty() {
            self.authorities.push('\n');
            self.authorities.push_str(&String::from_utf8_lossy(authorities));
        }
        self
    }

    /// What rustls needs, with these protocols offered.
    pub(crate) fn config(&self, protocols: &[&[u8]]) -> Result<Arc<ClientConfig>, Error> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| Error::new(format!("TLS cannot be used: {error}")))?
            .dangerous()
            .with_custom_certificate_verifier(self.verifier(provider)?);
        let mut config = match (self.certificate.is_empty(), self.key.reveal().is_empty()) {
            (true, true) => builder.with_no_client_auth(),
            (false, false) => {
                let chain = certificates(&self.certificate).map_err(|reason| {
                    Error::new(format!("the client certificate cannot be used: {reason}"))
                })?;
                builder
                    .with_client_auth_cert(chain, self.private_key()?)
                    .map_err(|error| Error::new(format!("the client certificate cannot be used: {error}")))?
            }
            (false, true) => return Err(Error::new("a client certificate needs its key, too")),
            (true, false) => return Err(Error::new("a client key needs its certificate, too")),
        };
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        Ok(Arc::new(config))
    }

    /// What decides whether a server is believed.
    pub(crate) fn verifier(
        &self,
        provider: Arc<CryptoProvider>,
    ) -> Result<Arc<dyn ServerCertVerifier>, Error> {
        if self.belief == Belief::Anything {
            return Ok(Arc::new(Lenient { provider, authority: None }));
        }
        let mut store = RootCertStore::clone(&SYSTEM);
        if !self.authorities.trim().is_empty() {
            let given = certificates(&self.authorities)
                .map_err(|reason| Error::new(format!("the CA certificate cannot be used: {reason}")))?;
            if store.add_parsable_certificates(given).0 == 0 {
                return Err(Error::new("the CA certificate cannot be used: it is no certificate"));
            }
        }
        if store.is_empty() {
            return Err(Error::new("no CA certificate is known: give one, or install those of the system"));
        }
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(store), Arc::clone(&provider))
            .build()
            .map_err(|error| Error::new(format!("the CA certificate cannot be used: {error}")))?;
        match self.belief {
            Belief::Authority => Ok(Arc::new(Lenient { provider, authority: Some(verifier) })),
            _ => Ok(verifier),
        }
    }

    /// All authorities that are trusted, the system's included (PEM).
    #[cfg(feature = "redis")]
    pub(crate) fn all_authorities(&self) -> Vec<u8> {
        [&*system_pem(), b"\n", self.authorities.as_bytes()].concat()
    }

    fn private_key(&self) -> Result<PrivateKeyDer<'static>, Error> {
        let text = self.key.reveal();
        if text.contains("ENCRYPTED") {
            return Err(Error::new("the client key is encrypted: give it without a password, in a Secret"));
        }
        // What it holds instead is not repeated: it may be another secret.
        PrivateKeyDer::from_pem_slice(text.as_bytes())
            .map_err(|_| Error::new("the client key cannot be used: it is no private key in PEM form"))
    }
}

/// The authorities of the system, read once: they come with the image.
static SYSTEM: LazyLock<RootCertStore> = LazyLock::new(|| {
    let mut store = RootCertStore::empty();
    store.add_parsable_certificates(CertificateDer::pem_slice_iter(&system_pem()).filter_map(Result::ok));
    store
});

fn system_pem() -> Vec<u8> {
    let own = std::env::var_os("SSL_CERT_FILE").map(PathBuf::from);
    let mut places = own.into_iter().chain(SYSTEM_BUNDLES.iter().map(PathBuf::from));
    places.find_map(|path| fs::read(path).ok()).unwrap_or_default()
}

/// Chooses our TLS library for clients that take whichever the process has.
#[cfg(feature = "redis")]
pub(crate) fn use_one_provider() {
    // An error says that one was chosen before.
    let _ = aws_lc_rs::default_provider().install_default();
}

fn certificates(pem: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    match found {
        Ok(found) if found.is_empty() => Err("no certificate in PEM form".to_owned()),
        Ok(found) => Ok(found),
        Err(error) => Err(error.to_string()),
    }
}

/// Believes more than usual.
#[derive(Debug)]
struct Lenient {
    provider: Arc<CryptoProvider>,
    /// Who must have signed, if that matters.
    authority: Option<Arc<WebPkiServerVerifier>>,
}

impl ServerCertVerifier for Lenient {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        status: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(authority) = &self.authority else { return Ok(ServerCertVerified::assertion()) };
        match authority.verify_server_cert(certificate, chain, name, status, now) {
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
