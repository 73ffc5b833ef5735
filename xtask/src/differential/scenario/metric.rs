//! Metrics of autoscalers, and their values.

use serde_json::{Value, json};

use super::action::HpaAction;
use super::pod::Pod;
use super::random::RandomSource;
use super::target::Kind;

/// One metric of an autoscaler.
#[derive(Clone, Debug)]
pub(crate) enum Metric {
    Resource { name: &'static str, container: Option<&'static str>, target: MetricTargetSpec },
    Pods { metric: String, selector: SeriesSelection, target: MetricTargetSpec },
    Object { metric: String, selector: SeriesSelection, target: MetricTargetSpec, of: DescribedObjectKind },
    External { metric: String, selector: SeriesSelection, target: MetricTargetSpec },
}

/// The target of a metric.
#[derive(Clone, Copy, Debug)]
pub(crate) enum MetricTargetSpec {
    Utilization(i64),
    Average(&'static str),
    Value(&'static str),
}

/// Which series of a metric count. All custom series and the first external one have `queue: a`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SeriesSelection {
    All,
    A,
    AOrB,
    /// A selector that no series matches.
    NoSeries,
    /// An invalid selector, which the API server does not validate.
    Bogus,
}

/// Which object a metric describes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum DescribedObjectKind {
    Target(Kind),
    Namespace,
    Service,
    UnknownKind,
}

impl MetricTargetSpec {
    fn json(self) -> Value {
        match self {
            Self::Utilization(percent) => json!({"type": "Utilization", "averageUtilization": percent}),
            Self::Average(amount) => json!({"type": "AverageValue", "averageValue": amount}),
            Self::Value(amount) => json!({"type": "Value", "value": amount}),
        }
    }

    fn text(self) -> String {
        match self {
            Self::Utilization(percent) => percent.to_string(),
            Self::Average(amount) | Self::Value(amount) => amount.to_owned(),
        }
    }

    fn amount(random: &mut RandomSource) -> &'static str {
        random.of(["10", "7500m", "3", "1", "12345m", "2k"])
    }
}

impl SeriesSelection {
    fn any(random: &mut RandomSource) -> Self {
        match random.below(12) {
            0 | 1 => Self::A,
            2 => Self::AOrB,
            3 => Self::NoSeries,
            4 if random.once_in(3) => Self::Bogus,
            _ => Self::All,
        }
    }

    /// The selector; null selects all series.
    fn selector(self) -> Value {
        let expression = |operator: &str, values: Value| json!({"matchExpressions": [{"key": "queue", "operator": operator, "values": values}]});
        match self {
            Self::All => Value::Null,
            Self::A => json!({"matchLabels": {"queue": "a"}}),
            Self::AOrB => expression("In", json!(["b", "a"])),
            Self::NoSeries => json!({"matchLabels": {"queue": "z"}}),
            Self::Bogus => expression("Bogus", json!(["a"])),
        }
    }

    fn identifier(self, name: &str) -> Value {
        json!({"name": name, "selector": self.selector()})
    }
}

impl Metric {
    /// A random metric; `number` makes its name unique.
    pub(crate) fn any(random: &mut RandomSource, app: &str, number: usize, target: Kind) -> Self {
        match random.weighted([30, 12, 14, 18, 20]) {
            of_pods @ (0 | 1) => {
                let name = Self::resource(random);
                let container = if random.once_in(4) { "side" } else { "app" };
                let target = Self::resource_goal(random, name);
                Self::Resource { name, container: (of_pods == 1).then_some(container), target }
            }
            2 => Self::Pods {
                metric: format!("{app}-qps-{number}"),
                selector: SeriesSelection::any(random),
                target: MetricTargetSpec::Average(MetricTargetSpec::amount(random)),
            },
            3 => Self::object(random, app, number, target),
            _ => Self::external(random, app, number),
        }
    }

    /// A random metric that has a value without pods.
    pub(crate) fn outside(random: &mut RandomSource, app: &str, number: usize, target: Kind) -> Self {
        if random.once_in(3) {
            Self::object(random, app, number, target)
        } else {
            Self::external(random, app, number)
        }
    }

    fn object(random: &mut RandomSource, app: &str, number: usize, target: Kind) -> Self {
        let of = match random.below(10) {
            0..4 => DescribedObjectKind::Namespace,
            4..6 => DescribedObjectKind::Service,
            6 => DescribedObjectKind::UnknownKind,
            _ => DescribedObjectKind::Target(target),
        };
        Self::Object {
            // The name of a custom metric is case-sensitive.
            metric: format!("{app}-Depth-{number}"),
            selector: SeriesSelection::any(random),
            target: Self::outside_goal(random),
            of,
        }
    }

    fn external(random: &mut RandomSource, app: &str, number: usize) -> Self {
        let metric = format!("{app}-{}-{number}", random.of(["queue", "Queue"]));
        Self::External { metric, selector: SeriesSelection::any(random), target: Self::outside_goal(random) }
    }

