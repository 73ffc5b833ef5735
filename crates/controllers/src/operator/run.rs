//! The loop: changes come in, turns go out when they are due.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use api::meta::ObjectMeta;
use api::provider::ExternalMetrics;
use cluster::Clock;
use cluster::discovery::Discovery;
use cluster::events::Recorder;
use cluster::lease::Leadership;
use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt};
use keda::activity::MetricValue;
use keda::environment::ObjectRef;
use keda::event::Event;
use kube::Client;
use scalers::backends::Backends;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::answer::Answers;
use super::auth::{Auth, Rules};
use super::cloud_events::CloudEvents;
use super::core::Core;
use super::ears::{Ears, Listener};
use super::eyes::Eyes;
use super::figures::{self, Counters, Durations};
use super::hand::Hand;
use super::id::{Id, Kind, Name};
use super::poll::pushed;
use super::reader::Reader;
use super::reconcile::authentication;
use super::round::{Ended, turn};
use super::settings::Settings;
use super::tell::{Subject, Tell};
use super::triggers::{Build, Maker, PushSender, Pushed};
use super::watches::Watches;
use super::wheel::{Limits, Wheel};
use super::world::{Signal, World, authentication_name};
use crate::hpa::Records;

/// How often targets that nobody watched yet are looked at.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// How long turns may take to end when the operator stops.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// Triggers that nobody asked for so long are dropped where nobody polls.
const UNUSED: Duration = Duration::from_mins(10);
/// Between the turns of two objects that use a TriggerAuthentication that has changed.
const NEXT: Duration = Duration::from_millis(2);
/// So many secrets and config maps are looked at at a time.
const TOGETHER: usize = 8;

/// What an operator is made of.
pub struct Parts {
    /// The API server.
    pub client: Client,
    /// What it knows.
    pub discovery: Discovery,
    /// Whether we lead.
    pub leadership: Leadership,
    /// Where events go.
    pub recorder: Recorder,
    /// What time it is in the world.
    pub clock: Clock,
    /// Flags and environment.
    pub settings: Settings,
    /// How scalers use HTTP.
    pub web: scalers::web::Settings,
    /// How credentials are looked up; by default as the settings say.
    pub auth: Option<Rules>,
    /// Whom to ask for metrics of pods, where we act ourselves (`cpu`, `memory`).
    pub samples: Option<cluster::metrics::Metrics>,
    /// Makes scalers; by default those of the table.
    pub build: Option<Build>,
    /// Where decisions are kept.
    pub records: Records,
}

/// The operator, not yet running.
pub struct Operator {
    core: Arc<Core>,
    signals: mpsc::UnboundedReceiver<Signal>,
    pushes: mpsc::UnboundedReceiver<Pushed>,
    watches: Watches,
    pulse: Arc<Pulse>,
    jobs_seen: bool,
}

/// Sees and asks a running operator. Cheap to clone.
#[derive(Clone)]
pub struct Handle {
    core: Arc<Core>,
    answers: Answers,
    pulse: Arc<Pulse>,
}

/// Signs of life.
#[derive(Default)]
struct Pulse {
    /// Seconds since the start at which the loop last turned.
    turned: AtomicU64,
    synced: AtomicBool,
    began: OnceLock<Instant>,
}

impl Operator {
    /// An operator and what sees it.
    pub fn new(parts: Parts) -> (Self, Handle) {
        let world = Arc::new(Mutex::new(World::default()));
        let settings = Arc::new(parts.settings);
        let (tell, signals) = mpsc::unbounded_channel();
        let (push, pushes) = mpsc::unbounded_channel();
        let hand = Hand::new(parts.client.clone(), parts.discovery, parts.leadership);
        let eyes = Eyes::new(hand.clone(), world.clone(), settings.compat);
        let reader = Reader::new(hand.clone(), world.clone());
        let rules = parts.auth.unwrap_or_else(|| Rules::from(&*settings));
        let cloud_events = CloudEvents::start(hand.clone(), &settings, parts.clock.clone());
        let maker = Maker {
            build: parts.build.unwrap_or_else(|| Arc::new(scalers::table::build)),
            backends: Backends::new(Arc::new(eyes.clone()), parts.web, settings.compat),
            auth: Auth::new(Arc::new(reader.clone()), rules),
            reader,
            hand: hand.clone(),
            http_timeout: settings.http_timeout,
            durations: Durations::default(),
        };
        let watches = Watches::new(parts.client, world.clone(), settings.clone(), tell);
        let core = Arc::new(Core {
            world,
            settings: settings.clone(),
            clock: parts.clock,
            hand,
            eyes,
            maker,
            samples: parts.samples,
            tell: Tell::new(&parts.recorder, cloud_events, settings.compat),
            push: PushSender(push),
            ears: Ears::default(),
            counters: Counters::default(),
            records: parts.records,
            items: Mutex::default(),
        });
        let pulse = Arc::new(Pulse::default());
        let answers = Answers::new(core.clone());
        let handle = Handle { core: core.clone(), answers, pulse: pulse.clone() };
        (Self { core, signals, pushes, watches, pulse, jobs_seen: false }, handle)
    }

