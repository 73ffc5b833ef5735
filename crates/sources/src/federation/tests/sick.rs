//! Failing upstreams.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::{Request, Response};
use tokio::net::TcpListener;
use tokio::time::Instant;
use tower::util::BoxCloneSyncService;

use super::server::{Server, metrics_api, status, values};
use super::*;

fn router(url: &str) -> Router {
    let text = format!("upstreams: [{{name: sick, group: external, url: '{url}', timeout: 300ms}}]");
    Router::new(OwnService::default(), own("ours", Ok(1)), config(&text))
}

fn failing(router: &Router) -> (String, String, bool) {
    let report = router.report();
    let UpstreamCondition::Failing { cause, remedy, .. } = report[0].condition.clone() else {
        panic!("{report:?}")
    };
    (cause, remedy, report[0].circuit_open)
}

#[tokio::test]
async fn hanging_upstream_opens_the_circuit() {
    // The server accepts and never responds.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let router = router(&format!("http://{}", listener.local_addr().unwrap()));
    for _ in 0..3 {
        let start = Instant::now();
        let Err(MetricsError::Unavailable(why)) = query_metric(&router, "a").await else { panic!() };
        assert_eq!(why, "upstream sick: timed out after 300ms");
        assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
    }
    // The circuit is open, so the same error is returned at once.
    let start = Instant::now();
    assert!(matches!(query_metric(&router, "a").await, Err(MetricsError::Unavailable(_))));
    assert!(start.elapsed() < Duration::from_millis(250), "{:?}", start.elapsed());
    assert_eq!(query_metric(&router, "ours").await.unwrap(), ["1"], "others do not suffer");
    let (cause, remedy, circuit_open) = failing(&router);
    assert_eq!((cause.as_str(), circuit_open), ("timed out after 300ms", true));
    assert!(remedy.contains("raise its timeout"), "{remedy}");
}

#[tokio::test]
async fn slow_body_times_out() {
    let route: Route = BoxCloneSyncService::new(tower::service_fn(|_: Request<Body>| async {
        let endless = futures::stream::unfold(0_u64, |n| async move {
            tokio::time::sleep(Duration::from_millis(20)).await;
            Some((Ok(hyper::body::Frame::data(bytes::Bytes::from_static(b" "))), n + 1))
        });
        Ok(Response::new(http_body_util::BodyExt::boxed_unsync(http_body_util::StreamBody::new(endless))))
    }));
    let server = Server::new(route).await;
    let router = router(&server.url());
    let start = Instant::now();
    assert!(matches!(query_metric(&router, "a").await, Err(MetricsError::Unavailable(_))));
    assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
}

#[tokio::test]
async fn malformed_responses_are_errors() {
    let bodies: Vec<(u16, String)> = vec![
        (200, "<html>welcome</html>".into()),
        (200, String::new()),
        (200, r#"{"kind":"ExternalMetricValueList","items":[{"value":null}]}"#.into()),
        (200, r#"{"kind":"Status","status":"Success"}"#.into()),
        (204, String::new()),
        (404, "<html>not found</html>".into()),
    ];
    for (code, body) in bodies {
        let server = Server::answering(move |_| (code, body.clone())).await;
        let router = router(&server.url());
        // More often than the failure limit: one broken metric does not hide the others.
        for _ in 0..5 {
            let answer = query_metric(&router, "a").await;
            assert!(matches!(answer, Err(MetricsError::Unavailable(_))), "{code}: {answer:?}");
        }
        assert!(!router.report()[0].circuit_open);
        assert!(failing(&router).0.starts_with("its response is not valid"), "{:?}", router.report());
    }
}

#[tokio::test]
async fn oversized_responses_are_not_read() {
    let server = Server::answering(|_| (200, " ".repeat(17 << 20))).await;
    let text = format!("upstreams: [{{name: sick, group: external, url: '{}', timeout: 30s}}]", server.url());
    let router = Router::new(OwnService::default(), LocalProviders::default(), config(&text));
    let Err(MetricsError::Unavailable(why)) = query_metric(&router, "a").await else { panic!() };
    assert!(why.contains("too large"), "{why}");
}

#[tokio::test]
async fn error_status_is_passed_through() {
    for (code, reason, hint) in [
        (403, "Forbidden", "bind the service account"),
        (401, "Unauthorized", "tokenFile"),
        (500, "InternalError", "log"),
        (400, "BadRequest", "log"),
        (429, "TooManyRequests", "overloaded"),
    ] {
        let server = Server::answering(move |_| (code, status(code, reason, "because"))).await;
        let router = router(&server.url());
        let answer = query_metric(&router, "a").await;
        let message = format!("upstream sick: answered {code}: because");
        assert_eq!(answer, Err(MetricsError::Status { code, reason: reason.into(), message }));
        let (cause, remedy, _) = failing(&router);
        assert!(cause.contains("because") && remedy.contains(hint), "{cause}: {remedy}");
    }
}

#[tokio::test]
async fn recovered_upstream_is_queried_again() {
    let well = Arc::new(AtomicBool::new(false));
    let server = {
        let well = Arc::clone(&well);
        let api = metrics_api("a", "1");
        Server::answering(move |path| {
            if well.load(Ordering::SeqCst) {
                api(path)
            } else {
                (503, status(503, "ServiceUnavailable", "not yet"))
            }
        })
        .await
    };
    let router = router(&server.url());
    for _ in 0..10 {
        assert!(matches!(query_metric(&router, "a").await, Err(MetricsError::Status { code: 503, .. })));
    }
    assert_eq!(server.requested(), 3, "after three failures it is left alone");
    well.store(true, Ordering::SeqCst);
    // Successful discovery allows a probe.
    router.relist().await;
    assert_eq!(query_metric(&router, "a").await.unwrap(), ["1"]);
    let report = router.report();
    assert!(matches!(report[0].condition, UpstreamCondition::Healthy(_)) && !report[0].circuit_open);
    assert_eq!((report[0].requests, report[0].errors), (4, 3));
}

#[tokio::test]
async fn connection_and_file_errors_are_reported() {
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let router = router(&format!("http://{gone}"));
    let Err(MetricsError::Unavailable(why)) = query_metric(&router, "a").await else { panic!() };
    assert_eq!(why, "upstream sick: connection refused");
    router.relist().await;
    assert!(failing(&router).1.contains("check that the server runs"));

    let text = "upstreams: [{name: sick, group: external, url: 'https://127.0.0.1:1', tls: {caFile: /nowhere/ca.crt}}]";
    let router = Router::new(OwnService::default(), LocalProviders::default(), config(text));
    let Err(MetricsError::Unavailable(why)) = query_metric(&router, "a").await else { panic!() };
    assert!(why.contains("/nowhere/ca.crt"), "{why}");
}

/// KEDA answers 500 for a metric without its labels; that must not hide its other metrics.
#[tokio::test]
async fn error_of_one_metric_does_not_affect_others() {
    let server = Server::answering(|path| {
        if path.ends_with("/s0-kafka") {
            (200, values("s0-kafka", "3"))
        } else {
            (500, status(500, "InternalError", "scaledObject name is not specified"))
        }
    })
    .await;
    let router = router(&server.url());
    for _ in 0..10 {
        assert!(matches!(query_metric(&router, "nope").await, Err(MetricsError::Status { code: 500, .. })));
    }
    assert_eq!(query_metric(&router, "s0-kafka").await.unwrap(), ["3"]);
}
