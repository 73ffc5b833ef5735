//! The state of all pods on all nodes: observations go in, writes come out.
//!
//! This module neither waits nor performs IO; `run` does.

mod loss;
#[cfg(test)]
mod tests;
mod transitions;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use sim::Millis;

use super::kubelet_metrics::{self, ContainerSample, NodeSample};
use super::lifecycle::{PodLifecycle, SimulationTime};
use super::meter::{ContainerReading, NodeReading, PodReading};
use super::plan::{Plan, Workload};
use super::scheduling::SchedulableNode;
use super::template::{PodTemplate, PodTimeline, ResourceAmounts, TemplateInterner};
use super::usage::{UsageAccount, UsageLedger, UsagePhase, UsageReading};
use super::view::{NodeView, PodView};

/// The backoff after a failed write: initial and maximum.
const INITIAL_WRITE_BACKOFF: Millis = Millis(500);
const MAX_WRITE_BACKOFF: Millis = Millis::from_secs(30);
/// The node's own usage: 50 millicores, 256 MiB.
const NODE_OWN_CORES: f64 = 0.05;
const NODE_OWN_MEMORY_BYTES: f64 = 268_435_456.0;

/// Identifies a pod in this process.
pub(crate) type PodId = u64;

/// All pods of all nodes.
#[derive(Debug)]
pub(crate) struct NodesState {
    plan: Plan,
    schedulable: Vec<SchedulableNode>,
    /// CPU seconds of pods that are gone, by node.
    retired: Vec<f64>,
    /// The pods of each node.
    tenants: Vec<BTreeSet<PodId>>,
    by_name: HashMap<String, usize>,
    pods: HashMap<PodId, SimulatedPod>,
    by_uid: HashMap<String, PodId>,
    known: PodId,
    addresses: u32,
    templates: TemplateInterner,
    ledger: UsageLedger,
    /// When to check which pod again; entries may be outdated.
    timers: BinaryHeap<Reverse<(Millis, PodId)>>,
    /// Pods to check now.
    touched: BTreeSet<PodId>,
    /// Pods that could not be scheduled.
    waiting: BTreeSet<PodId>,
    /// Pods that were not tried yet.
    unscheduled: BTreeSet<PodId>,
    /// Whether resources may have been freed.
    capacity_freed: bool,
    /// Counts lists of all pods, to find pods that are gone.
    round: u64,
    last_error: Option<String>,
}

/// A pod.
#[derive(Debug)]
struct SimulatedPod {
    key: Arc<PodRef>,
    template: Arc<PodTemplate>,
    placement: Placement,
    /// Whether the pod is bound, although the watch has not reported it yet.
    bound: bool,
    lifecycle: Option<PodLifecycle>,
    timeline: PodTimeline,
    account: UsageAccount,
    ip: Ipv4Addr,
    unannounced: bool,
    /// Whether the server's status is older than `lifecycle`.
    stale: bool,
    /// Why the pod is unschedulable, and the reason already written.
    reason: Option<String>,
    reported: Option<String>,
    writing: bool,
    gone: bool,
    hold: Millis,
    failures: u32,
    round: u64,
}

/// Identifies a pod object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PodRef {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
}

/// The placement of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Placement {
    Nowhere,
    /// A node was chosen but not bound yet.
    Chosen(usize),
    Here(usize),
}

/// A write to the server.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PodWrite {
    pub(crate) id: PodId,
    pub(crate) key: Arc<PodRef>,
    pub(crate) what: PodWriteKind,
}

/// The kind of a write.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PodWriteKind {
    /// Binds the pod to this node.
    Bind(String),
    /// Reports that the pod is unschedulable.
    Complain { message: String, patch: Value },
    /// Updates the status.
    Status(Value),
    /// Removes the pod.
    Remove,
}

/// The server's error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WriteOutcome {
    Done,
    /// The pod does not exist (any more).
    Gone,
    /// A concurrent write won; the watch will report it.
    Conflict,
    /// To be retried later.
    Failed(String),
}

