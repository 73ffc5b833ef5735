//! A workload in virtual time: its pods, the work that arrives, and the samples of both.
//!
//! Simplifications compared with a cluster:
//!
//! - The load is evaluated once per tick and is constant in between; pods change at their exact times.
//! - Ready pods share the work evenly, at once and without loss; a pod that is deleted stops taking work at once.
//! - Every pod finds a node. Delays are the same for all pods, and so is what they use per unit of work.
//! - All pods are measured at the same moments. A measurement is the mean of the time since the one before, for memory
//!   too, and a pod has none until it has run for a whole such time.
//! - Before the start the load was constant: pods that exist at the start are ready and have samples.
//! - A ReplicaSet deletes pods that do not run first, then those not ready, then those ready for the shortest time;
//!   nodes, deletion costs and the random order among pods of similar age are not modelled.

mod flow;
mod history;
mod ledger;
mod pods;
#[cfg(test)]
mod tests;
mod usage;

use jiff::Timestamp;

pub use flow::{FlowTotals, ServiceCapacity, WorkloadFlow};
pub use history::{ScrapeHistory, ScrapeWindow, ScrapedTotals};
pub use ledger::{WorkloadSummary, WorkloadTotals};
pub use pods::{ModelPod, ModelPodTemplate, PodDelays, PodFailure, PodManagement, PodSet, PodStage};
pub use usage::{ContainerUsageModel, ModelResource, PodActivity, UsageMeter, UsageModel};

use crate::load::LoadCurve;
use crate::observer::WorkloadSample;
use crate::time::Millis;

/// Parameters of a workload.
#[derive(Clone, Debug)]
pub struct WorkloadModel {
    /// Template of its pods.
    pub template: ModelPodTemplate,
    /// Pods at the start.
    pub replicas: usize,
    /// Capacity of its pods.
    pub service: ServiceCapacity,
    /// Work that arrives.
    pub load: LoadCurve,
}

/// Timing of the model.
#[derive(Clone, Copy, Debug)]
pub struct ModelTiming {
    /// When virtual time begins.
    pub start: Timestamp,
    /// Time between two evaluations of the load.
    pub tick: Millis,
    /// Time between two scrapes.
    pub resolution: Millis,
    /// Maximum age of a scrape that can be read.
    pub oldest: Millis,
}

/// A workload in virtual time.
#[derive(Clone, Debug)]
pub struct Workload {
    load: LoadCurve,
    tick: Millis,
    now: Millis,
    next_tick: Millis,
    flow: WorkloadFlow,
    fleet: PodSet,
    history: ScrapeHistory,
    ledger: WorkloadTotals,
    sampled: (Millis, FlowTotals),
}

impl Workload {
    /// The workload at the start: all pods are ready, and the load was constant before.
    pub fn new(plan: &WorkloadModel, cadence: &ModelTiming) -> Self {
        let fleet = PodSet::new(plan.template.clone(), cadence.start, plan.replicas);
        let mut flow = WorkloadFlow::new(plan.service);
        flow.rate = plan.load.at(Millis::ZERO);
        let steady = flow.rates(fleet.ready());
        let now = ScrapedTotals {
            at: Millis::ZERO,
            totals: FlowTotals::default(),
            backlog: 0.0,
            ready: fleet.ready(),
        };
        Self {
            load: plan.load.clone(),
            tick: Millis(cadence.tick.0.max(1)),
            now: Millis::ZERO,
            next_tick: Millis::ZERO,
            history: ScrapeHistory::new(cadence.resolution, cadence.oldest, now, &steady),
            ledger: WorkloadTotals::new(plan.replicas),
            flow,
            fleet,
            sampled: (Millis::ZERO, FlowTotals::default()),
        }
    }

    /// Advances virtual time to `to`.
    pub fn advance(&mut self, to: Millis) {
        while self.now < to {
            if self.now >= self.next_tick {
                self.flow.rate = self.load.at(self.now);
                self.next_tick = self.now + self.tick;
                self.ledger.note_rate(self.now, &self.flow, self.fleet.ready());
            }
            let next = to.min(self.next_tick).min(self.fleet.next()).min(self.history.next());
            let seconds = (next - self.now).as_secs_f64();
            self.flow.advance(seconds, self.fleet.ready());
            self.ledger.pass(seconds, &self.flow, &self.fleet);
            self.now = next;
            if self.fleet.next() <= next {
                self.fleet.advance(next, self.flow.totals.per_pod);
                self.ledger.note_rate(next, &self.flow, self.fleet.ready());
            }
            if self.history.next() <= next {
                self.history.push(ScrapedTotals {
                    at: next,
                    totals: self.flow.totals,
                    backlog: self.flow.backlog,
                    ready: self.fleet.ready(),
                });
            }
        }
    }

    /// Sets the desired replicas.
    pub fn scale(&mut self, wanted: i32) {
        let wanted = usize::try_from(wanted).unwrap_or_default();
        self.fleet.scale(self.now, wanted, self.flow.totals.per_pod);
        self.ledger.note_replicas(wanted);
        self.ledger.note_rate(self.now, &self.flow, self.fleet.ready());
    }

    /// Its pods.
    pub fn fleet(&self) -> &PodSet {
        &self.fleet
    }

    /// The latest scrape window that had ended at `at`.
    pub fn window(&self, at: Millis) -> Option<ScrapeWindow> {
        self.history.window(at)
    }

    /// The sample since the previous one.
    pub fn sample(&mut self) -> WorkloadSample {
        let (since, before) = std::mem::replace(&mut self.sampled, (self.now, self.flow.totals));
        let rates = match (self.now - since).as_secs_f64() {
            // No time has passed, so the current rates are used.
            0.0 => self.flow.rates(self.fleet.ready()),
            seconds => self.flow.totals.rates_since(&before, seconds),
        };
        let capacity = self.flow.service().capacity(self.fleet.ready());
        WorkloadSample {
            at: self.now,
            offered: rates.offered,
            served: rates.served,
            unserved: rates.lost,
            backlog: self.flow.backlog,
            capacity: capacity.is_finite().then_some(capacity),
            ready: self.fleet.ready(),
            pods: self.fleet.pods().len(),
            replicas: self.fleet.wanted(),
        }
    }

    /// The sums of the whole run.
    pub fn summary(&self) -> WorkloadSummary {
        self.ledger.summary(self.now, &self.flow)
    }
}
