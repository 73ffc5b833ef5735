//! The client certificate of a connection.

use std::sync::Mutex;
use std::time::Duration;

use api::text::hex;
use jiff::Timestamp;
use locks::MutexExt as _;
use runtime::Clock;
use rustls::pki_types::CertificateDer;
use tokio::time::Instant;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::authorities::Authorities;
use super::trust::Trust;
use super::user::User;
use crate::digest::sha256;

/// How long a verification result is reused; meanwhile the certificate may expire or its CA may be removed.
const VERIFICATION_TTL: Duration = Duration::from_mins(1);

/// The client of a connection, by its certificate. The handshake has proved that it has the key, and nothing else.
pub(crate) struct Peer {
    chain: Vec<CertificateDer<'static>>,
    name: String,
    organizations: Vec<String>,
    checked: Mutex<Option<(u64, Instant, TrustedChains)>>,
}

/// The CAs that a certificate chains to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TrustedChains {
    /// The CA of front proxies.
    pub(super) proxy: bool,
    /// The CA of users.
    pub(super) client: bool,
}

impl Peer {
    /// None if the certificate cannot be parsed.
    pub(crate) fn new(chain: Vec<CertificateDer<'static>>) -> Option<Self> {
        let (_, certificate) = X509Certificate::from_der(chain.first()?.as_ref()).ok()?;
        let subject = certificate.subject();
        // Go uses the last of several common names.
        let name = subject.iter_common_name().last().and_then(|name| name.as_str().ok());
        let name = name.unwrap_or_default().to_owned();
        let organizations = subject.iter_organization().filter_map(|name| name.as_str().ok());
        let organizations = organizations.map(str::to_owned).collect();
        Some(Self { chain, name, organizations, checked: Mutex::default() })
    }

    /// The common name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The user that the certificate identifies.
    pub(super) fn user(&self) -> Option<User> {
        let own = self.chain.first().filter(|_| !self.name.is_empty())?;
        let credential = format!("X509SHA256={}", hex(&sha256(own)));
        let extra = [("authentication.kubernetes.io/credential-id".to_owned(), vec![credential])];
        Some(User {
            name: self.name.clone(),
            uid: String::new(),
            groups: self.organizations.clone(),
            extra: extra.into(),
        })
    }

    /// Whether it chains to one of these CAs now.
    pub(super) fn is_signed_by(&self, authorities: &Authorities, at: Timestamp) -> bool {
        authorities.verify(&self.chain, at)
    }

    /// The CAs it chains to, verified now or within `VERIFICATION_TTL`.
    pub(super) fn trusted_chains(&self, trust: &Trust, clock: &Clock) -> TrustedChains {
        let now = Instant::now();
        let mut checked = self.checked.locked();
        if let Some((generation, until, chains)) = *checked
            && generation == trust.generation
            && now < until
        {
            return chains;
        }
        let at = clock.now();
        let is_signed =
            |authorities: Option<&Authorities>| authorities.is_some_and(|them| them.verify(&self.chain, at));
        let chains = TrustedChains {
            proxy: is_signed(trust.proxy.as_ref().map(|proxy| &proxy.authorities)),
            client: is_signed(trust.clients.as_ref()),
        };
        *checked = Some((trust.generation, now + VERIFICATION_TTL, chains));
        chains
    }
}
