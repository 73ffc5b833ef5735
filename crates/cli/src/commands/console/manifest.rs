//! Fields of a spec as manifests have them.

use engine::spec::{
    Behavior, FailurePolicy, Metric, MetricId, MetricSource, MetricTarget, ScalingPolicy, ScalingPolicyType,
    ScalingRules, SelectPolicy, SeriesAggregator, UtilizationBase,
};
use serde_json::{Map, Value, json};

/// The rules of both directions.
pub(super) fn behavior(behavior: &Behavior) -> Value {
    json!({"scaleUp": rules(&behavior.up), "scaleDown": rules(&behavior.down)})
}

fn rules(rules: &ScalingRules) -> Value {
    let policy = |policy: &ScalingPolicy| {
        let kind = match policy.kind {
            ScalingPolicyType::Pods => "Pods",
            ScalingPolicyType::Percent => "Percent",
        };
        json!({"type": kind, "value": policy.value, "periodSeconds": policy.period.as_secs()})
    };
    let select = match rules.select {
        SelectPolicy::Max => "Max",
        SelectPolicy::Min => "Min",
        SelectPolicy::Disabled => "Disabled",
    };
    let mut fields = Map::new();
    if let Some(window) = rules.window {
        fields.insert("stabilizationWindowSeconds".into(), json!(window.as_secs()));
    }
    fields.insert("selectPolicy".into(), json!(select));
    fields.insert("policies".into(), rules.policies.iter().map(policy).collect());
    if let Some(tolerance) = rules.tolerance {
        fields.insert("tolerance".into(), json!(amount((tolerance * 1000.0).round() as i64)));
    }
    Value::from(fields)
}

/// The field of a target that has a value, and the value.
pub(super) fn target_value(target: MetricTarget) -> Option<(&'static str, Value)> {
    match target {
        MetricTarget::Utilization(percent) => Some(("averageUtilization", json!(percent))),
        MetricTarget::AverageValue(milli) => Some(("averageValue", json!(amount(milli.get())))),
        MetricTarget::Value(milli) => Some(("value", json!(amount(milli.get())))),
        MetricTarget::Missing => None,
    }
}

/// A quantity in thousandths as Kubernetes writes it.
fn amount(milli: i64) -> String {
    if milli % 1000 == 0 { (milli / 1000).to_string() } else { format!("{milli}m") }
}

/// A metric. Fields that only an Autoscaler has are left out where they have the meaning of an HPA.
pub(super) fn metric(metric: &Metric) -> Value {
    let target = target(metric.target);
    let with_base = |base: UtilizationBase| {
        let mut target = target.clone();
        if let (UtilizationBase::Limits, Some(fields)) = (base, target.as_object_mut()) {
            fields.insert("percentageOf".into(), json!("limits"));
        }
        target
    };
    let mut value = match &metric.source {
        MetricSource::Resource { name, of } => {
            json!({"type": "Resource", "resource": {"name": name, "target": with_base(*of)}})
        }
        MetricSource::ContainerResource { name, container, of } => json!({"type": "ContainerResource",
            "containerResource": {"name": name, "container": container, "target": with_base(*of)}}),
        MetricSource::Pods(id) => {
            json!({"type": "Pods", "pods": {"metric": identifier(id), "target": target}})
        }
        MetricSource::Object { kind, name, api_version, metric } => {
            let mut described = json!({"kind": kind, "name": name});
            if let (Some(version), Some(fields)) = (api_version, described.as_object_mut()) {
                fields.insert("apiVersion".into(), json!(version));
            }
            json!({"type": "Object", "object": {"metric": identifier(metric), "describedObject": described, "target": target}})
        }
        MetricSource::External(id) => {
            json!({"type": "External", "external": {"metric": identifier(id), "target": target}})
        }
        MetricSource::Unknown(kind) => json!({"type": kind}),
    };
    let own = [
        ("onFailure", failure_policy(metric.on_failure)),
        ("maxAgeSeconds", metric.max_age.map(|age| json!(age.as_secs()))),
        ("seriesAggregator", series(metric.series).map(Value::from)),
    ];
    if let Some(fields) = value.as_object_mut() {
        fields.extend(own.into_iter().filter_map(|(name, field)| Some((name.to_owned(), field?))));
    }
    value
}

fn target(target: MetricTarget) -> Value {
    let kind = match target {
        MetricTarget::Utilization(_) => "Utilization",
        MetricTarget::AverageValue(_) => "AverageValue",
        MetricTarget::Value(_) => "Value",
        MetricTarget::Missing => "",
    };
    let mut fields = Map::from_iter([("type".to_owned(), json!(kind))]);
    fields.extend(target_value(target).map(|(name, value)| (name.to_owned(), value)));
    Value::from(fields)
}

