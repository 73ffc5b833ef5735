use std::convert::Infallible;

use futures::stream::{FuturesUnordered, StreamExt as _};
use http::{Request, Response};
use kube::client::Body;

use super::*;

/// A reader of a server that answers requests by this function, and the URIs of the requests.
fn reader(
    answer: impl Fn(&str) -> Vec<u8> + Clone + Send + 'static,
) -> (Arc<dyn Cluster>, Arc<Mutex<Vec<String>>>) {
    let requested = Arc::<Mutex<Vec<String>>>::default();
    let seen = Arc::clone(&requested);
    let server = tower::service_fn(move |request: Request<Body>| {
        let uri = request.uri().to_string();
        let body = answer(&uri);
        seen.locked().push(uri);
        async move { Ok::<_, Infallible>(Response::builder().status(200).body(Body::from(body)).unwrap()) }
    });
    let client = Client::new(server, "default");
    (cluster_reader(client.clone(), Discovery::new(client), Compat::Better), requested)
}

#[tokio::test]
async fn endpoints_are_read_for_the_name_of_one_service_only() {
    let (cluster, requested) = reader(|_| br#"{"items": []}"#.to_vec());
    for wrong in ["a,b", "a=b", "web,kubernetes.io/service-name!=x", "a b", "a%2Cb", "!a", "A", ""] {
        let error = cluster.endpoints("shop", wrong).await.unwrap_err().to_string();
        assert!(error.ends_with("is not the name of a Service"), "{wrong}: {error}");
    }
    assert!(requested.locked().is_empty());
    assert!(cluster.endpoints("shop", "web-1").await.unwrap().is_empty());
    let requested = requested.locked();
    assert_eq!(requested.len(), 1);
    assert!(requested[0].contains("service-name%3Dweb-1"), "{requested:?}");
}

#[tokio::test]
async fn pods_too_large_for_one_response_are_read_in_pages() {
    let pods = |count: usize, bytes: usize, next: &str| {
        let pod = serde_json::json!({
            "metadata": {"annotations": {"filler": "x".repeat(bytes)}},
            "spec": {"nodeName": "node-1"}, "status": {"phase": "Running"},
        });
        let items = vec![pod; count];
        serde_json::json!({"metadata": {"continue": next}, "items": items}).to_string().into_bytes()
    };
    let (cluster, requested) = reader(move |uri| match uri {
        all if all.contains("resourceVersion=0") => pods(40, 1 << 20, ""),
        first if !first.contains("continue") => pods(15, 1 << 20, "a/b"),
        large if large.contains("limit=500") => pods(25, 1 << 20, ""),
        second if second.contains("continue=a%2Fb") => pods(10, 1 << 20, "c"),
        _ => pods(3, 1 << 20, ""),
    });
    let selector = Selector::parse("app=web").unwrap();
    let pods = cluster.pods("shop", &selector).await.unwrap();
    assert_eq!(pods.len(), 15 + 10 + 3);
    assert!(pods.iter().all(|pod| pod.node == "node-1" && pod.phase == "Running"));
    let requested = requested.locked().clone();
    let pages: Vec<_> = requested.iter().map(|uri| uri.split_once("app%3Dweb&").unwrap().1).collect();
    let expected = [
        "resourceVersion=0",
        "resourceVersion=0",
        "limit=500",
        "limit=500&continue=a%2Fb",
        "limit=10&continue=a%2Fb",
        "limit=10&continue=c",
    ];
    assert_eq!(pages, expected);
}

#[tokio::test]
async fn pods_are_listed_once_for_all_that_need_them_at_the_same_time() {
    let (cluster, requested) = reader(|_| br#"{"items": []}"#.to_vec());
    let selectors = ["a=1", "a=1", "a=2", "a=1"].map(|text| Selector::parse(text).unwrap());
    let lists = selectors.iter().map(|selector| cluster.pods("shop", selector));
    assert!(futures::future::join_all(lists).await.iter().all(Result::is_ok));
    assert_eq!(requested.locked().len(), 2);
}

#[tokio::test]
async fn lists_of_one_namespace_leave_permits_to_others() {
    // The lists of one of two namespaces get no response.
    let server = tower::service_fn(|request: Request<Body>| async move {
        if request.uri().path().contains("/namespaces/silent/") {
            std::future::pending::<()>().await;
        }
        Ok::<_, Infallible>(Response::new(Body::from(br#"{"items": []}"#.to_vec())))
    });
    let client = Client::new(server, "default");
    let cluster = cluster_reader(client.clone(), Discovery::new(client), Compat::Better);
    let selectors: Vec<Selector> =
        (0..=MAX_LISTS).map(|number| Selector::parse(&format!("a={number}")).unwrap()).collect();
    cluster.pods("other", &selectors[0]).await.unwrap();
    let lists = selectors.iter().map(|selector| cluster.pods("silent", selector));
    let mut unanswered: FuturesUnordered<_> = lists.collect();
    assert!(futures::poll!(unanswered.next()).is_pending());
    tokio::select! {
        _ = unanswered.next() => panic!("it gets no response"),
        listed = tokio::time::timeout(Duration::from_secs(10), cluster.pods("other", &selectors[1])) => {
            assert!(listed.expect("others have permits").unwrap().is_empty());
        }
    }
}

#[tokio::test]
async fn small_lists_do_not_wait_for_large_ones() {
    // A large list is requested twice, and gets no response the second time.
    let seen = Arc::<Mutex<HashSet<String>>>::default();
    let server = tower::service_fn(move |request: Request<Body>| {
        let uri = request.uri().to_string();
        let is_small = uri.contains("small");
        let is_answered = is_small || seen.locked().insert(uri);
        async move {
            if !is_answered {
                std::future::pending::<()>().await;
            }
            let filler = "x".repeat(if is_small { 0 } else { 2 << 20 });
            let body = serde_json::json!({"filler": filler, "items": []}).to_string();
            Ok::<_, Infallible>(Response::new(Body::from(body.into_bytes())))
        }
    });
    let client = Client::new(server, "default");
    let cluster = cluster_reader(client.clone(), Discovery::new(client), Compat::Better);
    let selectors: Vec<Selector> =
        (0..=MAX_LARGE_LISTS).map(|number| Selector::parse(&format!("a={number}")).unwrap()).collect();
    let small = Selector::parse("a=small").unwrap();
    // Another namespace, so that each of them has a part.
    cluster.pods("other", &small).await.unwrap();
    let mut unanswered: FuturesUnordered<_> =
        selectors.iter().map(|selector| cluster.pods("shop", selector)).collect();
    assert!(futures::poll!(unanswered.next()).is_pending());
    tokio::select! {
        _ = unanswered.next() => panic!("it gets no response"),
        listed = tokio::time::timeout(Duration::from_secs(10), cluster.pods("shop", &small)) => {
            assert!(listed.expect("small lists have permits of their own").unwrap().is_empty());
        }
    }
}
