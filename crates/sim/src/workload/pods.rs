//! The life of pods: created, running, ready, stopping, gone; or failed.

use std::sync::Arc;

use engine::pod::{ConditionStatus, ReadyCondition};
use engine::{Pod, PodPhase, PodTemplate};
use jiff::Timestamp;

use super::history::ScrapeWindow;
use super::usage::PodActivity;
use crate::random::Seed;
use crate::time::{Millis, to_the_second};

/// Number of failed pods that stay listed; older ones are deleted.
const MAX_LISTED_FAILED_PODS: usize = 20;
/// Pods that exist at the start have been ready for this long.
const INITIAL_READY_TIME: Millis = Millis::from_hours(1);

/// How long the steps in the life of a pod take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PodDelays {
    /// From creation to running.
    pub start: Millis,
    /// From running to ready.
    pub ready: Millis,
    /// From deletion to gone.
    pub stop: Millis,
}

/// What all pods of a workload have in common.
#[derive(Clone, Debug)]
pub struct ModelPodTemplate {
    /// Name of the workload.
    pub name: String,
    /// How pods are named, added and removed.
    pub order: PodManagement,
    /// Containers and what they request.
    pub shape: Arc<PodTemplate>,
    /// From creation to running.
    pub start_delay: Millis,
    /// From running to ready.
    pub ready_delay: Millis,
    /// From deletion to gone.
    pub stop_delay: Millis,
    /// Share of new pods that fail.
    pub failing: f64,
    /// How they fail.
    pub failure: PodFailure,
    /// Seed that selects the failing pods.
    pub seed: Seed,
}

/// How pods are named, added and removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodManagement {
    /// Deployments and ReplicaSets: random names; the least useful and youngest go first.
    Any,
    /// StatefulSets with `podManagementPolicy: Parallel`: numbered, the highest number goes first.
    Numbered,
    /// StatefulSets otherwise: numbered, and one at a time.
    OneByOne,
}

/// How a pod fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub enum PodFailure {
    /// It runs and never becomes ready.
    #[default]
    NeverReady,
    /// It ends with phase `Failed` when it should become ready, and another one is created in its place.
    Failed,
}

/// Stage in the life of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodStage {
    /// Waits for its node, image and so on.
    Pending,
    /// Runs, but takes no work.
    Starting,
    /// Takes its share of the work.
    Ready,
    /// Is being deleted; takes no work.
    Stopping,
    /// Has failed.
    Failed,
}

/// One pod.
#[derive(Clone, Debug)]
pub struct ModelPod {
    /// What the engine sees.
    pub view: Pod,
    /// Its stage.
    pub stage: PodStage,
    /// End of the stage.
    next: Millis,
    running_at: Millis,
    ready_at: Millis,
    /// The workload's sum of work per pod at the time the pod became ready, and at the time it stopped.
    work: (f64, f64),
    number: u64,
    fails: bool,
}

/// The pods of one workload.
#[derive(Clone, Debug)]
pub struct PodSet {
    template: ModelPodTemplate,
    start: Timestamp,
    pods: Vec<ModelPod>,
    wanted: usize,
    created: u64,
    /// Counter of all changes, so that observers know whether anything changed.
    changes: u64,
    next: Millis,
    ready: usize,
    active: usize,
}

impl Default for PodDelays {
    /// The default delays.
    fn default() -> Self {
        Self { start: Millis::from_secs(3), ready: Millis::from_secs(7), stop: Millis::from_secs(5) }
    }
}

impl ModelPodTemplate {
    /// How long the steps in the life of its pods take.
    pub fn delays(&self) -> PodDelays {
        PodDelays { start: self.start_delay, ready: self.ready_delay, stop: self.stop_delay }
    }
}

impl PodSet {
    /// A set of pods that have been ready for [`INITIAL_READY_TIME`].
    pub fn new(template: ModelPodTemplate, start: Timestamp, replicas: usize) -> Self {
        let pods = Vec::with_capacity(replicas);
        let mut fleet = Self {
            template,
            start,
            pods,
            wanted: replicas,
            created: 0,
            changes: 0,
            next: Millis::NEVER,
            ready: 0,
            active: 0,
        };
        for number in 0..replicas as u64 {
            let mut pod = fleet.newborn(Millis::ZERO - INITIAL_READY_TIME, number);
            fleet.created += 1;
            pod.fails = false;
            pod.run(Millis::ZERO - INITIAL_READY_TIME, &fleet.template);
            pod.become_ready(pod.running_at, f64::NEG_INFINITY, start);
            fleet.pods.push(pod);
        }
        fleet.count();
        fleet
    }

