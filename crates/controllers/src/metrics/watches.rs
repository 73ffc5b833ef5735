//! Reflectors of nodes and running pods into the inventory.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use api::pod;
use api::reports::ReportedProblem;
use cluster::watch::{self, MeasuredNode, MeasuredPod, View, WatchEvent, WatchHealth, WatchSource};
use kube::Client;
use runtime::{CheckFailure, Reflectors, WatchSet};
use sources::inventory::{Inventory, Node, Pod};

use crate::hpa::PodObserver;

/// The watched nodes and running pods. Cheap to clone; the watches end with the last clone.
#[derive(Clone, Debug)]
pub struct ClusterInventory {
    /// The inventory.
    pub inventory: Inventory,
    /// The health of the watch of nodes.
    pub nodes: WatchHealth,
    /// The health of the watch of running pods.
    pub pods: WatchHealth,
    watches: WatchSet,
    #[allow(dead_code, reason = "the reflectors end when this is dropped")]
    reflectors: Arc<Reflectors>,
}

impl ClusterInventory {
    /// Starts to watch.
    pub fn start(client: &Client) -> Self {
        let inventory = Inventory::new();
        let mut reflectors = Reflectors::default();
        let mut spawn = SpawnReflector { reflectors: &mut reflectors, client, inventory: &inventory };
        let nodes = spawn.run::<MeasuredNode>(WatchSource::nodes());
        let pods = spawn.run::<MeasuredPod>(WatchSource::running_pods());
        Self { inventory, nodes, pods, watches: reflectors.watches(), reflectors: Arc::new(reflectors) }
    }

    /// Starts to watch nodes. Pods come from the watch of a controller in the same process, with this observer.
    pub fn with_observed_pods(client: &Client) -> (Self, PodObserver) {
        let inventory = Inventory::new();
        let mut reflectors = Reflectors::default();
        let mut spawn = SpawnReflector { reflectors: &mut reflectors, client, inventory: &inventory };
        let nodes = spawn.run::<MeasuredNode>(WatchSource::nodes());
        let (pods, mut feed) = (WatchHealth::default(), InventoryFeed::new(inventory.clone()));
        let observer =
            PodObserver { health: pods.clone(), apply: Box::new(move |event| feed.take(running(event))) };
        let watches = reflectors.watches();
        (Self { inventory, nodes, pods, watches, reflectors: Arc::new(reflectors) }, observer)
    }

    /// The health of the watches.
    pub(super) fn watches(&self) -> &WatchSet {
        &self.watches
    }

    /// Whether nodes and pods were listed once, or why not.
    pub(super) fn is_synced(&self) -> Result<(), CheckFailure> {
        for (what, health) in [("nodes", &self.nodes), ("pods", &self.pods)] {
            if !health.synced() {
                let why = health.last_error().map(|error| format!(": {error}")).unwrap_or_default();
                return Err(CheckFailure(format!("{what} were not listed yet{why}")));
            }
        }
        self.watches.check()
    }

    /// Problems of the watches.
    pub(super) fn problems(&self) -> Vec<ReportedProblem> {
        let watches = [("nodes", &self.nodes), ("pods", &self.pods)];
        let wrong = watches.iter().filter(|(_, health)| health.disconnected_since().is_some());
        let problem = |(what, health): &(&str, &WatchHealth)| {
            let error = health.last_error().unwrap_or_else(|| "not connected yet".into());
            ReportedProblem {
                reason: "WatchInterrupted".to_owned(),
                cause: format!("{what} cannot be watched: {error}"),
                remedy: format!(
                    "let kube-apiserver be reached, and let the service account list and watch {what}"
                ),
                ..ReportedProblem::default()
            }
        };
        wrong.map(problem).collect()
    }
}

/// Starts reflectors into an inventory.
struct SpawnReflector<'a> {
    reflectors: &'a mut Reflectors,
    client: &'a Client,
    inventory: &'a Inventory,
}

impl SpawnReflector<'_> {
    fn run<T: InventoryObject>(&mut self, source: WatchSource) -> WatchHealth {
        let (client, mut feed) = (self.client.clone(), InventoryFeed::new(self.inventory.clone()));
        self.reflectors.spawn(
            source.resource().to_owned(),
            move |health| watch::list_and_watch::<T>(client.clone(), source.clone(), health),
            move |event| feed.take(event),
        )
    }
}

