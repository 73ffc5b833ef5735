//! Whether another running operator owns the APIServices and the webhook: then our CA must not replace its own.
//!
//! An operator shows that it runs by renewing a Lease in the namespace of its Service. A process without leader election reads
//! the Lease of its own namespace, too.

use std::collections::HashMap;
use std::time::Duration;

use cluster::lease::Lease;
use cluster::request::{ApiError, Request, path, send};
use kube::Client;
use tokio::time::Instant;

const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// The lease duration that is assumed where a Lease states none.
const DEFAULT_LEASE_DURATION: Duration = Duration::from_secs(15);

/// The Lease with which operators show that they run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OwnerLease {
    /// Our own namespace.
    pub(crate) namespace: String,
    /// The name of the Lease in every namespace.
    pub(crate) name: String,
}

/// The owner of objects whose Service is in a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// Nobody else.
    Nobody,
    /// Another process, which renews its Lease or may do so yet.
    Other(String),
    /// The Lease cannot be read.
    Unknown(String),
}

/// Follows the Leases of other operators.
#[derive(Debug)]
pub(super) struct OwnerWatch {
    lease: OwnerLease,
    /// The Lease last seen in each namespace, and since when it has been the same.
    seen: HashMap<String, (Lease, Instant)>,
}

impl OwnerWatch {
    pub(super) fn new(lease: OwnerLease) -> Self {
        Self { lease, seen: HashMap::new() }
    }

    /// The owner of objects whose Service is in `namespace`. An election has decided about our own namespace.
    pub(super) async fn owner(&mut self, client: &Client, namespace: &str, has_election: bool) -> Owner {
        let own = self.lease.namespace.clone();
        let mut places = Vec::new();
        if !has_election {
            places.push(own.as_str());
        }
        if namespace != own && !namespace.is_empty() {
            places.push(namespace);
        }
        for place in places {
            let owner = match self.read(client, place).await {
                Ok(lease) => self.observe(place, lease, Instant::now()),
                Err(error) => Owner::Unknown(error.to_string()),
            };
            if owner != Owner::Nobody {
                return owner;
            }
        }
        Owner::Nobody
    }

    async fn read(&self, client: &Client, namespace: &str) -> Result<Option<Lease>, ApiError> {
        let name = self.lease.name.as_str();
        let place = ["apis", "coordination.k8s.io", "v1", "namespaces", namespace, "leases", name];
        let request = Request::get(path(place), "leases", REQUEST_TIMEOUT).named(name);
        match send(client, request).await {
            Ok(body) => Ok(Lease::parse(&body)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The owner by a Lease that was read at `now`. As in an election, a Lease is given up when it has not changed for its
    /// duration by our own clock.
    fn observe(&mut self, namespace: &str, lease: Option<Lease>, now: Instant) -> Owner {
        let Some(lease) = lease.filter(|lease| !lease.holder().is_empty()) else {
            self.seen.remove(namespace);
            return Owner::Nobody;
        };
        let known = self.seen.get(namespace).filter(|(known, _)| *known == lease);
        let since = known.map_or(now, |(_, since)| *since);
        let holder = lease.holder().to_owned();
        let duration = lease.duration().unwrap_or(DEFAULT_LEASE_DURATION);
        self.seen.insert(namespace.to_owned(), (lease, since));
        if now.saturating_duration_since(since) >= duration { Owner::Nobody } else { Owner::Other(holder) }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lease(holder: &str, renewed: u32) -> Option<Lease> {
        let spec = json!({"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": format!("2026-01-01T00:00:{renewed:02}Z")});
        Lease::parse(json!({"metadata": {"name": "operator.keda.sh"}, "spec": spec}).to_string().as_bytes())
    }

    #[test]
    fn lease_that_is_renewed_has_an_owner() {
        let lease_of = OwnerLease { namespace: "keda".into(), name: "operator.keda.sh".into() };
        let (mut watch, start) = (OwnerWatch::new(lease_of), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let other = Owner::Other("a".to_owned());
        assert_eq!(watch.observe("keda", None, at(0)), Owner::Nobody);
        assert_eq!(watch.observe("keda", lease("", 0), at(0)), Owner::Nobody, "released");
        // At first sight it may be renewed yet.
        assert_eq!(watch.observe("keda", lease("a", 0), at(0)), other);
        assert_eq!(watch.observe("keda", lease("a", 0), at(14)), other);
        assert_eq!(watch.observe("keda", lease("a", 14), at(15)), other, "renewed");
        assert_eq!(watch.observe("keda", lease("a", 14), at(29)), other);
        assert_eq!(watch.observe("keda", lease("a", 14), at(30)), Owner::Nobody, "its holder has died");
        assert_eq!(watch.observe("keda", lease("b", 31), at(31)), Owner::Other("b".to_owned()));
    }
}
