//! Responses of kubelets: each is parsed, stored and served, or refused.

use std::sync::Arc;
use std::time::Duration;

use api::provider::{Compat, Labels, PodUsage};
use api::selector::Selector;
use jiff::{SignedDuration, Timestamp};
use sources::inventory::{Inventory, Node, Pod};
use sources::kubelet::Scrape;
use sources::kubelet::text::parse;
use sources::store::{KubeletProvider, Store, StoreSettings};

/// The input is responses of one kubelet, 15 seconds apart, with a line `%` between them.
pub fn run(data: &[u8]) {
    let responses = split(data);
    for compat in [Compat::Better, Compat::Strict] {
        let inventory = Inventory::new();
        inventory.set_node(Node { name: "a".into(), ..Node::default() });
        let settings =
            StoreSettings { resolution: Duration::from_secs(15), keep: Duration::from_secs(30), compat };
        let store = Store::new(settings, inventory.clone());
        let provider = KubeletProvider::new(store.clone(), inventory.clone(), Selector::everything());
        let mut now = Timestamp::UNIX_EPOCH;
        for response in &responses {
            now += SignedDuration::from_secs(15);
            let scrape = parse(response, now, compat);
            let pods = scrape.iter().flat_map(|scrape| &scrape.pods);
            for pod in pods {
                let (namespace, name) = ((&*pod.namespace).into(), (&*pod.name).into());
                inventory.set_pod(Pod { namespace, name, labels: Arc::new(Labels::default()) });
            }
            scrape.iter().for_each(check_scrape);
            match (scrape, compat) {
                (Ok(scrape), Compat::Better) => store.take("a", scrape, now),
                (Ok(scrape), Compat::Strict) => store.replace_all(vec![("a".into(), scrape)]),
                (Err(error), _) => {
                    assert!(error.to_string().len() < 1000);
                    store.scrape_failed("a", now);
                }
            }
            let missing = provider.missing(usize::MAX).pods.len();
            let mut usage = 0;
            for namespace in inventory.pods(None).chunk_by(|a, b| a.namespace == b.namespace) {
                let pods =
                    namespace.first().map(|pod| provider.namespace(&pod.namespace)).unwrap_or_default();
                usage += pods.len();
                pods.iter().for_each(|pod| check_served_pod(pod, compat));
            }
            // Every pod is served or is missing with a reason. In strict mode a pod may be both, because it is served without some of its containers.
            let all = inventory.pod_count();
            assert!(usage + missing == all || compat.is_strict() && usage + missing > all);
        }
    }
}

fn split(data: &[u8]) -> Vec<&[u8]> {
    let mut responses = Vec::new();
    let mut rest = data;
    while let Some(at) = rest.windows(3).position(|three| three == b"\n%\n") {
        responses.push(&rest[..=at]);
        rest = &rest[at + 3..];
    }
    responses.push(rest);
    responses
}

/// Checks that pods and containers are sorted, and that every container has a value above zero for each resource.
fn check_scrape(scrape: &Scrape) {
    assert!(scrape.pods.is_sorted_by(|a, b| (&a.namespace, &a.name) < (&b.namespace, &b.name)));
    for pod in &scrape.pods {
        assert!(!pod.containers.is_empty() && pod.containers.is_sorted_by(|a, b| a.0 < b.0));
        assert!(pod.containers.iter().all(|(_, point)| point.cpu > 0 && point.memory > 0));
    }
}

fn check_served_pod(pod: &PodUsage, compat: Compat) {
    assert!(compat.is_strict() || !pod.containers.is_empty());
    assert!(pod.containers.is_empty() || pod.window > 0, "{pod:?}");
    for container in &pod.containers {
        assert!(container.usage.iter().all(|(_, quantity)| quantity.sign() >= 0), "{pod:?}");
    }
}
