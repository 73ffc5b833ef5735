//! What is asked of clients while greeting: a certificate, if they have one, or one of ours.
//!
//! In general the handshake makes sure that a client has the key of the certificate it shows, and nothing else: whom it
//! chains to is looked at for each request. So a wrong certificate gets an answer (401) that says so instead of a broken
//! connection, and new authorities of the cluster count for connections that are open. Where only those may ask who hold a
//! certificate of a keyring's authorities, the others are not greeted at all.

use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{NoServerSessionStorage, ResolvesServerCert};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, ServerConfig, SignatureScheme};

use super::keyring::Keyring;

/// How the server speaks TLS with anybody.
pub(crate) fn config(
    provider: Arc<CryptoProvider>,
    certificate: Arc<dyn ResolvesServerCert>,
) -> Result<ServerConfig, Error> {
    let clients = Clients { provider, only: None };
    clients.config(certificate, &[b"h2", b"http/1.1"])
}

/// Those who may greet us.
#[derive(Debug)]
pub(super) struct Clients {
    pub(super) provider: Arc<CryptoProvider>,
    /// Whose authorities must have signed what they show; anybody without one.
    pub(super) only: Option<Keyring>,
}

impl Clients {
    /// How to speak TLS with them.
    pub(super) fn config(
        self,
        certificate: Arc<dyn ResolvesServerCert>,
        protocols: &[&[u8]],
    ) -> Result<ServerConfig, Error> {
        let mut config = ServerConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(Arc::new(self))
            .with_cert_resolver(certificate);
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        // Connections are long; nothing is remembered of those that ended, nor of authorities that are gone.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(config)
    }
}

impl ClientCertVerifier for Clients {
    fn client_auth_mandatory(&self) -> bool {
        self.only.is_some()
    }

    /// No hints: a client shows what it has. With hints that are out of date it would show nothing, and nobody would
    /// know why.
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        own: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        match &self.only {
            Some(keyring) => keyring.believes(own, between, now),
            None => Ok(ClientCertVerified::assertion()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
