//! Custom metrics of simulated pods: the load that each pod serves, as an adapter of a monitoring system would report it.

use std::collections::BTreeSet;
use std::time::Duration;

use api::selector::Selector;
use kube::Client;
use localkube::clock::Clock;
use localkube::metrics::{
    DescribedObject, MetricsApi, MetricsApiError, MetricsGroup, MetricsSettings, Script, Series,
};
use localkube::nodes::{Meter, Nodes, PodReading};
use sim::inputs::{SeriesValue, Signal};
use sim::scenario::WorkloadPlan;
use sim::scenario::document::MetricKind;
use tokio::task::JoinSet;

/// The namespace of the registration's Service.
const NAMESPACE: &str = "kube-system";

/// A metric of the pods of one workload.
#[derive(Clone, Debug)]
struct PodMetric {
    namespace: String,
    selector: Selector,
    name: String,
    /// Factor for the load that a pod serves.
    scale: f64,
}

/// The running metrics API; it ends when this is dropped.
pub(super) struct PodMetrics {
    api: MetricsApi,
    #[allow(dead_code, reason = "held for its end")]
    tasks: JoinSet<()>,
}

impl PodMetrics {
    /// Serves and registers the `Pods` metrics of workloads; none if they have none.
    pub(super) async fn start<'a>(
        client: &Client,
        nodes: &Nodes,
        plans: impl Iterator<Item = &'a WorkloadPlan>,
        interval: Duration,
        clock: Clock,
    ) -> Result<Option<Self>, MetricsApiError> {
        let metrics: Vec<PodMetric> = plans.flat_map(PodMetric::of).collect();
        if metrics.is_empty() {
            return Ok(None);
        }
        let api = MetricsApi::start(MetricsSettings { clock, ..MetricsSettings::default() }).await?;
        let mut tasks = JoinSet::new();
        tasks.spawn(publish(metrics, nodes.meter(), api.script(), interval));
        api.register_groups(client, NAMESPACE, &[MetricsGroup::Custom]).await?;
        Ok(Some(Self { api, tasks }))
    }

    /// Injects faults.
    pub(super) fn script(&self) -> Script {
        self.api.script()
    }
}

impl PodMetric {
    fn of(plan: &WorkloadPlan) -> Vec<Self> {
        let Ok(selector) = Selector::parse(&plan.selector) else { return Vec::new() };
        let is_served = |value: &SeriesValue| matches!(value, SeriesValue::Signal(Signal::Served));
        let metrics = plan.metrics.iter().filter(|m| m.kind == MetricKind::Pods && is_served(&m.value));
        let metric = |metric: &sim::scenario::MetricPlan| Self {
            namespace: plan.namespace.clone(),
            selector: selector.clone(),
            name: metric.name.clone(),
            scale: metric.scale,
        };
        metrics.map(metric).collect()
    }

    fn is_about(&self, pod: &PodReading) -> bool {
        self.namespace == pod.namespace && self.selector.matches_map(&pod.labels)
    }
}

/// Sets the values until this future is dropped.
async fn publish(metrics: Vec<PodMetric>, meter: Meter, script: Script, interval: Duration) {
    let mut ticks = tokio::time::interval(interval);
    let mut known = BTreeSet::new();
    loop {
        ticks.tick().await;
        let pods: Vec<PodReading> = meter.read().into_iter().flat_map(|node| node.pods).collect();
        known = step(&metrics, &pods, &script, &known);
    }
}

/// Sets the values of running pods and removes those of `known` pods that are gone; returns the pods with a value.
fn step(
    metrics: &[PodMetric],
    pods: &[PodReading],
    script: &Script,
    known: &BTreeSet<(DescribedObject, String)>,
) -> BTreeSet<(DescribedObject, String)> {
    let mut seen = BTreeSet::new();
    for pod in pods {
        for metric in metrics.iter().filter(|metric| metric.is_about(pod)) {
            let object = DescribedObject::pod(&pod.namespace, &pod.name);
            // A load is far below the maximum.
            #[allow(clippy::cast_possible_truncation)]
            let milli = (pod.work * metric.scale * 1000.0).round() as i64;
            let series = Series { object_labels: (*pod.labels).clone(), ..Series::milli(milli) };
            script.set_custom(object.clone(), &metric.name, series);
            seen.insert((object, metric.name.clone()));
        }
    }
    for (object, metric) in known.difference(&seen) {
        script.remove_custom(object, metric);
    }
    seen
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::Arc;

    use super::*;

    fn pod(name: &str, app: &str, work: f64) -> PodReading {
        let labels = Arc::new([("app".to_owned(), app.to_owned())].into());
        PodReading { namespace: "default".into(), name: name.into(), labels, work, containers: Vec::new() }
    }

    #[test]
    fn pods_of_the_workload_have_the_metric_until_they_are_gone() {
        let selector = Selector::parse("app=shop").unwrap();
        let metric = PodMetric { namespace: "default".into(), selector, name: "rps".into(), scale: 1.0 };
        let (metrics, script) = ([metric], Script::default());
        let names = |seen: &BTreeSet<(DescribedObject, String)>| -> Vec<String> {
            seen.iter().map(|(object, _)| object.name.clone()).collect()
        };
        let pods = [pod("a", "shop", 12.5), pod("b", "shop", 0.0), pod("c", "other", 3.0)];
        let seen = step(&metrics, &pods, &script, &BTreeSet::new());
        assert_eq!(names(&seen), ["a", "b"]);
        let seen = step(&metrics, &pods[1..], &script, &seen);
        assert_eq!(names(&seen), ["b"]);
    }
}
