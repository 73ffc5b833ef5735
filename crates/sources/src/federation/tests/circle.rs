//! Upstreams that are this server itself or query it back.

use std::convert::Infallible;

use http::{Request, Response};
use tower::util::BoxCloneSyncService;

use super::server::{Server, status, values};
use super::*;

/// The part of `serve` that matters here.
fn api(router: Router) -> Route {
    BoxCloneSyncService::new(tower::service_fn(move |request: Request<Body>| {
        let router = router.clone();
        async move {
            let path = request.uri().path().to_owned();
            let (code, text) =
                match path.strip_prefix("/apis/external.metrics.k8s.io/v1beta1/namespaces/default/") {
                    None => {
                        let known = ExternalMetricsProvider::known(&router);
                        let names: Vec<String> =
                            known.iter().map(|name| format!(r#"{{"name":"{name}"}}"#)).collect();
                        (200, format!(r#"{{"kind":"APIResourceList","resources":[{}]}}"#, names.join(",")))
                    }
                    Some(metric) => match query_metric(&router, metric).await {
                        Ok(found) => (200, values(metric, &found[0])),
                        Err(MetricsError::NoMetric(why)) => (404, status(404, "NotFound", &why)),
                        Err(other) => (503, status(503, "ServiceUnavailable", &other.to_string())),
                    },
                };
            Ok::<_, Infallible>(Response::builder().status(code).body(full(text)).unwrap())
        }
    }))
}

fn named(id: &str) -> OwnService {
    OwnService { id: id.into(), ..OwnService::default() }
}

fn upstream(server: &Server) -> FederationConfig {
    config(&format!("upstreams: [{{name: other, group: external, url: '{}'}}]", server.url()))
}

#[tokio::test]
async fn own_server_as_upstream_is_detected() {
    let router = Router::new(named("us"), own("ours", Ok(1)), FederationConfig::default());
    let server = Server::new(with_loop_guard(api(router.clone()), &named("us"))).await;
    router.configure(upstream(&server));
    assert_eq!(query_metric(&router, "ours").await.unwrap(), ["1"]);
    let Err(MetricsError::Unavailable(why)) = query_metric(&router, "nope").await else { panic!() };
    assert_eq!(why, "upstream other: it is this server itself");
    assert_eq!(server.requested(), 1);
    router.relist().await;
    let report = router.report();
    let UpstreamCondition::Failing { remedy, .. } = &report[0].condition else { panic!("{report:?}") };
    assert!(remedy.contains("remove this upstream"));
    assert_eq!(*ExternalMetricsProvider::known(&router), ["ours"]);
}

#[tokio::test]
async fn mutual_upstreams_do_not_loop() {
    let a = Router::new(named("a"), own("in-a", Ok(1)), FederationConfig::default());
    let b = Router::new(named("b"), own("in-b", Ok(2)), FederationConfig::default());
    let at_a = Server::new(with_loop_guard(api(a.clone()), &named("a"))).await;
    let at_b = Server::new(with_loop_guard(api(b.clone()), &named("b"))).await;
    a.configure(upstream(&at_b));
    b.configure(upstream(&at_a));
    for router in [&a, &b] {
        assert_eq!(query_metric(router, "in-a").await.unwrap(), ["1"]);
        assert_eq!(query_metric(router, "in-b").await.unwrap(), ["2"]);
        assert!(matches!(query_metric(router, "nope").await, Err(MetricsError::NoMetric(_))));
        router.relist().await;
    }
    // One request each and no loop; the metric lists do not feed each other either.
    assert_eq!((at_a.requested(), at_b.requested()), (3, 3));
    assert_eq!(*ExternalMetricsProvider::known(&a), ["in-a", "in-b"]);
    assert_eq!(*ExternalMetricsProvider::known(&b), ["in-b", "in-a"]);
    // Lists of `a` for another plimsoll server, and for other clients.
    let known = |headers: &http::HeaderMap| with_hop_header(headers, || ExternalMetricsProvider::known(&a));
    let from_b =
        [(crate::federation::hop::HOP_HEADER, http::HeaderValue::from_static("b"))].into_iter().collect();
    assert_eq!(*known(&from_b), ["in-a"]);
    assert_eq!(*known(&http::HeaderMap::new()), ["in-a", "in-b"]);
}