    fn outside_goal(random: &mut RandomSource) -> MetricTargetSpec {
        let amount = MetricTargetSpec::amount(random);
        if random.once_in(2) { MetricTargetSpec::Average(amount) } else { MetricTargetSpec::Value(amount) }
    }

    fn resource(random: &mut RandomSource) -> &'static str {
        match random.below(12) {
            0..8 => "cpu",
            8..11 => "memory",
            _ => "example.com/gpu",
        }
    }

    /// The target fits the resource: a memory target of half a byte would overflow, where we differ deliberately.
    fn resource_goal(random: &mut RandomSource, name: &str) -> MetricTargetSpec {
        if random.below(10) < 6 {
            MetricTargetSpec::Utilization(random.of([1, 30, 50, 80, 100, 150]))
        } else if name == "memory" {
            MetricTargetSpec::Average(random.of(["512Mi", "300M", "1Gi", "123456789"]))
        } else {
            MetricTargetSpec::Average(random.of(["500m", "450m", "1", "333333u"]))
        }
    }

    pub(crate) fn is_outside(&self) -> bool {
        matches!(self, Self::Object { .. } | Self::External { .. })
    }

    /// The same metric with another target.
    pub(crate) fn retargeted(&self, random: &mut RandomSource) -> Self {
        let mut new = self.clone();
        match &mut new {
            Self::Resource { name, target, .. } => *target = Self::resource_goal(random, name),
            Self::Pods { target, .. } => {
                *target = MetricTargetSpec::Average(MetricTargetSpec::amount(random));
            }
            Self::Object { target, .. } | Self::External { target, .. } => {
                *target = Self::outside_goal(random);
            }
        }
        new
    }

    /// The metric in the spec of an autoscaler of this workload.
    pub(crate) fn json(&self, app: &str) -> Value {
        match self {
            Self::Resource { name, container: None, target } => {
                json!({"type": "Resource", "resource": {"name": name, "target": target.json()}})
            }
            Self::Resource { name, container: Some(container), target } => json!({
                "type": "ContainerResource",
                "containerResource": {"name": name, "container": container, "target": target.json()},
            }),
            Self::Pods { metric, selector, target } => {
                json!({"type": "Pods", "pods": {"metric": selector.identifier(metric), "target": target.json()}})
            }
            Self::Object { metric, selector, target, of } => json!({
                "type": "Object",
                "object": {
                    "metric": selector.identifier(metric), "target": target.json(), "describedObject": of.reference(app),
                },
            }),
            Self::External { metric, selector, target } => {
                json!({"type": "External", "external": {"metric": selector.identifier(metric), "target": target.json()}})
            }
        }
    }

    /// The percentage, if the v1 API has a field for it.
    pub(crate) fn cpu_utilization(&self) -> Option<i64> {
        match self {
            Self::Resource {
                name: "cpu",
                container: None,
                target: MetricTargetSpec::Utilization(percent),
            } => Some(*percent),
            _ => None,
        }
    }

    /// The metric in an annotation of the v1 API; none if v1 has a field for it.
    pub(crate) fn flat(&self, app: &str) -> Option<Value> {
        if self.cpu_utilization().is_some() {
            return None;
        }
        let old = match self {
            Self::Resource { name, container, target } => {
                let mut old = match target {
                    MetricTargetSpec::Utilization(percent) => {
                        json!({"name": name, "targetAverageUtilization": percent})
                    }
                    MetricTargetSpec::Average(amount) | MetricTargetSpec::Value(amount) => {
                        json!({"name": name, "targetAverageValue": amount})
                    }
                };
                if let (Some(container), Some(old)) = (container, old.as_object_mut()) {
                    old.insert("container".to_owned(), (*container).into());
                }
                let (kind, field) = match container {
                    Some(_) => ("ContainerResource", "containerResource"),
                    None => ("Resource", "resource"),
                };
                json!({"type": kind, field: old})
            }
            Self::Pods { metric, target, selector } => json!({"type": "Pods", "pods": {
                "metricName": metric, "targetAverageValue": target.text(), "selector": selector.selector(),
            }}),
            Self::Object { metric, target, of, selector } => {
                let mut old = json!({
                    "target": of.reference(app), "metricName": metric, "selector": selector.selector(),
                    "targetValue": "0",
                });
                let field =
                    if matches!(target, MetricTargetSpec::Value(_)) { "targetValue" } else { "averageValue" };
                if let Some(old) = old.as_object_mut() {
                    old.insert(field.to_owned(), target.text().into());
                }
                json!({"type": "Object", "object": old})
            }
            Self::External { metric, target, selector } => {
                let field = if matches!(target, MetricTargetSpec::Value(_)) {
                    "targetValue"
                } else {
                    "targetAverageValue"
                };
                json!({"type": "External", "external": {
                    "metricName": metric, "metricSelector": selector.selector(), field: target.text(),
                }})
            }
        };
        Some(old)
    }

    /// New values; sometimes only some pods have a value. Resource metrics come from the pods.
    pub(crate) fn set_values(&self, random: &mut RandomSource, app: &str, pods: &[Pod]) -> Vec<HpaAction> {
        match self {
            Self::Resource { .. } => Vec::new(),
            Self::Pods { metric, .. } => {
                let level = random.of([
                    0,
                    1,
                    333,
                    2_999,
                    4_999,
                    7_500,
                    8_251,
                    10_000,
                    10_001,
                    15_500,
                    50_000,
                    1_000_000_000,
                    -5_000,
                ]);
                let some = random.once_in(4);
                let each = pods.iter().map(|pod| {
                    let value = (!some || random.once_in(2)).then(|| milli(level + random.between(0, 3)));
                    HpaAction::OfPod { pod: pod.name.clone(), metric: metric.clone(), value }
                });
                each.collect()
            }
            Self::Object { metric, of, target, .. } => {
                let mut values = vec![milli(Self::total(random, *target, 1_000_000_000))];
                if random.once_in(10) {
                    values.push(milli(4_000));
                }
                vec![of.action(app, metric, values)]
            }
            Self::External { metric, target, .. } => {
                // A value whose milli-value just fits 64 bits; the sum of two does not.
                let mut series = vec![("a", milli(Self::total(random, *target, 9_000_000_000_000_000_000)))];
                if random.once_in(3) {
                    series.push(("b", milli(Self::total(random, *target, 9_000_000_000_000_000_000))));
                }
                if random.once_in(12) {
                    series.clear();
                }
                vec![HpaAction::External { metric: metric.clone(), series: Some(series) }]
            }
        }
    }

    /// Sets the value zero.
    pub(crate) fn set_zero_values(&self, app: &str, pods: &[Pod]) -> Vec<HpaAction> {
        let zero = || "0".to_owned();
        match self {
            Self::Resource { .. } => Vec::new(),
            Self::Pods { metric, .. } => {
                let of = |pod: &Pod| HpaAction::OfPod {
                    pod: pod.name.clone(),
                    metric: metric.clone(),
                    value: Some(zero()),
                };
                pods.iter().map(of).collect()
            }
            Self::Object { metric, of, .. } => vec![of.action(app, metric, vec![zero()])],
            Self::External { metric, .. } => {
                vec![HpaAction::External { metric: metric.clone(), series: Some(vec![("a", zero())]) }]
            }
        }
    }

    /// Removes all values of the metric.
    pub(crate) fn forget(&self, app: &str, pods: &[Pod]) -> Vec<HpaAction> {
        match self {
            Self::Resource { .. } => {
                pods.iter().map(|pod| HpaAction::Usage { pod: pod.name.clone(), usage: None }).collect()
            }
            Self::Pods { metric, .. } => {
                let of = |pod: &Pod| HpaAction::OfPod {
                    pod: pod.name.clone(),
                    metric: metric.clone(),
                    value: None,
                };
                pods.iter().map(of).collect()
            }
            Self::Object { metric, of, .. } => vec![of.action(app, metric, Vec::new())],
            Self::External { metric, .. } => {
                vec![HpaAction::External { metric: metric.clone(), series: None }]
            }
        }
    }

    /// A value that is half of the time close to the target of some replica count, where tolerances matter.
    fn total(random: &mut RandomSource, target: MetricTargetSpec, huge: i64) -> i64 {
        if random.once_in(2)
            && let Ok(goal) = quantity::Quantity::parse(&target.text())
        {
            let thousandths = random.of([900, 899, 980, 999, 1000, 1001, 1020, 1100, 1101, 1200]);
            return goal.milli_value() * random.between(1, 6) * thousandths / 1000;
        }
        random.of([0, 0, 1, 7_777, 20_000, 29_999, 33_000, 45_001, 60_000, 90_000, 100_001, huge, -20_000])
    }
}

impl DescribedObjectKind {
    fn reference(self, app: &str) -> Value {
        match self {
            Self::Target(kind) => kind.reference(app),
            Self::Namespace => json!({"apiVersion": "v1", "kind": "Namespace", "name": "any"}),
            Self::Service => json!({"apiVersion": "v1", "kind": "Service", "name": app}),
            Self::UnknownKind => json!({"apiVersion": "example.com/v1", "kind": "Gizmo", "name": app}),
        }
    }

    fn action(self, app: &str, metric: &str, values: Vec<String>) -> HpaAction {
        let (resource, name) = match self {
            Self::Target(kind) => (kind.resource(), app),
            Self::Namespace => ("namespaces", "{ns}"),
            Self::Service => ("services", app),
            Self::UnknownKind => ("gizmos.example.com", app),
        };
        HpaAction::OfObject { resource, name: name.to_owned(), metric: metric.to_owned(), values }
    }
}

fn milli(amount: i64) -> String {
    format!("{amount}m")
}
