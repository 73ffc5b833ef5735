//! What pods use: work is spread over the ready pods of a workload as `sim` does it, and cpu is counted as it is used.
//!
//! Ready pods of a workload with equal limits use the same at every moment, so that is added up once for all of them
//! (a [`Class`]), and an [`Account`] only remembers where its pod came in.

use std::collections::BTreeMap;

use sim::Millis;
use sim::workload::{ContainerUsageModel, PodActivity, PodDelays, UsageModel, WorkloadFlow};

use super::plan::Workload;
use super::shape::{Part, Shape};

/// How often the load is looked at, as in scenarios.
const TICK: Millis = Millis::from_secs(1);
/// What a container uses that nobody has said anything about: 2 thousandths of a core, 20 MiB.
const IDLE_CPU: f64 = 2.0;
const IDLE_MEMORY: f64 = 20.0 * 1_048_576_000.0;
/// What starting a container has cost, in thousandths of core seconds: collectors take zero for missing.
const FIRST_CPU: f64 = 10.0;
/// A page, for the same reason.
const LEAST_MEMORY: f64 = 4096.0;

/// All workloads, and what their pods have used so far.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    now: Millis,
    works: Vec<Work>,
    classes: Vec<Class>,
    by_limits: BTreeMap<Limits, usize>,
}

/// A workload and its containers with their limits.
type Limits = (Option<usize>, Vec<(String, Option<i64>, Option<i64>)>);

/// A workload in progress.
#[derive(Debug)]
struct Work {
    workload: Workload,
    flow: WorkloadFlow,
    next_tick: Millis,
    ready: usize,
    /// Units per second that each ready pod does now.
    rate: f64,
}

/// Pods that use the same when they do the same.
#[derive(Debug)]
struct Class {
    work: Option<usize>,
    containers: Vec<ContainerUsageModel>,
    /// What a pod has used, container by container, that was ready all the time; in thousandths of core seconds.
    sums: Vec<f64>,
}

/// What a pod does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Its containers do not run.
    #[default]
    Absent,
    /// They run, without work.
    Starting,
    /// They do their share of the work.
    Ready,
    /// They run, without work, until they are gone.
    Stopping,
}

/// What one pod has used.
#[derive(Debug)]
pub(crate) struct Account {
    class: usize,
    phase: Phase,
    since: Millis,
    containers: Box<[Count]>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    /// Used until the phase began, in thousandths of core seconds.
    used: f64,
    /// The sum of the class when the phase began.
    mark: f64,
}

/// What one container has used and uses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Reading {
    pub(crate) cpu_seconds: f64,
    pub(crate) memory_bytes: f64,
}

impl Ledger {
    pub(crate) fn new(workloads: Vec<Workload>) -> Self {
        let works = workloads.into_iter().map(|workload| Work::new(workload, Millis::ZERO)).collect();
        Self { works, ..Self::default() }
    }

    /// The delays of pods of this shape, where its workload has its own.
    pub(crate) fn delays(&self, namespace: &str, shape: &Shape) -> Option<PodDelays> {
        self.works.get(self.work_of(namespace, shape)?)?.workload.delays
    }

    /// Lets time pass.
    pub(crate) fn advance(&mut self, to: Millis) {
        let from = self.now;
        self.now = from.max(to);
        for (index, work) in self.works.iter_mut().enumerate() {
            let mut now = from;
            while now < to {
                if now >= work.next_tick {
                    work.flow.rate = work.workload.load.at(now);
                    work.next_tick = now + TICK;
                }
                let next = to.min(work.next_tick);
                let seconds = (next - now).as_secs_f64();
                let before = work.flow.totals.per_pod;
                work.flow.advance(seconds, work.ready);
                work.rate = (work.flow.totals.per_pod - before) / seconds;
                let busy = PodActivity { starting: 0.0, work: work.rate };
                for class in self.classes.iter_mut().filter(|class| class.work == Some(index)) {
                    for (sum, container) in class.sums.iter_mut().zip(&class.containers) {
                        *sum += container.cpu.over(busy) * seconds;
                    }
                }
                now = next;
            }
        }
    }

    /// An account for a pod whose containers do not run yet.
    pub(crate) fn open(&mut self, namespace: &str, shape: &Shape) -> Account {
        let class = self.class_of(namespace, shape);
        let count = Count { used: FIRST_CPU, mark: 0.0 };
        let containers = shape.running().map(|_| count).collect();
        Account { class, phase: Phase::Absent, since: self.now, containers }
    }

    /// The pod does something else from now on.
    pub(crate) fn turn(&mut self, account: &mut Account, phase: Phase) {
        for index in 0..account.containers.len() {
            let used = self.used(account, index);
            let mark = self.classes.get(account.class).and_then(|class| class.sums.get(index)).copied();
            if let Some(count) = account.containers.get_mut(index) {
                *count = Count { used, mark: mark.unwrap_or_default() };
            }
        }
        let work = self.classes.get(account.class).and_then(|class| class.work);
        if let Some(work) = work.and_then(|work| self.works.get_mut(work)) {
            work.ready -= usize::from(account.phase == Phase::Ready);
            work.ready += usize::from(phase == Phase::Ready);
        }
        account.phase = phase;
        account.since = self.now;
    }

