//! Who may send reviews. API servers present no certificate by default, so that everybody may, within a limit.

use std::path::Path;
use std::sync::Arc;

use crate::clock::Clock;
use crate::identity::{ClientAuthority, ClientAuthorityError};
use crate::peer_address::PeerAddress;
use crate::status::Status;
use crate::throttle::Throttle;
use crate::tls::{Caller, ConnectionRank};

/// How many reviews one client address may send at once: an API server sends one for each write of an object.
const MAX_REVIEWS_AT_ONCE: u32 = 500;

/// How many more reviews one client address may send, per second.
const REVIEWS_PER_SECOND: u32 = 100;

/// Decides whose reviews are answered.
#[derive(Clone)]
pub struct Reviewers {
    authority: Option<Arc<ClientAuthority>>,
    throttle: Arc<Throttle<PeerAddress>>,
}

impl Default for Reviewers {
    /// Everybody, within a limit per address.
    fn default() -> Self {
        let throttle = Arc::new(Throttle::new(MAX_REVIEWS_AT_ONCE, REVIEWS_PER_SECOND));
        Self { authority: None, throttle }
    }
}

impl Reviewers {
    /// Only clients with a certificate that the CA in this file (PEM) has signed.
    pub fn signed_by(authority: &Path, clock: Clock) -> Result<Self, ClientAuthorityError> {
        let authority = Some(Arc::new(ClientAuthority::open(authority, clock)?));
        Ok(Self { authority, ..Self::default() })
    }

    /// An error unless the review of this client is answered. Inside this process everybody may send reviews.
    pub(super) fn check(&self, caller: Option<&Caller>) -> Result<(), Status> {
        let Some((caller, address)) = caller.and_then(|caller| Some((caller, caller.address?))) else {
            return Ok(());
        };
        if let Some(authority) = &self.authority {
            let is_signed = caller.certificate.as_ref().is_some_and(|peer| authority.has_signed(peer));
            if !is_signed {
                return Err(Status::unauthorized());
            }
            caller.activity.rise(ConnectionRank::Authorized);
            return Ok(());
        }
        if self.throttle.take(&address) { Ok(()) } else { Err(Status::too_many()) }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use localkube::access::{Authority, Identity};
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject as _;

    use super::*;
    use crate::identity::Peer;
    use crate::tls::Activity;

    fn caller(last: u8, identity: Option<&Identity>) -> Caller {
        let certificate = identity.map(|identity| {
            let own = CertificateDer::from_pem_slice(identity.certificate.as_bytes()).unwrap();
            Arc::new(Peer::new(vec![own]).unwrap())
        });
        let address = Some(IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)).into());
        Caller { certificate, address, activity: Activity::new() }
    }

    #[tokio::test(start_paused = true)]
    async fn each_address_has_a_limit() {
        let reviewers = Reviewers::default();
        let answered =
            |last| (0..1000).filter(|_| reviewers.check(Some(&caller(last, None))).is_ok()).count();
        assert_eq!((answered(1), answered(2)), (500, 500));
        assert_eq!(reviewers.check(Some(&caller(1, None))).unwrap_err().code, 429);
        assert!(reviewers.check(None).is_ok());
        tokio::time::advance(std::time::Duration::from_secs(1)).await;
        assert_eq!(answered(1), 100);
    }

    #[tokio::test]
    async fn with_a_ca_only_its_clients_are_answered() {
        let folder = std::env::temp_dir().join(format!("serve-reviewers-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (ours, other) = (Authority::new("ours").unwrap(), Authority::new("other").unwrap());
        let file = folder.join("ca.crt");
        std::fs::write(&file, ours.certificate()).unwrap();
        let reviewers = Reviewers::signed_by(&file, Clock::default()).unwrap();
        let code = |identity: Option<&Identity>| {
            reviewers.check(Some(&caller(1, identity))).map_err(|status| status.code)
        };
        assert_eq!(code(Some(&ours.client("kube-apiserver", None).unwrap())), Ok(()));
        assert_eq!(code(Some(&other.client("kube-apiserver", None).unwrap())), Err(401));
        assert_eq!(code(None), Err(401));
        assert!(Reviewers::signed_by(&folder.join("none"), Clock::default()).is_err());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