impl NodesState {
    pub(crate) fn new(mut plan: Plan) -> Self {
        let names = plan.names();
        let room = ResourceAmounts {
            cpu: plan.capacity.cpu.milli_value(),
            memory: plan.capacity.memory.value(),
            pods: i64::from(plan.capacity.pods),
        };
        let target =
            |name: &String| SchedulableNode { name: name.clone(), room, ..SchedulableNode::default() };
        Self {
            schedulable: names.iter().map(target).collect(),
            retired: vec![0.0; names.len()],
            tenants: vec![BTreeSet::new(); names.len()],
            by_name: names.into_iter().enumerate().map(|(index, name)| (name, index)).collect(),
            pods: HashMap::new(),
            by_uid: HashMap::new(),
            known: 0,
            addresses: 0,
            templates: TemplateInterner::default(),
            ledger: UsageLedger::new(std::mem::take(&mut plan.workloads)),
            timers: BinaryHeap::new(),
            touched: BTreeSet::new(),
            waiting: BTreeSet::new(),
            unscheduled: BTreeSet::new(),
            capacity_freed: false,
            round: 0,
            last_error: None,
            plan,
        }
    }

    /// A node object was observed.
    pub(crate) fn node_seen(&mut self, view: NodeView) {
        let name = view.metadata.name.unwrap_or_default();
        let Some(target) = self.by_name.get(&name).and_then(|index| self.schedulable.get_mut(*index)) else {
            return;
        };
        let spec = view.spec.unwrap_or_default();
        target.exists = true;
        target.labels = view.metadata.labels.unwrap_or_default();
        target.taints = spec.taints.unwrap_or_default();
        target.unschedulable = spec.unschedulable.unwrap_or(false);
        self.capacity_freed = true;
    }

    /// A node object was deleted.
    pub(crate) fn node_gone(&mut self, name: &str) {
        if let Some(target) = self.by_name.get(name).and_then(|index| self.schedulable.get_mut(*index)) {
            target.exists = false;
        }
    }

    /// A list of all pods begins; pods that it does not contain are gone.
    pub(crate) fn listing(&mut self) {
        self.round += 1;
    }

    /// The list is complete.
    pub(crate) fn listed(&mut self, now: SimulationTime) {
        let round = self.round;
        let unseen = self.pods.iter().filter(|(_, pod)| pod.round != round).map(|(id, _)| *id);
        for id in unseen.collect::<Vec<_>>() {
            self.forget(id, now);
        }
    }

    /// A pod was observed.
    pub(crate) fn pod_seen(&mut self, view: PodView, now: SimulationTime) {
        let (meta, status) = (view.metadata, view.status.unwrap_or_default());
        let (Some(namespace), Some(name), Some(uid)) = (meta.namespace, meta.name, meta.uid) else { return };
        let known = self.by_uid.get(&uid).copied();
        let Some(mut spec) = view.spec else { return };
        let placement = match spec.node_name.take() {
            Some(node) => self.by_name.get(&node).map(|index| Placement::Here(*index)),
            None => {
                let ours = spec.scheduler_name.as_deref().is_none_or(|name| name == "default-scheduler");
                let gated = spec.scheduling_gates.as_ref().is_some_and(|gates| !gates.is_empty());
                let wanted = ours && !gated && meta.deletion_timestamp.is_none();
                wanted.then_some(Placement::Nowhere)
            }
        };
        let Some(placement) = placement else {
            return known.into_iter().for_each(|id| self.forget(id, now));
        };
        self.ledger.advance(now.at);
        let template = self.templates.share(PodTemplate::new(meta.labels, meta.annotations.as_ref(), spec));
        let id = known.unwrap_or_else(|| self.add_pod(PodRef { namespace, name, uid }, &template));
        self.set_template(id, template);
        self.settle(id, placement, &status, now);
        let Some(pod) = self.pods.get_mut(&id) else { return };
        pod.round = self.round;
        if let (Some(lifecycle), Some(_)) = (&mut pod.lifecycle, meta.deletion_timestamp) {
            let grace = Millis::from_secs(meta.deletion_grace_period_seconds.unwrap_or(0).max(0));
            let before = lifecycle.stage;
            lifecycle.delete(now, grace, &pod.timeline);
            self.lived(id, before);
        }
        self.touched.insert(id);
    }

