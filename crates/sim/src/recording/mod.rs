//! The recording of a run: compact columns, every change with its reason, and problems.

mod held;
mod table;

use std::sync::Arc;

use engine::evaluate::{Arithmetic, Evaluation};
use engine::report::EventKind;
use engine::spec::{Metric, MetricSource, MetricTarget};
use engine::{Decision, Observation, ScaleOutcome};
use jiff::Timestamp;
use serde::Serialize;

pub use held::HoldReason;
pub use table::{Column, Merge, Table};

use crate::observer::{DueDecision, Observer, WorkloadSample};
use crate::scenario::Scenario;
use crate::time::Millis;

/// Maximum number of changes, and of problems, that are listed.
const MAX_LISTED_ENTRIES: usize = 10_000;

/// A run in compact columns.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Recording {
    /// For each workload, in the order of the scenario: columns `offered`, `served`, `unserved`, `backlog`, `capacity`,
    /// `ready`, `pods`, `replicas`.
    pub workloads: Vec<Table>,
    /// For each autoscaler, in the order of the scenario.
    pub autoscalers: Vec<AutoscalerTrack>,
    /// Every change, in order of time.
    pub changes: Vec<ReplicaChange>,
    /// Problems in the order of their start.
    pub problems: Vec<RecordedProblem>,
    /// Number of changes and problems that are not listed.
    pub unlisted: u64,
}

/// Recorded values of one autoscaler.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AutoscalerTrack {
    /// Lower bound.
    pub min: i32,
    /// Upper bound.
    pub max: i32,
    /// Its metrics.
    pub metrics: Vec<MetricTrack>,
    /// Columns `current`, `recommended`, `desired`, `held` ([`HoldReason::code`]), then one per metric.
    pub table: Table,
    #[serde(skip)]
    open: Vec<usize>,
    #[serde(skip)]
    dry_run_change: Option<(i32, i32)>,
}

/// One metric of an autoscaler.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MetricTrack {
    /// Short name: `cpu`, `cpu of app`, `queue_length`.
    pub label: String,
    /// Unit of its values.
    pub unit: MetricUnit,
    /// Target; absent if it is invalid.
    pub target: Option<f64>,
}

/// Unit of metric values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum MetricUnit {
    /// Percent of requests or limits.
    Percent,
    /// Cores.
    Cores,
    /// Bytes.
    Bytes,
    /// No unit.
    Plain,
}

/// One change of a replica count.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReplicaChange {
    /// Time.
    pub at: Timestamp,
    /// Time in seconds from the start of the scenario.
    pub seconds: f64,
    /// Index of the autoscaler in the scenario.
    pub autoscaler: usize,
    /// Replicas before.
    pub from: i32,
    /// Replicas after.
    pub to: i32,
    /// Recommended replicas, if metrics were evaluated.
    pub recommended: Option<i32>,
    /// Reason as in the event.
    pub reason: String,
    /// Why it differs from the recommendation.
    pub held: HoldReason,
    /// Whether it was not made, because of dry-run mode.
    pub dry_run: bool,
}

/// A warning that was repeated in consecutive decisions.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordedProblem {
    /// Index of the autoscaler in the scenario.
    pub autoscaler: usize,
    /// Time of the first warning.
    pub since: Timestamp,
    /// Time of the last warning.
    pub until: Timestamp,
    /// Number of warnings.
    pub count: u64,
    /// Reason of the event.
    pub reason: String,
    /// Message of the event.
    pub message: String,
}

impl Recording {
    /// An empty recording with at most `rows` rows per table.
    pub fn new(scenario: &Scenario, rows: usize) -> Self {
        const COLUMNS: [(&str, Merge); 8] = [
            ("offered", Merge::Mean),
            ("served", Merge::Mean),
            ("unserved", Merge::Mean),
            ("backlog", Merge::Max),
            ("capacity", Merge::Mean),
            ("ready", Merge::Mean),
            ("pods", Merge::Mean),
            ("replicas", Merge::Mean),
        ];
        let workload = |_| Table::new(COLUMNS.map(|(name, merge)| (name.to_owned(), merge)), rows);
        let autoscaler = |spec: &Arc<engine::Spec>| {
            let metrics: Vec<MetricTrack> = spec.metrics.iter().map(MetricTrack::of).collect();
            let own = [
                ("current", Merge::Mean),
                ("recommended", Merge::Mean),
                ("desired", Merge::Mean),
                ("held", Merge::Last),
            ];
            let own = own.map(|(name, merge)| (name.to_owned(), merge));
            let columns = own.into_iter().chain(metrics.iter().map(|m| (m.label.clone(), Merge::Mean)));
            let table = Table::new(columns, rows);
            AutoscalerTrack {
                min: spec.min.get(),
                max: spec.max.get(),
                metrics,
                table,
                open: Vec::new(),
                dry_run_change: None,
            }
        };
        Self {
            workloads: scenario.workloads.iter().map(workload).collect(),
            autoscalers: scenario.autoscalers.iter().map(|a| autoscaler(&a.spec)).collect(),
            changes: Vec::new(),
            problems: Vec::new(),
            unlisted: 0,
        }
    }

