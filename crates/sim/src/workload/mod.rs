//! A workload in virtual time: pods that come and go, work that arrives, and what can be measured of both.
//!
//! What is simpler here than in a cluster:
//!
//! - The load is looked at once per tick and stays the same in between; pods change at their exact moments.
//! - Ready pods share the work evenly, at once and without loss; a pod that is deleted stops taking work at once.
//! - Every pod finds a node. Delays are the same for all pods, and so is what they use per unit of work.
//! - All pods are measured at the same moments. A measurement is the mean of the time since the one before, for memory
//!   too, and a pod has none until it has run for a whole such time.
//! - Before the start everything was as steady as in the first moment: pods that exist then are ready and measured.
//! - A ReplicaSet deletes pods that do not run first, then those not ready, then those ready for the shortest time;
//!   nodes, deletion costs and the chance that real ones add among pods of similar age are left out.

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

/// What a workload is made of.
#[derive(Clone, Debug)]
pub struct WorkloadModel {
    /// What its pods have in common.
    pub template: ModelPodTemplate,
    /// Pods at the start.
    pub replicas: usize,
    /// How much pods can do.
    pub service: ServiceCapacity,
    /// Work that arrives.
    pub load: LoadCurve,
}

/// How the model is looked at.
#[derive(Clone, Copy, Debug)]
pub struct ModelTiming {
    /// When virtual time begins.
    pub start: Timestamp,
    /// How often the load is looked at.
    pub tick: Millis,
    /// How often metrics are scraped.
    pub resolution: Millis,
    /// How old a scrape may be when somebody asks for it.
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
    /// At the start: all pods ready, and a past as steady as the load of the first moment.
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

    /// Lets time pass until `to`.
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

    /// Asks for another number of replicas.
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

    /// The latest window of measurement that had ended at `at`.
    pub fn window(&self, at: Millis) -> Option<ScrapeWindow> {
        self.history.window(at)
    }

    /// What happened since the last sample.
    pub fn sample(&mut self) -> WorkloadSample {
        let (since, before) = std::mem::replace(&mut self.sampled, (self.now, self.flow.totals));
        let rates = match (self.now - since).as_secs_f64() {
            // Nothing has passed yet: what is about to.
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
