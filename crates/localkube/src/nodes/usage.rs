//! Simulated usage: load is spread over the ready pods of a workload as `sim` does, and CPU time is accumulated.
//!
//! Ready pods of a workload with equal limits have equal usage at every moment, so it is accumulated once per
//! [`UsageClass`]; an [`UsageAccount`] keeps only the offset of its pod.

use std::collections::BTreeMap;

use sim::Millis;
use sim::workload::{ContainerUsageModel, PodActivity, PodDelays, UsageModel, WorkloadFlow};

use super::plan::Workload;
use super::template::{ContainerTemplate, PodTemplate};

/// How often the load is evaluated, as in scenarios.
const LOAD_INTERVAL: Millis = Millis::from_secs(1);
/// Usage of containers without a workload: 2 millicores, 20 MiB.
const IDLE_CPU_MILLICORES: f64 = 2.0;
const IDLE_MEMORY_MILLIBYTES: f64 = 20.0 * 1_048_576_000.0;
/// CPU time of starting a container: metrics collectors treat zero as missing.
const STARTUP_CPU_MILLISECONDS: f64 = 10.0;
/// One page: metrics collectors treat zero as missing.
const MIN_MEMORY_BYTES: f64 = 4096.0;

/// All workloads, and the usage of their pods.
#[derive(Debug, Default)]
pub(crate) struct UsageLedger {
    now: Millis,
    works: Vec<ActiveWorkload>,
    classes: Vec<UsageClass>,
    by_limits: BTreeMap<UsageClassKey, usize>,
}

/// A workload, and the containers with their limits.
type UsageClassKey = (Option<usize>, Vec<(String, Option<i64>, Option<i64>)>);

/// A workload and its current load.
#[derive(Debug)]
struct ActiveWorkload {
    workload: Workload,
    flow: WorkloadFlow,
    next_tick: Millis,
    ready: usize,
    /// Units per second that each ready pod processes now.
    rate: f64,
}

/// Pods with equal usage under equal load.
#[derive(Debug)]
struct UsageClass {
    work: Option<usize>,
    containers: Vec<ContainerUsageModel>,
    /// CPU time of a pod that was ready all the time, by container, in core milliseconds.
    sums: Vec<f64>,
}

/// The phase that determines a pod's usage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum UsagePhase {
    /// Its containers do not run.
    #[default]
    Absent,
    /// They run without load.
    Starting,
    /// They process their share of the load.
    Ready,
    /// They run without load until they end.
    Stopping,
}

/// The usage of a pod.
#[derive(Debug)]
pub(crate) struct UsageAccount {
    class: usize,
    phase: UsagePhase,
    since: Millis,
    containers: Box<[CpuCounter]>,
}

#[derive(Clone, Copy, Debug, Default)]
struct CpuCounter {
    /// CPU time until the phase began, in core milliseconds.
    used: f64,
    /// The sum of the class when the phase began.
    mark: f64,
}

/// The counters of a container.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct UsageReading {
    pub(crate) cpu_seconds: f64,
    pub(crate) memory_bytes: f64,
}

impl UsageLedger {
    pub(crate) fn new(workloads: Vec<Workload>) -> Self {
        let works =
            workloads.into_iter().map(|workload| ActiveWorkload::new(workload, Millis::ZERO)).collect();
        Self { works, ..Self::default() }
    }

    /// The delays of pods of this template, if its workload has its own.
    pub(crate) fn delays(&self, namespace: &str, template: &PodTemplate) -> Option<PodDelays> {
        self.works.get(self.work_of(namespace, template)?)?.workload.delays
    }

