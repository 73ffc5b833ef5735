//! Upstreams that are not well.

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
    Router::new(Own::default(), own("ours", Ok(1)), config(&text))
}

fn failing(router: &Router) -> (String, String, bool) {
    let report = router.report();
    let Condition::Failing { cause, remedy, .. } = report[0].condition.clone() else { panic!("{report:?}") };
    (cause, remedy, report[0].left_alone)
}

#[tokio::test]
async fn one_that_hangs_costs_its_time_and_then_nothing() {
    // Accepts and never answers.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let router = router(&format!("http://{}", listener.local_addr().unwrap()));
    for _ in 0..3 {
        let start = Instant::now();
        let Err(Failure::Unavailable(why)) = ask(&router, "a").await else { panic!() };
        assert_eq!(why, "upstream sick: timed out after 300ms");
        assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
    }
    // Now it is left alone, and the answer is the same, at once.
    let start = Instant::now();
    assert!(matches!(ask(&router, "a").await, Err(Failure::Unavailable(_))));
    assert!(start.elapsed() < Duration::from_millis(250), "{:?}", start.elapsed());
    assert_eq!(ask(&router, "ours").await.unwrap(), ["1"], "others do not suffer");
    let (cause, remedy, left_alone) = failing(&router);
    assert_eq!((cause.as_str(), left_alone), ("timed out after 300ms", true));
    assert!(remedy.contains("raise its timeout"), "{remedy}");
}

#[tokio::test]
async fn one_that_is_slow_in_the_middle_is_given_up_too() {
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
    assert!(matches!(ask(&router, "a").await, Err(Failure::Unavailable(_))));
    assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
}

#[tokio::test]
async fn garbage_is_no_value() {
    let bodies: Vec<(u16, String)> = vec![
        (200, "<html>welcome</html>".into()),
        (200, String::new()),
        (200, r#"{"kind":"ExternalMetricValueList","items":[{"value":null}]}"#.into()),
        (200, r#"{"kind":"Status","status":"Success"}"#.into()),
        (204, String::new()),
        (404, "<html>not found</html>".into()),
    ];
    for (code, body) in bodies {
        let server = Server::saying(move |_| (code, body.clone())).await;
        let router = router(&server.url());
        // More often than it takes to be left alone: one broken metric does not hide the others.
        for _ in 0..5 {
            let answer = ask(&router, "a").await;
            assert!(matches!(answer, Err(Failure::Unavailable(_))), "{code}: {answer:?}");
        }
        assert!(!router.report()[0].left_alone);
        assert!(failing(&router).0.starts_with("the answer makes no sense"), "{:?}", router.report());
    }
}

#[tokio::test]
async fn too_much_is_not_read() {
    let server = Server::saying(|_| (200, " ".repeat(17 << 20))).await;
    let text = format!("upstreams: [{{name: sick, group: external, url: '{}', timeout: 30s}}]", server.url());
    let router = Router::new(Own::default(), Providers::default(), config(&text));
    let Err(Failure::Unavailable(why)) = ask(&router, "a").await else { panic!() };
    assert!(why.contains("too large"), "{why}");
}

#[tokio::test]
async fn errors_pass_through() {
    for (code, reason, hint) in [
        (403, "Forbidden", "bind our service account"),
        (401, "Unauthorized", "tokenFile"),
        (500, "InternalError", "logs"),
        (400, "BadRequest", "logs"),
        (429, "TooManyRequests", "overloaded"),
    ] {
        let server = Server::saying(move |_| (code, status(code, reason, "because"))).await;
        let router = router(&server.url());
        let answer = ask(&router, "a").await;
        let message = format!("upstream sick: answered {code}: because");
        assert_eq!(answer, Err(Failure::Status { code, reason: reason.into(), message }));
        let (cause, remedy, _) = failing(&router);
        assert!(cause.contains("because") && remedy.contains(hint), "{cause}: {remedy}");
    }
}

#[tokio::test]
async fn one_that_comes_back_is_asked_again() {
    let well = Arc::new(AtomicBool::new(false));
    let server = {
        let well = Arc::clone(&well);
        let api = metrics_api("a", "1");
        Server::saying(move |path| {
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
        assert!(matches!(ask(&router, "a").await, Err(Failure::Status { code: 503, .. })));
    }
    assert_eq!(server.asked(), 3, "after three failures it is left alone");
    well.store(true, Ordering::SeqCst);
    // Looking at its list shows that it may be tried.
    router.relist().await;
    assert_eq!(ask(&router, "a").await.unwrap(), ["1"]);
    let report = router.report();
    assert!(matches!(report[0].condition, Condition::Healthy(_)) && !report[0].left_alone);
    assert_eq!((report[0].requests, report[0].errors), (4, 3));
}

#[tokio::test]
async fn nobody_there_and_files_that_are_not() {
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let router = router(&format!("http://{gone}"));
    let Err(Failure::Unavailable(why)) = ask(&router, "a").await else { panic!() };
    assert_eq!(why, "upstream sick: connection refused");
    router.relist().await;
    assert!(failing(&router).1.contains("check that the server runs"));

    let text = "upstreams: [{name: sick, group: external, url: 'https://127.0.0.1:1', tls: {caFile: /nowhere/ca.crt}}]";
    let router = Router::new(Own::default(), Providers::default(), config(text));
    let Err(Failure::Unavailable(why)) = ask(&router, "a").await else { panic!() };
    assert!(why.contains("/nowhere/ca.crt"), "{why}");
}

/// KEDA answers 500 for a metric without its labels; that must not hide the metrics that it has.
#[tokio::test]
async fn an_error_about_one_metric_is_about_that_one() {
    let server = Server::saying(|path| {
        if path.ends_with("/s0-kafka") {
            (200, values("s0-kafka", "3"))
        } else {
            (500, status(500, "InternalError", "scaledObject name is not specified"))
        }
    })
    .await;
    let router = router(&server.url());
    for _ in 0..10 {
        assert!(matches!(ask(&router, "nope").await, Err(Failure::Status { code: 500, .. })));
    }
    assert_eq!(ask(&router, "s0-kafka").await.unwrap(), ["3"]);
}
