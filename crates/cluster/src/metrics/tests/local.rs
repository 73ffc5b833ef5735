//! Providers of the process are queried before the API.

use std::future::ready;
use std::sync::Mutex;

use api::provider::{
    CustomMetric, CustomMetricQuery, CustomMetricSample, CustomMetricsProvider, ExternalMetricQuery,
    ExternalMetricSample, ExternalMetricsProvider, ListFilter, Lookup, MetricsError, NodeUsage,
    ObjectReference, ProviderFuture, Providers, ResourceMetricsProvider,
};
use tokio::time::sleep;

use super::*;

const WHOLE: &str = "GET /apis/metrics.k8s.io/v1beta1/namespaces/ns/pods";

struct Pods(Mutex<Vec<PodUsage>>);

impl ResourceMetricsProvider for Pods {
    fn source(&self) -> Option<&'static str> {
        Some("kubelets")
    }

    fn pods<'a>(&'a self, which: &'a ListFilter) -> ProviderFuture<'a, Vec<PodUsage>> {
        let mut pods = self.0.lock().unwrap().clone();
        pods.retain(|pod| {
            which.namespace.as_deref() == Some(&*pod.namespace) && pod.labels.are_selected(&which.labels)
        });
        Box::pin(ready(Ok(pods)))
    }

    fn pod<'a>(&'a self, _: &'a str, _: &'a str) -> ProviderFuture<'a, Lookup<PodUsage>> {
        Box::pin(ready(Ok(Lookup::NotFound)))
    }

    fn nodes<'a>(&'a self, _: &'a ListFilter) -> ProviderFuture<'a, Vec<NodeUsage>> {
        Box::pin(ready(Ok(Vec::new())))
    }

    fn node<'a>(&'a self, _: &'a str) -> ProviderFuture<'a, Lookup<NodeUsage>> {
        Box::pin(ready(Ok(Lookup::NotFound)))
    }
}

/// Has the metric `queue`, and one called `down` whose source does not answer.
struct Queue;

impl Queue {
    fn answer<T>(metric: &str, value: T) -> Result<Vec<T>, MetricsError> {
        match metric {
            "queue" => Ok(vec![value]),
            "down" => Err(MetricsError::Unavailable("no source".to_owned())),
            other => Err(MetricsError::no_metric(other, "anything")),
        }
    }
}

impl CustomMetricsProvider for Queue {
    fn values<'a>(&'a self, query: &'a CustomMetricQuery) -> ProviderFuture<'a, Vec<CustomMetricSample>> {
        assert_eq!((query.resource.as_str(), query.namespace.as_deref()), ("pods", Some("ns")));
        let object = ObjectReference { name: "a".to_owned(), ..ObjectReference::default() };
        let (metric, value) = (query.metric.clone(), "3".parse().unwrap());
        let sample =
            CustomMetricSample { object, metric, series: None, timestamp: None, window: None, value };
        Box::pin(ready(Self::answer(&query.metric, sample)))
    }

    fn known(&self) -> Arc<Vec<CustomMetric>> {
        Arc::default()
    }
}

impl ExternalMetricsProvider for Queue {
    fn values<'a>(&'a self, query: &'a ExternalMetricQuery) -> ProviderFuture<'a, Vec<ExternalMetricSample>> {
        query.source.state("the queue");
        let (metric, value) = (query.metric.clone(), "7".parse().unwrap());
        let sample = ExternalMetricSample { metric, labels: None, timestamp: None, window: None, value };
        Box::pin(ready(Self::answer(&query.metric, sample)))
    }

    fn known(&self) -> Arc<Vec<String>> {
        Arc::default()
    }
}

fn local_first(fake: &Fake, local: &LocalMetrics) -> MetricsClient {
    MetricsClient::local_first(fake.client(), Discovery::new(fake.client()), FRESHNESS, local)
}

