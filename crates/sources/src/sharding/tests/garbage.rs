//! Peers that send malformed data or are not authorized.

use http::Method;
use http_body_util::BodyExt as _;
use locks::MutexExt as _;

use super::*;
use crate::federation::tests::server::Server;

const PERIOD: Duration = Duration::from_secs(5);

/// Fetches once from a server as if it were a replica; returns the error.
async fn fetched(server: &Server) -> (Sharding, Option<String>) {
    let (own, _, _) = sharding("own", PERIOD, Endpoint::default(), 3);
    own.set(vec![Replica { id: "other".into(), address: server.url() }]);
    let peer = Arc::clone(&own.0.peers.locked()[0]);
    own.fetch(&peer).await;
    let report = own.report();
    assert!(report[1].alive || report[1].problem.is_some());
    let problem = report[1].problem.clone().map(|(cause, _)| cause);
    (own, problem)
}

#[tokio::test]
async fn malformed_responses_of_peers_are_rejected() {
    let good = || {
        let mut journal = Journal::new(1);
        journal.record("node-0", &kubelet("node-0", 1_000), Instant::now());
        journal.page(0, 0, Instant::now())
    };
    let pages: Vec<(u16, Vec<u8>, &str)> = vec![
        (200, b"<html>".to_vec(), "is not valid"),
        (200, Vec::new(), "is not valid"),
        (200, [good(), vec![0]].concat(), "trailing bytes"),
        (200, good()[..30].to_vec(), "truncated"),
        (200, [&b"plS2"[..], &good()[4..]].concat(), "another version"),
        (403, Vec::new(), "403"),
        (401, Vec::new(), "401"),
        (500, Vec::new(), "500"),
        (200, vec![0; 11 << 20], "too large"),
    ];
    for (code, page, problem) in pages {
        let route: Route = BoxCloneSyncService::new(tower::service_fn(move |_: Request<Body>| {
            let answer = Response::builder().status(code).body(full(page.clone())).unwrap();
            async move { Ok::<_, Infallible>(answer) }
        }));
        let (own, found) = fetched(&Server::new(route).await).await;
        assert!(found.as_ref().is_some_and(|found| found.contains(problem)), "{problem}: {found:?}");
        assert_eq!(own.received(), 0);
        assert!((0..3).all(|n| own.owns(&format!("node-{n}"))), "all nodes stay ours");
    }
}

#[tokio::test]
async fn endless_pages_are_stopped() {
    // Endless pages with an unknown node.
    let route: Route = BoxCloneSyncService::new(tower::service_fn(|request: Request<Body>| async move {
        let query = request.uri().query().unwrap_or_default().to_owned();
        let since: u64 = query.split(['=', '&']).nth(1).unwrap().parse().unwrap();
        let mut page = codec::head(9, since + 1, true, 1);
        codec::entry(&mut page, &format!("unknown-{since}"), 0, &codec::scrape(&kubelet("x", 1)));
        Ok::<_, Infallible>(Response::new(full(page)))
    }));
    let server = Server::new(route).await;
    let (own, problem) = fetched(&server).await;
    assert_eq!((problem, server.requested(), own.received()), (None, MAX_PAGES_PER_FETCH, 0));
    // A peer that repeats the same page.
    let route: Route = BoxCloneSyncService::new(tower::service_fn(|_: Request<Body>| async {
        Ok::<_, Infallible>(Response::new(full(codec::head(9, 5, true, 0))))
    }));
    let server = Server::new(route).await;
    let (_, problem) = fetched(&server).await;
    assert_eq!((problem.as_deref(), server.requested()), (Some("it repeats the same page"), 2));
}

#[tokio::test]
async fn own_address_as_peer_is_detected() {
    let (own, _, _) = sharding("own", PERIOD, Endpoint::default(), 3);
    let server = Server::new(own.route()).await;
    own.set(vec![Replica { id: "other".into(), address: server.url() }]);
    let peer = Arc::clone(&own.0.peers.locked()[0]);
    own.fetch(&peer).await;
    let report = own.report();
    assert!(!report[1].alive);
    assert!(report[1].problem.as_ref().unwrap().0.contains("this replica itself"));
}

