//! A CA, the certificate it signed, and their renewal: what replicas share. The caller stores the bundle.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    PublicKeyData as _,
};
use rustls::RootCertStore;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use x509_parser::prelude::{FromDer as _, GeneralName, X509Certificate};

use super::issue::{NOT_BEFORE_SKEW, parameters};
use super::pem::{CertificateError, PemPair};

/// The maximum number of CAs: one that signs, and earlier ones.
const MAX_AUTHORITIES: usize = 8;

/// CAs, the key of the first of them, and a certificate with its key, all as PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct CertificateBundle {
    /// The CA that signs, then earlier ones whose certificates may still be in use.
    pub authorities: String,
    /// The key of the first CA; empty if it is not known.
    pub authority_key: String,
    /// The certificate for servers and clients.
    pub certificate: String,
    /// Its key.
    pub key: String,
}

/// Lifetimes of CAs and certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CertificateLifetimes {
    /// Lifetime of a CA.
    pub authority: SignedDuration,
    /// Lifetime of a certificate.
    pub certificate: SignedDuration,
    /// How long a new CA is distributed before it signs certificates.
    pub distributed_before_use: SignedDuration,
}

/// The next step for a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BundleRenewal {
    /// The bundle is valid.
    Keep,
    /// The bundle is valid and should be replaced by this one.
    Renew(CertificateBundle),
    /// The bundle is not usable; this one replaces it.
    Replace(CertificateBundle),
}

impl fmt::Debug for CertificateBundle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CertificateBundle").finish_non_exhaustive()
    }
}

impl Default for CertificateLifetimes {
    fn default() -> Self {
        Self {
            authority: SignedDuration::from_hours(10 * 365 * 24),
            certificate: SignedDuration::from_hours(365 * 24),
            // Mounted Secrets lag by up to two minutes.
            distributed_before_use: SignedDuration::from_mins(10),
        }
    }
}

/// A parsed certificate.
struct ParsedCertificate {
    pem: String,
    der: CertificateDer<'static>,
    from: Timestamp,
    until: Timestamp,
    key: Vec<u8>,
    names: Vec<String>,
}

impl ParsedCertificate {
    fn of(der: CertificateDer<'static>) -> Option<Self> {
        let (_, read) = X509Certificate::from_der(&der).ok()?;
        let time = |at: i64| Timestamp::from_second(at).ok();
        let (from, until) =
            (time(read.validity().not_before.timestamp())?, time(read.validity().not_after.timestamp())?);
        let key = read.public_key().raw.to_vec();
        let alternatives = read.subject_alternative_name().ok().flatten();
        let names = alternatives.map(|found| found.value.general_names.iter().filter_map(name).collect());
        let names = names.unwrap_or_default();
        let pem = pem_of(&der);
        Some(Self { pem, der, from, until, key, names })
    }

    fn is_valid(&self, now: Timestamp) -> bool {
        self.from <= now && now < self.until
    }
}

fn name(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => {
            let address = <[u8; 4]>::try_from(*bytes).map(IpAddr::from);
            let address = address.or_else(|_| <[u8; 16]>::try_from(*bytes).map(IpAddr::from));
            address.ok().map(|address| address.to_string())
        }
        _ => None,
    }
}

/// PEM text with 64 characters per line.
fn pem_of(der: &[u8]) -> String {
    use base64::Engine as _;
    let text = base64::engine::general_purpose::STANDARD.encode(der);
    let mut pem = "-----BEGIN CERTIFICATE-----\n".to_owned();
    for (place, letter) in text.chars().enumerate() {
        if place > 0 && place % 64 == 0 {
            pem.push('\n');
        }
        pem.push(letter);
    }
    pem + "\n-----END CERTIFICATE-----\n"
}

impl CertificateBundle {
    /// A new CA and a new certificate for these names.
    pub fn make(
        names: &[String],
        lives: &CertificateLifetimes,
        now: Timestamp,
    ) -> Result<Self, CertificateError> {
        Self::after(&[], names, lives, now)
    }

    /// The next step for a certificate that must be valid for these names.
    pub fn next(
        &self,
        names: &[String],
        lives: &CertificateLifetimes,
        now: Timestamp,
    ) -> Result<BundleRenewal, CertificateError> {
        let trusted: Vec<ParsedCertificate> =
            self.trusted().into_iter().filter(|it| it.is_valid(now)).collect();
        let issuer = trusted.first().and_then(|first| self.issuer(first));
        // A certificate must not outlive its CA.
        let may_sign =
            trusted.first().is_some_and(|first| first.until.duration_since(now) >= lives.certificate);
        let Some(shown) =
            self.shown().filter(|shown| shown.is_valid(now) && is_signed_by(shown, &trusted, now))
        else {
            let made = match issuer.filter(|_| may_sign) {
                Some(issuer) => self.signed(&issuer, names, lives, now)?,
                None => Self::after(&trusted, names, lives, now)?,
            };
            return Ok(BundleRenewal::Replace(made));
        };
        let (Some(issuer), Some((first, others)), true) = (issuer, trusted.split_first(), may_sign) else {
            // All replicas must trust the new CA before it signs.
            let made = Self::after(&trusted, names, lives, now)?;
            return Ok(BundleRenewal::Renew(Self {
                certificate: self.certificate.clone(),
                key: self.key.clone(),
                ..made
            }));
        };
        let made = first.from.saturating_add(NOT_BEFORE_SKEW).unwrap_or(first.from);
        let age = now.duration_since(made);
        let left = shown.until.duration_since(now);
        let is_own = is_signed_by(&shown, std::slice::from_ref(first), now);
        let is_due = left < shown.until.duration_since(shown.from) / 4;
        let lacks = names.iter().any(|name| !shown.names.contains(name));
        if (is_own && (is_due || lacks))
            || (!is_own && (age >= lives.distributed_before_use || left < lives.distributed_before_use))
        {
            return self.signed(&issuer, names, lives, now).map(BundleRenewal::Renew);
        }
        // Certificates of older CAs have expired, or the CAs themselves.
        let is_over = !others.is_empty() && is_own && age > lives.certificate;
        let known = self.trusted().len();
        if is_over || known > trusted.len() {
            let left = if is_over { std::slice::from_ref(first) } else { trusted.as_slice() };
            return Ok(BundleRenewal::Renew(Self { authorities: bundle(left), ..self.clone() }));
        }
        Ok(BundleRenewal::Keep)
    }

