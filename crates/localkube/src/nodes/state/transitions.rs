//! Transitions of pods: placement, lifecycle and pending writes.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::net::Ipv4Addr;
use std::sync::Arc;

use sim::Millis;
use sim::random::Seed;

use super::super::lifecycle::{PodLifecycle, PodStage, SimulationTime};
use super::super::scheduling::{Unschedulable, choose};
use super::super::status::{self, StatusInput, seed_of};
use super::super::template::PodTemplate;
use super::super::usage::UsagePhase;
use super::super::view::PodStatusView;
use super::{NodesState, Placement, PodId, PodRef, PodWrite, PodWriteKind, SimulatedPod, course};

/// The pod network and its number of addresses.
const POD_NETWORK: u32 = u32::from_be_bytes([10, 128, 0, 0]);
const POD_ADDRESSES: u32 = 1 << 23;

impl NodesState {
    pub(super) fn meet(&mut self, key: PodRef, shape: &Arc<PodTemplate>) -> PodId {
        self.known += 1;
        self.by_uid.insert(key.uid.clone(), self.known);
        let pod = SimulatedPod {
            shape: Arc::clone(shape),
            home: Placement::Nowhere,
            bound: false,
            life: None,
            course: course(&self.plan, &self.ledger, &key, shape),
            account: self.ledger.open(&key.namespace, shape),
            ip: Ipv4Addr::UNSPECIFIED,
            unannounced: false,
            stale: false,
            complaint: None,
            said: None,
            writing: false,
            gone: false,
            hold: Millis::ZERO,
            failures: 0,
            round: self.round,
            key: Arc::new(key),
        };
        self.pods.insert(self.known, pod);
        self.fresh.insert(self.known);
        self.known
    }

    /// Updates the template: labels and limits of pods can change.
    pub(super) fn reshape(&mut self, id: PodId, shape: Arc<PodTemplate>) {
        let Some(pod) = self.pods.get_mut(&id).filter(|pod| pod.shape != shape) else { return };
        let phase = self.ledger.close(&mut pod.account);
        self.ledger.reopen(&mut pod.account, &pod.key.namespace, &shape, phase);
        pod.course = course(&self.plan, &self.ledger, &pod.key, &shape);
        if let (Placement::Chosen(node) | Placement::Here(node), false) = (pod.home, pod.is_over())
            && let Some(place) = self.places.get_mut(node)
        {
            place.used.remove(pod.shape.request);
            place.used.add(shape.request);
            self.roomier = true;
        }
        pod.shape = shape;
    }

    /// Updates the placement of a pod from the server's object.
    pub(super) fn settle(&mut self, id: PodId, home: Placement, status: &PodStatusView, now: SimulationTime) {
        let Some(pod) = self.pods.get_mut(&id) else { return };
        match (pod.home, home) {
            (Placement::Here(_), _) => return,
            // The binding was not observed yet.
            (_, Placement::Nowhere | Placement::Chosen(_)) => {
                let unscheduled = status.condition("PodScheduled");
                pod.said = pod.said.take().or_else(|| unscheduled.and_then(|c| c.message.clone()));
                return;
            }
            (_, Placement::Here(_)) => {}
        }
        pod.unannounced =
            status.condition("PodScheduled").is_none_or(|c| c.status.as_deref() != Some("True"));
        let resumed = PodLifecycle::resume(status, now, &pod.course);
        pod.stale = resumed.is_none();
        let mut life = resumed.unwrap_or_else(|| PodLifecycle::new(now, &pod.course));
        pod.stale |= life.step(now, &pod.course);
        let ip = self.address(status);
        self.move_to(id, home);
        if let Some(pod) = self.pods.get_mut(&id) {
            pod.ip = ip;
            pod.life = Some(life);
        }
        self.lived(id, PodStage::Pending);
    }

    /// The pod's address, or a new one.
    fn address(&mut self, status: &PodStatusView) -> Ipv4Addr {
        let given = status.pod_ip.as_deref().and_then(|ip| ip.parse::<Ipv4Addr>().ok());
        let number =
            given.map(|ip| u32::from(ip).wrapping_sub(POD_NETWORK)).filter(|number| *number < POD_ADDRESSES);
        match given {
            Some(_) => self.addresses = self.addresses.max(number.unwrap_or(0)),
            None => self.addresses = (self.addresses + 1) % POD_ADDRESSES,
        }
        given.unwrap_or(Ipv4Addr::from(POD_NETWORK + self.addresses))
    }

    /// Changes the placement of a pod, and the resources used on nodes.
    pub(super) fn move_to(&mut self, id: PodId, home: Placement) {
        let Some(pod) = self.pods.get_mut(&id) else { return };
        let over = pod.is_over();
        if let Placement::Chosen(node) | Placement::Here(node) = pod.home {
            if let Some(place) = self.places.get_mut(node).filter(|_| !over) {
                place.used.remove(pod.shape.request);
                self.roomier = true;
            }
            if let Some(tenants) = self.tenants.get_mut(node) {
                tenants.remove(&id);
            }
        }
        if let Placement::Chosen(node) | Placement::Here(node) = home {
            if let Some(place) = self.places.get_mut(node).filter(|_| !over) {
                place.used.add(pod.shape.request);
            }
            if let Some(tenants) = self.tenants.get_mut(node) {
                tenants.insert(id);
            }
            self.waiting.remove(&id);
            self.fresh.remove(&id);
        }
        pod.home = home;
        pod.bound = false;
    }

