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
use super::{NodesState, Placement, PodId, PodRef, PodWrite, PodWriteKind, SimulatedPod, timeline};

/// The pod network and its number of addresses.
const POD_NETWORK: u32 = u32::from_be_bytes([10, 128, 0, 0]);
const POD_ADDRESSES: u32 = 1 << 23;

impl NodesState {
    pub(super) fn add_pod(&mut self, key: PodRef, template: &Arc<PodTemplate>) -> PodId {
        self.known += 1;
        self.by_uid.insert(key.uid.clone(), self.known);
        let pod = SimulatedPod {
            template: Arc::clone(template),
            placement: Placement::Nowhere,
            bound: false,
            lifecycle: None,
            timeline: timeline(&self.plan, &self.ledger, &key, template),
            account: self.ledger.open(&key.namespace, template),
            ip: Ipv4Addr::UNSPECIFIED,
            unannounced: false,
            stale: false,
            reason: None,
            reported: None,
            writing: false,
            gone: false,
            hold: Millis::ZERO,
            failures: 0,
            round: self.round,
            key: Arc::new(key),
        };
        self.pods.insert(self.known, pod);
        self.unscheduled.insert(self.known);
        self.known
    }

    /// Updates the template: labels and limits of pods can change.
    pub(super) fn set_template(&mut self, id: PodId, template: Arc<PodTemplate>) {
        let Some(pod) = self.pods.get_mut(&id).filter(|pod| pod.template != template) else { return };
        let phase = self.ledger.close(&mut pod.account);
        self.ledger.reopen(&mut pod.account, &pod.key.namespace, &template, phase);
        pod.timeline = timeline(&self.plan, &self.ledger, &pod.key, &template);
        if let (Placement::Chosen(node) | Placement::Here(node), false) = (pod.placement, pod.is_over())
            && let Some(target) = self.schedulable.get_mut(node)
        {
            target.used.remove(pod.template.request);
            target.used.add(template.request);
            self.capacity_freed = true;
        }
        pod.template = template;
    }