#[tokio::test]
async fn entries_are_stored_once_and_only_if_newer() {
    let (own, store, inventory) = sharding("own", PERIOD, Endpoint::default(), 2);
    let (other, _, _) = sharding("other", PERIOD, Endpoint::default(), 2);
    let server = Server::new(other.route()).await;
    other.set(vec![Replica { id: "own".into(), address: "http://127.0.0.1:1".into() }]);
    own.set(vec![Replica { id: "other".into(), address: server.url() }]);
    let peer = Arc::clone(&own.0.peers.locked()[0]);
    let now = Timestamp::now();
    let nanos = now.as_nanosecond() as i64;
    other.take("node-0", kubelet("node-0", nanos - 10_000_000_000), now);
    own.fetch(&peer).await;
    own.fetch(&peer).await;
    assert_eq!((own.received(), store.points().nodes), (1, 0));
    other.take("node-0", kubelet("node-0", nanos), now);
    own.fetch(&peer).await;
    assert_eq!((own.received(), store.points().nodes), (2, 1));
    // An older scrape, and one of a removed node.
    other.take("node-0", kubelet("node-0", nanos - 5_000_000_000), now);
    inventory.remove_node("node-1");
    other.take("node-1", kubelet("node-1", nanos), now);
    own.fetch(&peer).await;
    assert_eq!(own.received(), 2);
    // The removed node is forgotten by the next prune.
    inventory.remove_node("node-0");
    own.prune(now);
    assert_eq!(store.points().nodes, 0);
    assert!(own.state().newest.accepted("node-0").is_none());
}

#[tokio::test]
async fn route_rejects_invalid_requests() {
    let (own, _, _) = sharding("own", PERIOD, Endpoint::default(), 1);
    let send_request = async |method: Method, uri: &str| {
        let request = Request::builder().method(method).uri(uri).body(full("")).unwrap();
        let answer = own.route().oneshot(request).await.unwrap();
        let (parts, body) = answer.into_parts();
        (parts.status.as_u16(), body.collect().await.unwrap().to_bytes())
    };
    let (codec, body) = send_request(Method::GET, "/plimsoll/samples").await;
    assert_eq!((codec, codec::read(&body).unwrap().entries.len()), (200, 0));
    assert_eq!(send_request(Method::GET, "/plimsoll/samples/?since=5&of=7").await.0, 200);
    assert_eq!(send_request(Method::POST, "/plimsoll/samples").await.0, 405);
    assert_eq!(send_request(Method::GET, "/plimsoll/samples/x").await.0, 404);
    assert_eq!(send_request(Method::GET, "/plimsoll/samples?since=-1").await.0, 400);
    assert_eq!(send_request(Method::GET, "/plimsoll/samples?since=99999999999999999999").await.0, 400);
}

/// The owner is alive but reports no sample of a node: the next in rank scrapes it too until the owner does.
#[tokio::test]
async fn node_without_samples_of_its_owner_is_taken_over() {
    let (own, _, _) = sharding("own", PERIOD, Endpoint::default(), 20);
    let (other, _, _) = sharding("other", PERIOD, Endpoint::default(), 20);
    let server = Server::new(other.route()).await;
    other.set(vec![Replica { id: "own".into(), address: "http://127.0.0.1:1".into() }]);
    own.set(vec![Replica { id: "other".into(), address: server.url() }]);
    let peer = Arc::clone(&own.0.peers.locked()[0]);
    own.fetch(&peer).await;
    let owner = |node: &str| own.state().members.owner(node, Instant::now()).to_owned();
    let theirs = (0..20).map(|n| format!("node-{n}")).find(|node| owner(node) == "other").unwrap();
    assert!(own.owns(&theirs), "nothing was reported yet");
    let now = Timestamp::now();
    other.take(&theirs, kubelet(&theirs, 1_000_000_000), now);
    own.fetch(&peer).await;
    assert!(!own.owns(&theirs));
}
