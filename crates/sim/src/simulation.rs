//! A simulation run: workloads advance in virtual time, and autoscalers decide when they are due.

use std::collections::BTreeMap;

use api::overlap::SelectorRegistry;
use api::selector::Selector;

use engine::{
    DecisionDetail, MetricSamples, Observation, PodSelection, Replicas, Scale, ScaleWriteResult, State,
    Status,
};
use jiff::Timestamp;

use crate::inputs::MetricsView;
use crate::observer::{DueDecision, Observer};
use crate::scenario::{AutoscalerPlan, Scenario};
use crate::summary::{AutoscalerTally, Summary};
use crate::time::{Millis, to_the_second};
use crate::workload::Workload;

/// A running scenario.
pub struct Simulation<'a> {
    scenario: &'a Scenario,
    workloads: Vec<Workload>,
    autoscalers: Vec<SimulatedAutoscaler<'a>>,
    registry: SelectorRegistry,
    next_sample: Millis,
    over: bool,
}

/// A running autoscaler.
struct SimulatedAutoscaler<'a> {
    plan: &'a AutoscalerPlan,
    selector: Option<Selector>,
    state: State,
    /// Its last observation, which is updated in place.
    seen: Observation,
    /// Sum of the change counters of the observed pods.
    pods_seen: Option<u64>,
    next: Millis,
    tally: AutoscalerTally,
}

impl<'a> Simulation<'a> {
    /// A simulation at its start.
    pub fn new(scenario: &'a Scenario) -> Self {
        let workloads =
            scenario.workloads.iter().map(|w| Workload::new(&w.plan, &scenario.cadence)).collect();
        let autoscalers =
            scenario.autoscalers.iter().map(|plan| SimulatedAutoscaler::new(plan, scenario)).collect();
        let mut registry = SelectorRegistry::default();
        for plan in scenario.autoscalers.iter().filter(|plan| !plan.dry_run) {
            registry.register(&plan.spec.namespace, &plan.spec.name);
        }
        Self { scenario, workloads, autoscalers, registry, next_sample: Millis::ZERO, over: false }
    }

    /// Runs to the end, or until the observer stops the run.
    pub fn run(&mut self, observer: &mut dyn Observer) -> Summary {
        while !self.over {
            self.advance(observer);
        }
        self.summary()
    }

    /// Advances to the next decision or sample.
    fn advance(&mut self, observer: &mut dyn Observer) {
        let end = self.scenario.duration;
        let due = self.autoscalers.iter().map(|a| a.next).min().unwrap_or(Millis::NEVER);
        let now = due.min(self.next_sample).min(end);
        let at = now.after(self.scenario.start);
        for workload in &mut self.workloads {
            workload.advance(now);
        }
        if now == self.next_sample || now == end {
            self.next_sample = now + self.scenario.sync_period;
            for (index, workload) in self.workloads.iter_mut().enumerate() {
                observer.sample(at, index, &workload.sample());
            }
        }
        for index in 0..self.autoscalers.len() {
            self.decide(index, now, observer);
        }
        if now >= end || !observer.keep_going() {
            self.over = true;
            observer.end(now);
        }
    }

    /// Lets one autoscaler decide, if it is due, and carries out the decision.
    fn decide(&mut self, index: usize, now: Millis, observer: &mut dyn Observer) {
        let Some(autoscaler) = self.autoscalers.get_mut(index).filter(|a| a.next <= now) else { return };
        let plan = autoscaler.plan;
        autoscaler.observe(now, self.scenario, &self.workloads, &mut self.registry);
        autoscaler.next = now + plan.period;
        let due = DueDecision {
            at: now.after(self.scenario.start),
            elapsed: now,
            next: autoscaler.next,
            autoscaler: index,
        };
        let detail =
            if observer.needs_pod_detail(&due) { DecisionDetail::Pods } else { DecisionDetail::Counts };
        let mut decision = autoscaler.state.step_with(due.at, &autoscaler.seen, detail);
        if let Some(replicas) = decision.write() {
            let written = match self.workloads.get_mut(plan.workload) {
                Some(workload) if !plan.dry_run => {
                    workload.scale(replicas.get());
                    ScaleWriteResult::Done
                }
                _ => ScaleWriteResult::DryRun,
            };
            autoscaler.state.settle(due.at, &autoscaler.seen, &mut decision, written);
        }
        decision.status_written(&plan.spec.name, Ok(()));
        observer.step(&due, &autoscaler.seen, &decision);
        autoscaler.tally.add(plan, &self.scenario.config, &decision);
        autoscaler.seen.status = stored(decision.status);
    }

