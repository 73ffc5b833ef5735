//! What follows from what was seen: where a pod lives, how it lives, and what is to be told about it.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::net::Ipv4Addr;
use std::sync::Arc;

use sim::Millis;
use sim::random::Seed;

use super::super::life::{Life, Moment, Stage};
use super::super::place::choose;
use super::super::shape::Shape;
use super::super::status::{self, Subject, seed_of};
use super::super::usage::Phase;
use super::super::view::PodStatus;
use super::{Home, Id, Key, Pod, State, What, Write, course};

/// The network of pods, and how many addresses it has.
const POD_NETWORK: u32 = u32::from_be_bytes([10, 128, 0, 0]);
const POD_ADDRESSES: u32 = 1 << 23;

impl State {
    pub(super) fn meet(&mut self, key: Key, shape: &Arc<Shape>) -> Id {
        self.known += 1;
        self.by_uid.insert(key.uid.clone(), self.known);
        let pod = Pod {
            shape: Arc::clone(shape),
            home: Home::Nowhere,
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

    /// Labels and limits of pods can change.
    pub(super) fn reshape(&mut self, id: Id, shape: Arc<Shape>) {
        let Some(pod) = self.pods.get_mut(&id).filter(|pod| pod.shape != shape) else { return };
        let phase = self.ledger.close(&mut pod.account);
        self.ledger.reopen(&mut pod.account, &pod.key.namespace, &shape, phase);
        pod.course = course(&self.plan, &self.ledger, &pod.key, &shape);
        if let (Home::Chosen(node) | Home::Here(node), false) = (pod.home, pod.is_over())
            && let Some(place) = self.places.get_mut(node)
        {
            place.used.remove(pod.shape.request);
            place.used.add(shape.request);
            self.roomier = true;
        }
        pod.shape = shape;
    }

    /// The pod is where the server says it is.
    pub(super) fn settle(&mut self, id: Id, home: Home, status: &PodStatus, now: Moment) {
        let Some(pod) = self.pods.get_mut(&id) else { return };
        match (pod.home, home) {
            (Home::Here(_), _) => return,
            // The binding is on its way.
            (_, Home::Nowhere | Home::Chosen(_)) => {
                let unscheduled = status.condition("PodScheduled");
                pod.said = pod.said.take().or_else(|| unscheduled.and_then(|c| c.message.clone()));
                return;
            }
            (_, Home::Here(_)) => {}
        }
        pod.unannounced =
            status.condition("PodScheduled").is_none_or(|c| c.status.as_deref() != Some("True"));
        let resumed = Life::resume(status, now, &pod.course);
        pod.stale = resumed.is_none();
        let mut life = resumed.unwrap_or_else(|| Life::new(now, &pod.course));
        pod.stale |= life.step(now, &pod.course);
        let ip = self.address(status);
        self.move_to(id, home);
        if let Some(pod) = self.pods.get_mut(&id) {
            pod.ip = ip;
            pod.life = Some(life);
        }
        self.lived(id, Stage::Pending);
    }

    /// The address that a pod has, or a new one.
    fn address(&mut self, status: &PodStatus) -> Ipv4Addr {
        let given = status.pod_ip.as_deref().and_then(|ip| ip.parse::<Ipv4Addr>().ok());
        let number =
            given.map(|ip| u32::from(ip).wrapping_sub(POD_NETWORK)).filter(|number| *number < POD_ADDRESSES);
        match given {
            Some(_) => self.addresses = self.addresses.max(number.unwrap_or(0)),
            None => self.addresses = (self.addresses + 1) % POD_ADDRESSES,
        }
        given.unwrap_or(Ipv4Addr::from(POD_NETWORK + self.addresses))
    }

    /// Moves the room that a pod takes.
    pub(super) fn move_to(&mut self, id: Id, home: Home) {
        let Some(pod) = self.pods.get_mut(&id) else { return };
        let over = pod.is_over();
        if let Home::Chosen(node) | Home::Here(node) = pod.home {
            if let Some(place) = self.places.get_mut(node).filter(|_| !over) {
                place.used.remove(pod.shape.request);
                self.roomier = true;
            }
            if let Some(tenants) = self.tenants.get_mut(node) {
                tenants.remove(&id);
            }
        }
        if let Home::Chosen(node) | Home::Here(node) = home {
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

    pub(super) fn step(&mut self, id: Id, now: Moment) {
        let Some(pod) = self.pods.get_mut(&id) else { return };
        let Some(life) = &mut pod.life else { return };
        let before = life.stage;
        if life.step(now, &pod.course) {
            pod.stale = true;
            self.lived(id, before);
        }
    }

    /// Follows a pod's life: what it uses, the room it takes, when to look again.
    pub(super) fn lived(&mut self, id: Id, before: Stage) {
        let Some(pod) = self.pods.get_mut(&id) else { return };
        let Some(life) = &pod.life else { return };
        if life.due < Millis::NEVER {
            self.timers.push(Reverse((life.due, id)));
        }
        if life.stage == before {
            return;
        }
        let phase = match life.stage {
            Stage::Pending | Stage::Ended(_) => Phase::Absent,
            Stage::Starting => Phase::Starting,
            Stage::Ready => Phase::Ready,
            Stage::Stopping => Phase::Stopping,
        };
        self.ledger.turn(&mut pod.account, phase);
        if life.is_over() {
            pod.stale = true;
            if let Home::Here(node) = pod.home
                && let Some(place) = self.places.get_mut(node)
            {
                place.used.remove(pod.shape.request);
                self.roomier = true;
            }
            self.retire(id);
        }
    }

    /// Looks for nodes for pods that have none, and says which pods that was about.
    pub(super) fn place(&mut self) -> BTreeSet<Id> {
        if std::mem::take(&mut self.roomier) {
            self.fresh.append(&mut self.waiting);
        }
        let mut hopeless: HashMap<*const Shape, String> = HashMap::new();
        let fresh = std::mem::take(&mut self.fresh);
        for id in &fresh {
            let Some(pod) = self.pods.get_mut(id).filter(|pod| pod.home == Home::Nowhere) else { continue };
            // Shapes are kept once, so equal ones are the same one; and room only shrinks in here.
            let shape = Arc::as_ptr(&pod.shape);
            let found = match hopeless.get(&shape) {
                Some(complaint) => Err(complaint.clone()),
                None => choose(&self.places, &pod.shape),
            };
            match found {
                Ok(node) => {
                    pod.complaint = None;
                    self.move_to(*id, Home::Chosen(node));
                }
                Err(complaint) => {
                    hopeless.entry(shape).or_insert_with(|| complaint.clone());
                    pod.complaint = Some(complaint);
                    self.waiting.insert(*id);
                }
            }
        }
        fresh
    }

    /// What is to be told about a pod next; one thing at a time.
    pub(super) fn next_write(&mut self, id: Id, now: Moment) -> Option<Write> {
        let pod = self.pods.get_mut(&id).filter(|pod| !pod.writing && !pod.gone && pod.hold <= now.at)?;
        let what = match (pod.home, &pod.life) {
            (Home::Chosen(_), _) if pod.bound => return None,
            (Home::Chosen(node), _) => What::Bind(self.places.get(node)?.name.clone()),
            (Home::Nowhere, _) => {
                let message =
                    pod.complaint.clone().filter(|complaint| pod.said.as_ref() != Some(complaint))?;
                let patch = status::unschedulable(&pod.key.uid, &message, now.wall);
                What::Complain { message, patch }
            }
            (Home::Here(_), Some(life)) if pod.stale => {
                pod.stale = false;
                let seed = Seed::new(self.plan.seed ^ seed_of(&pod.key.uid).bits());
                let (shape, ip, unannounced) = (&*pod.shape, pod.ip, pod.unannounced);
                What::Status(status::patch(&pod.key.uid, &Subject { shape, life, ip, seed, unannounced }))
            }
            (Home::Here(_), Some(life)) if life.deleting && life.is_over() => What::Remove,
            (Home::Here(_), _) => return None,
        };
        pod.writing = true;
        Some(Write { id, key: Arc::clone(&pod.key), what })
    }

    /// What a pod has used still counts for its node when it is over.
    fn retire(&mut self, id: Id) {
        let Some(pod) = self.pods.get(&id) else { return };
        let (Home::Here(node), Some(life)) = (pod.home, &pod.life) else { return };
        let used: f64 = self.ledger.read(&pod.account).map(|reading| reading.cpu_seconds).sum();
        if let Some(retired) = self.retired.get_mut(node).filter(|_| life.times.running.is_some()) {
            *retired += used;
        }
    }

    /// The pod is no longer there.
    pub(super) fn forget(&mut self, id: Id, now: Moment) {
        self.ledger.advance(now.at);
        if self.pods.get(&id).is_some_and(|pod| !pod.is_over()) {
            self.retire(id);
        }
        self.move_to(id, Home::Nowhere);
        if let Some(mut pod) = self.pods.remove(&id) {
            self.ledger.close(&mut pod.account);
            self.by_uid.remove(&pod.key.uid);
        }
        self.waiting.remove(&id);
        self.fresh.remove(&id);
        self.touched.remove(&id);
    }
}
