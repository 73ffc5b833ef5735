//! The table of `kubectl get hpa` (docs/spec/hpa.md 9.1).

use jiff::Timestamp;
use quantity::Quantity;
use serde_json::Value;

use super::v2::{self, HorizontalPodAutoscaler, MetricSpec, MetricStatus, MetricTarget, MetricValueStatus};
use crate::age;
use crate::table::Table;

/// The columns of the table.
pub const COLUMNS: [&str; 7] = ["Name", "Reference", "Targets", "MinPods", "MaxPods", "Replicas", "Age"];

/// Number of metrics that are shown; the others are counted.
const MAX_SHOWN_METRICS: usize = 2;

/// The row of one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The object's name.
    pub name: String,
    /// Kind and name of the target.
    pub reference: String,
    /// Current and target value of the first metrics.
    pub targets: String,
    /// Lower bound.
    pub min_pods: String,
    /// Upper bound.
    pub max_pods: i32,
    /// Current replicas.
    pub replicas: i32,
    /// Time since creation.
    pub age: String,
}

impl Row {
    /// The row of an object at a time.
    pub fn new(object: &HorizontalPodAutoscaler, now: Timestamp) -> Self {
        let target = &object.spec.scale_target_ref;
        Self {
            name: object.metadata.name.clone(),
            reference: format!("{}/{}", target.kind, target.name),
            targets: targets(
                &object.spec.metrics,
                object.status.current_metrics.as_deref().unwrap_or_default(),
            ),
            min_pods: object.spec.min_replicas.map_or_else(|| "<unset>".to_owned(), |min| min.to_string()),
            max_pods: object.spec.max_replicas,
            replicas: object.status.current_replicas,
            age: age::since(object.metadata.creation_timestamp, now),
        }
    }

    /// The cells as the API server sends them.
    pub fn cells(&self) -> [Value; 7] {
        let Self { name, reference, targets, min_pods, max_pods, replicas, age } = self.clone();
        [
            name.into(),
            reference.into(),
            targets.into(),
            min_pods.into(),
            max_pods.into(),
            replicas.into(),
            age.into(),
        ]
    }
}

/// The table of several objects.
pub fn table<'a>(objects: impl IntoIterator<Item = &'a HorizontalPodAutoscaler>, now: Timestamp) -> Table {
    let mut table = Table::new(COLUMNS);
    for object in objects {
        let Row { name, reference, targets, min_pods, max_pods, replicas, age } = Row::new(object, now);
        table.rows.push(vec![
            name,
            reference,
            targets,
            min_pods,
            max_pods.to_string(),
            replicas.to_string(),
            age,
        ]);
    }
    table
}

/// The TARGETS cell. Statuses are matched by position.
pub fn targets(metrics: &[MetricSpec], statuses: &[MetricStatus]) -> String {
    if metrics.is_empty() {
        return "<none>".to_owned();
    }
    let shown: Vec<String> = metrics
        .iter()
        .take(MAX_SHOWN_METRICS)
        .enumerate()
        .map(|(i, metric)| fragment(metric, statuses.get(i)))
        .collect();
    let mut text = shown.join(", ");
    if metrics.len() > MAX_SHOWN_METRICS {
        text.push_str(&format!(" + {} more...", metrics.len() - MAX_SHOWN_METRICS));
    }
    text
}

fn fragment(metric: &MetricSpec, status: Option<&MetricStatus>) -> String {
    match metric.type_.as_str() {
        v2::EXTERNAL => {
            let current = status.and_then(|status| status.external.as_ref()).map(|status| &status.current);
            total(metric.external.as_ref().map(|source| &source.target), current)
        }
        v2::OBJECT => {
            let current = status.and_then(|status| status.object.as_ref()).map(|status| &status.current);
            total(metric.object.as_ref().map(|source| &source.target), current)
        }
        v2::PODS => {
            let current = status.and_then(|status| status.pods.as_ref()).map(|status| &status.current);
            let target = metric.pods.as_ref().and_then(|source| source.target.average_value.as_ref());
            format!("{}/{}", known(current, |current| current.average_value.as_ref()), quantity(target))
        }
        v2::RESOURCE => {
            let current = status.and_then(|status| status.resource.as_ref()).map(|status| &status.current);
            let source = metric.resource.as_ref();
            resource(source.map_or("", |source| &source.name), source.map(|source| &source.target), current)
        }
        v2::CONTAINER_RESOURCE => {
            let current =
                status.and_then(|status| status.container_resource.as_ref()).map(|status| &status.current);
            let source = metric.container_resource.as_ref();
            resource(source.map_or("", |source| &source.name), source.map(|source| &source.target), current)
        }
        _ => "<unknown type>".to_owned(),
    }
}

/// A metric with a total, or with an average over the pods if the target has one.
fn total(target: Option<&MetricTarget>, current: Option<&MetricValueStatus>) -> String {
    match target.and_then(|target| target.average_value.as_ref()) {
        Some(target) => {
            let current = current.and_then(|current| current.average_value.as_ref());
            format!("{}/{target} (avg)", current.map_or_else(|| UNKNOWN.to_owned(), ToString::to_string))
        }
        None => {
            let target = target.and_then(|target| target.value.as_ref());
            format!("{}/{}", known(current, |current| current.value.as_ref()), quantity(target))
        }
    }
}

fn resource(name: &str, target: Option<&MetricTarget>, current: Option<&MetricValueStatus>) -> String {
    if let Some(target) = target.and_then(|target| target.average_value.as_ref()) {
        return format!("{name}: {}/{target}", known(current, |current| current.average_value.as_ref()));
    }
    let percent = |percent: Option<i32>, otherwise: &str| {
        percent.map_or_else(|| otherwise.to_owned(), |percent| format!("{percent}%"))
    };
    let current = percent(current.and_then(|current| current.average_utilization), UNKNOWN);
    let target = percent(target.and_then(|target| target.average_utilization), "<auto>");
    format!("{name}: {current}/{target}")
}

pub(super) const UNKNOWN: &str = "<unknown>";

/// A quantity. An absent one is printed as Go prints a null pointer.
pub(super) fn quantity(value: Option<&Quantity>) -> String {
    value.map_or_else(|| "<nil>".to_owned(), ToString::to_string)
}

/// A value of a status that may be absent.
pub(super) fn known<'a>(
    current: Option<&'a MetricValueStatus>,
    value: impl Fn(&'a MetricValueStatus) -> Option<&'a Quantity>,
) -> String {
    current.map_or_else(|| UNKNOWN.to_owned(), |current| quantity(value(current)))
}
