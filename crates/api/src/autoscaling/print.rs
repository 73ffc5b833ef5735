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
/// How much memory the cell of most objects needs, in bytes.
const TARGETS_CAPACITY: usize = 48;

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
    let mut shown = metrics.iter().take(MAX_SHOWN_METRICS).enumerate();
    let Some((_, first)) = shown.next() else { return "<none>".to_owned() };
    let mut text = fragment(first, statuses.first());
    for (i, metric) in shown {
        text.push_str(", ");
        text.push_str(&fragment(metric, statuses.get(i)));
    }
    text + &more(metrics)
}

fn more(metrics: &[MetricSpec]) -> String {
    match metrics.len().saturating_sub(MAX_SHOWN_METRICS) {
        0 => String::new(),
        others => format!(" + {others} more..."),
    }
}

/// The TARGETS cell without values: it is written once for each state of an object, and its values may be texts already.
#[derive(Debug, Default)]
pub struct TargetsTemplate {
    /// The text before each value, and the position of its metric.
    before: Vec<(String, usize)>,
    /// The text after the last value.
    after: String,
}

impl TargetsTemplate {
    /// The template of some metrics.
    pub fn new(metrics: &[MetricSpec]) -> Self {
        let mut template = Self::default();
        if metrics.is_empty() {
            template.after.push_str("<none>");
        }
        for (i, metric) in metrics.iter().take(MAX_SHOWN_METRICS).enumerate() {
            if i > 0 {
                template.after.push_str(", ");
            }
            let fragment = fragment(metric, None);
            match fragment.rsplit_once(UNKNOWN) {
                Some((before, after)) => {
                    let text = std::mem::replace(&mut template.after, after.to_owned());
                    template.before.push((text + before, i));
                }
                None => template.after.push_str(&fragment),
            }
        }
        template.after.push_str(&more(metrics));
        template
    }

    /// The cell with the values of metrics by position; one that is missing is unknown.
    pub fn with<'a>(&self, value: impl Fn(usize) -> Option<&'a str>) -> String {
        let mut text = String::with_capacity(TARGETS_CAPACITY);
        for (before, i) in &self.before {
            text.extend([before, value(*i).unwrap_or(UNKNOWN)]);
        }
        text + &self.after
    }
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_of_passes_are_shown_like_those_of_a_status() {
        let (metric, object) = (json!({"name": "rps"}), json!({"kind": "Service", "name": "web"}));
        let cases = [
            (
                json!({"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}}}),
                json!({"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 55}}}),
                "55%",
            ),
            (
                json!({"type": "ContainerResource", "containerResource": {"name": "memory", "container": "app", "target": {"type": "AverageValue", "averageValue": "64Mi"}}}),
                json!({"type": "ContainerResource", "containerResource": {"name": "memory", "container": "app", "current": {"averageValue": "32Mi"}}}),
                "32Mi",
            ),
            (
                json!({"type": "Pods", "pods": {"metric": metric, "target": {"type": "AverageValue", "averageValue": "10"}}}),
                json!({"type": "Pods", "pods": {"metric": metric, "current": {"averageValue": "7"}}}),
                "7",
            ),
            (
                json!({"type": "Object", "object": {"metric": metric, "describedObject": object, "target": {"type": "Value", "value": "100"}}}),
                json!({"type": "Object", "object": {"metric": metric, "describedObject": object, "current": {"value": "70"}}}),
                "70",
            ),
            (
                json!({"type": "External", "external": {"metric": metric, "target": {"type": "AverageValue", "averageValue": "30"}}}),
                json!({"type": "External", "external": {"metric": metric, "current": {"averageValue": "12"}}}),
                "12",
            ),
        ];
        for (spec, status, value) in cases {
            let metrics: [MetricSpec; 1] = [serde_json::from_value(spec).unwrap()];
            let statuses: [MetricStatus; 1] = [serde_json::from_value(status).unwrap()];
            let template = TargetsTemplate::new(&metrics);
            assert_eq!(template.with(|_| Some(value)), targets(&metrics, &statuses));
            assert_eq!(template.with(|_| None), targets(&metrics, &[]));
        }
        assert_eq!(TargetsTemplate::new(&[]).with(|_| None), "<none>");
        let cpu =
            json!({"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": 60}}});
        let metrics: Vec<MetricSpec> = [cpu.clone(), json!({"type": "New"}), cpu.clone(), cpu]
            .map(|spec| serde_json::from_value(spec).unwrap())
            .into();
        let values = ["10%", "20%", "30%", "40%"];
        assert_eq!(
            TargetsTemplate::new(&metrics).with(|i| values.get(i).copied()),
            "cpu: 10%/60%, <unknown type> + 2 more..."
        );
    }
}
