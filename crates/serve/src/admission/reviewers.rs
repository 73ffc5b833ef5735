//! Which clients may send reviews. API servers present no certificate by default, so that every client may, within a limit.

use std::path::Path;
use std::sync::Arc;

use runtime::Clock;

use super::memory_budget::{MemoryBudget, MemoryShare};
use crate::identity::{ClientAuthority, ClientAuthorityError};
use crate::peer_address::PeerAddress;
use crate::status::Status;
use crate::throttle::Throttle;
use crate::tls::{Caller, ConnectionRank};

/// How many reviews one client address may send at once: an API server sends one for each write of an object.
const MAX_REVIEWS_AT_ONCE: u32 = 500;

/// How many more reviews one client address may send, per second.
const REVIEWS_PER_SECOND: u32 = 100;

/// Maximum size of all bodies of reviews under way together, in bytes; bodies up to [`UNCOUNTED_BODY_BYTES`] do not count. A quarter of
/// it, the part of one address, is [`MAX_BODY_BYTES`].
const MAX_BODY_BYTES_UNDER_WAY: usize = 12 << 20;

/// Maximum size of the body of one review, in bytes.
const MAX_BODY_BYTES: usize = 3 << 20;

/// Bodies up to this size do not count, so that reviews of most objects do not wait for large ones, in bytes.
const UNCOUNTED_BODY_BYTES: usize = 32 << 10;

/// Maximum size of the trees of all reviews under way together, in bytes; trees up to [`UNCOUNTED_TREE_BYTES`] do not count. A quarter
/// of it, the part of one address, is that of one review with as many values as are allowed.
const MAX_TREE_BYTES_UNDER_WAY: usize = 128 << 20;

/// Trees up to this size do not count, in bytes: objects that people write have some hundreds of values.
const UNCOUNTED_TREE_BYTES: usize = 256 << 10;

/// Decides whose reviews are answered.
#[derive(Clone)]
pub struct Reviewers {
    authority: Option<Arc<ClientAuthority>>,
    throttle: Arc<Throttle<PeerAddress>>,
    bodies: Arc<MemoryBudget>,
    trees: Arc<MemoryBudget>,
}

/// The share that a body has of the budget of all bodies, returned when this is dropped.
#[derive(Debug)]
pub(super) struct BodyShare {
    /// Maximum size of the body, in bytes.
    pub(super) bytes: usize,
    _share: Option<MemoryShare>,
}

impl Default for Reviewers {
    /// Everybody, within a limit per address.
    fn default() -> Self {
        Self {
            authority: None,
            throttle: Arc::new(Throttle::new(MAX_REVIEWS_AT_ONCE, REVIEWS_PER_SECOND)),
            bodies: Arc::new(MemoryBudget::new(MAX_BODY_BYTES_UNDER_WAY)),
            trees: Arc::new(MemoryBudget::new(MAX_TREE_BYTES_UNDER_WAY)),
        }
    }
}

impl Reviewers {
    /// Only clients with a certificate that the CA in this file (PEM) has signed.
    pub fn signed_by(authority: &Path, clock: Clock) -> Result<Self, ClientAuthorityError> {
        let authority = Some(Arc::new(ClientAuthority::open(authority, clock)?));
        Ok(Self { authority, ..Self::default() })
    }

    /// The address whose limits apply to a review of this client, if any do; an error unless the review is answered. Inside this process
    /// everybody may send reviews.
    pub(super) fn check(&self, caller: Option<&Caller>) -> Result<Option<PeerAddress>, Status> {
        let Some((caller, address)) = caller.and_then(|caller| Some((caller, caller.address?))) else {
            return Ok(None);
        };
        if let Some(authority) = &self.authority {
            let is_signed = caller.certificate.as_ref().is_some_and(|peer| authority.has_signed(peer));
            if !is_signed {
                return Err(Status::unauthorized());
            }
            caller.activity.rise(ConnectionRank::Authorized);
            return Ok(None);
        }
        if !self.throttle.take(&address) {
            return Err(Status::too_many());
        }
        Ok(Some(address))
    }

    /// Waits for the share of a body of this announced size. It is taken before the body is read, so that bodies that wait for each
    /// other take no memory.
    pub(super) async fn body_share(
        &self,
        address: Option<PeerAddress>,
        announced: Option<usize>,
    ) -> BodyShare {
        let bytes = announced.unwrap_or(MAX_BODY_BYTES).clamp(UNCOUNTED_BODY_BYTES, MAX_BODY_BYTES);
        if bytes == UNCOUNTED_BODY_BYTES {
            return BodyShare { bytes, _share: None };
        }
        BodyShare { bytes, _share: Some(self.bodies.share(address, bytes).await) }
    }

    /// Waits for the share of a tree of this size, which is taken before the body is decoded.
    pub(super) async fn tree_share(&self, address: Option<PeerAddress>, bytes: usize) -> Option<MemoryShare> {
        if bytes <= UNCOUNTED_TREE_BYTES {
            return None;
        }
        Some(self.trees.share(address, bytes).await)
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use futures::FutureExt as _;
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
    async fn large_bodies_share_a_budget() {
        let reviewers = Reviewers::default();
        let address = |last| caller(last, None).address;
        let large = reviewers.body_share(address(1), None).await;
        assert_eq!(large.bytes, MAX_BODY_BYTES);
        let mut waiting = Box::pin(reviewers.body_share(address(1), Some(usize::MAX)));
        assert!((&mut waiting).now_or_never().is_none());
        // Reviews of small objects do not wait, and those of other addresses do not wait either.
        assert_eq!(reviewers.body_share(address(1), Some(100)).await.bytes, UNCOUNTED_BODY_BYTES);
        let others = [2, 3, 4].map(|last| reviewers.body_share(address(last), None).now_or_never());
        assert!(others.iter().all(Option::is_some));
        assert!(reviewers.body_share(address(5), None).now_or_never().is_none());
        drop(large);
        assert_eq!(waiting.await.bytes, MAX_BODY_BYTES);
    }

    #[tokio::test]
    async fn large_trees_share_a_budget() {
        let reviewers = Reviewers::default();
        let address = |last| caller(last, None).address;
        let large = reviewers.tree_share(address(1), usize::MAX).await;
        assert!(reviewers.tree_share(address(1), UNCOUNTED_TREE_BYTES + 1).now_or_never().is_none());
        assert!(reviewers.tree_share(address(1), UNCOUNTED_TREE_BYTES).await.is_none());
        assert!(reviewers.tree_share(address(2), usize::MAX).now_or_never().is_some());
        drop(large);
        assert!(reviewers.tree_share(address(1), usize::MAX).now_or_never().is_some());
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
            reviewers.check(Some(&caller(1, identity))).map(|_| ()).map_err(|status| status.code)
        };
        assert_eq!(code(Some(&ours.client("kube-apiserver", None).unwrap())), Ok(()));
        assert_eq!(code(Some(&other.client("kube-apiserver", None).unwrap())), Err(401));
        assert_eq!(code(None), Err(401));
        assert!(Reviewers::signed_by(&folder.join("none"), Clock::default()).is_err());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
