//! All autoscalers at one moment, and what is wrong with them.

use api::autoscaling::v2::{HorizontalPodAutoscaler, MetricTarget, MetricValueStatus};
use engine::Decision;
use engine::evaluate::Arithmetic;
use jiff::Timestamp;
use serde::Serialize;

use super::Sort;
use super::problem::{Grade, Problem, by_cause, grade, problems_of};
use crate::commands::get::Entry;
use crate::live::decisions::Unavailable;

/// What `top` shows.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Overview {
    /// The time of the overview.
    pub(crate) at: Timestamp,
    /// Why decisions cannot be read, if so: then conditions are shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<String>,
    /// The problems, worst first.
    pub(crate) problems: Vec<Problem>,
    /// Each autoscaler.
    pub(crate) autoscalers: Vec<AutoscalerLine>,
}

/// One autoscaler.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AutoscalerLine {
    pub(crate) namespace: String,
    /// `hpa/web`.
    pub(crate) name: String,
    pub(crate) state: Grade,
    /// The highest ratio of a metric to its target.
    pub(crate) pressure: Option<f64>,
    pub(crate) metrics: String,
    /// Absent if it is not known.
    pub(crate) replicas: Option<i32>,
    pub(crate) min: i32,
    pub(crate) max: i32,
    pub(crate) decision: String,
}

impl Overview {
    pub(crate) fn of(
        entries: &[Entry],
        unavailable: Option<&Unavailable>,
        sort: Sort,
        now: Timestamp,
    ) -> Self {
        let (mut found, mut lines) = (Vec::new(), Vec::new());
        for entry in entries {
            let problems = problems_of(entry, now);
            lines.push(AutoscalerLine::of(entry, grade(entry, &problems)));
            let who = format!("{}/{}", entry.object.namespace(), entry.object.named());
            found.extend(problems.into_iter().map(|problem| (who.clone(), problem)));
        }
        let problems = by_cause(found.iter().map(|(who, problem)| (who.as_str(), problem)));
        sorted(&mut lines, sort);
        let note = unavailable.map(|why| format!("decisions cannot be read: {}", why.cause));
        Self { at: now, note, problems, autoscalers: lines }
    }
}

impl AutoscalerLine {
    pub(crate) fn of(entry: &Entry, state: Grade) -> Self {
        // A status may be older than the decision: an unreadable metric has no ratio.
        let pressure = match &entry.record {
            Some(record) if !entry.shows_status() => by_decision(&record.decision),
            _ => by_status(&entry.object.hpa),
        };
        let hpa = &entry.object.hpa;
        Self {
            namespace: entry.object.namespace().to_owned(),
            name: entry.object.named().to_string(),
            state,
            pressure,
            metrics: entry.targets(),
            replicas: entry.replicas(),
            min: hpa.spec.min_replicas.unwrap_or(1),
            max: hpa.spec.max_replicas,
            decision: entry.sentence(),
        }
    }
}

/// Sorts lines.
pub(super) fn sorted(lines: &mut [AutoscalerLine], sort: Sort) {
    lines.sort_by(|a, b| {
        let name = || (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name));
        let more = |x: f64, y: f64| y.total_cmp(&x);
        match sort {
            Sort::Name => name(),
            Sort::Replicas => b.replicas.cmp(&a.replicas).then_with(name),
            Sort::Pressure => {
                let pressure = |line: &AutoscalerLine| line.pressure.unwrap_or(-1.0);
                a.state.cmp(&b.state).then_with(|| more(pressure(a), pressure(b))).then_with(name)
            }
        }
    });
}

/// The highest ratio in a decision.
fn by_decision(decision: &Decision) -> Option<f64> {
    let ratio = |sum: &Arithmetic| match sum {
        Arithmetic::PerPod(sum) => Some(sum.assumed.map_or(sum.ratio, |assumed| assumed.ratio)),
        Arithmetic::Total(sum) => Some(sum.ratio),
        Arithmetic::PerReplica(sum) => sum.ratio,
    };
    let ratios = decision.evaluations.iter().filter_map(|e| ratio(&e.result.as_ref().ok()?.sum));
    ratios.filter(|ratio| ratio.is_finite()).max_by(f64::total_cmp)
}

/// The highest ratio in a status.
fn by_status(hpa: &HorizontalPodAutoscaler) -> Option<f64> {
    let statuses = hpa.status.current_metrics.as_deref().unwrap_or_default();
    let ratio = |target: &MetricTarget, current: &MetricValueStatus| {
        let parts = match (target.average_utilization, &target.average_value, &target.value) {
            (Some(target), ..) => (f64::from(current.average_utilization?), f64::from(target)),
            (None, Some(target), _) => (current.average_value.as_ref()?.as_f64(), target.as_f64()),
            (None, None, Some(target)) => (current.value.as_ref()?.as_f64(), target.as_f64()),
            (None, None, None) => return None,
        };
        Some(parts.0 / parts.1).filter(|ratio| ratio.is_finite())
    };
    let ratios = hpa.spec.metrics.iter().zip(statuses).filter_map(|(metric, status)| {
        let (target, current) = if let (Some(m), Some(s)) = (&metric.resource, &status.resource) {
            (&m.target, &s.current)
        } else if let (Some(m), Some(s)) = (&metric.container_resource, &status.container_resource) {
            (&m.target, &s.current)
        } else if let (Some(m), Some(s)) = (&metric.pods, &status.pods) {
            (&m.target, &s.current)
        } else if let (Some(m), Some(s)) = (&metric.object, &status.object) {
            (&m.target, &s.current)
        } else if let (Some(m), Some(s)) = (&metric.external, &status.external) {
            (&m.target, &s.current)
        } else {
            return None;
        };
        ratio(target, current)
    });
    ratios.max_by(f64::total_cmp)
}

#[cfg(test)]
mod tests;
