//! Times and metrics as numbers: from a decision, or from the status of an object.

use api::autoscaling::v2::{HorizontalPodAutoscaler, MetricTarget, MetricValueStatus};
use api::decisions::DecisionRecord;
use jiff::Timestamp;
use quantity::Quantity;
use serde_json::{Value, json};
use sim::recording::{MetricTrack, MetricUnit, current_value};

/// Seconds since 1970.
pub(super) fn seconds(at: Timestamp) -> f64 {
    at.as_millisecond() as f64 / 1000.0
}

/// One metric, its target and its value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Reading {
    pub(super) name: String,
    pub(super) unit: &'static str,
    pub(super) target: Option<f64>,
    /// None if it is missing, which is not zero.
    pub(super) value: Option<f64>,
}

impl Reading {
    /// Name, unit and target, as a chart's legend shows them.
    pub(super) fn heading(&self) -> Value {
        json!({"name": self.name, "unit": self.unit, "target": self.target})
    }
}

/// The metrics of a decision.
pub(super) fn of_record(record: &DecisionRecord) -> Vec<Reading> {
    let metrics = record.spec.metrics.iter().map(MetricTrack::of);
    let reading = |(index, track): (usize, MetricTrack)| {
        let value = record.decision.evaluations.get(index).map(current_value);
        Reading {
            name: track.label,
            unit: if track.unit == MetricUnit::Percent { "%" } else { "" },
            target: track.target,
            value: value.filter(|value| value.is_finite()),
        }
    };
    metrics.enumerate().map(reading).collect()
}

/// The metrics of an object's spec and status.
pub(super) fn of_object(hpa: &HorizontalPodAutoscaler) -> Vec<Reading> {
    let statuses = hpa.status.current_metrics.as_deref().unwrap_or_default();
    let metrics = hpa.spec.metrics.iter().enumerate().filter_map(|(index, metric)| {
        let status = statuses.get(index);
        let (name, target, current) = if let Some(m) = &metric.resource {
            (m.name.clone(), &m.target, status.and_then(|s| s.resource.as_ref()).map(|s| &s.current))
        } else if let Some(m) = &metric.container_resource {
            let current = status.and_then(|s| s.container_resource.as_ref()).map(|s| &s.current);
            (format!("{} of {}", m.name, m.container), &m.target, current)
        } else if let Some(m) = &metric.pods {
            (m.metric.name.clone(), &m.target, status.and_then(|s| s.pods.as_ref()).map(|s| &s.current))
        } else if let Some(m) = &metric.object {
            (m.metric.name.clone(), &m.target, status.and_then(|s| s.object.as_ref()).map(|s| &s.current))
        } else if let Some(m) = &metric.external {
            (m.metric.name.clone(), &m.target, status.and_then(|s| s.external.as_ref()).map(|s| &s.current))
        } else {
            return None;
        };
        Some(reading(name, target, current))
    });
    metrics.collect()
}

fn reading(name: String, target: &MetricTarget, current: Option<&MetricValueStatus>) -> Reading {
    let (unit, target, value) = match (target.average_utilization, &target.average_value, &target.value) {
        (Some(target), ..) => {
            ("%", Some(f64::from(target)), current.and_then(|c| c.average_utilization).map(f64::from))
        }
        (None, Some(target), _) => {
            ("", Some(target.as_f64()), current.and_then(|c| c.average_value.as_ref()).map(Quantity::as_f64))
        }
        (None, None, Some(target)) => {
            ("", Some(target.as_f64()), current.and_then(|c| c.value.as_ref()).map(Quantity::as_f64))
        }
        (None, None, None) => ("", None, None),
    };
    Reading { name, unit, target, value }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::objects::sample;
    use crate::live::sample::record_of;

    #[test]
    fn missing_values_are_not_zero() {
        let cpu = |value: Option<f64>| Reading { name: "cpu".into(), unit: "%", target: Some(50.0), value };
        let at = "2026-01-05T09:15:00Z";
        assert_eq!(of_record(&record_of("web", at, 1, &[610])), [cpu(Some(305.0))]);
        assert_eq!(of_record(&record_of("web", at, 1, &[])), [cpu(None)]);
        let object = sample(
            "web",
            json!({"currentMetrics": [{"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 80}}}]}),
        );
        assert_eq!(of_object(&object.hpa), [cpu(Some(80.0))]);
        assert_eq!(of_object(&sample("web", json!({})).hpa), [cpu(None)]);
    }
}