    /// A pod was deleted.
    pub(crate) fn pod_gone(&mut self, uid: &str, now: SimulationTime) {
        if let Some(id) = self.by_uid.get(uid).copied() {
            self.forget(id, now);
        }
    }

    /// The server has responded to a write.
    pub(crate) fn written(&mut self, write: &PodWrite, outcome: WriteOutcome, now: SimulationTime) {
        let Some(pod) = self.pods.get_mut(&write.id) else { return };
        pod.writing = false;
        self.touched.insert(write.id);
        match outcome {
            WriteOutcome::Done => {
                pod.failures = 0;
                match &write.what {
                    PodWriteKind::Bind(_) => pod.bound = true,
                    PodWriteKind::Status(_) => {}
                    PodWriteKind::Complain { message, .. } => pod.reported = Some(message.clone()),
                    PodWriteKind::Remove => pod.gone = true,
                }
                return;
            }
            WriteOutcome::Gone => return self.forget(write.id, now),
            WriteOutcome::Conflict => {}
            WriteOutcome::Failed(error) => self.last_error = Some(error),
        }
        let hold = INITIAL_WRITE_BACKOFF * (1 << pod.failures.min(6));
        pod.hold = now.at + hold.min(MAX_WRITE_BACKOFF);
        pod.failures += 1;
        pod.stale = pod.stale || matches!(write.what, PodWriteKind::Status(_));
        self.timers.push(Reverse((pod.hold, write.id)));
        if let (Placement::Chosen(_), PodWriteKind::Bind(_)) = (pod.placement, &write.what) {
            self.move_to(write.id, Placement::Nowhere);
            self.waiting.insert(write.id);
        }
    }

    /// When the next timer is due.
    pub(crate) fn next(&self) -> Option<Millis> {
        self.timers.peek().map(|Reverse((at, _))| *at)
    }

    /// Performs everything that is due; returns the writes.
    pub(crate) fn advance(&mut self, now: SimulationTime) -> Vec<PodWrite> {
        while let Some(Reverse((at, id))) = self.timers.peek().copied()
            && at <= now.at
        {
            self.timers.pop();
            self.touched.insert(id);
        }
        if self.touched.is_empty() && !self.capacity_freed {
            return Vec::new();
        }
        self.ledger.advance(now.at);
        let touched = std::mem::take(&mut self.touched);
        for id in &touched {
            self.step(*id, now);
        }
        let placed = self.schedule();
        touched.union(&placed).filter_map(|id| self.next_write(*id, now)).collect()
    }

    /// Sets the load of some pods.
    pub(crate) fn set_load(&mut self, workload: Workload, now: SimulationTime) {
        self.ledger.advance(now.at);
        let phases: Vec<(PodId, UsagePhase)> =
            self.pods.iter_mut().map(|(id, pod)| (*id, self.ledger.close(&mut pod.account))).collect();
        self.ledger.set(workload);
        for (id, phase) in phases {
            if let Some(pod) = self.pods.get_mut(&id) {
                self.ledger.reopen(&mut pod.account, &pod.key.namespace, &pod.template, phase);
                pod.timeline = timeline(&self.plan, &self.ledger, &pod.key, &pod.template);
            }
        }
    }

