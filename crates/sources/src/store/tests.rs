#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use api::provider::{Labels, ListFilter, Lookup, PodUsage, ResourceMetricsProvider};
use api::selector::{FieldSelector, Selector};
use futures::FutureExt as _;

use super::pair::PointPair;
use super::*;
use crate::inventory::Node;
use crate::kubelet::{IncompletePod, MetricsPoint, MissingUsage, PodPoints};

const RESOLUTION_SECONDS: u64 = 15;
const RETENTION_SECONDS: u64 = 60;

/// A small cluster whose clock is in seconds.
struct StoredCluster {
    inventory: Inventory,
    store: Store,
    provider: KubeletProvider,
}

impl StoredCluster {
    fn new(compat: Compat) -> Self {
        let settings = StoreSettings {
            resolution: Duration::from_secs(RESOLUTION_SECONDS),
            keep: Duration::from_secs(RETENTION_SECONDS),
            compat,
        };
        let inventory = Inventory::new();
        for name in ["a", "b"] {
            let labels = Arc::new([("zone", name)].into_iter().collect::<Labels>());
            inventory.set_node(Node { name: name.into(), labels, ..Node::default() });
        }
        for (namespace, name) in [("default", "db"), ("default", "web"), ("system", "dns")] {
            let labels = Arc::new([("app", name)].into_iter().collect::<Labels>());
            inventory.set_pod(Pod { namespace: namespace.into(), name: name.into(), labels });
        }
        let store = Store::new(settings, inventory.clone());
        let provider = KubeletProvider::new(store.clone(), inventory.clone(), Selector::everything());
        Self { inventory, store, provider }
    }

    fn list(&self, namespace: Option<&str>, labels: &str, fields: &str) -> Vec<PodUsage> {
        let listing = ListFilter {
            namespace: namespace.map(str::to_owned),
            labels: Selector::parse(labels).unwrap(),
            fields: FieldSelector::parse(fields).unwrap(),
        };
        self.provider.pods(&listing).now_or_never().unwrap().unwrap()
    }

    /// Served pods in short: name, CPU of each container, window, timestamp.
    fn shown(&self) -> Vec<String> {
        self.list(None, "", "").iter().map(shown).collect()
    }

    /// Why a running pod of the namespace `default` has no metrics; none if it has.
    fn reason(&self, name: &str) -> Option<MissingReason> {
        let missing = self.provider.missing(usize::MAX).pods;
        let pod = missing.into_iter().find(|pod| &*pod.namespace == "default" && &*pod.name == name);
        pod.map(|pod| pod.reason)
    }

    fn missing_reason(&self, name: &str) -> Option<&'static str> {
        self.reason(name).map(|reason| reason.code())
    }
}