    /// Pods in the order in which they are listed.
    pub fn pods(&self) -> &[ModelPod] {
        &self.pods
    }

    /// Desired replicas.
    pub fn wanted(&self) -> usize {
        self.wanted
    }

    /// Pods that take work.
    pub fn ready(&self) -> usize {
        self.ready
    }

    /// Pods that are neither being deleted nor over: `status.replicas` of the scale.
    pub fn active(&self) -> usize {
        self.active
    }

    /// Counter that increases with every change of a pod.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// When the next pod changes by itself.
    pub fn next(&self) -> Millis {
        self.next
    }

    /// Sets the desired number of pods. `work` is the sum of work per pod so far.
    pub fn scale(&mut self, now: Millis, wanted: usize, work: f64) {
        self.wanted = wanted;
        self.reconcile(now, work);
        self.count();
        self.advance(now, work);
    }

    /// Applies all changes that are due.
    pub fn advance(&mut self, now: Millis, work: f64) {
        while self.next <= now {
            let numbered = self.template.order != PodManagement::Any;
            let (template, start) = (&self.template, self.start);
            for pod in self.pods.iter_mut().filter(|pod| pod.next <= now) {
                match pod.stage {
                    PodStage::Pending => pod.run(pod.next, template),
                    PodStage::Starting if pod.fails => pod.fail(pod.next, start),
                    PodStage::Starting => pod.become_ready(pod.next, work, start),
                    PodStage::Stopping | PodStage::Ready | PodStage::Failed => {}
                }
            }
            // A StatefulSet removes a failed pod and creates it again with the same name.
            self.pods.retain(|pod| match pod.stage {
                PodStage::Stopping => pod.next > now,
                PodStage::Failed => !numbered,
                _ => true,
            });
            self.collect_failed();
            self.reconcile(now, work);
            self.count();
        }
    }

    /// Creates or deletes pods until there are as many as wanted.
    fn reconcile(&mut self, now: Millis, work: f64) {
        match self.template.order {
            PodManagement::Any => {
                let active = self.pods.iter().filter(|pod| pod.is_active()).count();
                for _ in active..self.wanted {
                    let pod = self.newborn(now, self.created);
                    self.created += 1;
                    self.pods.push(pod);
                }
                for index in self.least_useful(active.saturating_sub(self.wanted)) {
                    self.delete(index, now, work);
                }
            }
            PodManagement::Numbered | PodManagement::OneByOne => self.reconcile_numbered(now, work),
        }
        self.pods.retain(|pod| pod.stage != PodStage::Stopping || pod.next > now);
        self.changes += 1;
    }

    fn reconcile_numbered(&mut self, now: Millis, work: f64) {
        let one_by_one = self.template.order == PodManagement::OneByOne;
        let mut taken = vec![false; self.wanted];
        for pod in &self.pods {
            if let Some(slot) = usize::try_from(pod.number).ok().and_then(|n| taken.get_mut(n)) {
                *slot = true;
            }
        }
        let settled = |pods: &[ModelPod]| pods.iter().all(|pod| pod.stage == PodStage::Ready);
        for number in (0_u64..).zip(taken).filter(|(_, taken)| !taken).map(|(number, _)| number) {
            if one_by_one && !settled(&self.pods) {
                return;
            }
            let pod = self.newborn(now, number);
            self.created += 1;
            self.pods.push(pod);
        }
        loop {
            let surplus = self.pods.iter().enumerate().filter(|(_, pod)| {
                pod.is_active() && usize::try_from(pod.number).is_ok_and(|number| number >= self.wanted)
            });
            let Some((highest, _)) = surplus.max_by_key(|(_, pod)| pod.number) else { return };
            if one_by_one && self.pods.iter().any(|pod| pod.stage == PodStage::Stopping && pod.next > now) {
                return;
            }
            self.delete(highest, now, work);
        }
    }

    /// The pods that a ReplicaSet deletes first: not running, not ready, ready for the shortest time, youngest.
    fn least_useful(&self, count: usize) -> Vec<usize> {
        if count == 0 {
            return Vec::new();
        }
        let mut order: Vec<usize> = (0..self.pods.len()).collect();
        order.retain(|index| self.pods.get(*index).is_some_and(ModelPod::is_active));
        order.sort_by_key(|index| {
            self.pods.get(*index).map(|pod| {
                let stage = match pod.stage {
                    PodStage::Pending => 0,
                    PodStage::Starting => 1,
                    _ => 2,
                };
                (stage, std::cmp::Reverse(pod.ready_at), std::cmp::Reverse(pod.number))
            })
        });
        order.truncate(count);
        order
    }

