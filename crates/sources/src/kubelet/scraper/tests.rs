#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::task::JoinHandle;

use super::*;
use crate::kubelet::client::fake::{Counts, Fake, FakeAction, ReceivedRequest, TestCa, answer, chunked};
use crate::kubelet::report::ScrapeErrorCause;

const METRICS: &[u8] = b"\
# TYPE container_cpu_usage_seconds_total counter\n\
container_cpu_usage_seconds_total{container=\"c\",namespace=\"n\",pod=\"p\"} 4.5 1700000000000\n\
container_memory_working_set_bytes{container=\"c\",namespace=\"n\",pod=\"p\"} 1.25e+07 1700000000000\n\
node_cpu_usage_seconds_total 1234.5 1700000000000\n\
node_memory_working_set_bytes 1.5e+09 1700000000000\n";

/// A sink that records its calls.
#[derive(Default)]
struct RecordingSink {
    scrapes: Mutex<HashMap<String, Vec<tokio::time::Instant>>>,
    failed: Mutex<HashMap<String, usize>>,
    forgotten: Mutex<Vec<String>>,
    ticks: Mutex<Vec<Vec<Arc<str>>>>,
}

impl ScrapeSink for RecordingSink {
    fn take(&self, node: &str, scrape: Scrape, _: Timestamp) {
        assert!(scrape.node.is_some() && scrape.pods.len() == 1, "{scrape:?}");
        let now = tokio::time::Instant::now();
        self.scrapes.lock().unwrap().entry(node.to_owned()).or_default().push(now);
    }

    fn scrape_failed(&self, node: &str, _: Timestamp) {
        *self.failed.lock().unwrap().entry(node.to_owned()).or_default() += 1;
    }

    fn forget_node(&self, node: &str) {
        self.forgotten.lock().unwrap().push(node.to_owned());
    }

    fn replace_all(&self, tick: Vec<(Arc<str>, Scrape)>) {
        self.ticks.lock().unwrap().push(tick.into_iter().map(|(node, _)| node).collect());
    }
}

impl RecordingSink {
    fn scrapes(&self, node: &str) -> usize {
        self.scrapes.lock().unwrap().get(node).map_or(0, Vec::len)
    }

    fn failures(&self, node: &str) -> usize {
        self.failed.lock().unwrap().get(node).copied().unwrap_or(0)
    }
}

/// Fake kubelets, and a scraper that runs until this is dropped.
struct ScrapedCluster {
    signer: TestCa,
    tls: Arc<rustls::ServerConfig>,
    inventory: Inventory,
    recorded: Arc<RecordingSink>,
    report: Option<ScrapeReport>,
    stop: watch::Sender<bool>,
    run: Option<JoinHandle<()>>,
    fakes: Vec<Fake>,
}

impl Drop for ScrapedCluster {
    fn drop(&mut self) {
        self.run.take().unwrap().abort();
    }
}

impl ScrapedCluster {
    fn new() -> Self {
        let signer = TestCa::new();
        let tls = signer.certificate(&["127.0.0.1"], "node");
        let inventory = Inventory::new();
        inventory.pods_complete();
        let (recorded, stop) = (Arc::default(), watch::Sender::new(false));
        Self { signer, tls, inventory, recorded, report: None, stop, run: None, fakes: Vec::new() }
    }

