#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use api::provider::{Found, Labels, Listing, PodUsage, ResourceMetrics};
use api::selector::{FieldSelector, Selector};
use futures::FutureExt as _;

use super::pair::Pair;
use super::*;
use crate::inventory::Node;
use crate::kubelet::{Lack, LeftOut, PodPoints, Point};

const RESOLUTION: u64 = 15;
const KEEP: u64 = 60;

/// A small cluster whose clock is in seconds.
struct Cluster {
    inventory: Inventory,
    store: Store,
    served: Served,
}

impl Cluster {
    fn new(compat: Compat) -> Self {
        let settings =
            Settings { resolution: Duration::from_secs(RESOLUTION), keep: Duration::from_secs(KEEP), compat };
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
        let served = Served::new(store.clone(), inventory.clone(), Selector::everything());
        Self { inventory, store, served }
    }

    fn list(&self, namespace: Option<&str>, labels: &str, fields: &str) -> Vec<PodUsage> {
        let listing = Listing {
            namespace: namespace.map(str::to_owned),
            labels: Selector::parse(labels).unwrap(),
            fields: FieldSelector::parse(fields).unwrap(),
        };
        self.served.pods(&listing).now_or_never().unwrap().unwrap()
    }

    /// What is served, in short: name, cpu of each container, window, and when.
    fn shown(&self) -> Vec<String> {
        self.list(None, "", "").iter().map(shown).collect()
    }

