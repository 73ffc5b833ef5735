//! Verifies that a server certificate belongs to the scraped node.
//!
//! Most kubelets are dialled by an IP address that their certificate does not contain. A certificate of a trusted CA
//! that names the node proves the same identity, because only that kubelet can obtain it. This makes
//! `--kubelet-insecure-tls` unnecessary.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use api::provider::Compat;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, OtherError, RootCertStore, SignatureScheme};
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer as _, X509Certificate};

/// Number of certificate names listed in an error.
const MAX_NAMES_IN_ERROR: usize = 5;

/// Which certificates are accepted.
#[derive(Clone)]
pub(super) enum TrustPolicy {
    SignedBy(Arc<RootCertStore>),
    Anybody,
}

/// Verifies server certificates.
#[derive(Clone)]
pub(super) struct KubeletCertVerifier {
    algorithms: WebPkiSupportedAlgorithms,
    believed: TrustPolicy,
    compat: Compat,
    /// Node whose name is accepted instead of the dialled address.
    node: Option<Box<str>>,
}

/// The certificate of a trusted CA names neither the dialled address nor the node.
#[derive(Debug)]
pub(crate) struct CertificateNameMismatch {
    /// Some of the names in the certificate.
    pub(crate) has: Vec<Box<str>>,
}

impl fmt::Display for CertificateNameMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the certificate names only [{}]", self.has.join(", "))
    }
}

impl std::error::Error for CertificateNameMismatch {}

impl fmt::Debug for KubeletCertVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verifier").field("node", &self.node).finish_non_exhaustive()
    }
}

impl KubeletCertVerifier {
    pub(super) fn new(provider: &CryptoProvider, believed: TrustPolicy, compat: Compat) -> Self {
        Self { algorithms: provider.signature_verification_algorithms, believed, compat, node: None }
    }

    /// A verifier that also accepts certificates naming this node; `None` if the policy does not allow that.
    pub(super) fn for_node(&self, node: &str) -> Option<Self> {
        match self.believed {
            TrustPolicy::SignedBy(_) if !self.compat.is_strict() => {
                Some(Self { node: Some(node.into()), ..self.clone() })
            }
            _ => None,
        }
    }
}

impl ServerCertVerifier for KubeletCertVerifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        asked: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let TrustPolicy::SignedBy(roots) = &self.believed else { return Ok(ServerCertVerified::assertion()) };
        let parsed = ParsedCertificate::try_from(certificate)?;
        verify_server_cert_signed_by_trust_anchor(&parsed, roots, chain, now, self.algorithms.all)?;
        if verify_server_name(&parsed, asked).is_ok() {
            return Ok(ServerCertVerified::assertion());
        }
        let names = CertificateNames::of(certificate);
        if self.node.as_ref().is_some_and(|node| names.are_of(node)) {
            return Ok(ServerCertVerified::assertion());
        }
        let wrong = OtherError(Arc::new(CertificateNameMismatch { has: names.some() }));
        Err(Error::InvalidCertificate(CertificateError::Other(wrong)))
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

/// Names in a certificate.
#[derive(Debug, Default)]
struct CertificateNames {
    dns: Vec<Box<str>>,
    addresses: Vec<IpAddr>,
    common: Vec<Box<str>>,
}

impl CertificateNames {
    fn of(certificate: &CertificateDer<'_>) -> Self {
        let mut names = Self::default();
        let Ok((_, certificate)) = X509Certificate::from_der(certificate) else { return names };
        for name in certificate.subject().iter_common_name() {
            names.common.extend(name.as_str().ok().map(Box::from));
        }
        let Ok(Some(alternatives)) = certificate.subject_alternative_name() else { return names };
        for name in &alternatives.value.general_names {
            match name {
                GeneralName::DNSName(name) => names.dns.push((*name).into()),
                GeneralName::IPAddress(bytes) => names.addresses.extend(address(bytes)),
                _ => {}
            }
        }
        names
    }

    /// Whether a name identifies the node; exact comparison without wildcards.
    fn are_of(&self, node: &str) -> bool {
        self.dns.iter().any(|name| name.eq_ignore_ascii_case(node))
            || self.common.iter().any(|name| name.strip_prefix("system:node:") == Some(node))
    }

    /// A short list of names for an error text.
    fn some(self) -> Vec<Box<str>> {
        let addresses = self.addresses.iter().map(|address| Box::from(address.to_string()));
        let mut all: Vec<Box<str>> = self.dns.into_iter().chain(addresses).collect();
        if all.is_empty() {
            all = self.common;
        }
        let more = all.len().saturating_sub(MAX_NAMES_IN_ERROR);
        all.truncate(MAX_NAMES_IN_ERROR);
        if more > 0 {
            all.push(format!("{more} more").into());
        }
        all
    }
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    let four = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    four.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from)).ok()
}