    /// Updates the placement of a pod from the server's object.
    pub(super) fn settle(
        &mut self,
        id: PodId,
        placement: Placement,
        status: &PodStatusView,
        now: SimulationTime,
    ) {
        let Some(pod) = self.pods.get_mut(&id) else { return };
        match (pod.placement, placement) {
            (Placement::Here(_), _) => return,
            // The binding was not observed yet.
            (_, Placement::Nowhere | Placement::Chosen(_)) => {
                let unscheduled = status.condition("PodScheduled");
                pod.reported = pod.reported.take().or_else(|| unscheduled.and_then(|c| c.message.clone()));
                return;
            }
            (_, Placement::Here(_)) => {}
        }
        pod.unannounced =
            status.condition("PodScheduled").is_none_or(|c| c.status.as_deref() != Some("True"));
        let resumed = PodLifecycle::resume(status, now, &pod.timeline);
        pod.stale = resumed.is_none();
        let mut lifecycle = resumed.unwrap_or_else(|| PodLifecycle::new(now, &pod.timeline));
        pod.stale |= lifecycle.step(now, &pod.timeline);
        let ip = self.address(status);
        self.move_to(id, placement);
        if let Some(pod) = self.pods.get_mut(&id) {
            pod.ip = ip;
            pod.lifecycle = Some(lifecycle);
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
    pub(super) fn move_to(&mut self, id: PodId, placement: Placement) {
        let Some(pod) = self.pods.get_mut(&id) else { return };
        let over = pod.is_over();
        if let Placement::Chosen(node) | Placement::Here(node) = pod.placement {
            if let Some(target) = self.schedulable.get_mut(node).filter(|_| !over) {
                target.used.remove(pod.template.request);
                self.capacity_freed = true;
            }
            if let Some(tenants) = self.tenants.get_mut(node) {
                tenants.remove(&id);
            }
        }
        if let Placement::Chosen(node) | Placement::Here(node) = placement {
            if let Some(target) = self.schedulable.get_mut(node).filter(|_| !over) {
                target.used.add(pod.template.request);
            }
            if let Some(tenants) = self.tenants.get_mut(node) {
                tenants.insert(id);
            }
            self.waiting.remove(&id);
            self.unscheduled.remove(&id);
        }
        pod.placement = placement;
        pod.bound = false;
    }

    pub(super) fn step(&mut self, id: PodId, now: SimulationTime) {
        let Some(pod) = self.pods.get_mut(&id) else { return };
        let Some(lifecycle) = &mut pod.lifecycle else { return };
        let before = lifecycle.stage;
        if lifecycle.step(now, &pod.timeline) {
            pod.stale = true;
            self.lived(id, before);
        }
    }

    /// Updates usage, resources and timers after a lifecycle change.
    pub(super) fn lived(&mut self, id: PodId, before: PodStage) {
        let Some(pod) = self.pods.get_mut(&id) else { return };
        let Some(lifecycle) = &pod.lifecycle else { return };
        if lifecycle.due < Millis::NEVER {
            self.timers.push(Reverse((lifecycle.due, id)));
        }
        if lifecycle.stage == before {
            return;
        }
        let phase = match lifecycle.stage {
            PodStage::Pending | PodStage::Ended(_) => UsagePhase::Absent,
            PodStage::Starting => UsagePhase::Starting,
            PodStage::Ready => UsagePhase::Ready,
            PodStage::Stopping => UsagePhase::Stopping,
        };
        self.ledger.set_phase(&mut pod.account, phase);
        if lifecycle.is_over() {
            pod.stale = true;
            if let Placement::Here(node) = pod.placement
                && let Some(target) = self.schedulable.get_mut(node)
            {
                target.used.remove(pod.template.request);
                self.capacity_freed = true;
            }
            self.retire(id);
        }
    }

    /// Schedules pods without a node; returns the pods that were tried.
    pub(super) fn schedule(&mut self) -> BTreeSet<PodId> {
        if std::mem::take(&mut self.capacity_freed) {
            self.unscheduled.append(&mut self.waiting);
        }
        let mut failed_templates: HashMap<*const PodTemplate, Unschedulable> = HashMap::new();
        let unscheduled = std::mem::take(&mut self.unscheduled);
        for id in &unscheduled {
            let Some(pod) = self.pods.get_mut(id).filter(|pod| pod.placement == Placement::Nowhere) else {
                continue;
            };
            // Equal templates are the same allocation, and free resources only decrease in this loop.
            let template = Arc::as_ptr(&pod.template);
            let found = match failed_templates.get(&template) {
                Some(reason) => Err(reason.clone()),
                None => choose(&self.schedulable, &pod.template),
            };
            match found {
                Ok(node) => {
                    pod.reason = None;
                    self.move_to(*id, Placement::Chosen(node));
                }
                Err(reason) => {
                    failed_templates.entry(template).or_insert_with(|| reason.clone());
                    pod.reason = Some(reason.0);
                    self.waiting.insert(*id);
                }
            }
        }
        unscheduled
    }

    /// The next write of a pod; only one at a time.
    pub(super) fn next_write(&mut self, id: PodId, now: SimulationTime) -> Option<PodWrite> {
        let pod = self.pods.get_mut(&id).filter(|pod| !pod.writing && !pod.gone && pod.hold <= now.at)?;
        let what = match (pod.placement, &pod.lifecycle) {
            (Placement::Chosen(_), _) if pod.bound => return None,
            (Placement::Chosen(node), _) => PodWriteKind::Bind(self.schedulable.get(node)?.name.clone()),
            (Placement::Nowhere, _) => {
                let message = pod.reason.clone().filter(|reason| pod.reported.as_ref() != Some(reason))?;
                let patch = status::unschedulable(&pod.key.uid, &message, now.wall);
                PodWriteKind::Complain { message, patch }
            }
            (Placement::Here(_), Some(lifecycle)) if pod.stale => {
                pod.stale = false;
                let seed = Seed::new(self.plan.seed ^ seed_of(&pod.key.uid).bits());
                let (template, ip, unannounced) = (&*pod.template, pod.ip, pod.unannounced);
                PodWriteKind::Status(status::patch(
                    &pod.key.uid,
                    &StatusInput { template, lifecycle, ip, seed, unannounced },
                ))
            }
            (Placement::Here(_), Some(lifecycle)) if lifecycle.deleting && lifecycle.is_over() => {
                PodWriteKind::Remove
            }
            (Placement::Here(_), _) => return None,
        };
        pod.writing = true;
        Some(PodWrite { id, key: Arc::clone(&pod.key), what })
    }

    /// The CPU time of ended pods still counts for their node.
    fn retire(&mut self, id: PodId) {
        let Some(pod) = self.pods.get(&id) else { return };
        let (Placement::Here(node), Some(lifecycle)) = (pod.placement, &pod.lifecycle) else { return };
        let used: f64 = self.ledger.read(&pod.account).map(|reading| reading.cpu_seconds).sum();
        if let Some(retired) = self.retired.get_mut(node).filter(|_| lifecycle.times.running.is_some()) {
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
        self.unscheduled.remove(&id);
        self.touched.remove(&id);
    }
}
