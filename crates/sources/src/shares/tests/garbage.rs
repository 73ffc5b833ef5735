//! Others that say nonsense, or must not ask.

use http::Method;
use http_body_util::BodyExt as _;

use super::*;
use crate::federation::tests::server::Server;

const PERIOD: Duration = Duration::from_secs(5);

/// Asks a server once as if it was a replica, and says what is wrong with it.
async fn heard(server: &Server) -> (Shares, Option<String>) {
    let (own, _, _) = shares("own", PERIOD, Endpoint::default(), 3);
    own.set(vec![Replica { id: "other".into(), address: server.url() }]);
    let peer = Arc::clone(&locked(&own.0.peers)[0]);
    own.ask(&peer).await;
    let report = own.report();
    assert!(report[1].alive || report[1].problem.is_some());
    let problem = report[1].problem.clone().map(|(cause, _)| cause);
    (own, problem)
}

#[tokio::test]
async fn garbage_is_refused_without_harm() {
    let good = || {
        let mut journal = Journal::new(1);
        journal.record("node-0", &kubelet("node-0", 1_000), Instant::now());
        journal.page(0, 0, Instant::now())
    };
    let pages: Vec<(u16, Vec<u8>, &str)> = vec![
        (200, b"<html>".to_vec(), "makes no sense"),
        (200, Vec::new(), "makes no sense"),
        (200, [good(), vec![0]].concat(), "does not end where it should"),
        (200, good()[..30].to_vec(), "ends too early"),
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
        let (own, found) = heard(&Server::new(route).await).await;
        assert!(found.as_ref().is_some_and(|found| found.contains(problem)), "{problem}: {found:?}");
        assert_eq!(own.received(), 0);
        assert!((0..3).all(|n| own.is_ours(&format!("node-{n}"))), "all nodes stay ours");
    }
}

#[tokio::test]
async fn an_endless_teller_is_stopped() {
    // Always another page, with a node that nobody knows.
    let route: Route = BoxCloneSyncService::new(tower::service_fn(|request: Request<Body>| async move {
        let query = request.uri().query().unwrap_or_default().to_owned();
        let since: u64 = query.split(['=', '&']).nth(1).unwrap().parse().unwrap();
        let mut page = code::head(9, since + 1, true, 1);
        code::entry(&mut page, &format!("unknown-{since}"), 0, &code::scrape(&kubelet("x", 1)));
        Ok::<_, Infallible>(Response::new(full(page)))
    }));
    let server = Server::new(route).await;
    let (own, problem) = heard(&server).await;
    assert_eq!((problem, server.asked(), own.received()), (None, PAGES, 0));
    // And one that never gets on.
    let route: Route = BoxCloneSyncService::new(tower::service_fn(|_: Request<Body>| async {
        Ok::<_, Infallible>(Response::new(full(code::head(9, 5, true, 0))))
    }));
    let server = Server::new(route).await;
    let (_, problem) = heard(&server).await;
    assert_eq!((problem.as_deref(), server.asked()), (Some("it tells the same again and again"), 2));
}

#[tokio::test]
async fn an_address_that_is_our_own_is_found_out() {
    let (own, _, _) = shares("own", PERIOD, Endpoint::default(), 3);
    let server = Server::new(own.route()).await;
    own.set(vec![Replica { id: "other".into(), address: server.url() }]);
    let peer = Arc::clone(&locked(&own.0.peers)[0]);
    own.ask(&peer).await;
    let report = own.report();
    assert!(!report[1].alive);
    assert!(report[1].problem.as_ref().unwrap().0.contains("ourselves"));
}

#[tokio::test]
async fn what_is_told_is_taken_once_and_only_if_newer() {
    let (own, store, inventory) = shares("own", PERIOD, Endpoint::default(), 2);
    let (other, _, _) = shares("other", PERIOD, Endpoint::default(), 2);
    let server = Server::new(other.route()).await;
    other.set(vec![Replica { id: "own".into(), address: "http://127.0.0.1:1".into() }]);
    own.set(vec![Replica { id: "other".into(), address: server.url() }]);
    let peer = Arc::clone(&locked(&own.0.peers)[0]);
    let now = Timestamp::now();
    let nanos = now.as_nanosecond() as i64;
    other.take("node-0", kubelet("node-0", nanos - 10_000_000_000), now);
    own.ask(&peer).await;
    own.ask(&peer).await;
    assert_eq!((own.received(), store.points().nodes), (1, 0));
    other.take("node-0", kubelet("node-0", nanos), now);
    own.ask(&peer).await;
    assert_eq!((own.received(), store.points().nodes), (2, 1));
    // Older than what is known, and of a node that is gone.
    other.take("node-0", kubelet("node-0", nanos - 5_000_000_000), now);
    inventory.remove_node("node-1");
    other.take("node-1", kubelet("node-1", nanos), now);
    own.ask(&peer).await;
    assert_eq!(own.received(), 2);
    // The node is gone: it is forgotten at the next tidying.
    inventory.remove_node("node-0");
    own.tidy(now);
    assert_eq!(store.points().nodes, 0);
    assert!(own.state().newest.taken("node-0").is_none());
}

#[tokio::test]
async fn the_route_answers_only_what_it_should() {
    let (own, _, _) = shares("own", PERIOD, Endpoint::default(), 1);
    let ask = async |method: Method, uri: &str| {
        let request = Request::builder().method(method).uri(uri).body(full("")).unwrap();
        let answer = own.route().oneshot(request).await.unwrap();
        let (parts, body) = answer.into_parts();
        (parts.status.as_u16(), body.collect().await.unwrap().to_bytes())
    };
    let (code, body) = ask(Method::GET, "/plimsoll/samples").await;
    assert_eq!((code, code::read(&body).unwrap().entries.len()), (200, 0));
    assert_eq!(ask(Method::GET, "/plimsoll/samples/?since=5&of=7").await.0, 200);
    assert_eq!(ask(Method::POST, "/plimsoll/samples").await.0, 405);
    assert_eq!(ask(Method::GET, "/plimsoll/samples/x").await.0, 404);
    assert_eq!(ask(Method::GET, "/plimsoll/samples?since=-1").await.0, 400);
    assert_eq!(ask(Method::GET, "/plimsoll/samples?since=99999999999999999999").await.0, 400);
}

/// The owner lives but tells nothing about a node: the next in line scrapes it too, until he does.
#[tokio::test]
async fn a_node_that_its_owner_is_silent_about_is_taken_over() {
    let (own, _, _) = shares("own", PERIOD, Endpoint::default(), 20);
    let (other, _, _) = shares("other", PERIOD, Endpoint::default(), 20);
    let server = Server::new(other.route()).await;
    other.set(vec![Replica { id: "own".into(), address: "http://127.0.0.1:1".into() }]);
    own.set(vec![Replica { id: "other".into(), address: server.url() }]);
    let peer = Arc::clone(&locked(&own.0.peers)[0]);
    own.ask(&peer).await;
    let owner = |node: &str| own.state().members.owner(node, Instant::now()).to_owned();
    let theirs = (0..20).map(|n| format!("node-{n}")).find(|node| owner(node) == "other").unwrap();
    assert!(own.is_ours(&theirs), "nothing was told yet");
    let now = Timestamp::now();
    other.take(&theirs, kubelet(&theirs, 1_000_000_000), now);
    own.ask(&peer).await;
    assert!(!own.is_ours(&theirs));
}
