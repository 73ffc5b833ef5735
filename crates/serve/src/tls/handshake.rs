//! TLS configurations and client certificates.
//!
//! In general the handshake proves only that a client has the key of its certificate; its CA is verified
//! for each request. So a client with an untrusted certificate gets status 401 instead of a broken
//! connection, and new CAs of the cluster apply to open connections. With mutual TLS by a keyring,
//! the handshake itself refuses other clients.

use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{NoServerSessionStorage, ResolvesServerCert};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, ServerConfig, SignatureScheme};

use super::keyring::Keyring;

/// The TLS configuration for all clients.
pub(crate) fn config(
    provider: Arc<CryptoProvider>,
    certificate: Arc<dyn ResolvesServerCert>,
) -> Result<ServerConfig, Error> {
    let clients = Clients { provider, only: None };
    clients.config(certificate, &[b"h2", b"http/1.1"])
}

/// The TLS configuration for clients that present a certificate signed by one of the keyring's CAs, and for no others.
pub(crate) fn mutual_config(keyring: &Keyring) -> Result<ServerConfig, Error> {
    let clients = Clients { provider: Arc::clone(&keyring.provider), only: Some(keyring.clone()) };
    clients.config(Arc::new(keyring.clone()), &[b"h2"])
}

/// Which clients the handshake accepts.
#[derive(Debug)]
struct Clients {
    provider: Arc<CryptoProvider>,
    /// The keyring whose CAs must have signed client certificates; all clients if there is none.
    only: Option<Keyring>,
}

impl Clients {
    /// The TLS configuration for these clients.
    fn config(
        self,
        certificate: Arc<dyn ResolvesServerCert>,
        protocols: &[&[u8]],
    ) -> Result<ServerConfig, Error> {
        let mut config = ServerConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(Arc::new(self))
            .with_cert_resolver(certificate);
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        // Connections are long-lived. Without session resumption, removed CAs take effect at once.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(config)
    }
}

impl ClientCertVerifier for Clients {
    fn client_auth_mandatory(&self) -> bool {
        self.only.is_some()
    }

    /// No hints, so that clients always send their certificate. With outdated hints they would send none, without an
    /// error that explains it.
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
            Some(keyring) => keyring.verify_client(own, between, now),
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
