//! Whether a certificate is that of the node that was asked.
//!
//! Most kubelets are dialled by an address that their certificate does not have. A certificate of a trusted authority
//! that names the node is as good: nobody but that node's kubelet can have got it. So nobody has to turn verification
//! off (`--kubelet-insecure-tls`) because of that.

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

/// Names of a certificate that are repeated in errors; some have hundreds.
const NAMES: usize = 5;

/// Whose certificates are good.
#[derive(Clone)]
pub(super) enum Believed {
    SignedBy(Arc<RootCertStore>),
    Anybody,
}

/// Says whether a certificate is good.
#[derive(Clone)]
pub(super) struct Verifier {
    algorithms: WebPkiSupportedAlgorithms,
    believed: Believed,
    compat: Compat,
    /// Whose certificate is as good as that of the address that was dialled.
    node: Option<Box<str>>,
}

/// A certificate of a trusted authority names others than the one that was asked.
#[derive(Debug)]
pub(crate) struct WrongName {
    /// Some of the names that it has.
    pub(crate) has: Vec<Box<str>>,
}

impl fmt::Display for WrongName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the certificate names only [{}]", self.has.join(", "))
    }
}

impl std::error::Error for WrongName {}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verifier").field("node", &self.node).finish_non_exhaustive()
    }
}

impl Verifier {
    pub(super) fn new(provider: &CryptoProvider, believed: Believed, compat: Compat) -> Self {
        Self { algorithms: provider.signature_verification_algorithms, believed, compat, node: None }
    }

    /// One that also believes certificates that name this node; none if that makes no difference.
    pub(super) fn for_node(&self, node: &str) -> Option<Self> {
        match self.believed {
            Believed::SignedBy(_) if !self.compat.is_strict() => {
                Some(Self { node: Some(node.into()), ..self.clone() })
            }
            _ => None,
        }
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        asked: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Believed::SignedBy(roots) = &self.believed else { return Ok(ServerCertVerified::assertion()) };
        let parsed = ParsedCertificate::try_from(certificate)?;
        verify_server_cert_signed_by_trust_anchor(&parsed, roots, chain, now, self.algorithms.all)?;
        if verify_server_name(&parsed, asked).is_ok() {
            return Ok(ServerCertVerified::assertion());
        }
        let names = Names::of(certificate);
        if self.node.as_ref().is_some_and(|node| names.are_of(node)) {
            return Ok(ServerCertVerified::assertion());
        }
        let wrong = OtherError(Arc::new(WrongName { has: names.some() }));
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

/// Whom a certificate names.
#[derive(Debug, Default)]
struct Names {
    dns: Vec<Box<str>>,
    addresses: Vec<IpAddr>,
    common: Vec<Box<str>>,
}

impl Names {
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

    /// Whether it is the certificate of a node: letter by letter, without wildcards.
    fn are_of(&self, node: &str) -> bool {
        self.dns.iter().any(|name| name.eq_ignore_ascii_case(node))
            || self.common.iter().any(|name| name.strip_prefix("system:node:") == Some(node))
    }

    /// Some of them, for people.
    fn some(self) -> Vec<Box<str>> {
        let addresses = self.addresses.iter().map(|address| Box::from(address.to_string()));
        let mut all: Vec<Box<str>> = self.dns.into_iter().chain(addresses).collect();
        if all.is_empty() {
            all = self.common;
        }
        let more = all.len().saturating_sub(NAMES);
        all.truncate(NAMES);
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