fn identifier(id: &MetricId) -> Value {
    let mut value = json!({"name": id.name});
    // An absent selector is recorded as one that selects nothing.
    let selector = id.selector.as_ref().ok().filter(|_| id.shown_selector != "nil");
    let selector =
        selector.and_then(|text| api::selector::Selector::parse(text).ok()?.to_label_selector().ok());
    if let (Some(selector), Some(fields)) = (selector, value.as_object_mut()) {
        fields.insert("selector".into(), json!(selector));
    }
    value
}

fn failure_policy(policy: FailurePolicy) -> Option<Value> {
    match policy {
        FailurePolicy::Kubernetes => None,
        FailurePolicy::Hold => Some(json!({"policy": "hold"})),
        FailurePolicy::Ignore => Some(json!({"policy": "ignore"})),
        FailurePolicy::LastGood(time) => Some(json!({"policy": "lastGood", "forSeconds": time.as_secs()})),
        FailurePolicy::Static(replicas) => Some(json!({"policy": "static", "replicas": replicas.get()})),
    }
}

fn series(aggregator: SeriesAggregator) -> Option<&'static str> {
    match aggregator {
        SeriesAggregator::Sum => None,
        SeriesAggregator::Max => Some("max"),
        SeriesAggregator::Min => Some("min"),
        SeriesAggregator::Average => Some("average"),
    }
}

#[cfg(test)]
mod tests {
    use api::autoscaling::v2::HorizontalPodAutoscaler;
    use api::convert::{spec_of_autoscaler, spec_of_hpa};
    use api::plimsoll::Autoscaler;

    use super::*;

    #[test]
    fn spec_of_the_manifest_is_the_recorded_spec() {
        let metrics = json!([
            {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}}},
            {"type": "ContainerResource", "containerResource": {"name": "memory", "container": "app",
                "target": {"type": "AverageValue", "averageValue": "1500m"}}},
            {"type": "Pods", "pods": {"metric": {"name": "rps", "selector": {"matchLabels": {"verb": "GET"}}},
                "target": {"type": "AverageValue", "averageValue": "10"}}},
            {"type": "Object", "object": {"metric": {"name": "hits"}, "target": {"type": "Value", "value": "7"},
                "describedObject": {"apiVersion": "v1", "kind": "Service", "name": "web"}}},
            {"type": "External", "external": {"metric": {"name": "queue", "selector": {"matchExpressions":
                [{"key": "zone", "operator": "In", "values": ["a", "b"]}]}}, "target": {"type": "Value", "value": "30"}}},
        ]);
        let scaling = json!({"scaleUp": {"stabilizationWindowSeconds": 0, "selectPolicy": "Min", "tolerance": "50m",
                "policies": [{"type": "Pods", "value": 4, "periodSeconds": 60}]},
            "scaleDown": {"stabilizationWindowSeconds": 120, "selectPolicy": "Disabled",
                "policies": [{"type": "Percent", "value": 10, "periodSeconds": 15}]}});
        let hpa = |metrics: Value, scaling: Value| -> HorizontalPodAutoscaler {
            serde_json::from_value(
                json!({"spec": {"maxReplicas": 3, "metrics": metrics, "behavior": scaling}}),
            )
            .unwrap()
        };
        let spec = spec_of_hpa(&hpa(metrics, scaling));
        let again = hpa(spec.metrics.iter().map(metric).collect(), behavior(spec.behavior.as_ref().unwrap()));
        assert_eq!(spec_of_hpa(&again), spec);
    }

    #[test]
    fn fields_of_autoscalers_are_kept() {
        let metrics = json!([
            {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60, "percentageOf": "limits"}},
                "onFailure": {"policy": "lastGood", "forSeconds": 90}, "maxAgeSeconds": 30},
            {"type": "External", "external": {"metric": {"name": "queue"}, "target": {"type": "Value", "value": "30"}},
                "onFailure": {"policy": "static", "replicas": 4}, "seriesAggregator": "max"},
        ]);
        let autoscaler = |metrics: Value| -> Autoscaler {
            serde_json::from_value(json!({"spec": {"maxReplicas": 3, "metrics": metrics}})).unwrap()
        };
        let spec = spec_of_autoscaler(&autoscaler(metrics));
        let again = autoscaler(spec.metrics.iter().map(metric).collect());
        assert_eq!(spec_of_autoscaler(&again), spec);
    }
}
