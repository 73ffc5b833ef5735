//! Autoscalers as the passes of a recording describe them.

use api::autoscaling::v2::HorizontalPodAutoscaler;
use api::convert::hpa_status;
use api::decisions::DecisionRecord;
use cluster::AutoscalerKind;
use engine::spec::Aggregator;
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::super::manifest;

/// The object about which a pass was recorded. Labels, annotations and triggers are not recorded.
pub(super) fn of_record(kind: AutoscalerKind, record: &DecisionRecord) -> Value {
    let spec = &record.spec;
    let target = json!({"kind": spec.target.kind, "name": spec.target.name});
    let (min, max) = (spec.min.get(), spec.max.get());
    let own = if kind.has_triggers() {
        json!({"scaleTargetRef": target, "minReplicaCount": min, "maxReplicaCount": max})
    } else {
        let metrics: Vec<Value> = spec.metrics.iter().map(manifest::metric).collect();
        let mut own =
            json!({"scaleTargetRef": target, "minReplicas": min, "maxReplicas": max, "metrics": metrics});
        let more = [
            ("behavior", spec.behavior.as_ref().map(manifest::behavior)),
            ("replicasAggregator", aggregator(spec.aggregator).map(Value::from)),
        ];
        if let Some(fields) = own.as_object_mut() {
            fields.extend(more.into_iter().filter_map(|(name, field)| Some((name.to_owned(), field?))));
        }
        own
    };
    let metadata = json!({"name": spec.name, "namespace": record.metadata.namespace});
    let mut object =
        json!({"apiVersion": kind.api_version(), "kind": kind.name(), "metadata": metadata, "spec": own});
    // The fields that only an Autoscaler has are not needed for its status, and kinds with triggers have another status.
    let hpa = HorizontalPodAutoscaler::deserialize(&object).ok();
    if let Some(hpa) = hpa.filter(|_| !kind.has_triggers())
        && let Some(fields) = object.as_object_mut()
    {
        fields.insert("status".into(), json!(hpa_status(&hpa.spec, &record.decision.status)));
    }
    object
}

fn aggregator(aggregator: Aggregator) -> Option<&'static str> {
    match aggregator {
        Aggregator::Max => None,
        Aggregator::Min => Some("min"),
        Aggregator::Average => Some("average"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::sample::{hpa, record_of};

    #[test]
    fn object_has_the_spec_and_the_status_of_the_pass() {
        let record = record_of("web", "2026-01-05T09:15:00Z", 4, &[100; 4]);
        let object = of_record(AutoscalerKind::Hpa, &record);
        let read: HorizontalPodAutoscaler = serde_json::from_value(object.clone()).unwrap();
        assert_eq!(api::convert::spec_of_hpa(&read), record.spec);
        assert_eq!(object["spec"]["metrics"], hpa("web")["spec"]["metrics"]);
        assert_eq!(
            (object["apiVersion"].as_str(), read.metadata.namespace.as_str()),
            (Some("autoscaling/v2"), "shop")
        );
        assert_eq!((read.status.current_replicas, read.status.desired_replicas), (4, 4));
        assert_eq!(object["status"]["currentMetrics"][0]["resource"]["current"]["averageUtilization"], 50);
        let scaled = of_record(AutoscalerKind::ScaledObject, &record);
        assert_eq!((&scaled["spec"]["maxReplicaCount"], scaled.get("status")), (&json!(10), None));
    }
}