    fn why(&self, name: &str) -> Option<&'static str> {
        self.served.why("default", name).map(|reason| reason.code())
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

/// A point of something that started long ago, or never told when.
fn point(second: i64, cpu_seconds: u64) -> Point {
    Point { start: None, time: second * 1_000_000_000, cpu: cpu_seconds * 1_000_000_000, memory: 1024 }
}

fn pod(name: &str, containers: &[(&str, Point)]) -> PodPoints {
    let containers = containers.iter().map(|(name, point)| ((*name).into(), *point)).collect();
    PodPoints { namespace: "default".into(), name: name.into(), containers }
}

fn scrape(second: i64, pods: Vec<PodPoints>) -> Scrape {
    Scrape { node: Some(point(second, second as u64)), pods, left_out: Vec::new() }
}

fn left_out(name: &str) -> LeftOut {
    LeftOut { namespace: "default".into(), name: name.into(), container: "c".into(), lacks: Lack::Cpu }
}

/// Two scrapes of a node with one pod each: `web` on a.
fn with_web() -> Cluster {
    let cluster = Cluster::new(Compat::Better);
    for (second, cpu) in [(1000, 10), (1015, 25)] {
        cluster.store.take("a", scrape(second, vec![pod("web", &[("c", point(second, cpu))])]), at(second));
    }
    cluster
}

#[test]
fn two_points_make_a_rate() {
    let cluster = Cluster::new(Compat::Better);
    cluster.store.take("a", scrape(1000, vec![pod("web", &[("c", point(1000, 10))])]), at(1000));
    assert_eq!(cluster.shown(), [""; 0]);
    assert_eq!(cluster.why("web"), Some("OnePoint"));
    assert!(!cluster.store.is_ready());
    cluster.store.take("a", scrape(1015, vec![pod("web", &[("c", point(1015, 25))])]), at(1015));
    assert_eq!(cluster.shown(), ["web c=1 15s@1015"]);
    assert_eq!(cluster.why("web"), None);
    assert!(cluster.store.is_ready());
    assert_eq!(cluster.store.points(), Points { nodes: 1, containers: 1 });
    // The kubelet has measured nothing new.
    cluster.store.take("a", scrape(1015, vec![pod("web", &[("c", point(1015, 25))])]), at(1030));
    assert_eq!(cluster.shown(), ["web c=1 15s@1015"]);
}

#[test]
fn a_young_container_needs_one_point() {
    let cluster = Cluster::new(Compat::Better);
    let started =
        |second: i64, age: i64| Point { start: Some((second - age) * 1_000_000_000), ..point(second, 20) };
    for (age, wanted) in [(9, vec![]), (10, vec!["web c=2 10s@1000"]), (15, vec![])] {
        cluster.store.forget("a");
        cluster.store.take("a", scrape(1000, vec![pod("web", &[("c", started(1000, age))])]), at(1000));
        assert_eq!(cluster.shown(), wanted, "{age}");
    }
}

#[test]
fn a_node_that_cannot_be_scraped_is_kept_for_a_while() {
    let cluster = with_web();
    cluster.store.missed("a", at(1030));
    cluster.store.missed("a", at(1075));
    assert_eq!(cluster.shown(), ["web c=1 15s@1015"], "with its true time");
    assert_eq!(cluster.store.stale_nodes(at(1075)), 1);
    // It comes back: no gap, and a longer window.
    cluster.store.take("a", scrape(1080, vec![pod("web", &[("c", point(1080, 90))])]), at(1080));
    assert_eq!(cluster.shown(), ["web c=1 65s@1080"]);
    assert_eq!(cluster.store.stale_nodes(at(1081)), 0);
    cluster.store.missed("a", at(1141));
    assert_eq!(cluster.shown(), [""; 0]);
    assert!(!cluster.store.is_ready());
    let reason = cluster.served.why("default", "web").unwrap();
    assert_eq!(reason.to_string(), "its node a cannot be scraped");
    // Nothing is made of what was forgotten.
    cluster.store.missed("a", at(1200));
    cluster.store.take("a", scrape(1201, vec![pod("web", &[("c", point(1201, 200))])]), at(1201));
    assert_eq!(cluster.shown(), [""; 0]);
}

#[test]
fn what_a_node_does_not_tell_any_more_is_gone() {
    let cluster = with_web();
    cluster.store.take("a", scrape(1030, Vec::new()), at(1030));
    assert_eq!(cluster.shown(), [""; 0]);
    assert_eq!(cluster.why("web"), Some("NotReported"));
    assert_eq!(cluster.store.points(), Points { nodes: 1, containers: 0 });
    cluster.store.forget("a");
    assert_eq!(cluster.store.points(), Points::default());
}

#[test]
fn an_incomplete_pod_is_kept_for_a_while() {
    let cluster = with_web();
    let incomplete =
        |second| Scrape { left_out: vec![left_out("web"), left_out("db")], ..scrape(second, Vec::new()) };
    cluster.store.take("a", incomplete(1030), at(1030));
    cluster.store.take("a", incomplete(1045), at(1045));
    assert_eq!(cluster.shown(), ["web c=1 15s@1015"]);
    assert_eq!(cluster.why("db"), Some("Incomplete"), "it was never complete");
    cluster.store.take("a", incomplete(1076), at(1076));
    assert_eq!(cluster.shown(), [""; 0]);
    assert_eq!(
        cluster.served.why("default", "web").unwrap().to_string(),
        "the kubelet of a reports no processor time for container c"
    );
}

#[test]
fn so_is_an_incomplete_node() {
    let cluster = with_web();
    let nodes = || {
        let all = Listing {
            namespace: None,
            labels: Selector::everything(),
            fields: FieldSelector::parse("").unwrap(),
        };
        cluster.served.nodes(&all).now_or_never().unwrap().unwrap().len()
    };
    for (second, known) in [(1030, 1), (1075, 1), (1076, 0)] {
        let half = Scrape { node: None, ..scrape(second, vec![pod("web", &[("c", point(second, 100))])]) };
        cluster.store.take("a", half, at(second));
        assert_eq!(nodes(), known, "{second}");
    }
}

#[test]
fn a_counter_that_goes_backwards_starts_anew() {
    for compat in [Compat::Better, Compat::Strict] {
        let cluster = Cluster::new(compat);
        let mut wanted = Vec::new();
        for (second, c, d) in [(1000, 100, 10), (1015, 115, 25), (1030, 5, 40), (1045, 20, 55)] {
            let pods = vec![pod("web", &[("c", point(second, c)), ("d", point(second, d))])];
            match compat {
                Compat::Better => cluster.store.take("a", scrape(second, pods), at(second)),
                Compat::Strict => cluster.store.replace(vec![("a".into(), scrape(second, pods))]),
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
fn a_start_that_is_not_told_for_once_does_not_matter() {
    let cluster = Cluster::new(Compat::Better);
    for (second, start) in [(1000, Some(1)), (1015, None), (1030, Some(1))] {
        let point = Point { start, ..point(second, second as u64) };
        cluster.store.take("a", scrape(second, vec![pod("web", &[("c", point)])]), at(second));
    }
    assert_eq!(cluster.shown(), ["web c=1 15s@1030"]);
    // But one after the last point is another container.
    let restarted = Point { start: Some(1_031_000_000_000), ..point(1045, 9000) };
    let young = cluster.store.clone();
    young.take("a", scrape(1045, vec![pod("web", &[("c", restarted)])]), at(1045));
    assert_eq!(cluster.shown(), ["web c=642857142857n 14s@1045"], "since its start");
}

#[test]
fn of_two_nodes_the_one_with_the_newest_point_counts() {
    let cluster = with_web();
    // The pod moved to b, and a still tells the old story.
    let on_b = |second| scrape(second, vec![pod("web", &[("c", point(second, second as u64 * 2))])]);
    cluster.store.take("b", on_b(1020), at(1020));
    assert_eq!(cluster.shown(), [""; 0], "nobody takes the difference of two pods for a rate");
    cluster.store.take("a", scrape(1030, vec![pod("web", &[("c", point(1015, 25))])]), at(1030));
    cluster.store.take("b", on_b(1035), at(1035));
    assert_eq!(cluster.shown(), ["web c=2 15s@1035"]);
    // What a does not tell any more does not take from b.
    cluster.store.take("a", scrape(1045, Vec::new()), at(1045));
    assert_eq!(cluster.shown(), ["web c=2 15s@1035"]);
    cluster.store.forget("b");
    assert_eq!(cluster.shown(), [""; 0]);
}

#[test]
fn a_pod_that_comes_back_to_a_node_is_found_again() {
    let cluster = with_web();
    cluster.store.take("b", scrape(1020, vec![pod("web", &[("c", point(1020, 2040))])]), at(1020));
    assert_eq!(cluster.shown(), [""; 0], "b knows better");
    cluster.store.forget("b");
    assert!(cluster.store.sample("default", "web").is_none());
    // The same pods as before, but their places are gone.
    cluster.store.take("a", scrape(1030, vec![pod("web", &[("c", point(1030, 40))])]), at(1030));
    assert_eq!(cluster.shown(), ["web c=1 15s@1030"]);
}

#[test]
fn pods_may_come_in_any_order_and_between_others() {
    let cluster = Cluster::new(Compat::Better);
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
fn strictly_one_tick_replaces_all() {
    let cluster = Cluster::new(Compat::Strict);
    let web = |second, cpu| scrape(second, vec![pod("web", &[("c", point(second, cpu))])]);
    cluster.store.replace(vec![("a".into(), web(1000, 10)), ("b".into(), web(1001, 99))]);
    cluster.store.replace(vec![("a".into(), web(1015, 25)), ("b".into(), web(1016, 99))]);
    assert_eq!(cluster.shown(), ["web c=1 15s@1015"], "the first answer counts");
    cluster.store.replace(vec![("b".into(), web(1030, 40))]);
    assert_eq!(cluster.shown(), ["web c=1 15s@1030"], "whoever tells");
    cluster.store.replace(Vec::new());
    assert_eq!(cluster.shown(), [""; 0]);
    cluster.store.replace(vec![("b".into(), web(1060, 70))]);
    assert_eq!(cluster.shown(), [""; 0], "one lost tick costs two");
}

#[test]
fn lists_are_selected_by_labels_and_fields() {
    let cluster = Cluster::new(Compat::Better);
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
    let in_namespace = cluster.served.namespace("default");
    assert_eq!(in_namespace, cluster.list(Some("default"), "", ""));
}

#[test]
fn nodes_are_listed_as_selected() {
    let cluster = with_web();
    for second in [1000, 1015] {
        cluster.store.take("b", scrape(second, Vec::new()), at(second));
    }
    let names = |served: &Served, labels, fields| {
        let listing = Listing {
            namespace: None,
            labels: Selector::parse(labels).unwrap(),
            fields: FieldSelector::parse(fields).unwrap(),
        };
        let nodes = served.nodes(&listing).now_or_never().unwrap().unwrap();
        nodes.iter().map(|node| node.name.to_string()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names(&cluster.served, "", ""), "a b");
    assert_eq!(names(&cluster.served, "zone=b", ""), "b");
    assert_eq!(names(&cluster.served, "", "metadata.name!=b"), "a");
    let only =
        Served::new(cluster.store.clone(), cluster.inventory.clone(), Selector::parse("zone=b").unwrap());
    assert_eq!(names(&only, "", ""), "b");
    assert_eq!(names(&only, "zone=a", ""), "");
}

#[test]
fn one_object_is_here_known_or_unknown() {
    let cluster = with_web();
    let pod = |name| cluster.served.pod("default", name).now_or_never().unwrap().unwrap();
    assert!(matches!(pod("web"), Found::Here(usage) if shown(&usage) == "web c=1 15s@1015"));
    assert_eq!(pod("db"), Found::NoSamples);
    assert_eq!(pod("nope"), Found::Unknown);
    let node = |name| cluster.served.node(name).now_or_never().unwrap().unwrap();
    assert!(matches!(node("a"), Found::Here(usage) if usage.usage[0].1.to_string() == "1"));
    assert_eq!(node("b"), Found::NoSamples);
    assert_eq!(node("c"), Found::Unknown);
}

#[test]
fn every_missing_pod_has_a_reason() {
    let cluster = with_web();
    let half =
        Scrape { left_out: vec![left_out("db")], ..scrape(1030, vec![pod("web", &[("d", point(1030, 1))])]) };
    cluster.store.take("a", half, at(1030));
    let missing = cluster.served.missing(2);
    let counts = [("Incomplete", 1), ("NotReported", 1), ("OnePoint", 1)];
    assert_eq!(missing.counts, counts.into_iter().collect());
    let names: Vec<&str> = missing.pods.iter().map(|pod| &*pod.name).collect();
    assert_eq!(names, ["db", "web"]);
    assert_eq!(missing.pods[1].reason, Reason::OnePoint { container: "d".into() });
    assert!(Reason::CODES.iter().all(|code| ["A", "B", "I", "N", "O"].contains(&&code[..1])));
}

#[test]
fn a_node_that_is_gone_does_not_come_back_late() {
    let cluster = with_web();
    cluster.inventory.nodes_complete();
    cluster.inventory.pods_complete();
    cluster.inventory.remove_node("a");
    cluster.store.forget("a");
    cluster.store.take("a", scrape(1030, vec![pod("web", &[("c", point(1030, 40))])]), at(1030));
    assert_eq!(cluster.store.read().nodes.len(), 0);
}

#[test]
fn names_are_shared_with_the_inventory() {
    let cluster = with_web();
    let known = cluster.inventory.pod("default", "web").unwrap();
    let sample = cluster.store.sample("default", "web").unwrap();
    assert!(Arc::ptr_eq(&known.name, &sample.name) && Arc::ptr_eq(&known.namespace, &sample.namespace));
    assert_eq!(size_of::<Pair>(), 56);
}

#[test]
fn large_numbers_lose_a_digit_and_odd_times_do_no_harm() {
    let cluster = Cluster::new(Compat::Better);
    for (time, cpu) in [(i64::MIN, 1), (i64::MIN + 1, u64::MAX), (i64::MAX, u64::MAX)] {
        let point = Point { start: Some(i64::MAX), time, cpu, memory: u64::MAX };
        cluster.store.take("a", scrape(0, vec![pod("web", &[("c", point)])]), at(0));
    }
    let list = cluster.list(None, "", "");
    let memory = list.first().map(|pod| pod.containers[0].usage[1].1.to_string());
    assert!(memory.is_none_or(|memory| memory == "18446744073709551610"));
    let _ = cluster.served.missing(10);
}