/// The part of the inventory for one kind.
trait InventoryObject: View {
    fn keep(self, inventory: &Inventory);
    fn remove(inventory: &Inventory, namespace: &str, name: &str);
    fn complete(inventory: &Inventory);
    /// The namespaces and names in the inventory.
    fn all(inventory: &Inventory, each: &mut dyn FnMut(&str, &str));
}

impl InventoryObject for MeasuredNode {
    fn keep(self, inventory: &Inventory) {
        let pair = |(kind, address): (String, String)| (kind.into(), address.into());
        inventory.set_node(Node {
            name: self.name.into(),
            labels: Arc::new(self.labels.into_iter().collect()),
            addresses: self.addresses.into_iter().map(pair).collect(),
            port: self.port,
            ready: self.ready,
            path: self.path.into(),
        });
    }

    fn remove(inventory: &Inventory, _: &str, name: &str) {
        inventory.remove_node(name);
    }

    fn complete(inventory: &Inventory) {
        inventory.nodes_complete();
    }

    fn all(inventory: &Inventory, each: &mut dyn FnMut(&str, &str)) {
        inventory.nodes().iter().for_each(|node| each("", &node.name));
    }
}

impl InventoryObject for MeasuredPod {
    fn keep(self, inventory: &Inventory) {
        inventory.set_pod(Pod {
            namespace: self.namespace.into(),
            name: self.name.into(),
            labels: Arc::new(self.labels.into_iter().collect()),
        });
    }

    fn remove(inventory: &Inventory, namespace: &str, name: &str) {
        inventory.remove_pod(namespace, name);
    }

    fn complete(inventory: &Inventory) {
        inventory.pods_complete();
    }

    fn all(inventory: &Inventory, each: &mut dyn FnMut(&str, &str)) {
        inventory.pods(None).iter().for_each(|pod| each(&pod.namespace, &pod.name));
    }
}

/// The event of a watch that selects running pods.
fn running(event: &WatchEvent<pod::Pod>) -> WatchEvent<MeasuredPod> {
    match event {
        WatchEvent::Listing => WatchEvent::Listing,
        WatchEvent::Listed => WatchEvent::Listed,
        WatchEvent::Applied(pod) => {
            let pod::PodMeta { namespace, name, labels, .. } = &pod.metadata;
            let (namespace, name) = (namespace.clone(), name.clone());
            if pod.status.phase == "Running" {
                WatchEvent::Applied(MeasuredPod { namespace, name, labels: labels.clone() })
            } else {
                WatchEvent::Deleted { namespace, name }
            }
        }
        WatchEvent::Deleted { namespace, name } | WatchEvent::Unreadable { namespace, name, .. } => {
            WatchEvent::Deleted { namespace: namespace.clone(), name: name.clone() }
        }
    }
}

/// Applies watch events to the inventory. A complete list removes what it does not contain.
struct InventoryFeed {
    inventory: Inventory,
    /// Digests of the keys in the list in progress: names of 100,000 pods would take ten times as much memory. None if the
    /// inventory was empty before.
    seen: Option<HashSet<u64>>,
    digest: RandomState,
}

impl InventoryFeed {
    fn new(inventory: Inventory) -> Self {
        Self { inventory, seen: None, digest: RandomState::new() }
    }

    fn take<T: InventoryObject>(&mut self, change: WatchEvent<T>) {
        match change {
            WatchEvent::Listing => {
                let mut any = false;
                T::all(&self.inventory, &mut |_, _| any = true);
                self.seen = any.then(HashSet::new);
            }
            WatchEvent::Listed => {
                if let Some(seen) = self.seen.take() {
                    self.sweep::<T>(&seen);
                }
                T::complete(&self.inventory);
            }
            WatchEvent::Applied(object) => {
                let digest = self.digest.hash_one(object.key());
                if let Some(seen) = &mut self.seen {
                    seen.insert(digest);
                }
                object.keep(&self.inventory);
            }
            // An object that cannot be decoded is removed.
            WatchEvent::Deleted { namespace, name } | WatchEvent::Unreadable { namespace, name, .. } => {
                T::remove(&self.inventory, &namespace, &name);
            }
        }
    }

