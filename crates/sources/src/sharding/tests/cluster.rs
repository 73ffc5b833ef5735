//! Three replicas over TLS: all serve all nodes, one dies, one returns.

use std::collections::HashMap;
use std::net::SocketAddr;

use api::provider::{ListFilter, ResourceMetricsProvider as _};
use api::selector::{FieldSelector, Selector};
use locks::MutexExt as _;
use tokio::task::JoinSet;

use super::*;
use crate::federation::tests::server::Server;
use crate::store::KubeletProvider;

const PERIOD: Duration = Duration::from_secs(3);
const NODE_COUNT: usize = 30;

/// Log of replica, node and time of each scrape.
type Log = Arc<Mutex<Vec<(String, String, Instant)>>>;

struct Running {
    sharding: Sharding,
    store: Store,
    inventory: Inventory,
    address: SocketAddr,
    _server: Server,
    _tasks: JoinSet<()>,
}

/// Simulates the scraper: checks the owned nodes regularly, scrapes new ones at once and the others once per period.
async fn scrape(sharding: Sharding, id: String, log: Log) {
    let mut last: HashMap<String, Instant> = HashMap::new();
    let mut ours: Vec<String> = Vec::new();
    for turn in 0_u32.. {
        if turn.is_multiple_of(10) {
            ours = (0..NODE_COUNT).map(|n| format!("node-{n}")).filter(|node| sharding.owns(node)).collect();
            last.retain(|node, _| ours.contains(node));
        }
        let now = Instant::now();
        for node in &ours {
            if last.get(node).is_none_or(|last| now - *last >= PERIOD) {
                last.insert(node.clone(), now);
                let time = Timestamp::now();
                sharding.take(node, kubelet(node, time.as_nanosecond() as i64), time);
                log.locked().push((id.clone(), node.clone(), now));
            }
        }
        tokio::time::sleep(PERIOD / 30).await;
    }
}

async fn start(id: &str, address: SocketAddr, ca: &str, tls: &TlsAcceptor, log: &Log) -> Running {
    let (sharding, store, inventory) = sharding(id, PERIOD, endpoint(ca, "right"), NODE_COUNT);
    let server = Server::at(address, with_token(sharding.route()), Some(tls.clone())).await;
    let mut tasks = JoinSet::new();
    let member = sharding.clone();
    tasks.spawn(async move { member.run().await });
    tasks.spawn(scrape(sharding.clone(), id.to_owned(), Arc::clone(log)));
    Running { sharding, store, inventory, address: server.address, _server: server, _tasks: tasks }
}

fn set_replicas(running: &[&Running]) {
    let replica = |one: &&Running| Replica {
        id: one.sharding.report()[0].id.clone(),
        address: one.address.to_string(),
    };
    for one in running {
        one.sharding.set(running.iter().map(replica).collect());
    }
}

/// Waits until a replica serves all nodes and pods, each with half a core and no older than two periods.
async fn serves_all(running: &Running) {
    let served =
        KubeletProvider::new(running.store.clone(), running.inventory.clone(), Selector::everything());
    let which = ListFilter {
        namespace: None,
        labels: Selector::everything(),
        fields: FieldSelector::parse("").unwrap(),
    };
    let start = Instant::now();
    loop {
        let (nodes, pods) = (served.nodes(&which).await.unwrap(), served.pods(&which).await.unwrap());
        let cpu = nodes.iter().map(|node| &node.usage).chain(pods.iter().map(|pod| &pod.containers[0].usage));
        let right = cpu.filter(|usage| (499..=501).contains(&usage[0].1.milli_value())).count();
        let oldest = nodes.iter().map(|node| node.timestamp.unwrap()).min();
        let fresh = oldest
            .is_some_and(|oldest| Timestamp::now().duration_since(oldest).unsigned_abs() < PERIOD * 5 / 2);
        if right == 2 * NODE_COUNT && fresh {
            return;
        }
        let so_far = (nodes.len(), pods.len(), right, fresh);
        assert!(start.elapsed() < PERIOD * 20, "{so_far:?} {:?}", running.sharding.report());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Waits until replicas shard all nodes exactly as the first of them computes.
async fn divided(running: &[&Running]) -> Vec<u64> {
    let start = Instant::now();
    loop {
        let counts: Vec<u64> = running[0].sharding.report().iter().map(|one| one.nodes).collect();
        let ours =
            |one: &Running| (0..NODE_COUNT).filter(|n| one.sharding.owns(&format!("node-{n}"))).count();
        let each: Vec<usize> = running.iter().map(|one| ours(one)).collect();
        let agree = running
            .iter()
            .all(|one| one.sharding.report().iter().filter(|other| other.alive).count() == running.len());
        if agree && each.iter().sum::<usize>() == NODE_COUNT {
            return counts;
        }
        assert!(start.elapsed() < PERIOD * 20, "{each:?} {:?}", running[0].sharding.report());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_replicas_serve_all_nodes_while_one_dies_and_returns() {
    let (ca, tls) = tls();
    let log = Log::default();
    let anywhere = ([127, 0, 0, 1], 0).into();
    let a = start("a", anywhere, &ca, &tls, &log).await;
    let b = start("b", anywhere, &ca, &tls, &log).await;
    let c = start("c", anywhere, &ca, &tls, &log).await;
    set_replicas(&[&a, &b, &c]);
    divided(&[&a, &b, &c]).await;
    for one in [&a, &b, &c] {
        serves_all(one).await;
        assert!(one.sharding.received() > 0);
    }
    // Sharded: in one period every node is scraped about once, and each replica scrapes some.
    log.locked().clear();
    tokio::time::sleep(PERIOD * 2).await;
    let scraped = log.locked().clone();
    assert!((NODE_COUNT..=NODE_COUNT * 3).contains(&scraped.len()), "{}", scraped.len());
    for id in ["a", "b", "c"] {
        assert!(scraped.iter().any(|(by, _, _)| by == id), "{id} scraped nothing");
    }

    // A replica dies; its peers are not notified.
    let (dead, at) = (c.address, Instant::now());
    drop(c);
    let start_of_wait = Instant::now();
    while a.sharding.report().iter().any(|one| one.alive && one.id == "c") {
        assert!(start_of_wait.elapsed() < PERIOD * 5);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    tokio::time::sleep(PERIOD * 2).await;
    for one in [&a, &b] {
        serves_all(one).await;
        let report = one.sharding.report();
        let lost = report.iter().find(|other| other.id == "c").unwrap();
        assert!(!lost.alive && lost.nodes == 0 && lost.problem.is_some(), "{lost:?}");
    }
    // No node was without a scrape for longer than two periods (plus the delay of the test itself).
    let scraped = log.locked().clone();
    for n in 0..NODE_COUNT {
        let node = format!("node-{n}");
        let times: Vec<Instant> =
            scraped.iter().filter(|(_, of, _)| *of == node).map(|(_, _, at)| *at).collect();
        let longest = times.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or_default();
        assert!(longest <= PERIOD * 5 / 2, "{node}: {longest:?}, died {:?} ago", at.elapsed());
    }

    // The replica returns at the same address with a new incarnation.
    let c = start("c", dead, &ca, &tls, &log).await;
    set_replicas(&[&a, &b, &c]);
    let counts = divided(&[&a, &b, &c]).await;
    assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
    serves_all(&c).await;
    assert!(c.sharding.received() > 0, "scrapes of peers were received");

    // A replica leaves the membership: its nodes move at once.
    drop(c);
    set_replicas(&[&a, &b]);
    assert_eq!(a.sharding.report().len(), 2);
    divided(&[&a, &b]).await;
    serves_all(&a).await;
}