    async fn node(
        &mut self,
        name: &str,
        script: impl Fn(ReceivedRequest<'_>) -> FakeAction + Send + Sync + 'static,
    ) {
        self.node_with(name, Arc::clone(&self.tls), script).await;
    }

    async fn node_with(
        &mut self,
        name: &str,
        tls: Arc<rustls::ServerConfig>,
        script: impl Fn(ReceivedRequest<'_>) -> FakeAction + Send + Sync + 'static,
    ) {
        let fake = Fake::new(tls, script).await;
        self.set(name, fake.port);
        self.fakes.push(fake);
    }

    fn set(&self, name: &str, port: u16) {
        let addresses = vec![("InternalIP".into(), "127.0.0.1".into())];
        self.inventory.set_node(Node { name: name.into(), addresses, port, ready: true, ..Node::default() });
    }

    fn run(&mut self, compat: Compat, change: impl FnOnce(&mut ScraperSettings), filter: NodeFilter) {
        self.inventory.nodes_complete();
        let pem = trust::Pem::Inline(self.signer.pem.clone().into_bytes());
        let mut settings = ScraperSettings {
            resolution: Duration::from_secs(1),
            parallel: 64,
            compat,
            address: address::AddressRules { status_port: true, ..address::AddressRules::default() },
            client: client::KubeletClientSettings {
                timeout: Duration::from_millis(800),
                ..client::KubeletClientSettings::default()
            },
            trust: trust::TrustSettings {
                authority: trust::TrustedAuthority::Ca(pem),
                certificate: None,
                token: None,
                compat,
            },
            clock: Clock::system(),
        };
        change(&mut settings);
        let sink: Arc<dyn ScrapeSink> = Arc::clone(&self.recorded) as Arc<dyn ScrapeSink>;
        let scraper = Scraper::new(settings, self.inventory.clone(), sink).unwrap();
        let scraper = scraper.only(filter);
        self.report = Some(scraper.report());
        self.run = Some(tokio::spawn(scraper.run(self.stop.subscribe())));
    }

    fn report(&self) -> &ScrapeReport {
        self.report.as_ref().unwrap()
    }

    fn cause(&self, node: &str) -> Option<ScrapeErrorCause> {
        self.report().node_status(node)?.cause
    }
}

fn everyone() -> NodeFilter {
    Arc::new(|_| true)
}

fn good(_: ReceivedRequest<'_>) -> FakeAction {
    FakeAction::Respond(chunked(METRICS))
}

async fn until(what: &str, condition: impl Fn() -> bool) {
    let end = tokio::time::Instant::now() + Duration::from_secs(20);
    while !condition() {
        assert!(tokio::time::Instant::now() < end, "waited in vain until {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_kubelets_do_not_affect_others() {
    let mut cluster = ScrapedCluster::new();
    for number in 0..10 {
        cluster.node(&format!("good-{number}"), good).await;
    }
    let html = answer("200 OK", b"<!DOCTYPE html>\n<html><body>It works!</body></html>");
    cluster.node("html", move |_| FakeAction::Respond(html.clone())).await;
    cluster
        .node("garbage", |_| FakeAction::Respond(answer("200 OK", &[0xff, 0x00, 0x80, b'\n', 0x1f])))
        .await;
    cluster
        .node("unable", |_| {
            FakeAction::Respond(answer("200 OK", b"resource_scrape_error 1\nscrape_error 1\n"))
        })
        .await;
    cluster.node("nothing", |_| FakeAction::Respond(answer("200 OK", b""))).await;
    cluster.node("refuses", |_| FakeAction::Respond(answer("403 Forbidden", b"no"))).await;
    cluster.node("silent", |_| FakeAction::Silence).await;
    cluster.node("dribbles", |_| FakeAction::Dribble(chunked(METRICS), Duration::from_millis(20))).await;
    cluster
        .node("endless", |_| {
            let head = b"HTTP/1.1 200 OK\r\n\r\nnode_cpu_usage_seconds_total ".to_vec();
            FakeAction::Endless(head, vec![b'1'; 64 << 10])
        })
        .await;
    let line = [b"node_cpu_usage_seconds_total{a=\"".to_vec(), vec![b'x'; 10 << 20]].concat();
    let long = answer("200 OK", &line);
    cluster.node("long-line", move |_| FakeAction::Respond(long.clone())).await;
    let stranger = TestCa::new().certificate(&["127.0.0.1"], "stranger");
    cluster.node_with("stranger", stranger, good).await;
    let other = cluster.signer.certificate(&["other"], "system:node:other");
    cluster.node_with("other-name", other, good).await;
    let own = cluster.signer.certificate(&["own-name"], "system:node:own-name");
    cluster.node_with("own-name", own, good).await;
    cluster.inventory.set_node(Node { name: "nowhere".into(), ready: true, ..Node::default() });
    cluster.run(Compat::Better, |settings| settings.client.body_limit = 11 << 20, everyone());
    let bad = [
        ("html", "not_metrics"),
        ("garbage", "not_metrics"),
        ("unable", "kubelet_cannot_measure"),
        ("nothing", "not_metrics"),
        ("refuses", "not_authorized"),
        ("silent", "timed_out"),
        ("dribbles", "timed_out"),
        ("endless", "too_large"),
        ("long-line", "not_metrics"),
        ("stranger", "unknown_authority"),
        ("other-name", "certificate_without_address"),
        ("nowhere", "no_address"),
    ];
    // Without optimization ten megabytes may exceed the timeout.
    let is = |name: &str, label: &str| {
        let found = cluster.cause(name).map_or("", |cause| cause.label());
        found == label || (["endless", "long-line"].contains(&name) && found == "timed_out")
    };
    until("the good ones were scraped four times and the bad ones have their causes", || {
        (0..10).all(|number| cluster.recorded.scrapes(&format!("good-{number}")) >= 4)
            && cluster.recorded.scrapes("own-name") >= 4
            && bad.iter().all(|(name, label)| is(name, label))
    })
    .await;
    for (name, _) in bad {
        assert_eq!(cluster.recorded.scrapes(name), 0, "{name}");
    }
    let problems = cluster.report().problems();
    assert_eq!(problems.nodes, 23);
    let failing: usize = problems.groups.iter().map(|group| group.nodes.len()).sum();
    assert_eq!(failing, bad.len());
    assert!(cluster.report().is_timely(tokio::time::Instant::now()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_nodes_respect_the_concurrency_limit() {
    let mut cluster = ScrapedCluster::new();
    let counts: Arc<Counts> = Arc::default();
    for number in 0..200 {
        let fake = Fake::start(0, Some(Arc::clone(&cluster.tls)), Arc::clone(&counts), |_| {
            FakeAction::RespondAfter(Duration::from_millis(5), chunked(METRICS))
        })
        .await;
        cluster.set(&format!("node-{number}"), fake.port);
        cluster.fakes.push(fake);
    }
    cluster.run(
        Compat::Better,
        |settings| {
            settings.parallel = 8;
            settings.resolution = Duration::from_secs(2);
            settings.client.timeout = Duration::from_secs(5);
        },
        everyone(),
    );
    until("all were scraped three times", || {
        (0..200).all(|number| cluster.recorded.scrapes(&format!("node-{number}")) >= 3)
    })
    .await;
    assert!(counts.most() <= 8, "{}", counts.most());
    assert!(counts.most() >= 2, "they are scraped in parallel");
    let connections = counts.connections.load(Ordering::SeqCst);
    assert_eq!(connections, 200, "connections are kept");
    let counters = cluster.report().counters();
    assert_eq!((counters.nodes, counters.healthy, counters.failed), (200, 200, 0));
    assert!(counters.ticks.count() >= 1 && counters.lateness.count() >= 600);
}

#[tokio::test]
async fn restarted_kubelet_is_scraped_again() {
    let mut cluster = ScrapedCluster::new();
    cluster.node("a", good).await;
    cluster.run(Compat::Better, |_| {}, everyone());
    until("it was scraped", || cluster.recorded.scrapes("a") >= 2).await;
    let port = cluster.fakes.pop().unwrap().port;
    until("it was missed", || cluster.recorded.failures("a") >= 1).await;
    until("nobody listens", || cluster.cause("a") == Some(ScrapeErrorCause::Refused)).await;
    let tls = Some(Arc::clone(&cluster.tls));
    let _again = Fake::start(port, tls, Arc::default(), good).await;
    let before = cluster.recorded.scrapes("a");
    until("it was scraped again", || cluster.recorded.scrapes("a") > before).await;
    until("all is well", || cluster.cause("a").is_none()).await;
}

#[tokio::test]
async fn failed_scrape_is_retried_within_the_period() {
    let mut cluster = ScrapedCluster::new();
    cluster
        .node("a", |requested| {
            let bad = requested.number == 3;
            FakeAction::Respond(if bad { answer("500 Internal Server Error", b"") } else { chunked(METRICS) })
        })
        .await;
    let period = Duration::from_secs(2);
    cluster.run(Compat::Better, |settings| settings.resolution = period, everyone());
    until("it was scraped three times", || cluster.recorded.scrapes("a") >= 3).await;
    assert_eq!(cluster.recorded.failures("a"), 1);
    let scrapes = cluster.recorded.scrapes.lock().unwrap()["a"].clone();
    // The two successes around the failure are less than two periods apart.
    assert!(scrapes[2] - scrapes[1] < period * 7 / 4, "{:?}", scrapes[2] - scrapes[1]);
}

#[tokio::test]
async fn removed_nodes_are_forgotten_but_not_those_of_other_replicas() {
    let mut cluster = ScrapedCluster::new();
    for name in ["a", "b", "c"] {
        cluster.node(name, good).await;
    }
    let without_b = Arc::new(AtomicBool::new(false));
    let own = Arc::clone(&without_b);
    let filter: NodeFilter = Arc::new(move |node| &*node.name != "b" || !own.load(Ordering::SeqCst));
    cluster.run(Compat::Better, |_| {}, filter);
    until("all are scraped", || ["a", "b", "c"].iter().all(|name| cluster.recorded.scrapes(name) >= 1)).await;
    without_b.store(true, Ordering::SeqCst);
    cluster.inventory.remove_node("a");
    until("a and b are not scraped any more", || cluster.report().nodes().len() == 1).await;
    assert_eq!(*cluster.recorded.forgotten.lock().unwrap(), ["a"]);
    assert_eq!(cluster.report().counters().last_request.len(), 1);
    let before =
        (cluster.recorded.scrapes("a"), cluster.recorded.scrapes("b"), cluster.recorded.scrapes("c"));
    until("c goes on", || cluster.recorded.scrapes("c") >= before.2 + 2).await;
    assert_eq!((cluster.recorded.scrapes("a"), cluster.recorded.scrapes("b")), (before.0, before.1));
    without_b.store(false, Ordering::SeqCst);
    cluster.node("d", good).await;
    until("b is back and d is new", || {
        cluster.recorded.scrapes("b") > before.1 && cluster.recorded.scrapes("d") >= 2
    })
    .await;
}

#[tokio::test]
async fn strict_tick_contains_all_nodes_except_failed_ones() {
    let mut cluster = ScrapedCluster::new();
    for name in ["a", "b", "c"] {
        cluster.node(name, good).await;
    }
    cluster.node("silent", |_| FakeAction::Silence).await;
    let by_name = cluster.signer.certificate(&["named"], "named");
    cluster.node_with("named", by_name, good).await;
    cluster.run(Compat::Strict, |_| {}, everyone());
    until("there were three ticks", || cluster.recorded.ticks.lock().unwrap().len() >= 3).await;
    for tick in cluster.recorded.ticks.lock().unwrap().iter() {
        let mut names: Vec<&str> = tick.iter().map(|name| &**name).collect();
        names.sort_unstable();
        assert_eq!(names, ["a", "b", "c"]);
    }
    assert_eq!(cluster.cause("named").unwrap().label(), "certificate_without_address");
    let counters = cluster.report().counters();
    assert_eq!(counters.by_node.len(), 5);
    assert!(counters.ticks.count() >= 2);
    assert_eq!(cluster.recorded.scrapes("a"), 0);
    assert!(cluster.fakes[0].connections() == 1, "connections are kept");
}

#[tokio::test]
async fn scraper_stops_on_signal() {
    for compat in [Compat::Better, Compat::Strict] {
        let mut cluster = ScrapedCluster::new();
        cluster.node("a", |_| FakeAction::Silence).await;
        cluster.run(compat, |settings| settings.client.timeout = Duration::from_secs(500), everyone());
        until("it is scraped", || cluster.fakes[0].requests() == 1).await;
        cluster.stop.send_replace(true);
        cluster.run.as_mut().unwrap().await.unwrap();
    }
}