    fn sweep<T: InventoryObject>(&self, seen: &HashSet<u64>) {
        let mut gone = Vec::new();
        T::all(&self.inventory, &mut |namespace, name| {
            if !seen.contains(&self.digest.hash_one((namespace, name))) {
                gone.push((namespace.to_owned(), name.to_owned()));
            }
        });
        for (namespace, name) in gone {
            T::remove(&self.inventory, &namespace, &name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(name: &str) -> WatchEvent<MeasuredPod> {
        WatchEvent::Applied(MeasuredPod {
            namespace: "shop".into(),
            name: name.into(),
            ..MeasuredPod::default()
        })
    }

    fn names(inventory: &Inventory) -> Vec<String> {
        inventory.pods(None).iter().map(|pod| pod.name.to_string()).collect()
    }

    #[test]
    fn a_complete_list_removes_what_it_does_not_contain() {
        let inventory = Inventory::new();
        let mut intake = InventoryFeed::new(inventory.clone());
        for change in [WatchEvent::Listing, pod("a"), pod("b"), pod("c"), WatchEvent::Listed] {
            intake.take(change);
        }
        assert_eq!(names(&inventory), ["a", "b", "c"]);
        // Nothing is removed before the next list is complete; then objects that are in neither list are removed.
        for change in [WatchEvent::Listing, pod("b"), pod("d")] {
            intake.take(change);
        }
        assert_eq!(names(&inventory), ["a", "b", "c", "d"]);
        // A list that is cut off starts again.
        for change in [WatchEvent::Listing, pod("b"), pod("e"), WatchEvent::Listed] {
            intake.take(change);
        }
        assert_eq!(names(&inventory), ["b", "e"]);
        intake.take::<MeasuredPod>(WatchEvent::Deleted { namespace: "shop".into(), name: "b".into() });
        let error = "no".into();
        intake.take::<MeasuredPod>(WatchEvent::Unreadable {
            namespace: "shop".into(),
            name: "e".into(),
            error,
        });
        assert!(names(&inventory).is_empty());
    }

    #[test]
    fn whole_pods_are_kept_while_they_run() {
        let whole = |name: &str, phase: &str| {
            let metadata =
                pod::PodMeta { namespace: "shop".into(), name: name.into(), ..pod::PodMeta::default() };
            let status = pod::PodStatus { phase: phase.into(), ..pod::PodStatus::default() };
            WatchEvent::Applied(pod::Pod { metadata, status, ..pod::Pod::default() })
        };
        let inventory = Inventory::new();
        let mut feed = InventoryFeed::new(inventory.clone());
        let listed = [whole("a", "Running"), whole("b", "Pending"), whole("c", "Running")];
        for event in [WatchEvent::Listing].into_iter().chain(listed).chain([WatchEvent::Listed]) {
            feed.take(running(&event));
        }
        assert_eq!(names(&inventory), ["a", "c"]);
        for event in [whole("a", "Succeeded"), whole("b", "Running")] {
            feed.take(running(&event));
        }
        assert_eq!(names(&inventory), ["b", "c"]);
        feed.take(running(&WatchEvent::Deleted { namespace: "shop".into(), name: "c".into() }));
        assert_eq!(names(&inventory), ["b"]);
    }

    #[test]
    fn a_list_of_nodes_does_not_touch_pods() {
        let inventory = Inventory::new();
        let mut pods = InventoryFeed::new(inventory.clone());
        for change in [WatchEvent::Listing, pod("a"), WatchEvent::Listed] {
            pods.take(change);
        }
        assert!(!inventory.is_complete());
        let mut nodes = InventoryFeed::new(inventory.clone());
        let node = |name: &str| MeasuredNode { name: name.into(), port: 7, ..MeasuredNode::default() };
        for change in [WatchEvent::Listing, WatchEvent::Applied(node("n")), WatchEvent::Listed] {
            nodes.take(change);
        }
        assert!(inventory.is_complete());
        for change in [WatchEvent::Listing, WatchEvent::Applied(node("m")), WatchEvent::Listed] {
            nodes.take(change);
        }
        assert_eq!(inventory.nodes().iter().map(|node| node.name.to_string()).collect::<Vec<_>>(), ["m"]);
        assert_eq!(names(&inventory), ["a"]);
    }
}