    fn note_change(&mut self, due: &DueDecision, decision: &Decision) {
        let dry_run = decision.outcome == ScaleOutcome::DryRun;
        if let Some(track) = self.autoscalers.get_mut(due.autoscaler) {
            // In dry-run mode the next decision makes the same change, which is recorded once.
            let wanted = dry_run.then_some((decision.current().get(), decision.desired.get()));
            let before = std::mem::replace(&mut track.dry_run_change, wanted);
            if dry_run && before == wanted {
                return;
            }
        }
        if decision.outcome != ScaleOutcome::Scaled && !dry_run {
            return;
        }
        if self.changes.len() >= MAX_LISTED_ENTRIES {
            self.unlisted += 1;
            return;
        }
        self.changes.push(ReplicaChange {
            at: due.at,
            seconds: due.elapsed.as_secs_f64(),
            autoscaler: due.autoscaler,
            from: decision.current().get(),
            to: decision.desired.get(),
            recommended: decision.recommendation.as_ref().map(|r| r.replicas.get()),
            reason: decision.reason.clone(),
            held: HoldReason::of(decision),
            dry_run,
        });
    }

    /// Adds warnings. One that is repeated in the next decision extends its problem.
    fn note_problems(&mut self, due: &DueDecision, decision: &Decision) {
        let Self { autoscalers, problems, unlisted, .. } = self;
        let Some(track) = autoscalers.get_mut(due.autoscaler) else { return };
        let warnings = decision.events.iter().filter(|event| event.kind == EventKind::Warning);
        let mut open = Vec::new();
        for event in warnings {
            let known = track.open.iter().copied().find(|index| {
                problems.get(*index).is_some_and(|t| t.reason == event.reason && t.message == event.message)
            });
            if let Some(problem) = known.and_then(|index| problems.get_mut(index)) {
                problem.until = due.at;
                problem.count += 1;
                open.extend(known);
            } else if problems.len() < MAX_LISTED_ENTRIES {
                open.push(problems.len());
                problems.push(RecordedProblem {
                    autoscaler: due.autoscaler,
                    since: due.at,
                    until: due.at,
                    count: 1,
                    reason: event.reason.to_string(),
                    message: event.message.clone(),
                });
            } else {
                *unlisted += 1;
            }
        }
        track.open = open;
    }
}

impl Observer for Recording {
    fn step(&mut self, due: &DueDecision, _: &Observation, decision: &Decision) {
        self.note_change(due, decision);
        if !decision.events.is_empty()
            || self.autoscalers.get(due.autoscaler).is_some_and(|t| !t.open.is_empty())
        {
            self.note_problems(due, decision);
        }
        if let Some(track) = self.autoscalers.get_mut(due.autoscaler) {
            let recommended =
                decision.recommendation.as_ref().map_or(f64::NAN, |r| f64::from(r.replicas.get()));
            let own = [
                f64::from(decision.current().get()),
                recommended,
                f64::from(decision.desired.get()),
                f64::from(HoldReason::of(decision).code()),
            ];
            let count = track.metrics.len();
            let metrics =
                (0..count).map(|index| decision.evaluations.get(index).map_or(f64::NAN, current_value));
            track.table.push(due.elapsed, own.into_iter().chain(metrics));
        }
    }

    fn sample(&mut self, _: Timestamp, workload: usize, sample: &WorkloadSample) {
        if let Some(table) = self.workloads.get_mut(workload) {
            let WorkloadSample {
                offered, served, unserved, backlog, capacity, ready, pods, replicas, ..
            } = *sample;
            let capacity = capacity.unwrap_or(f64::NAN);
            let counts = [ready, pods, replicas].map(|count| count as f64);
            table.push(sample.at, [offered, served, unserved, backlog, capacity].into_iter().chain(counts));
        }
    }

    fn end(&mut self, _: Millis) {
        self.workloads.iter_mut().for_each(Table::flush);
        self.autoscalers.iter_mut().for_each(|track| track.table.flush());
    }
}

impl MetricTrack {
    /// The track of a metric of a spec.
    pub fn of(metric: &Metric) -> Self {
        let (label, plain) = match &metric.source {
            MetricSource::Resource { name, .. } => (name.clone(), unit_of(name)),
            MetricSource::ContainerResource { name, container, .. } => {
                (format!("{name} of {container}"), unit_of(name))
            }
            MetricSource::Pods(id) | MetricSource::External(id) | MetricSource::Object { metric: id, .. } => {
                (id.name.clone(), MetricUnit::Plain)
            }
            MetricSource::Unknown(kind) => (kind.clone(), MetricUnit::Plain),
        };
        let (unit, target) = match metric.target {
            MetricTarget::Utilization(percent) => (MetricUnit::Percent, Some(f64::from(percent))),
            MetricTarget::AverageValue(milli) | MetricTarget::Value(milli) => {
                (plain, Some(milli.get() as f64 / 1000.0))
            }
            MetricTarget::Missing => (plain, None),
        };
        Self { label, unit, target }
    }
}

fn unit_of(resource: &str) -> MetricUnit {
    match resource {
        "cpu" => MetricUnit::Cores,
        "memory" => MetricUnit::Bytes,
        _ => MetricUnit::Plain,
    }
}

/// The current value of a metric, in the unit of its target; NaN if it could not be read.
pub fn current_value(evaluation: &Evaluation) -> f64 {
    match evaluation.result.as_ref().map(|proposal| &proposal.sum) {
        Ok(Arithmetic::PerPod(sum)) if sum.requests.is_some() => sum.found as f64,
        Ok(Arithmetic::PerPod(sum)) => sum.found as f64 / 1000.0,
        Ok(Arithmetic::Total(sum)) => sum.usage.get() as f64 / 1000.0,
        Ok(Arithmetic::PerReplica(sum)) => {
            sum.usage.get() as f64 / 1000.0 / f64::from(sum.replicas.get().max(1))
        }
        Err(_) => f64::NAN,
    }
}
