//! All pods of all nodes: what is seen changes the state, what is due happens, and what is to be written comes out.
//!
//! Nothing here waits or talks to anybody; the loop in `run` does both.

mod keep;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use sim::Millis;

use super::life::{Life, Moment};
use super::meter::{ContainerReading, NodeReading, PodReading};
use super::metrics::{self, ContainerSample, NodeSample};
use super::place::Place;
use super::plan::{Plan, Workload};
use super::shape::{Amount, Course, Shape, Shapes};
use super::usage::{Account, Ledger, Phase, Reading};
use super::view::{NodeView, PodView};

/// How long a write that failed is not tried again, the first time and at most.
const FIRST_HOLD: Millis = Millis(500);
const LONGEST_HOLD: Millis = Millis::from_secs(30);
/// What a node uses for itself: 50 thousandths of a core, 256 MiB.
const NODE_CPU: f64 = 0.05;
const NODE_MEMORY: f64 = 268_435_456.0;

/// A pod, for as long as we know it.
pub(crate) type Id = u64;

/// All pods of all nodes.
#[derive(Debug)]
pub(crate) struct State {
    plan: Plan,
    places: Vec<Place>,
    /// Cpu seconds that pods used on each node that are no longer there.
    retired: Vec<f64>,
    /// The pods on each node.
    tenants: Vec<BTreeSet<Id>>,
    by_name: HashMap<String, usize>,
    pods: HashMap<Id, Pod>,
    by_uid: HashMap<String, Id>,
    known: Id,
    addresses: u32,
    shapes: Shapes,
    ledger: Ledger,
    /// When to look at which pod again; entries may be out of date.
    timers: BinaryHeap<Reverse<(Millis, Id)>>,
    /// Pods to look at now.
    touched: BTreeSet<Id>,
    /// Pods that found no node.
    waiting: BTreeSet<Id>,
    /// Pods that wait for the first time.
    fresh: BTreeSet<Id>,
    /// Whether there may be room that was not there before.
    roomier: bool,
    /// Counts lists of all pods, to find those that are no longer there.
    round: u64,
    trouble: Option<String>,
}

/// One pod.
#[derive(Debug)]
struct Pod {
    key: Arc<Key>,
    shape: Arc<Shape>,
    home: Home,
    /// Whether the server knows its home, though we have not yet seen that it does.
    bound: bool,
    life: Option<Life>,
    course: Course,
    account: Account,
    ip: Ipv4Addr,
    unannounced: bool,
    /// Whether the status on the server is older than `life`.
    stale: bool,
    /// Why it has no node, and what of that has been said.
    complaint: Option<String>,
    said: Option<String>,
    writing: bool,
    gone: bool,
    hold: Millis,
    failures: u32,
    round: u64,
}

/// Which pod is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
}

/// Where a pod lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Home {
    Nowhere,
    /// A node was chosen, but the server does not know yet.
    Chosen(usize),
    Here(usize),
}

/// Something to tell the server.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Write {
    pub(crate) id: Id,
    pub(crate) key: Arc<Key>,
    pub(crate) what: What,
}

/// What to tell.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum What {
    /// The pod goes to this node.
    Bind(String),
    /// There is no node for it, and why.
    Complain { message: String, patch: Value },
    /// This is its status now.
    Status(Value),
    /// It is gone.
    Remove,
}

/// What the server said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done,
    /// There is no such pod (any more).
    Gone,
    /// Somebody else was faster; a watch event will tell.
    Conflict,
    /// Try again later.
    Failed(String),
}

impl State {
    pub(crate) fn new(mut plan: Plan) -> Self {
        let names = plan.names();
        let room = Amount {
            cpu: plan.capacity.cpu.milli_value(),
            memory: plan.capacity.memory.value(),
            pods: i64::from(plan.capacity.pods),
        };
        let place = |name: &String| Place { name: name.clone(), room, ..Place::default() };
        Self {
            places: names.iter().map(place).collect(),
            retired: vec![0.0; names.len()],
            tenants: vec![BTreeSet::new(); names.len()],
            by_name: names.into_iter().enumerate().map(|(index, name)| (name, index)).collect(),
            pods: HashMap::new(),
            by_uid: HashMap::new(),
            known: 0,
            addresses: 0,
            shapes: Shapes::default(),
            ledger: Ledger::new(std::mem::take(&mut plan.workloads)),
            timers: BinaryHeap::new(),
            touched: BTreeSet::new(),
            waiting: BTreeSet::new(),
            fresh: BTreeSet::new(),
            roomier: false,
            round: 0,
            trouble: None,
            plan,
        }
    }

