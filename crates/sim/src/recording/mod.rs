//! What a report is made of: a run in compact columns, every change with its reason, and what went wrong.

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

/// Rows per table unless asked otherwise.
pub const ROWS: usize = 2000;
/// Changes and troubles that are kept one by one.
const LISTED: usize = 10_000;

/// A run in compact columns.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Recording {
    /// Per workload, in the order of the scenario: columns `offered`, `served`, `unserved`, `backlog`, `capacity`,
    /// `ready`, `pods`, `replicas`.
    pub workloads: Vec<Table>,
    /// Per autoscaler, in the order of the scenario.
    pub autoscalers: Vec<AutoscalerTrack>,
    /// Every change, in order of time.
    pub changes: Vec<Change>,
    /// What went wrong, in order of its begin.
    pub troubles: Vec<Trouble>,
    /// Changes and troubles beyond those listed.
    pub unlisted: u64,
}

/// What one autoscaler saw and decided.
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
    looked: Option<(i32, i32)>,
}

/// One metric of an autoscaler.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MetricTrack {
    /// How people call it: `cpu`, `cpu of app`, `queue_length`.
    pub label: String,
    /// What its numbers are.
    pub unit: Unit,
    /// What it should be; absent if its target is broken.
    pub target: Option<f64>,
}

/// What numbers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Unit {
    /// Percent of requests or limits.
    Percent,
    /// Cores.
    Cores,
    /// Bytes.
    Bytes,
    /// Whatever the metric counts.
    Plain,
}

/// One change of a replica count.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// When.
    pub at: Timestamp,
    /// When, in seconds from the start of the scenario.
    pub seconds: f64,
    /// Which autoscaler, by its place in the scenario.
    pub autoscaler: usize,
    /// Replicas before.
    pub from: i32,
    /// Replicas after.
    pub to: i32,
    /// What metrics recommended, where they were looked at.
    pub recommended: Option<i32>,
    /// Why, in the words of the event.
    pub reason: String,
    /// What kept it from going further.
    pub held: HoldReason,
    /// Whether it was only looked at, not done.
    pub dry_run: bool,
}

/// Something that went wrong in the same way for a while.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Trouble {
    /// Which autoscaler, by its place in the scenario.
    pub autoscaler: usize,
    /// When it was first seen.
    pub since: Timestamp,
    /// When it was last seen.
    pub until: Timestamp,
    /// How often.
    pub count: u64,
    /// Reason of the event.
    pub reason: String,
    /// Its message.
    pub message: String,
}

impl Recording {
    /// An empty recording with at most so many rows per table.
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
            AutoscalerTrack { min: spec.min, max: spec.max, metrics, table, open: Vec::new(), looked: None }
        };
        Self {
            workloads: scenario.workloads.iter().map(workload).collect(),
            autoscalers: scenario.autoscalers.iter().map(|a| autoscaler(&a.spec)).collect(),
            changes: Vec::new(),
            troubles: Vec::new(),
            unlisted: 0,
        }
    }

    fn note_change(&mut self, due: &DueDecision, decision: &Decision) {
        let dry_run = decision.outcome == ScaleOutcome::DryRun;
        if let Some(track) = self.autoscalers.get_mut(due.autoscaler) {
            // One that only looks wants the same in the next decision; that is told once.
            let wanted = dry_run.then_some((decision.current(), decision.desired));
            let before = std::mem::replace(&mut track.looked, wanted);
            if dry_run && before == wanted {
                return;
            }
        }
        if decision.outcome != ScaleOutcome::Scaled && !dry_run {
            return;
        }
        if self.changes.len() >= LISTED {
            self.unlisted += 1;
            return;
        }
        self.changes.push(Change {
            at: due.at,
            seconds: due.elapsed.as_secs_f64(),
            autoscaler: due.autoscaler,
            from: decision.current(),
            to: decision.desired,
            recommended: decision.recommendation.as_ref().map(|r| r.replicas),
            reason: decision.reason.clone(),
            held: HoldReason::of(decision),
            dry_run,
        });
    }

    /// Warnings that come again in the next decision prolong the trouble they began.
    fn note_troubles(&mut self, due: &DueDecision, decision: &Decision) {
        let Self { autoscalers, troubles, unlisted, .. } = self;
        let Some(track) = autoscalers.get_mut(due.autoscaler) else { return };
        let warnings = decision.events.iter().filter(|event| event.kind == EventKind::Warning);
        let mut open = Vec::new();
        for event in warnings {
            let known = track.open.iter().copied().find(|index| {
                troubles.get(*index).is_some_and(|t| t.reason == event.reason && t.message == event.message)
            });
            if let Some(trouble) = known.and_then(|index| troubles.get_mut(index)) {
                trouble.until = due.at;
                trouble.count += 1;
                open.extend(known);
            } else if troubles.len() < LISTED {
                open.push(troubles.len());
                troubles.push(Trouble {
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
            self.note_troubles(due, decision);
        }
        if let Some(track) = self.autoscalers.get_mut(due.autoscaler) {
            let recommended = decision.recommendation.as_ref().map_or(f64::NAN, |r| f64::from(r.replicas));
            let own = [
                f64::from(decision.current()),
                recommended,
                f64::from(decision.desired),
                f64::from(HoldReason::of(decision).code()),
            ];
            let count = track.metrics.len();
            let metrics = (0..count).map(|index| decision.evaluations.get(index).map_or(f64::NAN, found));
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
    fn of(metric: &Metric) -> Self {
        let (label, plain) = match &metric.source {
            MetricSource::Resource { name, .. } => (name.clone(), unit_of(name)),
            MetricSource::ContainerResource { name, container, .. } => {
                (format!("{name} of {container}"), unit_of(name))
            }
            MetricSource::Pods(id) | MetricSource::External(id) | MetricSource::Object { metric: id, .. } => {
                (id.name.clone(), Unit::Plain)
            }
            MetricSource::Unknown(kind) => (kind.clone(), Unit::Plain),
        };
        let (unit, target) = match metric.goal {
            MetricTarget::Utilization(percent) => (Unit::Percent, Some(f64::from(percent))),
            MetricTarget::AverageValue(milli) | MetricTarget::Value(milli) => {
                (plain, Some(milli as f64 / 1000.0))
            }
            MetricTarget::Missing => (plain, None),
        };
        Self { label, unit, target }
    }
}

fn unit_of(resource: &str) -> Unit {
    match resource {
        "cpu" => Unit::Cores,
        "memory" => Unit::Bytes,
        _ => Unit::Plain,
    }
}

/// What a metric was found to be, in the unit of its target; NaN if it could not be read.
fn found(evaluation: &Evaluation) -> f64 {
    match evaluation.result.as_ref().map(|proposal| &proposal.sum) {
        Ok(Arithmetic::PerPod(sum)) if sum.requests.is_some() => sum.found as f64,
        Ok(Arithmetic::PerPod(sum)) => sum.found as f64 / 1000.0,
        Ok(Arithmetic::Total(sum)) => sum.usage as f64 / 1000.0,
        Ok(Arithmetic::PerReplica(sum)) => sum.usage as f64 / 1000.0 / f64::from(sum.replicas.max(1)),
        Err(_) => f64::NAN,
    }
}
