use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Semaphore;

use super::server::{Server, metrics_api, nothing, status, values};
use super::*;

#[tokio::test]
async fn several_adapters_work_behind_one_service() {
    let keda = Server::answering(metrics_api("s0-kafka-orders", "42")).await;
    let datadog = Server::answering(metrics_api("datadogmetric", "7500m")).await;
    let text = format!(
        "upstreams:\n- {{name: keda, group: external, url: '{}', metrics: ['s[0-9]*-*']}}\n\
         - {{name: datadog, group: external, url: '{}'}}\n",
        keda.url(),
        datadog.url()
    );
    let router = Router::new(OwnService::default(), own("ours", Ok(1)), config(&text));
    assert_eq!(query_metric(&router, "ours").await.unwrap(), ["1"]);
    assert_eq!(query_metric(&router, "datadogmetric").await.unwrap(), ["7500m"]);
    assert_eq!(keda.requested(), 0, "only its own metrics are requested from it");
    assert_eq!(query_metric(&router, "s0-kafka-orders").await.unwrap(), ["42"]);
    let query = external("datadogmetric");
    ExternalMetricsProvider::values(&router, &query).await.unwrap();
    assert_eq!(query.source.stated().as_deref(), Some("upstream datadog"));
    // An owned metric is not queried elsewhere.
    let before = datadog.requested();
    assert!(matches!(query_metric(&router, "s1-unknown").await, Err(MetricsError::NoMetric(_))));
    assert_eq!(datadog.requested(), before);
    // An unknown metric has the text of the first response.
    let missing = query_metric(&router, "nope").await.unwrap_err();
    assert_eq!(missing, MetricsError::no_metric("nope", "own"));

    assert_eq!(*ExternalMetricsProvider::known(&router), ["ours"]);
    router.relist().await;
    assert_eq!(*ExternalMetricsProvider::known(&router), ["ours", "s0-kafka-orders", "datadogmetric"]);
    let report = router.report();
    assert_eq!((report[0].name.as_str(), report[0].requests, report[0].errors), ("keda", 2, 0));
    assert_eq!((report[0].external, report[0].custom), (1, 0));
    assert!(matches!(report[0].condition, UpstreamCondition::Healthy(_)) && report[0].p99.is_some());
}

#[tokio::test]
async fn upstream_that_announced_a_metric_is_queried_first() {
    let first = Server::answering(metrics_api("a", "1")).await;
    let second = Server::answering(metrics_api("b", "2")).await;
    let text = format!(
        "upstreams:\n- {{name: first, group: external, url: '{}'}}\n- {{name: second, group: external, url: '{}'}}\n",
        first.url(),
        second.url()
    );
    let router = Router::new(OwnService::default(), LocalProviders::default(), config(&text));
    assert_eq!(query_metric(&router, "b").await.unwrap(), ["2"]);
    assert_eq!((first.requested(), second.requested()), (1, 1));
    router.relist().await;
    assert_eq!((first.requested(), second.requested()), (2, 2));
    assert_eq!(query_metric(&router, "b").await.unwrap(), ["2"]);
    assert_eq!((first.requested(), second.requested()), (2, 3));
}

#[tokio::test]
async fn outage_is_not_reported_as_missing_metric() {
    let good = Server::answering(metrics_api("a", "1")).await;
    let down = Server::answering(|_| (503, status(503, "ServiceUnavailable", "not ready"))).await;
    let text = |one: &Server, other: &Server| {
        config(&format!(
            "upstreams:\n- {{name: one, group: external, url: '{}'}}\n- {{name: other, group: external, url: '{}'}}\n",
            one.url(),
            other.url()
        ))
    };
    for (one, other) in [(&good, &down), (&down, &good)] {
        let router = Router::new(OwnService::default(), own("ours", Ok(1)), text(one, other));
        assert_eq!(query_metric(&router, "a").await.unwrap(), ["1"], "one of them has it");
        let Err(MetricsError::Status { code, reason, message }) = query_metric(&router, "nope").await else {
            panic!()
        };
        assert_eq!((code, reason.as_str()), (503, "ServiceUnavailable"));
        assert!(
            message.starts_with("upstream o") && message.ends_with("answered 503: not ready"),
            "{message}"
        );
    }
    // An outage of a local provider counts too.
    let broken = own("ours", Err(MetricsError::Internal("unable to fetch metrics".into())));
    let router = Router::new(OwnService::default(), broken, text(&good, &good));
    assert_eq!(
        query_metric(&router, "ours").await,
        Err(MetricsError::Internal("unable to fetch metrics".into()))
    );
}