    /// Whether clients that trust the CAs accept the certificate now.
    pub fn is_good(&self, now: Timestamp) -> bool {
        let trusted = self.trusted();
        self.shown().is_some_and(|shown| shown.is_valid(now) && is_signed_by(&shown, &trusted, now))
    }

    /// A new CA before the known ones, and a certificate that it signed.
    fn after(
        known: &[ParsedCertificate],
        names: &[String],
        lives: &CertificateLifetimes,
        now: Timestamp,
    ) -> Result<Self, CertificateError> {
        let key = KeyPair::generate()?;
        let mut parameters = parameters(Vec::new(), "KEDA", now, lives.authority)?;
        parameters.distinguished_name.push(DnType::OrganizationName, "KEDAORG");
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.key_usages =
            vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
        let own = parameters.self_signed(&key)?.pem();
        let empty = Self {
            authorities: own + &bundle(known.get(..MAX_AUTHORITIES - 1).unwrap_or(known)),
            authority_key: key.serialize_pem(),
            certificate: String::new(),
            key: String::new(),
        };
        empty.signed(&Issuer::new(parameters, key), names, lives, now)
    }

    /// The same CAs with a new certificate.
    fn signed(
        &self,
        issuer: &Issuer<'_, KeyPair>,
        names: &[String],
        lives: &CertificateLifetimes,
        now: Timestamp,
    ) -> Result<Self, CertificateError> {
        let first = names.first().map_or("plimsoll", String::as_str);
        let mut parameters = parameters(names.to_vec(), first, now, lives.certificate)?;
        parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
        parameters.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        parameters.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let certificate = parameters.signed_by(&key, issuer)?.pem();
        Ok(Self { certificate, key: key.serialize_pem(), ..self.clone() })
    }

    fn trusted(&self) -> Vec<ParsedCertificate> {
        let found = CertificateDer::pem_slice_iter(self.authorities.as_bytes()).flatten();
        found.take(MAX_AUTHORITIES).filter_map(ParsedCertificate::of).collect()
    }

    /// The certificate, if it matches its key.
    fn shown(&self) -> Option<ParsedCertificate> {
        let provider = rustls::crypto::aws_lc_rs::default_provider();
        self.pem().pair(&provider).ok()?;
        ParsedCertificate::of(CertificateDer::from_pem_slice(self.certificate.as_bytes()).ok()?)
    }

    /// The issuer of the first CA, if its key is known.
    fn issuer(&self, first: &ParsedCertificate) -> Option<Issuer<'static, KeyPair>> {
        let key = KeyPair::from_pem(&self.authority_key).ok()?;
        if key.subject_public_key_info() != first.key {
            return None;
        }
        Issuer::from_ca_cert_der(&first.der, key).ok()
    }

    pub(super) fn pem(&self) -> PemPair {
        PemPair { certificate: self.certificate.clone().into_bytes(), key: self.key.clone().into_bytes() }
    }
}

fn bundle(authorities: &[ParsedCertificate]) -> String {
    authorities.iter().map(|it| it.pem.as_str()).collect()
}

/// Whether one of the CAs has signed the certificate.
fn is_signed_by(shown: &ParsedCertificate, authorities: &[ParsedCertificate], now: Timestamp) -> bool {
    let ders = authorities.iter().map(|it| it.der.clone());
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let time = Duration::from_secs(u64::try_from(now.as_second()).unwrap_or_default());
    let verifier = verifier(ders, &provider);
    verifier.is_some_and(|verifier| {
        verifier.verify_client_cert(&shown.der, &[], UnixTime::since_unix_epoch(time)).is_ok()
    })
}

/// A verifier for client certificates that one of these CAs has signed; none without CAs.
pub(super) fn verifier(
    authorities: impl Iterator<Item = CertificateDer<'static>>,
    provider: &Arc<CryptoProvider>,
) -> Option<Arc<dyn ClientCertVerifier>> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(authorities);
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
    verifier.build().ok().map(|verifier| verifier as Arc<dyn ClientCertVerifier>)
}

#[cfg(test)]
mod tests;