    /// Settles an account before its pod's workload or limits change, and says what the pod was doing.
    pub(crate) fn close(&mut self, account: &mut Account) -> Phase {
        let phase = account.phase;
        self.turn(account, Phase::Absent);
        phase
    }

    /// The pod, which may have other labels or limits now, goes on with what it did.
    pub(crate) fn reopen(&mut self, account: &mut Account, namespace: &str, shape: &Shape, phase: Phase) {
        account.class = self.class_of(namespace, shape);
        self.turn(account, phase);
    }

    /// Changes the work of some pods, or gives them some. Every account must be closed before, and reopened afterwards.
    pub(crate) fn set(&mut self, workload: Workload) {
        let mut new = Work::new(workload, self.now);
        match self.works.iter_mut().find(|old| old.workload.is_about_the_pods_of(&new.workload)) {
            Some(old) => {
                new.flow.backlog = old.flow.backlog.min(new.workload.service.queue);
                *old = new;
            }
            None => self.works.push(new),
        }
        self.classes.clear();
        self.by_limits.clear();
    }

    /// What the containers of a pod that run have used and use.
    pub(crate) fn read<'a>(&'a self, account: &'a Account) -> impl Iterator<Item = Reading> + 'a {
        let activity = self.activity(account);
        let class = self.classes.get(account.class);
        let containers = class.map(|class| class.containers.as_slice()).unwrap_or_default();
        containers.iter().enumerate().map(move |(index, container)| Reading {
            cpu_seconds: self.used(account, index) / 1000.0,
            memory_bytes: (container.memory.over(activity) / 1000.0).floor().max(LEAST_MEMORY),
        })
    }

    fn used(&self, account: &Account, index: usize) -> f64 {
        let Some(count) = account.containers.get(index) else { return 0.0 };
        let Some(class) = self.classes.get(account.class) else { return count.used };
        let Some(container) = class.containers.get(index) else { return count.used };
        count.used
            + match account.phase {
                Phase::Absent => 0.0,
                Phase::Ready if class.work.is_some() => {
                    class.sums.get(index).map_or(0.0, |sum| sum - count.mark)
                }
                _ => container.cpu.over(self.activity(account)) * (self.now - account.since).as_secs_f64(),
            }
    }

    fn activity(&self, account: &Account) -> PodActivity {
        let work = self.classes.get(account.class).and_then(|class| self.works.get(class.work?));
        PodActivity {
            starting: if account.phase == Phase::Starting { 1.0 } else { 0.0 },
            work: work.filter(|_| account.phase == Phase::Ready).map_or(0.0, |work| work.rate),
        }
    }

    fn work_of(&self, namespace: &str, shape: &Shape) -> Option<usize> {
        self.works.iter().position(|work| {
            work.workload.namespace == namespace && work.workload.selector.matches_map(&shape.labels)
        })
    }

    fn class_of(&mut self, namespace: &str, shape: &Shape) -> usize {
        let work = self.work_of(namespace, shape);
        let limits =
            shape.running().map(|part| (part.name.clone(), part.cpu_limit, part.memory_limit)).collect();
        *self.by_limits.entry((work, limits)).or_insert_with(|| {
            let listed =
                work.and_then(|work| self.works.get(work)).map(|work| work.workload.containers.as_slice());
            let containers: Vec<_> =
                shape.running().map(|part| part.usage(listed.unwrap_or_default())).collect();
            let sums = vec![0.0; containers.len()];
            self.classes.push(Class { work, containers, sums });
            self.classes.len() - 1
        })
    }
}

impl Work {
    fn new(workload: Workload, now: Millis) -> Self {
        Self { flow: WorkloadFlow::new(workload.service), workload, next_tick: now, ready: 0, rate: 0.0 }
    }
}

impl Part {
    /// What this container uses, within its limits.
    fn usage(&self, listed: &[ContainerUsageModel]) -> ContainerUsageModel {
        let idle = |idle: f64| UsageModel { idle, per_unit: 0.0, starting: idle, limit: f64::INFINITY };
        let mut usage = listed.iter().find(|usage| usage.name == self.name).cloned().unwrap_or_else(|| {
            ContainerUsageModel { name: self.name.clone(), cpu: idle(IDLE_CPU), memory: idle(IDLE_MEMORY) }
        });
        let within = |usage: &mut UsageModel, limit: Option<f64>| {
            usage.limit = usage.limit.min(limit.unwrap_or(f64::INFINITY));
        };
        within(&mut usage.cpu, self.cpu_limit.map(|limit| limit as f64));
        within(&mut usage.memory, self.memory_limit.map(|limit| limit as f64 * 1000.0));
        usage
    }
}

