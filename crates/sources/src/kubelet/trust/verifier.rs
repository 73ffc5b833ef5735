//! Verifies that a server certificate belongs to the scraped node.
//!
//! Most kubelets are dialled by an IP address that their certificate does not contain. A certificate of a trusted CA
//! that names the node proves the same identity, because only that kubelet can obtain it. This makes
//! `--kubelet-insecure-tls` unnecessary.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use api::provider::Compat;
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, Error, OtherError, RootCertStore};
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::http::{CertVerifier, CertificateCheck};

/// Number of certificate names listed in an error.
const MAX_NAMES_IN_ERROR: usize = 5;

/// Verifier of kubelet certificates.
pub(super) type KubeletCertVerifier = CertVerifier<KubeletCertCheck>;

/// Checks the certificate of a kubelet.
#[derive(Clone)]
pub(super) struct KubeletCertCheck {
    algorithms: WebPkiSupportedAlgorithms,
    /// Trusted CA; `None` accepts every certificate.
    roots: Option<Arc<RootCertStore>>,
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

impl fmt::Debug for KubeletCertCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KubeletCertCheck").field("node", &self.node).finish_non_exhaustive()
    }
}

impl KubeletCertCheck {
    /// A verifier for any node: only the dialled address counts.
    pub(super) fn verifier(
        provider: &CryptoProvider,
        roots: Option<Arc<RootCertStore>>,
        compat: Compat,
    ) -> KubeletCertVerifier {
        let algorithms = provider.signature_verification_algorithms;
        CertVerifier::new(provider, Self { algorithms, roots, compat, node: None })
    }
}

/// A verifier that also accepts certificates naming this node; `None` if that makes no difference.
pub(super) fn for_node(verifier: &KubeletCertVerifier, node: &str) -> Option<KubeletCertVerifier> {
    let check = verifier.check();
    let accepts_names = check.roots.is_some() && !check.compat.is_strict();
    accepts_names.then(|| verifier.with_check(KubeletCertCheck { node: Some(node.into()), ..check.clone() }))
}

impl CertificateCheck for KubeletCertCheck {
    fn check(
        &self,
        certificate: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        dialled: &ServerName<'_>,
        now: UnixTime,
    ) -> Result<(), Error> {
        let Some(roots) = &self.roots else { return Ok(()) };
        let parsed = ParsedCertificate::try_from(certificate)?;
        verify_server_cert_signed_by_trust_anchor(&parsed, roots, chain, now, self.algorithms.all)?;
        if verify_server_name(&parsed, dialled).is_ok() {
            return Ok(());
        }
        let names = CertificateNames::of(certificate);
        if self.node.as_ref().is_some_and(|node| names.are_of(node)) {
            return Ok(());
        }
        let wrong = OtherError(Arc::new(CertificateNameMismatch { has: names.some() }));
        Err(Error::InvalidCertificate(CertificateError::Other(wrong)))
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
