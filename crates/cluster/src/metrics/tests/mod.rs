#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod answers;
mod local;
mod sharing;
mod usage;

use std::sync::Arc;
use std::time::Duration;

use api::metrics::PodMetricsList;
use api::provider::{ContainerUsage, PodUsage};
use api::time::parse_go_duration;
use engine::spec::{Metric, MetricId, MetricSource, MetricTarget, UtilizationBase};
use serde_json::{Value, json};

use super::*;
use crate::request::tests::fake::{Fake, JSON, ReceivedRequest, Reply, TEXT};

const FRESHNESS: Duration = Duration::from_secs(5);

fn metric(source: MetricSource, target: MetricTarget) -> Metric {
    Metric::new(source, target)
}

fn id(name: &str, selector: &str) -> MetricId {
    MetricId { name: name.to_owned(), shown_selector: "nil".to_owned(), selector: Ok(selector.to_owned()) }
}

fn resource(name: &str) -> Metric {
    metric(
        MetricSource::Resource { name: name.to_owned(), of: UtilizationBase::default() },
        MetricTarget::Utilization(50),
    )
}

fn container(name: &str, container: &str) -> Metric {
    let source = MetricSource::ContainerResource {
        name: name.to_owned(),
        container: container.to_owned(),
        of: UtilizationBase::default(),
    };
    metric(source, MetricTarget::Utilization(50))
}

fn pods(name: &str, selector: &str) -> Metric {
    metric(MetricSource::Pods(id(name, selector)), MetricTarget::AverageValue(5000.into()))
}

fn object(api_version: Option<&str>, kind: &str, name: &str, metric_name: &str) -> Metric {
    let source = MetricSource::Object {
        kind: kind.to_owned(),
        name: name.to_owned(),
        api_version: api_version.map(str::to_owned),
        metric: id(metric_name, ""),
    };
    metric(source, MetricTarget::Value(5000.into()))
}

fn external(name: &str, selector: &str) -> Metric {
    metric(MetricSource::External(id(name, selector)), MetricTarget::Value(5000.into()))
}

/// What a server with ingresses, namespaces and these groups returns as its discovery documents.
fn described(request: &ReceivedRequest, groups: &[(&str, &[&str])]) -> Option<Reply> {
    let entry = |plural: &str, kind: &str| json!({"resource": plural, "responseKind": {"kind": kind}});
    let mut items = vec![json!({"metadata": {"name": "networking.k8s.io"}, "versions": [
        {"version": "v1", "resources": [entry("ingresses", "Ingress")]}]})];
    items.extend(groups.iter().map(|(group, versions)| {
        let versions: Vec<Value> = versions.iter().map(|version| json!({"version": version})).collect();
        json!({"metadata": {"name": group}, "versions": versions})
    }));
    let items = match request.line.as_str() {
        "GET /api" => vec![json!({"metadata": {}, "versions": [{"version": "v1", "resources": [
            entry("namespaces", "Namespace"), entry("nodes", "Node")]}]})],
        "GET /apis" => items,
        _ => return None,
    };
    Some(Reply::json(&json!({"kind": "APIGroupDiscoveryList", "items": items})))
}

/// A server with all three APIs that answers questions with `reply`.
fn server(reply: impl Fn(&ReceivedRequest) -> Reply + Send + Sync + 'static) -> Fake {
    let groups: &[(&str, &[&str])] =
        &[("metrics.k8s.io", &["v1beta1"]), ("custom.metrics.k8s.io", &["v1beta2", "v1beta1"])];
    Fake::new(move |request| described(request, groups).unwrap_or_else(|| reply(request)))
}

fn metrics(fake: &Fake) -> MetricsClient {
    MetricsClient::new(fake.client(), Discovery::new(fake.client()), FRESHNESS)
}

fn alone() -> MetricScope<'static> {
    MetricScope { namespace: "ns", selector: "app=web", pods: &[], shared: false }
}

/// Questions that were put to the metrics APIs.
fn request_lines(fake: &Fake) -> Vec<String> {
    fake.lines().into_iter().filter(|line| line.contains("metrics.k8s.io/")).collect()
}

fn pod_metrics(name: &str, app: &str, cpu: &str) -> Value {
    json!({"metadata": {"name": name, "labels": {"app": app}}, "timestamp": "2026-01-01T00:00:00Z", "window": "15s",
        "containers": [{"name": "c", "usage": {"cpu": cpu, "memory": "1Mi"}}]})
}

fn pod_list(items: &[Value]) -> Value {
    json!({"kind": "PodMetricsList", "apiVersion": "metrics.k8s.io/v1beta1", "metadata": {}, "items": items})
}

/// The pods of a list, as a provider in this process returns them.
fn provided(list: &Value) -> Vec<PodUsage> {
    let list: PodMetricsList = serde_json::from_value(list.clone()).unwrap();
    let container = |container: api::metrics::ContainerMetrics| ContainerUsage {
        name: container.name.into(),
        usage: container.usage.into_iter().map(|(name, used)| (name.into(), used)).collect(),
    };
    let pod = |pod: api::metrics::PodMetrics| PodUsage {
        namespace: "ns".into(),
        name: pod.metadata.name.into(),
        labels: Arc::new(pod.metadata.labels.into_iter().collect()),
        timestamp: pod.timestamp,
        window: i64::try_from(parse_go_duration(&pod.window).unwrap().as_nanos()).unwrap(),
        containers: pod.containers.into_iter().map(container).collect(),
    };
    list.items.into_iter().map(pod).collect()
}

/// Samples without a pod, in thousandths.
fn stray(samples: &MetricSamples) -> Vec<i64> {
    let MetricSamples::PerPod(samples) = samples else { unreachable!() };
    assert!(samples.by_pod.is_empty());
    samples.stray.iter().map(|sample| sample.milli.get()).collect()
}
