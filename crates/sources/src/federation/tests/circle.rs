//! Upstreams that are ourselves, or ask us back.

use std::convert::Infallible;

use http::{Request, Response};
use tower::util::BoxCloneSyncService;

use super::server::{Server, status, values};
use super::*;

/// What `serve` does with a router, as far as it matters here.
fn api(router: Router) -> Route {
    BoxCloneSyncService::new(tower::service_fn(move |request: Request<Body>| {
        let router = router.clone();
        async move {
            let path = request.uri().path().to_owned();
            let (code, text) =
                match path.strip_prefix("/apis/external.metrics.k8s.io/v1beta1/namespaces/default/") {
                    None => {
                        let known = ExternalMetrics::known(&router);
                        let names: Vec<String> =
                            known.iter().map(|name| format!(r#"{{"name":"{name}"}}"#)).collect();
                        (200, format!(r#"{{"kind":"APIResourceList","resources":[{}]}}"#, names.join(",")))
                    }
                    Some(metric) => match ask(&router, metric).await {
                        Ok(found) => (200, values(metric, &found[0])),
                        Err(Failure::NoMetric(why)) => (404, status(404, "NotFound", &why)),
                        Err(other) => (503, status(503, "ServiceUnavailable", &other.to_string())),
                    },
                };
            Ok::<_, Infallible>(Response::builder().status(code).body(full(text)).unwrap())
        }
    }))
}

fn named(id: &str) -> Own {
    Own { id: id.into(), ..Own::default() }
}

fn upstream(server: &Server) -> Config {
    config(&format!("upstreams: [{{name: other, group: external, url: '{}'}}]", server.url()))
}

#[tokio::test]
async fn we_do_not_ask_ourselves() {
    let router = Router::new(named("us"), own("ours", Ok(1)), Config::default());
    let server = Server::new(guarded(api(router.clone()), &named("us"))).await;
    router.configure(upstream(&server));
    assert_eq!(ask(&router, "ours").await.unwrap(), ["1"]);
    let Err(Failure::Unavailable(why)) = ask(&router, "nope").await else { panic!() };
    assert_eq!(why, "upstream other: it is our own server");
    assert_eq!(server.asked(), 1);
    router.relist().await;
    let report = router.report();
    let Condition::Failing { remedy, .. } = &report[0].condition else { panic!("{report:?}") };
    assert!(remedy.contains("remove this upstream"));
    assert_eq!(*ExternalMetrics::known(&router), ["ours"]);
}

#[tokio::test]
async fn two_that_name_each_other_answer() {
    let a = Router::new(named("a"), own("in-a", Ok(1)), Config::default());
    let b = Router::new(named("b"), own("in-b", Ok(2)), Config::default());
    let at_a = Server::new(guarded(api(a.clone()), &named("a"))).await;
    let at_b = Server::new(guarded(api(b.clone()), &named("b"))).await;
    a.configure(upstream(&at_b));
    b.configure(upstream(&at_a));
    for router in [&a, &b] {
        assert_eq!(ask(router, "in-a").await.unwrap(), ["1"]);
        assert_eq!(ask(router, "in-b").await.unwrap(), ["2"]);
        assert!(matches!(ask(router, "nope").await, Err(Failure::NoMetric(_))));
        router.relist().await;
    }
    // One question each, and none that came back; lists do not feed each other either.
    assert_eq!((at_a.asked(), at_b.asked()), (3, 3));
    assert_eq!(*ExternalMetrics::known(&a), ["in-a", "in-b"]);
    assert_eq!(*ExternalMetrics::known(&b), ["in-b", "in-a"]);
    // What `a` tells one that asks as a server like it, and what it tells all others.
    let known = |headers: &http::HeaderMap| heard(headers, || ExternalMetrics::known(&a));
    let from_b = [(crate::federation::hop::HOP, http::HeaderValue::from_static("b"))].into_iter().collect();
    assert_eq!(*known(&from_b), ["in-a"]);
    assert_eq!(*known(&http::HeaderMap::new()), ["in-a", "in-b"]);
}