fn shown(pod: &PodUsage) -> String {
    let cpus: Vec<String> = pod.containers.iter().map(|c| format!("{}={}", c.name, c.usage[0].1)).collect();
    let at = pod.timestamp.map_or(-1, Timestamp::as_second);
    format!("{} {} {}s@{at}", pod.name, cpus.join(","), pod.window / 1_000_000_000)
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// A point of a container that started long ago or has no start time.
fn point(second: i64, cpu_seconds: u64) -> MetricsPoint {
    MetricsPoint { start: None, time: second * 1_000_000_000, cpu: cpu_seconds * 1_000_000_000, memory: 1024 }
}

fn pod(name: &str, containers: &[(&str, MetricsPoint)]) -> PodPoints {
    let containers = containers.iter().map(|(name, point)| ((*name).into(), *point)).collect();
    PodPoints { namespace: "default".into(), name: name.into(), containers }
}

fn scrape(second: i64, pods: Vec<PodPoints>) -> Scrape {
    Scrape { node: Some(point(second, second as u64)), pods, incomplete: Vec::new() }
}

fn incomplete(name: &str) -> IncompletePod {
    IncompletePod {
        namespace: "default".into(),
        name: name.into(),
        container: "c".into(),
        lacks: MissingUsage::Cpu,
    }
}

/// Two scrapes of node a with the pod `web`.
fn with_web() -> StoredCluster {
    let cluster = StoredCluster::new(Compat::Better);
    for (second, cpu) in [(1000, 10), (1015, 25)] {
        cluster.store.take("a", scrape(second, vec![pod("web", &[("c", point(second, cpu))])]), at(second));
    }
    cluster
}

#[test]
fn two_points_make_a_rate() {
    let cluster = StoredCluster::new(Compat::Better);
    cluster.store.take("a", scrape(1000, vec![pod("web", &[("c", point(1000, 10))])]), at(1000));
    assert_eq!(cluster.shown(), [""; 0]);
    assert_eq!(cluster.missing_reason("web"), Some("OnePoint"));
    assert!(!cluster.store.is_ready());
    cluster.store.take("a", scrape(1015, vec![pod("web", &[("c", point(1015, 25))])]), at(1015));
    assert_eq!(cluster.shown(), ["web c=1 15s@1015"]);
    assert_eq!(cluster.missing_reason("web"), None);
    assert!(cluster.store.is_ready());
    assert_eq!(cluster.store.points(), PointCounts { nodes: 1, containers: 1 });
    // The kubelet has no new measurement.
    cluster.store.take("a", scrape(1015, vec![pod("web", &[("c", point(1015, 25))])]), at(1030));
    assert_eq!(cluster.shown(), ["web c=1 15s@1015"]);
}

#[test]
fn young_container_needs_one_point() {
    let cluster = StoredCluster::new(Compat::Better);
    let started = |second: i64, age: i64| MetricsPoint {
        start: Some((second - age) * 1_000_000_000),
        ..point(second, 20)
    };
    for (age, wanted) in [(9, vec![]), (10, vec!["web c=2 10s@1000"]), (15, vec![])] {
        cluster.store.forget_node("a");
        cluster.store.take("a", scrape(1000, vec![pod("web", &[("c", started(1000, age))])]), at(1000));
        assert_eq!(cluster.shown(), wanted, "{age}");
    }
}

#[test]
fn failed_node_is_kept_for_a_while() {
    let cluster = with_web();
    cluster.store.scrape_failed("a", at(1030));
    cluster.store.scrape_failed("a", at(1075));
    assert_eq!(cluster.shown(), ["web c=1 15s@1015"], "with its true time");
    assert_eq!(cluster.store.stale_nodes(at(1075)), 1);
    // The node recovers: no gap, and a longer window.
    cluster.store.take("a", scrape(1080, vec![pod("web", &[("c", point(1080, 90))])]), at(1080));
    assert_eq!(cluster.shown(), ["web c=1 65s@1080"]);
    assert_eq!(cluster.store.stale_nodes(at(1081)), 0);
    cluster.store.scrape_failed("a", at(1141));
    assert_eq!(cluster.shown(), [""; 0]);
    assert!(!cluster.store.is_ready());
    let reason = cluster.reason("web").unwrap();
    assert_eq!(reason.to_string(), "its node a cannot be scraped");
    // No rate is computed from dropped points.
    cluster.store.scrape_failed("a", at(1200));
    cluster.store.take("a", scrape(1201, vec![pod("web", &[("c", point(1201, 200))])]), at(1201));
    assert_eq!(cluster.shown(), [""; 0]);
}

#[test]
fn pods_missing_from_a_report_are_removed() {
    let cluster = with_web();
    cluster.store.take("a", scrape(1030, Vec::new()), at(1030));
    assert_eq!(cluster.shown(), [""; 0]);
    assert_eq!(cluster.missing_reason("web"), Some("NotReported"));
    assert_eq!(cluster.store.points(), PointCounts { nodes: 1, containers: 0 });
    cluster.store.forget_node("a");
    assert_eq!(cluster.store.points(), PointCounts::default());
}

#[test]
fn incomplete_pod_is_kept_for_a_while() {
    let cluster = with_web();
    let incomplete = |second| Scrape {
        incomplete: vec![incomplete("web"), incomplete("db")],
        ..scrape(second, Vec::new())
    };
    cluster.store.take("a", incomplete(1030), at(1030));
    cluster.store.take("a", incomplete(1045), at(1045));
    assert_eq!(cluster.shown(), ["web c=1 15s@1015"]);
    assert_eq!(cluster.missing_reason("db"), Some("Incomplete"), "it was never complete");
    cluster.store.take("a", incomplete(1076), at(1076));
    assert_eq!(cluster.shown(), [""; 0]);
    assert_eq!(
        cluster.reason("web").unwrap().to_string(),
        "the kubelet of a reports no processor time for container c"
    );
}

#[test]
fn incomplete_node_is_kept_for_a_while() {
    let cluster = with_web();
    let nodes = || {
        let all = ListFilter {
            namespace: None,
            labels: Selector::everything(),
            fields: FieldSelector::parse("").unwrap(),
        };
        cluster.provider.nodes(&all).now_or_never().unwrap().unwrap().len()
    };
    for (second, known) in [(1030, 1), (1075, 1), (1076, 0)] {
        let half = Scrape { node: None, ..scrape(second, vec![pod("web", &[("c", point(second, 100))])]) };
        cluster.store.take("a", half, at(second));
        assert_eq!(nodes(), known, "{second}");
    }
}

#[test]
fn decreasing_counter_restarts_the_rate() {
    for compat in [Compat::Better, Compat::Strict] {
        let cluster = StoredCluster::new(compat);
        let mut wanted = Vec::new();
        for (second, c, d) in [(1000, 100, 10), (1015, 115, 25), (1030, 5, 40), (1045, 20, 55)] {
            let pods = vec![pod("web", &[("c", point(second, c)), ("d", point(second, d))])];
            match compat {
                Compat::Better => cluster.store.take("a", scrape(second, pods), at(second)),
                Compat::Strict => cluster.store.replace_all(vec![("a".into(), scrape(second, pods))]),
            }
            wanted.push(cluster.shown());
        }
        let partial: &[&str] = if compat.is_strict() { &["web d=1 15s@1030"] } else { &[] };
        assert_eq!(wanted[1], ["web c=1,d=1 15s@1015"]);
        assert_eq!(wanted[2], partial, "less than the pod uses is worse than nothing");
        assert_eq!(wanted[3], ["web c=1,d=1 15s@1045"]);
    }
}

#[test]
fn missing_start_time_is_tolerated() {
    let cluster = StoredCluster::new(Compat::Better);
    for (second, start) in [(1000, Some(1)), (1015, None), (1030, Some(1))] {
        let point = MetricsPoint { start, ..point(second, second as u64) };
        cluster.store.take("a", scrape(second, vec![pod("web", &[("c", point)])]), at(second));
    }
    assert_eq!(cluster.shown(), ["web c=1 15s@1030"]);
    // A start after the last point means another container.
    let restarted = MetricsPoint { start: Some(1_031_000_000_000), ..point(1045, 9000) };
    let young = cluster.store.clone();
    young.take("a", scrape(1045, vec![pod("web", &[("c", restarted)])]), at(1045));
    assert_eq!(cluster.shown(), ["web c=642857142857n 14s@1045"], "since its start");
}

#[test]
fn newest_point_of_two_nodes_wins() {
    let cluster = with_web();
    // The pod moved to b, and a still reports it.
    let on_b = |second| scrape(second, vec![pod("web", &[("c", point(second, second as u64 * 2))])]);
    cluster.store.take("b", on_b(1020), at(1020));
    assert_eq!(cluster.shown(), [""; 0], "the difference of two pods is not a rate");
    cluster.store.take("a", scrape(1030, vec![pod("web", &[("c", point(1015, 25))])]), at(1030));
    cluster.store.take("b", on_b(1035), at(1035));
    assert_eq!(cluster.shown(), ["web c=2 15s@1035"]);
    // A pod missing from a does not affect the sample of b.
    cluster.store.take("a", scrape(1045, Vec::new()), at(1045));
    assert_eq!(cluster.shown(), ["web c=2 15s@1035"]);
    cluster.store.forget_node("b");
    assert_eq!(cluster.shown(), [""; 0]);
}

#[test]
fn returning_pod_is_found_again() {
    let cluster = with_web();
    cluster.store.take("b", scrape(1020, vec![pod("web", &[("c", point(1020, 2040))])]), at(1020));
    assert_eq!(cluster.shown(), [""; 0], "b knows better");
    cluster.store.forget_node("b");
    assert!(cluster.store.sample("default", "web").is_none());
    // The same pods as before, but their slots were removed.
    cluster.store.take("a", scrape(1030, vec![pod("web", &[("c", point(1030, 40))])]), at(1030));
    assert_eq!(cluster.shown(), ["web c=1 15s@1030"]);
}

#[test]
fn pods_may_arrive_in_any_order() {
    let cluster = StoredCluster::new(Compat::Better);
    let all = |second: i64, names: &[&str]| {
        let pods = names.iter().map(|name| pod(name, &[("c", point(second, second as u64))]));
        cluster.store.take("a", scrape(second, pods.collect()), at(second));
    };
    all(1000, &["db", "web"]);
    all(1015, &["web", "db"]);
    assert_eq!(cluster.shown(), ["db c=1 15s@1015", "web c=1 15s@1015"]);
    all(1030, &["api", "db", "job", "web", "zoo"]);
    assert_eq!(cluster.shown(), ["db c=1 15s@1030", "web c=1 15s@1030"]);
    all(1045, &["web", "zoo"]);
    assert_eq!(cluster.shown(), ["web c=1 15s@1045"]);
    assert_eq!(cluster.store.points().containers, 2);
}

#[test]
fn strict_tick_replaces_everything() {
    let cluster = StoredCluster::new(Compat::Strict);
    let web = |second, cpu| scrape(second, vec![pod("web", &[("c", point(second, cpu))])]);
    cluster.store.replace_all(vec![("a".into(), web(1000, 10)), ("b".into(), web(1001, 99))]);
    cluster.store.replace_all(vec![("a".into(), web(1015, 25)), ("b".into(), web(1016, 99))]);
    assert_eq!(cluster.shown(), ["web c=1 15s@1015"], "the first answer counts");
    cluster.store.replace_all(vec![("b".into(), web(1030, 40))]);
    assert_eq!(cluster.shown(), ["web c=1 15s@1030"], "the report of any node counts");
    cluster.store.replace_all(Vec::new());
    assert_eq!(cluster.shown(), [""; 0]);
    cluster.store.replace_all(vec![("b".into(), web(1060, 70))]);
    assert_eq!(cluster.shown(), [""; 0], "one lost tick costs two");
}

#[test]
fn lists_honor_label_and_field_selectors() {
    let cluster = StoredCluster::new(Compat::Better);
    for second in [1000, 1015] {
        let mut dns = pod("dns", &[("c", point(second, 10))]);
        dns.namespace = "system".into();
        let unknown = pod("unknown", &[("c", point(second, 10))]);
        let pods = vec![
            dns,
            unknown,
            pod("web", &[("c", point(second, 10))]),
            pod("db", &[("c", point(second, 9))]),
        ];
        cluster.store.take("a", scrape(second, pods), at(second));
    }
    let names = |namespace, labels, fields| {
        let list = cluster.list(namespace, labels, fields);
        list.iter().map(|pod| pod.name.to_string()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names(None, "", ""), "db web dns", "only running pods, in order");
    assert_eq!(names(Some("default"), "", ""), "db web");
    assert_eq!(names(Some("none"), "", ""), "");
    assert_eq!(names(None, "app!=db", ""), "web dns");
    assert_eq!(names(None, "", "metadata.name=web"), "web");
    assert_eq!(names(None, "app=db", "metadata.name=web"), "");
    assert_eq!(names(None, "", "metadata.namespace=system"), "dns");
    assert_eq!(names(Some("default"), "", "metadata.namespace=system"), "");
    assert_eq!(names(None, "", "metadata.name!=web,metadata.namespace!=system"), "db");
    let in_namespace = cluster.provider.namespace("default");
    assert_eq!(in_namespace, cluster.list(Some("default"), "", ""));
}

#[test]
fn node_selector_limits_the_list() {
    let cluster = with_web();
    for second in [1000, 1015] {
        cluster.store.take("b", scrape(second, Vec::new()), at(second));
    }
    let names = |provider: &KubeletProvider, labels, fields| {
        let listing = ListFilter {
            namespace: None,
            labels: Selector::parse(labels).unwrap(),
            fields: FieldSelector::parse(fields).unwrap(),
        };
        let nodes = provider.nodes(&listing).now_or_never().unwrap().unwrap();
        nodes.iter().map(|node| node.name.to_string()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names(&cluster.provider, "", ""), "a b");
    assert_eq!(names(&cluster.provider, "zone=b", ""), "b");
    assert_eq!(names(&cluster.provider, "", "metadata.name!=b"), "a");
    let only = KubeletProvider::new(
        cluster.store.clone(),
        cluster.inventory.clone(),
        Selector::parse("zone=b").unwrap(),
    );
    assert_eq!(names(&only, "", ""), "b");
    assert_eq!(names(&only, "zone=a", ""), "");
}

#[test]
fn single_object_is_found_without_samples_or_unknown() {
    let cluster = with_web();
    let pod = |name| cluster.provider.pod("default", name).now_or_never().unwrap().unwrap();
    assert!(matches!(pod("web"), Lookup::Found(usage) if shown(&usage) == "web c=1 15s@1015"));
    assert_eq!(pod("db"), Lookup::NoSamples);
    assert_eq!(pod("nope"), Lookup::NotFound);
    let node = |name| cluster.provider.node(name).now_or_never().unwrap().unwrap();
    assert!(matches!(node("a"), Lookup::Found(usage) if usage.usage[0].1.to_string() == "1"));
    assert_eq!(node("b"), Lookup::NoSamples);
    assert_eq!(node("c"), Lookup::NotFound);
}

#[test]
fn missing_pods_have_reasons() {
    let cluster = with_web();
    let half = Scrape {
        incomplete: vec![incomplete("db")],
        ..scrape(1030, vec![pod("web", &[("d", point(1030, 1))])])
    };
    cluster.store.take("a", half, at(1030));
    let missing = cluster.provider.missing(2);
    let counts = [("Incomplete", 1), ("NotReported", 1), ("OnePoint", 1)];
    assert_eq!(missing.counts, counts.into_iter().collect());
    let names: Vec<&str> = missing.pods.iter().map(|pod| &*pod.name).collect();
    assert_eq!(names, ["db", "web"]);
    assert_eq!(missing.pods[1].reason, MissingReason::OnePoint { container: "d".into() });
    assert!(MissingReason::CODES.iter().all(|code| ["A", "B", "I", "N", "O"].contains(&&code[..1])));
}

#[test]
fn late_scrape_does_not_restore_a_removed_node() {
    let cluster = with_web();
    cluster.inventory.nodes_complete();
    cluster.inventory.pods_complete();
    cluster.inventory.remove_node("a");
    cluster.store.forget_node("a");
    cluster.store.take("a", scrape(1030, vec![pod("web", &[("c", point(1030, 40))])]), at(1030));
    assert_eq!(cluster.store.read().nodes.len(), 0);
}

#[test]
fn names_are_interned_with_the_inventory() {
    let cluster = with_web();
    let known = cluster.inventory.pod("default", "web").unwrap();
    let sample = cluster.store.sample("default", "web").unwrap();
    assert!(Arc::ptr_eq(&known.name, &sample.name) && Arc::ptr_eq(&known.namespace, &sample.namespace));
    assert_eq!(size_of::<PointPair>(), 56);
}

#[test]
fn large_numbers_lose_a_digit_and_odd_times_are_harmless() {
    let cluster = StoredCluster::new(Compat::Better);
    for (time, cpu) in [(i64::MIN, 1), (i64::MIN + 1, u64::MAX), (i64::MAX, u64::MAX)] {
        let point = MetricsPoint { start: Some(i64::MAX), time, cpu, memory: u64::MAX };
        cluster.store.take("a", scrape(0, vec![pod("web", &[("c", point)])]), at(0));
    }
    let list = cluster.list(None, "", "");
    let memory = list.first().map(|pod| pod.containers[0].usage[1].1.to_string());
    assert!(memory.is_none_or(|memory| memory == "18446744073709551610"));
    let _ = cluster.provider.missing(10);
}