    /// Runs until `stop` is told; turns that have begun may end.
    pub async fn run(mut self, mut stop: watch::Receiver<bool>) {
        self.pulse.began.get_or_init(Instant::now);
        tokio::select! {
            () = self.watches.start() => {}
            () = told(&mut stop) => return,
        }
        self.pulse.synced.store(true, Ordering::Relaxed);
        let leadership = self.core.hand.leadership.clone();
        loop {
            tokio::select! {
                () = leadership.won() => {}
                () = told(&mut stop) => return,
                () = self.idle() => {}
            }
            tracing::info!("leading");
            if self.lead(&mut stop).await {
                return;
            }
            tracing::warn!("no longer leading; another instance may take over");
            self.core.forget_all();
        }
    }

    /// Keeps up while somebody else leads.
    async fn idle(&mut self) {
        let mut heartbeat = tokio::time::interval(HEARTBEAT);
        loop {
            tokio::select! {
                signal = self.signals.recv() => match signal {
                    None => std::future::pending().await,
                    Some(Signal::Authentication(name, _)) => self.renew(&name),
                    Some(_) => {}
                },
                Some(_) = self.pushes.recv() => {}
                _ = heartbeat.tick() => {
                    self.beat();
                    self.sweep();
                }
            }
        }
    }

    /// Lets every object have its turns. True if it was told to stop, false if somebody else leads now.
    async fn lead(&mut self, stop: &mut watch::Receiver<bool>) -> bool {
        let core = self.core.clone();
        // What was remembered in an earlier term may be out of date.
        core.forget_all();
        while self.signals.try_recv().is_ok() {}
        while self.pushes.try_recv().is_ok() {}
        let settings = &core.settings;
        let mut wheel = Wheel::new(Limits { quick: settings.concurrency, slow: settings.slow_concurrency });
        let now = Instant::now();
        let (ids, names): (Vec<_>, Vec<Name>) = {
            let world = core.world();
            (world.ids(), world.all_authentications().map(|(name, _)| name.clone()).collect())
        };
        for (id, pace) in &ids {
            wheel.spread(id, now, *pace);
        }
        core.tell.cloud_events.update(&core.world());
        let mut running: FuturesUnordered<BoxFuture<'static, (Id, Ended)>> = FuturesUnordered::new();
        // Small things beside: they have no place in the wheel.
        let mut chores: FuturesUnordered<BoxFuture<'static, ()>> = FuturesUnordered::new();
        for name in names {
            chores.push(attend(core.clone(), name, false));
        }
        let mut heartbeat = tokio::time::interval(HEARTBEAT);
        let looks = settings.looks();
        let mut check = Instant::now() + looks;
        // Held by whoever looks at secrets: nobody begins anew while that takes its time.
        let looking = Arc::new(());
        loop {
            let now = Instant::now();
            while let Some(next) = wheel.take(now) {
                running.push(Box::pin(turn(core.clone(), next, self.jobs_seen)));
            }
            let next = wheel.next();
            tokio::select! {
                () = told(stop) => {
                    let rest = async { while running.next().await.is_some() {} };
                    let _ = tokio::time::timeout(LAST_WORDS, rest).await;
                    return true;
                }
                () = core.hand.leadership.lost() => return false,
                Some(signal) = self.signals.recv() => {
                    if let Some(chore) = self.signal(&mut wheel, signal) {
                        chores.push(chore);
                    }
                }
                Some(told) = self.pushes.recv() => {
                    let core = core.clone();
                    chores.push(Box::pin(async move { pushed(&core, told).await }));
                }
                Some((id, ended)) = running.next() => {
                    let now = Instant::now();
                    if ended.is_gone && core.owner(&id).is_none() {
                        wheel.remove(&id);
                        wheel.done(&id, now);
                        continue;
                    }
                    wheel.poll(&id, ended.pace, now);
                    if ended.woke {
                        wheel.hurry(&id, now);
                    }
                    if let Some(after) = ended.again {
                        wheel.wake(&id, now + after);
                    }
                    wheel.done(&id, now);
                }
                Some(()) = chores.next() => {}
                () = tokio::time::sleep_until(next.unwrap_or(now)), if next.is_some() => {}
                _ = heartbeat.tick() => {
                    self.beat();
                    let is_due = !looks.is_zero() && Instant::now() >= check;
                    if is_due && Arc::strong_count(&looking) == 1 {
                        check = Instant::now() + looks;
                        let (core, held) = (core.clone(), Arc::clone(&looking));
                        chores.push(Box::pin(async move {
                            look(core).await;
                            drop(held);
                        }));
                    }
                }
            }
        }
    }