    fn delete(&mut self, index: usize, now: Millis, work: f64) {
        let stop_delay = self.template.stop_delay;
        if let Some(pod) = self.pods.get_mut(index) {
            // A pod that never ran is removed at once.
            pod.next = if pod.stage == PodStage::Pending { now } else { now + stop_delay };
            pod.stage = PodStage::Stopping;
            pod.view.deleting = true;
            pod.work.1 = work;
        }
    }

    fn newborn(&self, now: Millis, number: u64) -> ModelPod {
        let template = &self.template;
        let since = to_the_second(now.after(self.start));
        let view = Pod {
            name: self.name(number).into(),
            phase: PodPhase::Pending,
            deleting: false,
            started: Some(since),
            ready: Some(ReadyCondition { status: ConditionStatus::False, since }),
            shape: Arc::clone(&template.shape),
        };
        ModelPod {
            view,
            stage: PodStage::Pending,
            next: now + template.start_delay,
            running_at: Millis::NEVER,
            ready_at: Millis::NEVER,
            work: (f64::INFINITY, f64::INFINITY),
            number,
            fails: template.seed.fraction(self.created as i64) < template.failing,
        }
    }

    fn name(&self, number: u64) -> String {
        const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
        const NAMES: u64 = 27_u64.pow(5);
        let name = &self.template.name;
        if self.template.order != PodManagement::Any {
            return format!("{name}-{number}");
        }
        // A permutation of all five-letter suffixes, so that names do not repeat before all have been used.
        let mut rest = (number % NAMES * 9_677_701 + self.template.seed.bits() % NAMES) % NAMES;
        let mut suffix = String::with_capacity(8);
        for _ in 0..5 {
            suffix.push(LETTERS.get((rest % 27) as usize).copied().map_or('x', char::from));
            rest /= 27;
        }
        format!("{name}-{suffix}")
    }

    fn collect_failed(&mut self) {
        let failed = self.pods.iter().filter(|pod| pod.stage == PodStage::Failed).count();
        let mut surplus = failed.saturating_sub(MAX_LISTED_FAILED_PODS);
        self.pods.retain(|pod| {
            let collected = pod.stage == PodStage::Failed && surplus > 0;
            surplus -= usize::from(collected);
            !collected
        });
    }

    fn count(&mut self) {
        self.ready = self.pods.iter().filter(|pod| pod.stage == PodStage::Ready).count();
        self.active = self.pods.iter().filter(|pod| pod.is_active()).count();
        self.next = self.pods.iter().map(|pod| pod.next).min().unwrap_or(Millis::NEVER);
    }
}

impl ModelPod {
    fn is_active(&self) -> bool {
        matches!(self.stage, PodStage::Pending | PodStage::Starting | PodStage::Ready)
    }

    fn run(&mut self, now: Millis, template: &ModelPodTemplate) {
        self.stage = PodStage::Starting;
        self.view.phase = PodPhase::Running;
        self.running_at = now;
        let never = self.fails && template.failure == PodFailure::NeverReady;
        self.next = if never { Millis::NEVER } else { now + template.ready_delay };
    }

    fn become_ready(&mut self, now: Millis, work: f64, start: Timestamp) {
        self.stage = PodStage::Ready;
        self.view.ready =
            Some(ReadyCondition { status: ConditionStatus::True, since: to_the_second(now.after(start)) });
        self.ready_at = now;
        self.work.0 = work;
        self.next = Millis::NEVER;
    }

    fn fail(&mut self, now: Millis, start: Timestamp) {
        self.stage = PodStage::Failed;
        self.view.phase = PodPhase::Failed;
        self.view.ready =
            Some(ReadyCondition { status: ConditionStatus::False, since: to_the_second(now.after(start)) });
        self.next = Millis::NEVER;
    }

    /// Activity of the pod in a window; absent if it did not run during the whole window.
    pub fn activity(&self, window: &ScrapeWindow) -> Option<PodActivity> {
        if self.running_at > window.from.at || self.stage == PodStage::Failed {
            return None;
        }
        let length = window.length();
        let begin = window.from.totals.per_pod.max(self.work.0);
        let end = window.to.totals.per_pod.min(self.work.1);
        let starting = (self.ready_at - window.from.at).fraction_of(length);
        Some(PodActivity { starting, work: (end - begin).max(0.0) / length.as_secs_f64() })
    }

    /// Whether it took work at the end of a window.
    pub fn worked_at_end(&self, window: &ScrapeWindow) -> bool {
        self.ready_at <= window.to.at && window.to.totals.per_pod <= self.work.1
    }

    /// Index for random numbers.
    pub fn number(&self) -> u64 {
        self.number
    }
}
