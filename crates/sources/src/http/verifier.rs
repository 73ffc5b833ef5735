//! The one implementation of [`ServerCertVerifier`]: a replaceable certificate check, and the usual verification of
//! handshake signatures.

use std::fmt;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, Error, SignatureScheme};

/// Decides whether a server certificate is accepted.
pub trait CertificateCheck: fmt::Debug + Send + Sync {
    /// Checks the certificate of the server that was dialled by `name`.
    fn check(
        &self,
        certificate: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        now: UnixTime,
    ) -> Result<(), Error>;
}

/// Accepts every certificate.
#[derive(Clone, Copy, Debug)]
pub struct AcceptAnyCertificate;

impl CertificateCheck for AcceptAnyCertificate {
    fn check(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: UnixTime,
    ) -> Result<(), Error> {
        Ok(())
    }
}

/// Verifies server certificates by a [`CertificateCheck`].
#[derive(Clone, Debug)]
pub struct CertVerifier<C> {
    check: C,
    algorithms: WebPkiSupportedAlgorithms,
}

impl<C> CertVerifier<C> {
    /// A verifier with the signature algorithms of `provider`.
    pub fn new(provider: &CryptoProvider, check: C) -> Self {
        Self { check, algorithms: provider.signature_verification_algorithms }
    }

    /// The check.
    pub(crate) fn check(&self) -> &C {
        &self.check
    }

    /// The same verifier with another check.
    pub(crate) fn with_check(&self, check: C) -> Self {
        Self { check, algorithms: self.algorithms }
    }
}

impl<C: CertificateCheck> ServerCertVerifier for CertVerifier<C> {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.check.check(certificate, chain, name, now).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