    /// What a change means for the wheel; what is to be done beside it.
    fn signal(&self, wheel: &mut Wheel, signal: Signal) -> Option<BoxFuture<'static, ()>> {
        let now = Instant::now();
        match signal {
            Signal::New(id) | Signal::Changed(id) | Signal::Gone(id) => self.wake(wheel, &id, now),
            Signal::Unreadable(id, error) => {
                tracing::warn!(object = %id, error, "an object cannot be read and is left alone");
                self.complain(&id, &error);
                self.core.forget(&id);
                wheel.remove(&id);
            }
            Signal::Hpa(id, print) => {
                let known = self.core.known_item(&id).and_then(|item| item.notes().hpa);
                if known.is_some_and(|(_, found)| Some(found) != print) {
                    self.wake(wheel, &id, now);
                }
            }
            Signal::Target(id) => {
                let is_failing = |item: &Arc<super::core::Item>| item.notes().failures > 0;
                if self.core.known_item(&id).as_ref().is_some_and(is_failing) {
                    self.wake(wheel, &id, now);
                }
            }
            Signal::Authentication(name, is_edited) => {
                self.renew(&name);
                let users = self.concerned(&name);
                // Many may use the same.
                for (place, id) in (0..).zip(&users) {
                    self.wake(wheel, id, now + NEXT * place);
                }
                return Some(attend(self.core.clone(), name, is_edited));
            }
            Signal::Destination => self.core.tell.cloud_events.update(&self.core.world()),
        }
        None
    }

    /// An object that cannot be read gets an event, since nothing else can be written on it.
    fn complain(&self, id: &Id, error: &str) {
        let (reason, subject) = match id.kind {
            Kind::Object => ("ScaledObjectCheckFailed", Subject::Object),
            Kind::Job => ("ScaledJobCheckFailed", Subject::Job),
        };
        let metadata = ObjectMeta {
            namespace: id.namespace.to_string(),
            name: id.name.to_string(),
            ..ObjectMeta::default()
        };
        let event = Event::warning(reason, format!("it cannot be read: {error}"));
        self.core.tell.controller(subject, &metadata, &event);
    }

    /// Asks for a turn in which the object is reconciled.
    fn wake(&self, wheel: &mut Wheel, id: &Id, now: Instant) {
        if let Some(item) = self.core.known_item(id) {
            let mut notes = item.notes();
            notes.settled = false;
            notes.failures = 0;
        }
        wheel.add(id, now);
        wheel.wake(id, now);
    }

    /// Whom a change of a TriggerAuthentication concerns: all that use it. To the original it matters when triggers are built
    /// (docs/spec/keda.md 2.9): what works is left alone.
    fn concerned(&self, name: &Name) -> Vec<Id> {
        let mut users = self.core.world().users(name);
        if self.core.settings.compat.is_strict() {
            let is_failing = |id: &Id| self.core.known_item(id).is_some_and(|item| item.notes().failures > 0);
            users.retain(is_failing);
        }
        users
    }

    /// Whoever is concerned is built anew.
    fn renew(&self, name: &Name) {
        for id in self.concerned(name) {
            if let Some(triggers) = self.core.known_item(&id).and_then(|item| item.triggers()) {
                triggers.renew_users(|reference| authentication_name(&id.namespace, reference) == *name);
            }
        }
    }

    /// What is done every second.
    fn beat(&mut self) {
        let (wanted, has_jobs) = {
            let mut world = self.core.world();
            (world.target_kinds(), world.scaled_jobs.len() > 0)
        };
        self.core.eyes.watched(self.watches.targets(&wanted));
        if has_jobs {
            self.jobs_seen = self.watches.jobs();
        }
        let since = self.pulse.began.get().map_or(0, |began| began.elapsed().as_secs());
        self.pulse.turned.store(since, Ordering::Relaxed);
    }

    /// Drops triggers that nobody asks.
    fn sweep(&self) {
        for (id, item) in self.core.all_items() {
            let used = item.triggers().and_then(|triggers| triggers.last_used());
            if used.is_none_or(|used| used.elapsed() > UNUSED) {
                self.core.forget(&id);
            }
        }
    }
}