    /// Advances the time.
    pub(crate) fn advance(&mut self, to: Millis) {
        let from = self.now;
        self.now = from.max(to);
        for (index, work) in self.works.iter_mut().enumerate() {
            let mut now = from;
            while now < to {
                if now >= work.next_tick {
                    work.flow.rate = work.workload.load.at(now);
                    work.next_tick = now + LOAD_INTERVAL;
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

    /// Opens an account for a pod whose containers do not run yet.
    pub(crate) fn open(&mut self, namespace: &str, template: &PodTemplate) -> UsageAccount {
        let class = self.class_of(namespace, template);
        let count = CpuCounter { used: STARTUP_CPU_MILLISECONDS, mark: 0.0 };
        let containers = template.running().map(|_| count).collect();
        UsageAccount { class, phase: UsagePhase::Absent, since: self.now, containers }
    }

    /// Changes the phase of a pod.
    pub(crate) fn set_phase(&mut self, account: &mut UsageAccount, phase: UsagePhase) {
        for index in 0..account.containers.len() {
            let used = self.used(account, index);
            let mark = self.classes.get(account.class).and_then(|class| class.sums.get(index)).copied();
            if let Some(count) = account.containers.get_mut(index) {
                *count = CpuCounter { used, mark: mark.unwrap_or_default() };
            }
        }
        let work = self.classes.get(account.class).and_then(|class| class.work);
        if let Some(work) = work.and_then(|work| self.works.get_mut(work)) {
            work.ready -= usize::from(account.phase == UsagePhase::Ready);
            work.ready += usize::from(phase == UsagePhase::Ready);
        }
        account.phase = phase;
        account.since = self.now;
    }

    /// Closes an account before the pod's workload or limits change; returns its phase.
    pub(crate) fn close(&mut self, account: &mut UsageAccount) -> UsagePhase {
        let phase = account.phase;
        self.set_phase(account, UsagePhase::Absent);
        phase
    }

    /// Reopens an account after the pod's labels or limits changed.
    pub(crate) fn reopen(
        &mut self,
        account: &mut UsageAccount,
        namespace: &str,
        template: &PodTemplate,
        phase: UsagePhase,
    ) {
        account.class = self.class_of(namespace, template);
        self.set_phase(account, phase);
    }

    /// Sets the load of some pods. All accounts must be closed before, and reopened afterwards.
    pub(crate) fn set(&mut self, workload: Workload) {
        let mut new = ActiveWorkload::new(workload, self.now);
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

    /// The usage of the running containers of a pod.
    pub(crate) fn read<'a>(&'a self, account: &'a UsageAccount) -> impl Iterator<Item = UsageReading> + 'a {
        let activity = self.activity(account);
        let class = self.classes.get(account.class);
        let containers = class.map(|class| class.containers.as_slice()).unwrap_or_default();
        containers.iter().enumerate().map(move |(index, container)| UsageReading {
            cpu_seconds: self.used(account, index) / 1000.0,
            memory_bytes: (container.memory.over(activity) / 1000.0).floor().max(MIN_MEMORY_BYTES),
        })
    }

    /// Units of load per second that a pod serves.
    pub(crate) fn work(&self, account: &UsageAccount) -> f64 {
        self.activity(account).work
    }

    fn used(&self, account: &UsageAccount, index: usize) -> f64 {
        let Some(count) = account.containers.get(index) else { return 0.0 };
        let Some(class) = self.classes.get(account.class) else { return count.used };
        let Some(container) = class.containers.get(index) else { return count.used };
        count.used
            + match account.phase {
                UsagePhase::Absent => 0.0,
                UsagePhase::Ready if class.work.is_some() => {
                    class.sums.get(index).map_or(0.0, |sum| sum - count.mark)
                }
                _ => container.cpu.over(self.activity(account)) * (self.now - account.since).as_secs_f64(),
            }
    }

    fn activity(&self, account: &UsageAccount) -> PodActivity {
        let work = self.classes.get(account.class).and_then(|class| self.works.get(class.work?));
        PodActivity {
            starting: if account.phase == UsagePhase::Starting { 1.0 } else { 0.0 },
            work: work.filter(|_| account.phase == UsagePhase::Ready).map_or(0.0, |work| work.rate),
        }
    }

    fn work_of(&self, namespace: &str, template: &PodTemplate) -> Option<usize> {
        self.works.iter().position(|work| {
            work.workload.namespace == namespace && work.workload.selector.matches_map(&template.labels)
        })
    }

    fn class_of(&mut self, namespace: &str, template: &PodTemplate) -> usize {
        let work = self.work_of(namespace, template);
        let limits =
            template.running().map(|part| (part.name.clone(), part.cpu_limit, part.memory_limit)).collect();
        *self.by_limits.entry((work, limits)).or_insert_with(|| {
            let listed =
                work.and_then(|work| self.works.get(work)).map(|work| work.workload.containers.as_slice());
            let containers: Vec<_> =
                template.running().map(|part| part.usage(listed.unwrap_or_default())).collect();
            let sums = vec![0.0; containers.len()];
            self.classes.push(UsageClass { work, containers, sums });
            self.classes.len() - 1
        })
    }
}

impl ActiveWorkload {
    fn new(workload: Workload, now: Millis) -> Self {
        Self { flow: WorkloadFlow::new(workload.service), workload, next_tick: now, ready: 0, rate: 0.0 }
    }
}

impl ContainerTemplate {
    /// The usage of this container, within its limits.
    fn usage(&self, listed: &[ContainerUsageModel]) -> ContainerUsageModel {
        let idle = |idle: f64| UsageModel { idle, per_unit: 0.0, starting: idle, limit: f64::INFINITY };
        let mut usage = listed.iter().find(|usage| usage.name == self.name).cloned().unwrap_or_else(|| {
            ContainerUsageModel {
                name: self.name.clone(),
                cpu: idle(IDLE_CPU_MILLICORES),
                memory: idle(IDLE_MEMORY_MILLIBYTES),
            }
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

    use super::super::template::tests::template;
    use super::*;

    /// 25 millicores per unit, as in the walk-through.
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

    fn web() -> PodTemplate {
        let limits = json!({"limits": {"cpu": "500m"}});
        let mut template =
            template(json!({"containers": [{"name": "web", "resources": limits}, {"name": "log"}]}));
        template.labels = [("app".to_owned(), "web".to_owned())].into();
        template
    }

    fn cpu(ledger: &UsageLedger, account: &UsageAccount) -> Vec<f64> {
        let rounded = |reading: UsageReading| {
            ((reading.cpu_seconds - STARTUP_CPU_MILLISECONDS / 1000.0) * 1e6).round() / 1e6
        };
        ledger.read(account).map(rounded).collect()
    }

    #[test]
    fn ready_pods_share_the_load() {
        let mut ledger = UsageLedger::new(vec![workload(20.0)]);
        let template = web();
        let mut pods = [ledger.open("shop", &template), ledger.open("shop", &template)];
        ledger.advance(Millis(10_000));
        assert_eq!(cpu(&ledger, &pods[0]), [0.0, 0.0]);
        ledger.set_phase(&mut pods[0], UsagePhase::Starting);
        ledger.advance(Millis(15_000));
        assert_eq!(cpu(&ledger, &pods[0]), [0.5, 0.01], "starting");
        ledger.set_phase(&mut pods[0], UsagePhase::Ready);
        ledger.advance(Millis(20_000));
        assert_eq!(cpu(&ledger, &pods[0]), [0.5 + 5.0 * 0.5, 0.02], "alone, at its limit");
        ledger.set_phase(&mut pods[1], UsagePhase::Ready);
        ledger.advance(Millis(22_500));
        assert_eq!(cpu(&ledger, &pods[0]), [3.0 + 2.5 * 0.252, 0.025], "half of the work");
        assert_eq!(cpu(&ledger, &pods[1]), [2.5 * 0.252, 0.005]);
        let memory: Vec<f64> = ledger.read(&pods[1]).map(|reading| reading.memory_bytes).collect();
        assert_eq!(memory, [1_048_576.0 + 10_000.0, 20.0 * 1_048_576.0]);
        ledger.set_phase(&mut pods[1], UsagePhase::Stopping);
        ledger.advance(Millis(32_500));
        assert_eq!(cpu(&ledger, &pods[1])[0], 2.5 * 0.252 + 0.02, "idle");
    }

    #[test]
    fn load_can_change_while_pods_run() {
        let mut ledger = UsageLedger::new(Vec::new());
        let template = web();
        let mut pod = ledger.open("shop", &template);
        ledger.set_phase(&mut pod, UsagePhase::Ready);
        ledger.advance(Millis(10_000));
        assert_eq!(cpu(&ledger, &pod)[0], 0.02);
        for (rate, used) in [(10.0, 0.02_f64 + 2.52), (0.0, 2.54 + 0.02)] {
            let phase = ledger.close(&mut pod);
            ledger.set(workload(rate));
            ledger.reopen(&mut pod, "shop", &template, phase);
            let now = ledger.now;
            ledger.advance(now + Millis(10_000));
            assert_eq!(cpu(&ledger, &pod)[0], (used * 1e6).round() / 1e6);
        }
        assert_eq!(ledger.works.len(), 1);
    }

    #[test]
    fn other_pods_idle_within_their_limits() {
        let mut ledger = UsageLedger::new(vec![workload(20.0)]);
        let limits = json!({"limits": {"cpu": "1m", "memory": "1Mi"}});
        let tiny = template(json!({"containers": [{"name": "web", "resources": limits}]}));
        let mut pod = ledger.open("shop", &tiny);
        ledger.set_phase(&mut pod, UsagePhase::Ready);
        ledger.advance(Millis(1_000_000));
        assert_eq!(cpu(&ledger, &pod), [1.0]);
        assert_eq!(ledger.read(&pod).next().unwrap().memory_bytes, 1_048_576.0);
    }
}