    /// A node object was seen.
    pub(crate) fn node_seen(&mut self, view: NodeView) {
        let name = view.metadata.name.unwrap_or_default();
        let Some(place) = self.by_name.get(&name).and_then(|index| self.places.get_mut(*index)) else {
            return;
        };
        let spec = view.spec.unwrap_or_default();
        place.exists = true;
        place.labels = view.metadata.labels.unwrap_or_default();
        place.taints = spec.taints.unwrap_or_default();
        place.unschedulable = spec.unschedulable.unwrap_or(false);
        self.roomier = true;
    }

    /// A node object is gone.
    pub(crate) fn node_gone(&mut self, name: &str) {
        if let Some(place) = self.by_name.get(name).and_then(|index| self.places.get_mut(*index)) {
            place.exists = false;
        }
    }

    /// All pods will be seen again; those that are not are gone.
    pub(crate) fn listing(&mut self) {
        self.round += 1;
    }

    /// All pods have been seen again.
    pub(crate) fn listed(&mut self, now: Moment) {
        let round = self.round;
        let unseen = self.pods.iter().filter(|(_, pod)| pod.round != round).map(|(id, _)| *id);
        for id in unseen.collect::<Vec<_>>() {
            self.forget(id, now);
        }
    }

    /// A pod was seen, new or changed.
    pub(crate) fn pod_seen(&mut self, view: PodView, now: Moment) {
        let (meta, status) = (view.metadata, view.status.unwrap_or_default());
        let (Some(namespace), Some(name), Some(uid)) = (meta.namespace, meta.name, meta.uid) else { return };
        let known = self.by_uid.get(&uid).copied();
        let Some(mut spec) = view.spec else { return };
        let home = match spec.node_name.take() {
            Some(node) => self.by_name.get(&node).map(|index| Home::Here(*index)),
            None => {
                let ours = spec.scheduler_name.as_deref().is_none_or(|name| name == "default-scheduler");
                let gated = spec.scheduling_gates.as_ref().is_some_and(|gates| !gates.is_empty());
                let wanted = ours && !gated && meta.deletion_timestamp.is_none();
                wanted.then_some(Home::Nowhere)
            }
        };
        let Some(home) = home else {
            return known.into_iter().for_each(|id| self.forget(id, now));
        };
        self.ledger.advance(now.at);
        let shape = self.shapes.share(Shape::new(meta.labels, meta.annotations.as_ref(), spec));
        let id = known.unwrap_or_else(|| self.meet(Key { namespace, name, uid }, &shape));
        self.reshape(id, shape);
        self.settle(id, home, &status, now);
        let Some(pod) = self.pods.get_mut(&id) else { return };
        pod.round = self.round;
        if let (Some(life), Some(_)) = (&mut pod.life, meta.deletion_timestamp) {
            let grace = Millis::from_secs(meta.deletion_grace_period_seconds.unwrap_or(0).max(0));
            let before = life.stage;
            life.delete(now, grace, &pod.course);
            self.lived(id, before);
        }
        self.touched.insert(id);
    }

    /// A pod is no longer there.
    pub(crate) fn pod_gone(&mut self, uid: &str, now: Moment) {
        if let Some(id) = self.by_uid.get(uid).copied() {
            self.forget(id, now);
        }
    }

    /// The server has answered a write.
    pub(crate) fn written(&mut self, write: &Write, outcome: Outcome, now: Moment) {
        let Some(pod) = self.pods.get_mut(&write.id) else { return };
        pod.writing = false;
        self.touched.insert(write.id);
        match outcome {
            Outcome::Done => {
                pod.failures = 0;
                match &write.what {
                    What::Bind(_) => pod.bound = true,
                    What::Status(_) => {}
                    What::Complain { message, .. } => pod.said = Some(message.clone()),
                    What::Remove => pod.gone = true,
                }
                return;
            }
            Outcome::Gone => return self.forget(write.id, now),
            Outcome::Conflict => {}
            Outcome::Failed(error) => self.trouble = Some(error),
        }
        let hold = FIRST_HOLD * (1 << pod.failures.min(6));
        pod.hold = now.at + hold.min(LONGEST_HOLD);
        pod.failures += 1;
        pod.stale = pod.stale || matches!(write.what, What::Status(_));
        self.timers.push(Reverse((pod.hold, write.id)));
        if let (Home::Chosen(_), What::Bind(_)) = (pod.home, &write.what) {
            self.move_to(write.id, Home::Nowhere);
            self.waiting.insert(write.id);
        }
    }

    /// When to look again, if nothing else happens.
    pub(crate) fn next(&self) -> Option<Millis> {
        self.timers.peek().map(|Reverse((at, _))| *at)
    }