    pub(super) fn step(&mut self, id: PodId, now: SimulationTime) {
        let Some(pod) = self.pods.get_mut(&id) else { return };
        let Some(life) = &mut pod.life else { return };
        let before = life.stage;
        if life.step(now, &pod.course) {
            pod.stale = true;
            self.lived(id, before);
        }
    }

    /// Updates usage, resources and timers after a lifecycle change.
    pub(super) fn lived(&mut self, id: PodId, before: PodStage) {
        let Some(pod) = self.pods.get_mut(&id) else { return };
        let Some(life) = &pod.life else { return };
        if life.due < Millis::NEVER {
            self.timers.push(Reverse((life.due, id)));
        }
        if life.stage == before {
            return;
        }
        let phase = match life.stage {
            PodStage::Pending | PodStage::Ended(_) => UsagePhase::Absent,
            PodStage::Starting => UsagePhase::Starting,
            PodStage::Ready => UsagePhase::Ready,
            PodStage::Stopping => UsagePhase::Stopping,
        };
        self.ledger.turn(&mut pod.account, phase);
        if life.is_over() {
            pod.stale = true;
            if let Placement::Here(node) = pod.home
                && let Some(place) = self.places.get_mut(node)
            {
                place.used.remove(pod.shape.request);
                self.roomier = true;
            }
            self.retire(id);
        }
    }

    /// Schedules pods without a node; returns the pods that were tried.
    pub(super) fn place(&mut self) -> BTreeSet<PodId> {
        if std::mem::take(&mut self.roomier) {
            self.fresh.append(&mut self.waiting);
        }
        let mut hopeless: HashMap<*const PodTemplate, Unschedulable> = HashMap::new();
        let fresh = std::mem::take(&mut self.fresh);
        for id in &fresh {
            let Some(pod) = self.pods.get_mut(id).filter(|pod| pod.home == Placement::Nowhere) else {
                continue;
            };
            // Equal templates are the same allocation, and free resources only decrease in this loop.
            let shape = Arc::as_ptr(&pod.shape);
            let found = match hopeless.get(&shape) {
                Some(complaint) => Err(complaint.clone()),
                None => choose(&self.places, &pod.shape),
            };
            match found {
                Ok(node) => {
                    pod.complaint = None;
                    self.move_to(*id, Placement::Chosen(node));
                }
                Err(complaint) => {
                    hopeless.entry(shape).or_insert_with(|| complaint.clone());
                    pod.complaint = Some(complaint.0);
                    self.waiting.insert(*id);
                }
            }
        }
        fresh
    }

    /// The next write of a pod; only one at a time.
    pub(super) fn next_write(&mut self, id: PodId, now: SimulationTime) -> Option<PodWrite> {
        let pod = self.pods.get_mut(&id).filter(|pod| !pod.writing && !pod.gone && pod.hold <= now.at)?;
        let what = match (pod.home, &pod.life) {
            (Placement::Chosen(_), _) if pod.bound => return None,
            (Placement::Chosen(node), _) => PodWriteKind::Bind(self.places.get(node)?.name.clone()),
            (Placement::Nowhere, _) => {
                let message =
                    pod.complaint.clone().filter(|complaint| pod.said.as_ref() != Some(complaint))?;
                let patch = status::unschedulable(&pod.key.uid, &message, now.wall);
                PodWriteKind::Complain { message, patch }
            }
            (Placement::Here(_), Some(life)) if pod.stale => {
                pod.stale = false;
                let seed = Seed::new(self.plan.seed ^ seed_of(&pod.key.uid).bits());
                let (shape, ip, unannounced) = (&*pod.shape, pod.ip, pod.unannounced);
                PodWriteKind::Status(status::patch(
                    &pod.key.uid,
                    &StatusInput { shape, life, ip, seed, unannounced },
                ))
            }
            (Placement::Here(_), Some(life)) if life.deleting && life.is_over() => PodWriteKind::Remove,
            (Placement::Here(_), _) => return None,
        };
        pod.writing = true;
        Some(PodWrite { id, key: Arc::clone(&pod.key), what })
    }

    /// The CPU time of ended pods still counts for their node.
    fn retire(&mut self, id: PodId) {
        let Some(pod) = self.pods.get(&id) else { return };
        let (Placement::Here(node), Some(life)) = (pod.home, &pod.life) else { return };
        let used: f64 = self.ledger.read(&pod.account).map(|reading| reading.cpu_seconds).sum();
        if let Some(retired) = self.retired.get_mut(node).filter(|_| life.times.running.is_some()) {
            *retired += used;
        }
    }

    /// Removes a pod.
    pub(super) fn forget(&mut self, id: PodId, now: SimulationTime) {
        self.ledger.advance(now.at);
        if self.pods.get(&id).is_some_and(|pod| !pod.is_over()) {
            self.retire(id);
        }
        self.move_to(id, Placement::Nowhere);
        if let Some(mut pod) = self.pods.remove(&id) {
            self.ledger.close(&mut pod.account);
            self.by_uid.remove(&pod.key.uid);
        }
        self.waiting.remove(&id);
        self.fresh.remove(&id);
        self.touched.remove(&id);
    }
}