    /// The `/metrics/resource` text of a node.
    pub(crate) fn metrics(&mut self, node: usize, now: SimulationTime) -> Option<String> {
        self.ledger.advance(now.at);
        let mut total = self.own_usage(node, now)?;
        let mut containers = Vec::new();
        for (pod, started) in self.running_on(node) {
            for (part, reading) in pod.template.running().zip(self.ledger.read(&pod.account)) {
                total.cpu_seconds += reading.cpu_seconds;
                total.memory_bytes += reading.memory_bytes;
                let PodRef { namespace, name, .. } = &*pod.key;
                containers.push(ContainerSample {
                    container: &part.name,
                    namespace,
                    pod: name,
                    started,
                    reading,
                });
            }
        }
        Some(kubelet_metrics::text(NodeSample { at: now.wall, total, containers }))
    }

    /// The counters of all nodes.
    pub(crate) fn readings(&mut self, now: SimulationTime) -> Vec<NodeReading> {
        self.ledger.advance(now.at);
        let mut shared: HashMap<*const PodTemplate, Arc<BTreeMap<String, String>>> = HashMap::new();
        let nodes = self.schedulable.iter().enumerate().filter(|(_, node)| node.exists && !node.lost);
        let readings = nodes.filter_map(|(node, target)| {
            let mut total = self.own_usage(node, now)?;
            let mut pods = Vec::new();
            for (pod, started) in self.running_on(node) {
                let parts = pod.template.running().zip(self.ledger.read(&pod.account));
                let containers = parts.map(|(part, reading)| {
                    total.cpu_seconds += reading.cpu_seconds;
                    total.memory_bytes += reading.memory_bytes;
                    let UsageReading { cpu_seconds, memory_bytes } = reading;
                    ContainerReading { name: part.name.clone(), started, cpu_seconds, memory_bytes }
                });
                let containers = containers.collect();
                let labels = shared.entry(Arc::as_ptr(&pod.template));
                let labels = labels.or_insert_with(|| Arc::new(pod.template.labels.clone()));
                let PodRef { namespace, name, .. } = &*pod.key;
                let (namespace, name) = (namespace.clone(), name.clone());
                let work = self.ledger.work(&pod.account);
                pods.push(PodReading { namespace, name, labels: Arc::clone(labels), work, containers });
            }
            let UsageReading { cpu_seconds, memory_bytes } = total;
            let (name, labels) = (target.name.clone(), target.labels.clone());
            let elapsed = Duration::from_millis(now.at.0.max(0) as u64);
            Some(NodeReading { name, labels, at: now.wall, elapsed, cpu_seconds, memory_bytes, pods })
        });
        readings.collect()
    }

    /// The node's own usage and that of pods that are gone.
    fn own_usage(&self, node: usize, now: SimulationTime) -> Option<UsageReading> {
        let cpu_seconds = NODE_OWN_CORES * (1.0 + now.at.as_secs_f64()) + self.retired.get(node)?;
        Some(UsageReading { cpu_seconds, memory_bytes: NODE_OWN_MEMORY_BYTES })
    }

    /// The pods on a node whose containers run, and their start times.
    fn running_on(&self, node: usize) -> impl Iterator<Item = (&SimulatedPod, Timestamp)> {
        let tenants = self.tenants.get(node).into_iter().flatten().filter_map(|id| self.pods.get(id));
        tenants.filter_map(|pod| {
            let lifecycle = pod.lifecycle.as_ref().filter(|lifecycle| !lifecycle.is_over())?;
            Some((pod, lifecycle.times.running?))
        })
    }

    /// The last write error.
    pub(crate) fn last_error(&self) -> Option<&str> {
        self.last_error.as_deref()
    }
}

fn timeline(plan: &Plan, ledger: &UsageLedger, key: &PodRef, template: &PodTemplate) -> PodTimeline {
    let delays = ledger.delays(&key.namespace, template).unwrap_or(plan.delays);
    template.timeline(delays, plan.run_for)
}

impl SimulatedPod {
    fn is_over(&self) -> bool {
        self.lifecycle.as_ref().is_some_and(PodLifecycle::is_over)
    }
}
