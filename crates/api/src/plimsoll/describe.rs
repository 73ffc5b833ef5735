//! An Autoscaler as `kubectl describe hpa` shows an HPA, with the fields of its own.

use super::{Autoscaler, FailurePolicy, MetricSpec, v2_view};
use crate::autoscaling::describe::{Event, MoreFields, MoreOfMetric, describe_with};

/// The description; without `events` their block is left out.
pub fn describe(object: &Autoscaler, events: Option<&[Event]>) -> String {
    let spec = &object.spec;
    let mut fields = vec![
        ("Replicas aggregator", spec.replicas_aggregator.clone().unwrap_or_else(|| "max".to_owned())),
        ("Dry run", spec.dry_run.to_string()),
    ];
    if let Some(seconds) = spec.sync_period_seconds {
        fields.push(("Sync period", format!("{seconds} seconds")));
    }
    let metrics = spec.metrics.iter().map(more).collect();
    describe_with(&v2_view(object.clone()), &MoreFields { metrics, fields }, events)
}

fn more(metric: &MetricSpec) -> MoreOfMetric {
    let targets = [
        metric.resource.as_ref().map(|resource| &resource.target),
        metric.container_resource.as_ref().map(|resource| &resource.target),
    ];
    let of_limits =
        targets.into_iter().flatten().any(|target| target.percentage_of.as_deref() == Some("limits"));
    let age = metric.max_age_seconds.map(|seconds| format!("Max age: {seconds} seconds"));
    let series = metric.series_aggregator.as_ref().map(|rule| format!("Series aggregator: {rule}"));
    let lines = [series, age, metric.on_failure.as_ref().map(on_failure)];
    MoreOfMetric { of_limits, lines: lines.into_iter().flatten().collect() }
}

fn on_failure(policy: &FailurePolicy) -> String {
    let more = match (policy.for_seconds, policy.replicas) {
        (Some(seconds), _) => format!(" for {seconds} seconds"),
        (None, Some(replicas)) => format!(" {replicas} replicas"),
        (None, None) => String::new(),
    };
    format!("On failure: {}{more}", policy.policy)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn own_fields_are_described() {
        let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
        let object: Autoscaler = serde_json::from_value(json!({
            "metadata": {"name": "web", "namespace": "shop"},
            "spec": {
                "scaleTargetRef": target, "minReplicas": 2, "maxReplicas": 9, "replicasAggregator": "average", "dryRun": true,
                "syncPeriodSeconds": 5,
                "metrics": [
                    {"type": "Resource", "resource": {"name": "cpu",
                        "target": {"type": "Utilization", "averageUtilization": 60, "percentageOf": "limits"}},
                     "onFailure": {"policy": "lastGood", "forSeconds": 300}},
                    {"type": "External", "external": {"metric": {"name": "queue"}, "target": {"type": "Value", "value": "5"}},
                     "onFailure": {"policy": "static", "replicas": 3}, "maxAgeSeconds": 90, "seriesAggregator": "max"},
                ],
            },
        }))
        .unwrap();
        let text = describe(&object, None);
        for line in [
            "  resource cpu on pods  (as a percentage of limit):  <unknown> / 60%",
            "    On failure: lastGood for 300 seconds",
            "    Series aggregator: max",
            "    Max age: 90 seconds",
            "    On failure: static 3 replicas",
            "Replicas aggregator:",
            "Dry run:",
            "Sync period:",
        ] {
            assert!(text.lines().any(|found| found.starts_with(line)), "{line}:\n{text}");
        }
    }
}