    /// Lets everything happen that is due, and says what is to be written.
    pub(crate) fn advance(&mut self, now: Moment) -> Vec<Write> {
        while let Some(Reverse((at, id))) = self.timers.peek().copied()
            && at <= now.at
        {
            self.timers.pop();
            self.touched.insert(id);
        }
        if self.touched.is_empty() && !self.roomier {
            return Vec::new();
        }
        self.ledger.advance(now.at);
        let touched = std::mem::take(&mut self.touched);
        for id in &touched {
            self.step(*id, now);
        }
        let placed = self.place();
        touched.union(&placed).filter_map(|id| self.next_write(*id, now)).collect()
    }

    /// Changes the work of some pods, or gives them some.
    pub(crate) fn set_load(&mut self, workload: Workload, now: Moment) {
        self.ledger.advance(now.at);
        let phases: Vec<(Id, Phase)> =
            self.pods.iter_mut().map(|(id, pod)| (*id, self.ledger.close(&mut pod.account))).collect();
        self.ledger.set(workload);
        for (id, phase) in phases {
            if let Some(pod) = self.pods.get_mut(&id) {
                self.ledger.reopen(&mut pod.account, &pod.key.namespace, &pod.shape, phase);
                pod.course = course(&self.plan, &self.ledger, &pod.key, &pod.shape);
            }
        }
    }

    /// What a node's kubelet shows of itself and its pods.
    pub(crate) fn metrics(&mut self, node: usize, now: Moment) -> Option<String> {
        self.ledger.advance(now.at);
        let mut total = self.own_usage(node, now)?;
        let mut containers = Vec::new();
        for (pod, started) in self.running_on(node) {
            for (part, reading) in pod.shape.running().zip(self.ledger.read(&pod.account)) {
                total.cpu_seconds += reading.cpu_seconds;
                total.memory_bytes += reading.memory_bytes;
                let Key { namespace, name, .. } = &*pod.key;
                containers.push(ContainerSample {
                    container: &part.name,
                    namespace,
                    pod: name,
                    started,
                    reading,
                });
            }
        }
        Some(metrics::text(NodeSample { at: now.wall, total, containers }))
    }

    /// The same of all nodes, for whoever needs no text.
    pub(crate) fn readings(&mut self, now: Moment) -> Vec<NodeReading> {
        self.ledger.advance(now.at);
        let mut shared: HashMap<*const Shape, Arc<BTreeMap<String, String>>> = HashMap::new();
        let nodes = self.places.iter().enumerate().filter(|(_, place)| place.exists);
        let readings = nodes.filter_map(|(node, place)| {
            let mut total = self.own_usage(node, now)?;
            let mut pods = Vec::new();
            for (pod, started) in self.running_on(node) {
                let parts = pod.shape.running().zip(self.ledger.read(&pod.account));
                let containers = parts.map(|(part, reading)| {
                    total.cpu_seconds += reading.cpu_seconds;
                    total.memory_bytes += reading.memory_bytes;
                    let Reading { cpu_seconds, memory_bytes } = reading;
                    ContainerReading { name: part.name.clone(), started, cpu_seconds, memory_bytes }
                });
                let containers = containers.collect();
                let labels = shared.entry(Arc::as_ptr(&pod.shape));
                let labels = labels.or_insert_with(|| Arc::new(pod.shape.labels.clone()));
                let Key { namespace, name, .. } = &*pod.key;
                let (namespace, name) = (namespace.clone(), name.clone());
                pods.push(PodReading { namespace, name, labels: Arc::clone(labels), containers });
            }
            let Reading { cpu_seconds, memory_bytes } = total;
            let (name, labels) = (place.name.clone(), place.labels.clone());
            let elapsed = Duration::from_millis(now.at.0.max(0) as u64);
            Some(NodeReading { name, labels, at: now.wall, elapsed, cpu_seconds, memory_bytes, pods })
        });
        readings.collect()
    }

    /// What a node uses for itself, and what pods used there that are gone.
    fn own_usage(&self, node: usize, now: Moment) -> Option<Reading> {
        let cpu_seconds = NODE_CPU * (1.0 + now.at.as_secs_f64()) + self.retired.get(node)?;
        Some(Reading { cpu_seconds, memory_bytes: NODE_MEMORY })
    }

    /// The pods on a node whose containers run, and since when.
    fn running_on(&self, node: usize) -> impl Iterator<Item = (&Pod, Timestamp)> {
        let tenants = self.tenants.get(node).into_iter().flatten().filter_map(|id| self.pods.get(id));
        tenants.filter_map(|pod| {
            let life = pod.life.as_ref().filter(|life| !life.is_over())?;
            Some((pod, life.times.running?))
        })
    }

    /// The last error that a write met.
    pub(crate) fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }
}

fn course(plan: &Plan, ledger: &Ledger, key: &Key, shape: &Shape) -> Course {
    let delays = ledger.delays(&key.namespace, shape).unwrap_or(plan.delays);
    shape.course(delays, plan.run_for)
}

impl Pod {
    fn is_over(&self) -> bool {
        self.life.as_ref().is_some_and(Life::is_over)
    }
}