    /// The totals so far.
    pub fn summary(&self) -> Summary {
        Summary {
            workloads: self.workloads.iter().map(Workload::summary).collect(),
            autoscalers: self.autoscalers.iter().map(|a| a.tally.summary()).collect(),
        }
    }
}

impl<'a> SimulatedAutoscaler<'a> {
    fn new(plan: &'a AutoscalerPlan, scenario: &Scenario) -> Self {
        let selector = scenario.workloads.get(plan.workload).map(|w| w.selector.clone()).unwrap_or_default();
        let seen = Observation {
            config: scenario.config.clone(),
            spec: plan.spec.clone(),
            status: Status::default(),
            scale: Ok(Scale {
                spec_replicas: Replicas::ZERO,
                status_replicas: Replicas::ZERO,
                selector: selector.clone(),
            }),
            selection: PodSelection::Ours,
            pods: Vec::new(),
            samples: Vec::new(),
        };
        Self {
            plan,
            selector: Selector::parse(&selector).ok(),
            state: State::default(),
            seen,
            pods_seen: None,
            // The first decision is one period late, unless the release decides at once (docs/spec/hpa.md 7.2, 11.4).
            next: if scenario.config.profile().reconciles_at_once { Millis::ZERO } else { plan.period },
            tally: AutoscalerTally::default(),
        }
    }

    /// Updates the observation of a step.
    fn observe(
        &mut self,
        now: Millis,
        scenario: &Scenario,
        workloads: &[Workload],
        registry: &mut SelectorRegistry,
    ) {
        let Self { plan, seen, .. } = self;
        let Ok(scale) = &mut seen.scale else { return };
        if let Some(target) = workloads.get(plan.workload) {
            scale.spec_replicas = Replicas::new(target.fleet().wanted() as i32);
            scale.status_replicas = Replicas::new(target.fleet().active() as i32);
        }
        let needed = Observation::needs_metrics(&seen.config, &seen.spec, &seen.status, scale);
        let view = MetricsView { workloads, places: &plan.selected_workloads, start: scenario.start };
        // The counters only increase, so an equal sum means that no pod changed.
        let changes = view.selected().map(|w| w.fleet().changes()).sum();
        if self.pods_seen != Some(changes) {
            self.pods_seen = Some(changes);
            seen.pods.clear();
            seen.pods.extend(view.selected().flat_map(|w| w.fleet().pods()).map(|pod| pod.view.clone()));
        }
        if !needed {
            seen.samples.clear();
            return;
        }
        if !plan.dry_run
            && let Some(selector) = &self.selector
        {
            seen.selection = selection(plan, selector, scenario, workloads, registry);
        }
        seen.samples.resize(plan.inputs.len(), Ok(MetricSamples::NotQueried));
        for (slot, input) in seen.samples.iter_mut().zip(&plan.inputs) {
            let used = std::mem::replace(slot, Ok(MetricSamples::NotQueried));
            *slot = input.read(&view, now, used);
        }
        for ((metric, slot), input) in plan.spec.metrics.iter().zip(&mut seen.samples).zip(&plan.inputs) {
            if metric.max_age.is_some() {
                metric.check_age(now.after(scenario.start), slot, input.oldest(&view, now));
            }
        }
    }
}

/// Whether other autoscalers select the same pods (docs/spec/hpa.md 3.6 step 1). An autoscaler in dry-run mode is not part of this check.
fn selection(
    plan: &AutoscalerPlan,
    selector: &Selector,
    scenario: &Scenario,
    workloads: &[Workload],
    registry: &mut SelectorRegistry,
) -> PodSelection {
    registry.select(&plan.spec.namespace, &plan.spec.name, selector.clone());
    let has_pods = |place: &&usize| workloads.get(**place).is_some_and(|w| !w.fleet().pods().is_empty());
    let labels =
        plan.selected_workloads.iter().filter(has_pods).filter_map(|place| scenario.workloads.get(*place));
    let keys = registry.selecting(&plan.spec.namespace, &labels.map(|w| -> &BTreeMap<_, _> { &w.labels }));
    if keys.len() > 1 { PodSelection::Shared(keys) } else { PodSelection::Ours }
}

/// The status as the API stores it, with times in whole seconds.
fn stored(mut status: Status) -> Status {
    let cut = |at: &mut Option<Timestamp>| *at = at.map(to_the_second);
    cut(&mut status.last_scale_time);
    status.conditions.iter_mut().for_each(|condition| cut(&mut condition.since));
    status
}
