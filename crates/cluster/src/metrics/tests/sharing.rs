//! Concurrent identical queries share one request.

use futures::future::join_all;
use tokio::time::sleep;

use super::*;

const WHOLE: &str = "GET /apis/metrics.k8s.io/v1beta1/namespaces/ns/pods";

fn of(app: &'static str) -> MetricScope<'static> {
    MetricScope { selector: app, shared: true, ..alone() }
}

fn two_apps() -> Value {
    pod_list(&[pod_metrics("a1", "a", "1"), pod_metrics("b1", "b", "2"), pod_metrics("a2", "a", "3")])
}

#[tokio::test(start_paused = true)]
async fn one_list_of_a_namespace_serves_all_selectors() {
    let fake = server(|_| Reply::json(&two_apps()).after(Duration::from_secs(1)));
    let metrics = metrics(&fake);
    let cpu = resource("cpu");
    let answers =
        join_all((0..20).map(|n| metrics.samples(of(if n % 2 == 0 { "app=a" } else { "app in (b)" }), &cpu)));
    for (n, answer) in answers.await.into_iter().enumerate() {
        assert_eq!(stray(&answer.unwrap()), if n % 2 == 0 { vec![1000, 3000] } else { vec![2000] });
    }
    assert_eq!(request_lines(&fake), [WHOLE]);
    sleep(Duration::from_millis(4_990)).await;
    assert_eq!(stray(&metrics.samples(of("app!=a"), &resource("memory")).await.unwrap()), [1_048_576_000]);
    assert!(request_lines(&fake).is_empty());
    sleep(Duration::from_millis(20)).await;
    // An empty selection is like an empty list.
    assert_eq!(
        metrics.samples(of("app=c"), &cpu).await.unwrap_err().to_string(),
        "no metrics returned from resource metrics API"
    );
    assert_eq!(request_lines(&fake), [WHOLE]);
    assert_eq!(metrics.traffic().resource, MetricsApiCount { sent: 2, failed: 0, saved: 20 });
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_returned_to_all_callers_and_not_cached() {
    let fake = server(|_| Reply::new(503, TEXT, "service unavailable").after(Duration::from_secs(1)));
    let metrics = metrics(&fake);
    let cpu = resource("cpu");
    let words = "unable to fetch metrics from resource metrics API: the server is currently unable to handle the \
                 request (get pods.metrics.k8s.io)";
    for _ in 0..2 {
        let answers = join_all((0..5).map(|_| metrics.samples(of("app=a"), &cpu))).await;
        assert!(answers.iter().all(|answer| answer.as_ref().unwrap_err().to_string() == words));
        assert_eq!(request_lines(&fake), [WHOLE]);
    }
    assert_eq!(metrics.traffic().resource, MetricsApiCount { sent: 2, failed: 2, saved: 8 });
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_caller_does_not_affect_others() {
    let fake = server(|_| Reply::json(&two_apps()).after(Duration::from_secs(1)));
    let metrics = metrics(&fake);
    let cpu = resource("cpu");
    let gone = tokio::time::timeout(Duration::from_millis(500), metrics.samples(of("app=a"), &cpu));
    let (gone, stays) = tokio::join!(gone, metrics.samples(of("app=b"), &cpu));
    assert!(gone.is_err());
    assert_eq!(stray(&stays.unwrap()), [2000]);
    metrics.samples(of("app=b"), &cpu).await.unwrap();
    assert_eq!(request_lines(&fake), [WHOLE]);
}

#[tokio::test(start_paused = true)]
async fn a_list_without_labels_is_replaced_by_selected_pods() {
    let fake = server(|_| {
        let mut list = two_apps();
        for item in list["items"].as_array_mut().unwrap() {
            item["metadata"].as_object_mut().unwrap().remove("labels");
        }
        Reply::json(&list)
    });
    let metrics = metrics(&fake);
    metrics.samples(of("app=a"), &resource("cpu")).await.unwrap();
    assert_eq!(request_lines(&fake), [WHOLE.to_owned(), format!("{WHOLE}?labelSelector=app%3Da")]);
    sleep(Duration::from_mins(1)).await;
    metrics.samples(of("app=b"), &resource("cpu")).await.unwrap();
    assert_eq!(request_lines(&fake), [format!("{WHOLE}?labelSelector=app%3Db")]);
    sleep(Duration::from_mins(5)).await;
    metrics.samples(of("app=b"), &resource("cpu")).await.unwrap();
    assert_eq!(request_lines(&fake).len(), 2);
}

#[tokio::test]
async fn v1_is_requested_where_v1beta1_is_not_served() {
    let fake = Fake::new(|request| {
        described(request, &[("metrics.k8s.io", &["v1"])]).unwrap_or_else(|| {
            let mut list = two_apps();
            list["apiVersion"] = json!("metrics.k8s.io/v1");
            let there = request.line.contains("/metrics.k8s.io/v1/");
            if there { Reply::json(&list) } else { Reply::new(404, TEXT, "404 page not found") }
        })
    });
    let metrics = metrics(&fake);
    let v1 = WHOLE.replace("v1beta1", "v1");
    metrics.samples(of("app=a"), &resource("cpu")).await.unwrap();
    assert_eq!(request_lines(&fake), [WHOLE, &v1]);
    metrics.samples(MetricScope { selector: "", ..alone() }, &resource("cpu")).await.unwrap();
    assert_eq!(request_lines(&fake), [v1]);
}

#[tokio::test]
async fn without_a_served_version_the_first_error_is_returned() {
    let fake = Fake::new(|request| {
        described(request, &[]).unwrap_or_else(|| Reply::new(404, TEXT, "404 page not found"))
    });
    let error = metrics(&fake).samples(alone(), &resource("cpu")).await.unwrap_err().to_string();
    assert_eq!(
        error,
        "unable to fetch metrics from resource metrics API: the server could not find the requested resource (get \
         pods.metrics.k8s.io)"
    );
    assert_eq!(request_lines(&fake).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn identical_concurrent_queries_are_sent_once_and_not_cached() {
    let fake = server(|request| {
        let item = json!({"describedObject": {"name": "p"}, "value": "5"});
        let kind = if request.line.contains("custom") {
            json!({"kind": "MetricValueList", "apiVersion": "custom.metrics.k8s.io/v1beta2", "items": [item]})
        } else {
            json!({"items": [item]})
        };
        Reply::json(&kind).after(Duration::from_millis(500))
    });
    let metrics = metrics(&fake);
    for (metric, other) in [(pods("m", ""), pods("m", "a=b")), (external("Q", ""), external("other", ""))] {
        let fetch = || metrics.samples(alone(), &metric);
        let (a, b, c, d) = tokio::join!(fetch(), fetch(), metrics.samples(alone(), &other), fetch());
        assert!(a == b && b == d && c.is_ok());
        assert_eq!(request_lines(&fake).len(), 2);
        fetch().await.unwrap();
        assert_eq!(request_lines(&fake).len(), 1);
    }
    let MetricsApiCounts { custom, external, .. } = metrics.traffic();
    assert_eq!(
        (custom, external),
        (MetricsApiCount { sent: 3, failed: 0, saved: 2 }, MetricsApiCount { sent: 3, failed: 0, saved: 2 })
    );
}

#[tokio::test(start_paused = true)]
async fn the_version_is_discovered_again() {
    let fake = server(|_| {
        Reply::json(
            &json!({"kind": "MetricValueList", "apiVersion": "custom.metrics.k8s.io/v1beta2", "items": [
            {"describedObject": {"name": "p"}, "value": "5"}]}),
        )
    });
    let metrics = metrics(&fake);
    let mut about = Vec::new();
    for _ in 0..7 {
        metrics.samples(alone(), &pods("m", "")).await.unwrap();
        about.push(fake.lines().iter().filter(|line| *line == "GET /apis").count());
        sleep(Duration::from_secs(2)).await;
    }
    assert_eq!(about, [1, 0, 0, 1, 0, 0, 1]);
}

#[tokio::test(start_paused = true)]
async fn provenance_states_who_answered_and_whether_the_response_was_shared() {
    let fake = server(|_| {
        let mut reply = Reply::json(&two_apps()).after(Duration::from_secs(1));
        reply.headers.push((api::metrics::SOURCE_HEADER, "kubelets".to_owned()));
        reply
    });
    let metrics = metrics(&fake);
    let cpu = resource("cpu");
    let fetch = async |scope| {
        let mut from = Provenance::default();
        metrics.samples_from(scope, &cpu, &mut from).await.unwrap();
        from
    };
    let (first, second) = tokio::join!(fetch(of("app=a")), fetch(of("app=b")));
    let third = fetch(of("app=a")).await;
    let alone = fetch(alone()).await;
    let sharing = [first.response, second.response, third.response, alone.response];
    let own = ResponseSharing::Own;
    assert_eq!(sharing, [own, ResponseSharing::Joined, ResponseSharing::Cached, own]);
    for from in [&first, &second, &third, &alone] {
        assert_eq!(from.api, "metrics.k8s.io/v1beta1");
        assert_eq!(from.source.as_deref(), Some("kubelets"));
        assert_eq!(from.oldest.unwrap().to_string(), "2026-01-01T00:00:00Z");
        assert_eq!(from.window.unwrap().as_secs(), 15);
    }
    assert_eq!((first.samples, second.samples), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn provenance_of_series_has_labels_whatever_else_they_hold() {
    let items = json!([
        {"metricLabels": {"queue": "a", "odd": 5}, "timestamp": "2026-01-01T00:00:05Z", "window": 30, "value": "1"},
        {"metricLabels": null, "timestamp": "2026-01-01T00:00:00Z", "window": "often", "value": "7"},
    ]);
    let fake = server(move |_| Reply::json(&json!({"items": items})));
    let mut from = Provenance::default();
    metrics(&fake).samples_from(alone(), &external("q", ""), &mut from).await.unwrap();
    assert_eq!((&*from.api, from.source, from.samples), ("external.metrics.k8s.io/v1beta1", None, 2));
    let largest: Vec<(&str, i64)> = from.largest.iter().map(|one| (&*one.name, one.milli.get())).collect();
    assert_eq!(largest, [("no labels", 7000), ("queue=a", 1000)]);
    assert_eq!(from.window.unwrap().as_secs(), 30);
    assert_eq!(from.newest.unwrap().duration_since(from.oldest.unwrap()).as_secs(), 5);
}

#[tokio::test(start_paused = true)]
async fn provenance_of_a_failure_names_the_api() {
    let fake = server(|_| Reply::new(503, TEXT, "service unavailable"));
    let metrics = metrics(&fake);
    for (metric, api) in [
        (resource("cpu"), "metrics.k8s.io/v1beta1"),
        (pods("m", ""), "custom.metrics.k8s.io/v1beta2"),
        (external("q", ""), "external.metrics.k8s.io/v1beta1"),
    ] {
        let mut from = Provenance::default();
        assert!(metrics.samples_from(alone(), &metric, &mut from).await.is_err());
        assert_eq!((&*from.api, from.samples, from.oldest), (api, 0, None));
    }
}