#[cfg(test)]
mod tests {
    use api::selector::Selector;
    use serde_json::json;
    use sim::load::{CurveShape as LoadShape, LoadCurve};
    use sim::workload::ServiceCapacity;

    use super::super::shape::tests::shape;
    use super::*;

    /// 25 thousandths of a core for each unit, as in the walk-through.
    fn workload(rate: f64) -> Workload {
        let cpu = UsageModel { idle: 2.0, per_unit: 25.0, starting: 100.0, limit: f64::INFINITY };
        let memory =
            UsageModel { idle: 1_048_576_000.0, per_unit: 1_000_000.0, starting: 0.0, limit: f64::INFINITY };
        Workload {
            namespace: "shop".into(),
            selector: Selector::parse("app=web").unwrap(),
            load: LoadCurve::new(vec![LoadShape::Constant(rate)], Vec::new()),
            service: ServiceCapacity { per_pod: Some(30.0), queue: 0.0 },
            containers: vec![ContainerUsageModel { name: "web".into(), cpu, memory }],
            delays: None,
        }
    }

    fn web() -> Shape {
        let limits = json!({"limits": {"cpu": "500m"}});
        let mut shape = shape(json!({"containers": [{"name": "web", "resources": limits}, {"name": "log"}]}));
        shape.labels = [("app".to_owned(), "web".to_owned())].into();
        shape
    }

    fn cpu(ledger: &Ledger, account: &Account) -> Vec<f64> {
        let rounded = |reading: Reading| ((reading.cpu_seconds - FIRST_CPU / 1000.0) * 1e6).round() / 1e6;
        ledger.read(account).map(rounded).collect()
    }

    #[test]
    fn ready_pods_share_the_work() {
        let mut ledger = Ledger::new(vec![workload(20.0)]);
        let shape = web();
        let mut pods = [ledger.open("shop", &shape), ledger.open("shop", &shape)];
        ledger.advance(Millis(10_000));
        assert_eq!(cpu(&ledger, &pods[0]), [0.0, 0.0]);
        ledger.turn(&mut pods[0], Phase::Starting);
        ledger.advance(Millis(15_000));
        assert_eq!(cpu(&ledger, &pods[0]), [0.5, 0.01], "starting");
        ledger.turn(&mut pods[0], Phase::Ready);
        ledger.advance(Millis(20_000));
        assert_eq!(cpu(&ledger, &pods[0]), [0.5 + 5.0 * 0.5, 0.02], "alone, at its limit");
        ledger.turn(&mut pods[1], Phase::Ready);
        ledger.advance(Millis(22_500));
        assert_eq!(cpu(&ledger, &pods[0]), [3.0 + 2.5 * 0.252, 0.025], "half of the work");
        assert_eq!(cpu(&ledger, &pods[1]), [2.5 * 0.252, 0.005]);
        let memory: Vec<f64> = ledger.read(&pods[1]).map(|reading| reading.memory_bytes).collect();
        assert_eq!(memory, [1_048_576.0 + 10_000.0, 20.0 * 1_048_576.0]);
        ledger.turn(&mut pods[1], Phase::Stopping);
        ledger.advance(Millis(32_500));
        assert_eq!(cpu(&ledger, &pods[1])[0], 2.5 * 0.252 + 0.02, "idle");
    }

    #[test]
    fn work_can_be_changed_while_pods_run() {
        let mut ledger = Ledger::new(Vec::new());
        let shape = web();
        let mut pod = ledger.open("shop", &shape);
        ledger.turn(&mut pod, Phase::Ready);
        ledger.advance(Millis(10_000));
        assert_eq!(cpu(&ledger, &pod)[0], 0.02);
        for (rate, used) in [(10.0, 0.02_f64 + 2.52), (0.0, 2.54 + 0.02)] {
            let phase = ledger.close(&mut pod);
            ledger.set(workload(rate));
            ledger.reopen(&mut pod, "shop", &shape, phase);
            let now = ledger.now;
            ledger.advance(now + Millis(10_000));
            assert_eq!(cpu(&ledger, &pod)[0], (used * 1e6).round() / 1e6);
        }
        assert_eq!(ledger.works.len(), 1);
    }

    #[test]
    fn other_pods_idle_within_their_limits() {
        let mut ledger = Ledger::new(vec![workload(20.0)]);
        let limits = json!({"limits": {"cpu": "1m", "memory": "1Mi"}});
        let tiny = shape(json!({"containers": [{"name": "web", "resources": limits}]}));
        let mut pod = ledger.open("shop", &tiny);
        ledger.turn(&mut pod, Phase::Ready);
        ledger.advance(Millis(1_000_000));
        assert_eq!(cpu(&ledger, &pod), [1.0]);
        assert_eq!(ledger.read(&pod).next().unwrap().memory_bytes, 1_048_576.0);
    }
}
