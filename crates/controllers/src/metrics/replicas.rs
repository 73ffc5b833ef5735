//! Discovers the other replicas by the EndpointSlices of our Service.

use std::collections::HashMap;

use cluster::request::within;
use cluster::watch::{self, View, WatchEvent, WatchSource};
use kube::Client;
use runtime::Reflectors;
use serde::Deserialize;
use sources::sharding::{Replica, Sharding};
use tokio::task::JoinSet;

/// Updates the replicas of `sharding` from the EndpointSlices of a Service.
pub(super) fn follow(
    client: &Client,
    namespace: &str,
    service: &str,
    sharding: &Sharding,
    reflectors: &mut Reflectors,
    tasks: &mut JoinSet<()>,
) {
    let mut source = WatchSource::new(within("/apis/discovery.k8s.io/v1/endpointslices", namespace));
    source.parameters.push(("labelSelector", format!("kubernetes.io/service-name={service}")));
    let (client, updated, asking) = (client.clone(), sharding.clone(), sharding.clone());
    let mut known = KnownSlices::default();
    reflectors.spawn(
        source.resource().to_owned(),
        move |health| watch::list_and_watch::<EndpointSliceView>(client.clone(), source.clone(), health),
        move |event| {
            if let Some(replicas) = known.take(event) {
                updated.set(replicas);
            }
        },
    );
    tasks.spawn(async move { asking.run().await });
}

/// The watched EndpointSlices.
#[derive(Default)]
struct KnownSlices {
    slices: HashMap<String, Vec<Replica>>,
    /// The names in the list in progress.
    listing: Option<HashMap<String, Vec<Replica>>>,
}

impl KnownSlices {
    /// All replicas, if they may have changed.
    fn take(&mut self, change: WatchEvent<EndpointSliceView>) -> Option<Vec<Replica>> {
        match change {
            WatchEvent::Listing => {
                self.listing = Some(HashMap::new());
                return None;
            }
            WatchEvent::Listed => self.slices = self.listing.take().unwrap_or_default(),
            WatchEvent::Applied(slice) => {
                let into = self.listing.as_mut().unwrap_or(&mut self.slices);
                into.insert(slice.metadata.name.clone(), slice.replicas());
                if self.listing.is_some() {
                    return None;
                }
            }
            WatchEvent::Deleted { name, .. } | WatchEvent::Unreadable { name, .. } => {
                self.slices.remove(&name);
            }
        }
        let mut all: Vec<Replica> = self.slices.values().flatten().cloned().collect();
        all.sort_by(|a, b| a.id.cmp(&b.id));
        Some(all)
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct EndpointSliceView {
    metadata: SliceMetadata,
    endpoints: Option<Vec<SliceEndpoint>>,
    ports: Option<Vec<SlicePort>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct SliceMetadata {
    name: String,
    namespace: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct SliceEndpoint {
    addresses: Vec<String>,
    target_ref: Option<TargetRef>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct TargetRef {
    name: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct SlicePort {
    port: Option<u16>,
}

impl View for EndpointSliceView {
    fn key(&self) -> (&str, &str) {
        (&self.metadata.namespace, &self.metadata.name)
    }
}

impl EndpointSliceView {
    /// Replicas that are not ready count too: they may scrape already, and silent replicas are detected otherwise.
    fn replicas(&self) -> Vec<Replica> {
        let port = self.ports.iter().flatten().find_map(|port| port.port);
        let replica = |endpoint: &SliceEndpoint| {
            let host = endpoint.addresses.first()?;
            let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
            let id =
                endpoint.target_ref.as_ref().map_or(host.as_str(), |found| found.name.as_str()).to_owned();
            Some(Replica { id, address: format!("{host}:{}", port?) })
        };
        self.endpoints.iter().flatten().filter_map(replica).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn slice(name: &str, pods: &[(&str, &str)]) -> WatchEvent<EndpointSliceView> {
        let endpoint =
            |(pod, address): &(&str, &str)| json!({"addresses": [address], "targetRef": {"name": pod}});
        let endpoints: Vec<_> = pods.iter().map(endpoint).collect();
        let slice = json!({"metadata": {"name": name}, "endpoints": endpoints, "ports": [{"name": "https", "port": 10250}]});
        WatchEvent::Applied(serde_json::from_value(slice).unwrap())
    }

    #[test]
    fn all_slices_of_a_service_count() {
        let mut known = KnownSlices::default();
        let shown = |all: Option<Vec<Replica>>| {
            all.map(|all| {
                all.iter().map(|one| format!("{}={}", one.id, one.address)).collect::<Vec<_>>().join(" ")
            })
        };
        assert_eq!(shown(known.take(WatchEvent::Listing)), None);
        assert_eq!(shown(known.take(slice("x", &[("b", "10.0.0.2"), ("a", "fd00::1")]))), None);
        assert_eq!(shown(known.take(WatchEvent::Listed)).unwrap(), "a=[fd00::1]:10250 b=10.0.0.2:10250");
        let more = shown(known.take(slice("y", &[("c", "10.0.0.3")])));
        assert_eq!(more.unwrap(), "a=[fd00::1]:10250 b=10.0.0.2:10250 c=10.0.0.3:10250");
        let less = known.take(WatchEvent::Deleted { namespace: String::new(), name: "x".into() });
        assert_eq!(shown(less).unwrap(), "c=10.0.0.3:10250");
        known.take(WatchEvent::Listing);
        assert_eq!(shown(known.take(WatchEvent::Listed)).unwrap(), "");
    }

    #[test]
    fn a_slice_without_ports_has_no_replicas() {
        let slice: EndpointSliceView =
            serde_json::from_value(json!({"endpoints": [{"addresses": ["10.0.0.1"]}], "ports": null}))
                .unwrap();
        assert!(slice.replicas().is_empty());
    }
}