#[tokio::test]
async fn empty_list_for_any_name_does_not_hide_other_upstreams() {
    let empty = Server::answering(|_| (200, nothing())).await;
    let good = Server::answering(metrics_api("a", "1")).await;
    let text = format!(
        "upstreams:\n- {{name: one, group: external, url: '{}'}}\n- {{name: other, group: external, url: '{}'}}\n",
        empty.url(),
        good.url()
    );
    let router = Router::new(OwnService::default(), LocalProviders::default(), config(&text));
    assert_eq!(query_metric(&router, "a").await.unwrap(), ["1"]);
    assert_eq!(query_metric(&router, "b").await.unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn identical_queries_are_sent_once() {
    let (count, permits) = (Arc::new(AtomicUsize::new(0)), Arc::new(Semaphore::new(0)));
    let server = {
        let count = Arc::clone(&count);
        Server::answering_with(&permits, move |_| {
            let n = count.fetch_add(1, Ordering::SeqCst);
            (200, values("a", &n.to_string()))
        })
        .await
    };
    let text = format!("upstreams: [{{name: one, group: external, url: '{}'}}]", server.url());
    let router = Router::new(OwnService::default(), LocalProviders::default(), config(&text));
    let mut queries = std::pin::pin!(futures::future::join_all((0..50).map(|_| query_metric(&router, "a"))));
    // Each query starts or joins a request when it is polled first, so that all have done so before the server responds.
    assert!(futures::poll!(queries.as_mut()).is_pending());
    permits.add_permits(1);
    let answers = queries.await;
    assert!(answers.iter().all(|answer| *answer == Ok(vec!["0".to_owned()])), "{answers:?}");
    assert_eq!(count.load(Ordering::SeqCst), 1);
    assert_eq!(query_metric(&router, "a").await.unwrap(), ["1"], "nothing is kept");
}

#[tokio::test]
async fn both_versions_of_custom_metrics_are_supported() {
    let item = |version: &str| match version {
        "v1beta2" => {
            r#"{"describedObject":{"kind":"Pod","name":"web-0"},"metric":{"name":"qps","selector":null},"timestamp":null,"value":"2"}"#
        }
        _ => {
            r#"{"describedObject":{"kind":"Pod","name":"web-0"},"metricName":"qps","timestamp":null,"value":"1","selector":null}"#
        }
    };
    let serving = move |versions: &'static [&'static str]| {
        move |path: &str| {
            let found = versions.iter().find_map(|version| {
                let rest = path.strip_prefix(&format!("/apis/custom.metrics.k8s.io/{version}"))?;
                Some(match rest {
                    "" => (
                        200,
                        r#"{"kind":"APIResourceList","resources":[{"name":"pods/qps","namespaced":true}]}"#
                            .into(),
                    ),
                    "/namespaces/default/pods/web-0/qps" => {
                        (200, format!(r#"{{"kind":"MetricValueList","items":[{}]}}"#, item(version)))
                    }
                    "/namespaces/default/pods/*/qps" | "/namespaces/default/pods/two/qps" => (
                        200,
                        format!(
                            r#"{{"kind":"MetricValueList","items":[{},{}]}}"#,
                            item(version),
                            item(version)
                        ),
                    ),
                    "/namespaces/default/pods/none/qps" => {
                        (200, r#"{"kind":"MetricValueList","items":[]}"#.into())
                    }
                    _ => (404, status(404, "NotFound", "the server could not find the metric x for pods")),
                })
            });
            found.unwrap_or_else(|| (404, "404 page not found\n".into()))
        }
    };
    for (versions, value) in [(&["v1beta1", "v1beta2"][..], "2"), (&["v1beta2"], "2"), (&["v1beta1"], "1")] {
        let server = Server::answering(serving(versions)).await;
        let text = format!("upstreams: [{{name: one, group: custom, url: '{}'}}]", server.url());
        let router = Router::new(OwnService::default(), LocalProviders::default(), config(&text));
        for _ in 0..2 {
            let query = custom("qps", one("web-0"));
            let values = CustomMetricsProvider::values(&router, &query).await.unwrap();
            assert_eq!((values.len(), values[0].value.to_string().as_str()), (1, value));
        }
        // The discovered version is remembered.
        assert_eq!(server.requested(), if value == "1" { 3 } else { 2 });
        assert_eq!(CustomMetricsProvider::values(&router, &custom("qps", all())).await.unwrap().len(), 2);
        let missing = CustomMetricsProvider::values(&router, &custom("nope", all())).await;
        assert!(matches!(missing, Err(MetricsError::NoMetric(_))), "{missing:?}");
        let missing = CustomMetricsProvider::values(&router, &custom("qps", one("none"))).await;
        assert_eq!(missing, Err(MetricsError::no_value("qps", "pods", "none")));
        let two = CustomMetricsProvider::values(&router, &custom("qps", one("two"))).await;
        assert!(
            matches!(&two, Err(MetricsError::Unavailable(why)) if why.contains("2 values for one object")),
            "{two:?}"
        );
        router.relist().await;
        let known = CustomMetricsProvider::known(&router);
        assert_eq!((known.len(), known[0].resource.as_str(), known[0].metric.as_str()), (1, "pods", "qps"));
        // External metrics are not queried from it.
        let before = server.requested();
        assert_eq!(query_metric(&router, "a").await, Err(MetricsError::no_metric("a", "namespaces")));
        assert_eq!(server.requested(), before);
    }
}

#[tokio::test]
async fn unchanged_upstreams_keep_their_state() {
    let (a, b) =
        (Server::answering(metrics_api("a", "1")).await, Server::answering(metrics_api("b", "2")).await);
    let line = |name: &str, server: &Server| {
        format!("- {{name: {name}, group: external, url: '{}'}}\n", server.url())
    };
    let router = Router::new(
        OwnService::default(),
        LocalProviders::default(),
        config(&format!("upstreams:\n{}", line("a", &a))),
    );
    let running = tokio::spawn({
        let router = router.clone();
        async move { router.run().await }
    });
    let listed = async |metrics: &[&str]| {
        tokio::time::timeout(Duration::from_secs(10), async {
            while *ExternalMetricsProvider::known(&router) != metrics {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await
        .unwrap();
    };
    listed(&["a"]).await;
    assert_eq!(query_metric(&router, "a").await.unwrap(), ["1"]);
    router.configure(config(&format!("upstreams:\n{}{}", line("b", &b), line("a", &a))));
    listed(&["b", "a"]).await;
    let report = router.report();
    assert_eq!((report[0].requests, report[1].requests), (0, 1));
    router.configure(FederationConfig::default());
    assert!(ExternalMetricsProvider::known(&router).is_empty() && router.report().is_empty());
    assert!(!running.is_finished());
    running.abort();
}