fn of(app: &'static str) -> MetricScope<'static> {
    MetricScope { selector: app, shared: true, ..alone() }
}

#[tokio::test(start_paused = true)]
async fn resource_metrics_of_the_process_replace_the_api() {
    let fake = server(|_| Reply::new(500, TEXT, "boom"));
    let two =
        pod_list(&[pod_metrics("a1", "a", "1"), pod_metrics("b1", "b", "2"), pod_metrics("a2", "a", "3")]);
    let pods = Arc::new(Pods(Mutex::new(provided(&two))));
    let local = LocalMetrics::default();
    let metrics = local_first(&fake, &local);
    // Until the providers have started, the API is queried.
    assert!(metrics.samples(of("app=a"), &resource("cpu")).await.is_err());
    assert_eq!(request_lines(&fake), [WHOLE]);
    let resource_metrics: Arc<dyn ResourceMetricsProvider> = pods.clone();
    local.provide(Providers { resource: Some(resource_metrics), ..Providers::default() });
    for shared in [true, false] {
        let scope = MetricScope { shared, ..of("app=a") };
        assert_eq!(stray(&metrics.samples(scope, &resource("cpu")).await.unwrap()), [1000, 3000]);
    }
    *pods.0.lock().unwrap() = provided(&pod_list(&[pod_metrics("a1", "a", "7")]));
    // A shared list is used for a while, as one of the API.
    assert_eq!(stray(&metrics.samples(of("app=a"), &resource("cpu")).await.unwrap()), [1000, 3000]);
    sleep(FRESHNESS).await;
    let mut from = Provenance::default();
    let samples = metrics.samples_from(of("app=a"), &container("cpu", "c"), &mut from).await.unwrap();
    assert_eq!(stray(&samples), [7000]);
    assert_eq!((&*from.api, from.source.as_deref()), ("this process", Some("kubelets")));
    let none = "no metrics returned from resource metrics API";
    assert_eq!(metrics.samples(of("app=b"), &resource("cpu")).await.unwrap_err().to_string(), none);
    let elsewhere = MetricScope { namespace: "other", ..of("app=a") };
    assert_eq!(metrics.samples(elsewhere, &resource("cpu")).await.unwrap_err().to_string(), none);
    assert!(request_lines(&fake).is_empty());
    assert_eq!(metrics.traffic().resource.sent, 1);
    // The API reports an invalid selector in the words of Kubernetes.
    let invalid = MetricScope { shared: false, ..of("app in (") };
    assert!(metrics.samples_from(invalid, &resource("cpu"), &mut from).await.is_err());
    assert_eq!((&*from.api, metrics.traffic().resource.sent), ("metrics.k8s.io/v1beta1", 2));
}

#[tokio::test(start_paused = true)]
async fn metrics_that_the_process_does_not_have_are_requested_over_the_api() {
    let fake = server(|_| Reply::json(&json!({"items": [{"value": "1"}]})));
    let local = LocalMetrics::default();
    local.provide(Providers {
        resource: None,
        custom: Some(Arc::new(Queue)),
        external: Some(Arc::new(Queue)),
    });
    let metrics = local_first(&fake, &local);
    let mut from = Provenance::default();
    let own = metrics.samples_from(alone(), &external("Queue", ""), &mut from).await.unwrap();
    assert_eq!(own, MetricSamples::Totals(vec![7000.into()]));
    assert_eq!((&*from.api, from.source.as_deref()), ("this process", Some("the queue")));
    assert_eq!(stray(&metrics.samples(alone(), &pods("queue", "")).await.unwrap()), [3000]);
    assert!(request_lines(&fake).is_empty());
    let other = metrics.samples(alone(), &external("other", "")).await.unwrap();
    assert_eq!(other, MetricSamples::Totals(vec![1000.into()]));
    assert_eq!(request_lines(&fake), ["GET /apis/external.metrics.k8s.io/v1beta1/namespaces/ns/other"]);
    // A source that does not answer is an error, not a reason to ask another server.
    let error = metrics.samples(alone(), &external("down", "")).await.unwrap_err();
    assert_eq!(error.to_string(), "unable to fetch metrics from external metrics API: no source");
    let error = metrics.samples(alone(), &pods("down", "")).await.unwrap_err();
    assert_eq!(error.to_string(), "unable to fetch metrics from custom metrics API: no source");
    assert!(request_lines(&fake).is_empty());
    assert_eq!(metrics.traffic().external, MetricsApiCount { sent: 1, failed: 1, saved: 2 });
    assert_eq!(metrics.traffic().custom, MetricsApiCount { sent: 0, failed: 1, saved: 2 });
}
