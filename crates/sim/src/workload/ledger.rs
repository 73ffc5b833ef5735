//! Totals of one workload over a run: pod-hours, work served and work lost.

use serde::Serialize;

use super::flow::WorkloadFlow;
use super::pods::PodSet;
use crate::time::Millis;

/// Sums that grow as time passes.
#[derive(Clone, Debug)]
pub struct WorkloadTotals {
    pod_seconds: f64,
    ready_seconds: f64,
    replica_seconds: f64,
    capacity_units: f64,
    short_seconds: f64,
    backlog_seconds: f64,
    short_since: Option<Millis>,
    worst_reaction: Millis,
    max_replicas: usize,
    min_replicas: usize,
    largest_backlog: f64,
}

/// Totals of one workload over a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadSummary {
    /// Hours of all pods that existed, whether they worked or not. This is the cost.
    pub pod_hours: f64,
    /// Hours of pods that were ready.
    pub ready_hours: f64,
    /// Mean of the desired replicas.
    pub mean_replicas: f64,
    /// Maximum of the desired replicas.
    pub max_replicas: usize,
    /// Minimum of the desired replicas.
    pub min_replicas: usize,
    /// Units of work that arrived.
    pub offered: f64,
    /// Units of work that were done.
    pub served: f64,
    /// Units of work that were lost.
    pub unserved: f64,
    /// Share of the work that arrived and was lost.
    pub unserved_share: f64,
    /// Seconds in which more work arrived than ready pods could do.
    pub short_seconds: f64,
    /// The longest time from work exceeding what ready pods could do until they could again, in seconds.
    pub worst_reaction_seconds: f64,
    /// Whether ready pods still could not do the work at the end.
    pub short_at_end: bool,
    /// Most units that waited.
    pub max_backlog: f64,
    /// Mean time a unit of work waited, in seconds.
    pub mean_wait_seconds: f64,
    /// Used share of the capacity of ready pods; absent if the capacity is unlimited.
    pub used_share: Option<f64>,
}

impl WorkloadTotals {
    /// Totals at the start.
    pub fn new(replicas: usize) -> Self {
        Self {
            pod_seconds: 0.0,
            ready_seconds: 0.0,
            replica_seconds: 0.0,
            capacity_units: 0.0,
            short_seconds: 0.0,
            backlog_seconds: 0.0,
            short_since: None,
            worst_reaction: Millis::ZERO,
            max_replicas: replicas,
            min_replicas: replicas,
            largest_backlog: 0.0,
        }
    }

    /// Adds a time in which only the backlog changed.
    pub fn pass(&mut self, seconds: f64, flow: &WorkloadFlow, fleet: &PodSet) {
        self.pod_seconds += seconds * fleet.pods().len() as f64;
        self.ready_seconds += seconds * fleet.ready() as f64;
        self.replica_seconds += seconds * fleet.wanted() as f64;
        self.capacity_units += seconds * flow.service().capacity(fleet.ready());
        self.backlog_seconds += seconds * flow.backlog;
        self.largest_backlog = self.largest_backlog.max(flow.backlog);
        if self.short_since.is_some() {
            self.short_seconds += seconds;
        }
    }

    /// The load or the ready pods have changed.
    pub fn note_rate(&mut self, now: Millis, flow: &WorkloadFlow, ready: usize) {
        match (flow.is_short(ready), self.short_since) {
            (true, None) => self.short_since = Some(now),
            (false, Some(since)) => {
                self.worst_reaction = self.worst_reaction.max(now - since);
                self.short_since = None;
            }
            _ => {}
        }
    }

    /// The desired replicas have changed.
    pub fn note_replicas(&mut self, wanted: usize) {
        self.max_replicas = self.max_replicas.max(wanted);
        self.min_replicas = self.min_replicas.min(wanted);
    }

    /// The summary at the end of a run.
    pub fn summary(&self, now: Millis, flow: &WorkloadFlow) -> WorkloadSummary {
        let hours = |seconds: f64| seconds / 3600.0;
        let share = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
        let open = self.short_since.map_or(Millis::ZERO, |since| now - since);
        let totals = &flow.totals;
        WorkloadSummary {
            pod_hours: hours(self.pod_seconds),
            ready_hours: hours(self.ready_seconds),
            mean_replicas: share(self.replica_seconds, now.as_secs_f64()),
            max_replicas: self.max_replicas,
            min_replicas: self.min_replicas,
            offered: totals.offered,
            served: totals.served,
            unserved: totals.lost,
            unserved_share: share(totals.lost, totals.offered),
            short_seconds: self.short_seconds,
            worst_reaction_seconds: self.worst_reaction.max(open).as_secs_f64(),
            short_at_end: self.short_since.is_some(),
            max_backlog: self.largest_backlog,
            // Little's law: mean backlog = arrival rate × mean waiting time.
            mean_wait_seconds: share(self.backlog_seconds, totals.served),
            used_share: self.capacity_units.is_finite().then(|| share(totals.served, self.capacity_units)),
        }
    }
}