fn attend(core: Arc<Core>, name: Name, is_news: bool) -> BoxFuture<'static, ()> {
    Box::pin(async move { authentication(&core, &name, is_news).await })
}

/// Looks whether secrets and config maps in use have changed: whoever uses them is built anew.
async fn look(core: Arc<Core>) {
    let mut users: HashMap<ObjectRef, Vec<Id>> = HashMap::new();
    for (id, item) in core.all_items() {
        let used: HashSet<ObjectRef> = item
            .triggers()
            .into_iter()
            .flat_map(|triggers| triggers.used())
            .map(|(object, _)| object)
            .collect();
        for object in used {
            users.entry(object).or_default().push(id.clone());
        }
    }
    let one = |(object, users): (ObjectRef, Vec<Id>)| {
        let core = core.clone();
        async move {
            let Some(version) = core.maker.reader.look(&object).await else { return };
            for id in users {
                if let Some(triggers) = core.known_item(&id).and_then(|item| item.triggers()) {
                    triggers.renew(&object, &version);
                }
            }
        }
    };
    futures::stream::iter(users).map(one).buffer_unordered(TOGETHER).collect::<Vec<()>>().await;
}

/// Waits until somebody says stop, or nobody is left to say it.
async fn told(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

impl Handle {
    /// Who answers `external.metrics.k8s.io`.
    pub fn external_metrics(&self) -> Arc<dyn ExternalMetrics> {
        Arc::new(self.answers.clone())
    }

    /// The values of a metric of a ScaledObject, for the gRPC metrics service; the error is in the words of the original.
    pub async fn metric(
        &self,
        namespace: &str,
        name: &str,
        metric: &str,
    ) -> Result<Vec<MetricValue>, String> {
        let found = self.answers.metric(namespace, name, metric).await;
        found.map_err(|error| format!("error when getting metric values {error}"))
    }

    /// Lets somebody hear every value as it is read.
    pub fn listen(&self, listener: Arc<dyn Listener>) {
        self.core.ears.open(listener);
    }

    /// Figures for Prometheus, as text.
    pub fn figures(&self) -> String {
        figures::text(&self.core)
    }

    /// Whether everything that is watched was seen at least once.
    pub fn synced(&self) -> bool {
        self.pulse.synced.load(Ordering::Relaxed)
    }

    /// Whether the loop still turns: not if it has been silent for this long.
    pub fn turns(&self, limit: Duration) -> bool {
        let Some(began) = self.pulse.began.get().filter(|_| self.synced()) else { return true };
        let silent = began.elapsed().as_secs().saturating_sub(self.pulse.turned.load(Ordering::Relaxed));
        silent <= limit.as_secs()
    }

    /// What was decided about each object.
    pub fn records(&self) -> Records {
        self.core.records.clone()
    }

    /// How many objects there are of each kind.
    pub fn objects(&self) -> (usize, usize) {
        let world = self.core.world();
        (world.objects.len(), world.scaled_jobs.len())
    }
}
