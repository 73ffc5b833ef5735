//! The loop: changes come in, passes go out when they are due.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use api::decisions::DifferenceList;
use cluster::clock::Steady;
use cluster::connect::Gate;
use cluster::discovery::Discovery;
use cluster::events::{About, Recorder};
use cluster::index::TargetKind;
use cluster::lease::Leadership;
use cluster::scale::Scales;
use cluster::{Clock, Key};
use engine::Event;
use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt};
use kube::Client;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::act::Hand;
use super::metrics::Metrics;
use super::observe::Eyes;
use super::pass::{Passed, Passer};
use super::queue::Queue;
use super::recall::Memories;
use super::records::Records;
use super::report::Pen;
use super::settings::Settings;
use super::shadow::Shadow;
use super::watches::Watches;
use super::world::{Signal, World};

/// How often the clock is looked at, and targets that nobody watched yet.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// How long passes may take to end when the controller stops.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// What a controller is made of.
pub struct Parts {
    /// The API server.
    pub client: Client,
    /// What it knows.
    pub discovery: Discovery,
    /// Whom to ask for samples.
    pub samples: cluster::metrics::Metrics,
    /// Whether we lead.
    pub leadership: Leadership,
    /// Where events go.
    pub recorder: Recorder,
    /// What time it is in the world.
    pub clock: Clock,
    /// Flags and configuration.
    pub settings: Settings,
    /// Where decisions are kept.
    pub records: Records,
}

/// The controller, not yet running.
pub struct Controller {
    passer: Arc<Passer>,
    signals: mpsc::UnboundedReceiver<Signal>,
    watches: Watches,
    steady: Arc<Steady>,
    changed: watch::Receiver<u64>,
    pulse: Arc<Pulse>,
}

/// Sees and steers a running controller. Cheap to clone.
#[derive(Clone)]
pub struct Handle {
    passer: Arc<Passer>,
    changed: Arc<watch::Sender<u64>>,
    pulse: Arc<Pulse>,
}

/// Signs of life.
#[derive(Default)]
struct Pulse {
    /// Seconds since the start at which the loop last turned.
    turned: AtomicU64,
    synced: AtomicBool,
    began: OnceLock<Instant>,
    gate: OnceLock<Gate>,
}

impl Controller {
    /// A controller and what sees and steers it.
    pub fn new(parts: Parts) -> (Self, Handle) {
        let world = Arc::new(Mutex::new(World::default()));
        let steady = Arc::new(Steady::new(parts.clock));
        let told = steady.clone();
        let settings = Arc::new(parts.settings);
        let (tell, signals) = mpsc::unbounded_channel();
        let scales = Scales::new(parts.client.clone(), parts.discovery);
        let watches = Watches::new(parts.client.clone(), world.clone(), settings.clone(), tell);
        let passer = Arc::new(Passer {
            eyes: Eyes {
                world,
                scales: scales.clone(),
                metrics: parts.samples,
                targets: Mutex::new(HashMap::new()),
            },
            hand: Hand { scales, leadership: parts.leadership.clone() },
            pen: Pen { client: parts.client, leadership: parts.leadership.clone() },
            recorder: parts.recorder,
            leadership: parts.leadership,
            clock: Clock::new(move || told.now()),
            settings: RwLock::new(settings),
            memories: Mutex::new(Memories::default()),
            versions: Mutex::default(),
            records: parts.records,
            shadow: Mutex::new(Shadow::default()),
            metrics: Arc::new(Metrics::default()),
        });
        let (changed, seen) = watch::channel(0);
        let pulse = Arc::new(Pulse::default());
        let handle = Handle { passer: passer.clone(), changed: Arc::new(changed), pulse: pulse.clone() };
        (Self { passer, signals, watches, steady, changed: seen, pulse }, handle)
    }

    /// Runs until `stop` is told; passes that have begun may end.
    pub async fn run(mut self, mut stop: watch::Receiver<bool>) {
        self.pulse.began.get_or_init(Instant::now);
        tokio::select! {
            () = self.watches.start() => {}
            () = told(&mut stop) => return,
        }
        self.pulse.synced.store(true, Ordering::Relaxed);
        let leadership = self.passer.leadership.clone();
        loop {
            self.passer.metrics.leads(false);
            tokio::select! {
                () = leadership.won() => {}
                () = told(&mut stop) => return,
                () = self.idle() => {}
            }
            tracing::info!("leading");
            self.passer.metrics.leads(true);
            if self.lead(&mut stop).await {
                return;
            }
            tracing::warn!("no longer leading; another instance may take over");
        }
    }

    /// Keeps up while somebody else leads.
    async fn idle(&mut self) {
        let mut heartbeat = tokio::time::interval(HEARTBEAT);
        loop {
            tokio::select! {
                signal = self.signals.recv() => {
                    if signal.is_none() {
                        std::future::pending::<()>().await;
                    }
                }
                _ = heartbeat.tick() => self.turn(),
            }
        }
    }

    /// Lets every autoscaler have its passes. True if it was told to stop, false if somebody else leads now.
    async fn lead(&mut self, stop: &mut watch::Receiver<bool>) -> bool {
        let passer = self.passer.clone();
        // What was remembered in an earlier term may be out of date: what objects say counts.
        passer.memories().clear();
        // What was told before is in the world, from which this begins.
        while self.signals.try_recv().is_ok() {}
        let now = Instant::now();
        let mut queue = Queue::new(now);
        let settings = passer.settings();
        for entry in passer.eyes.world().entries() {
            queue.spread(&entry.key, now, entry.period(&settings));
        }
        let unreadable: Vec<(Key, String)> =
            passer.eyes.world().unreadable().map(|(key, error)| (key.clone(), error.clone())).collect();
        for (key, error) in unreadable {
            self.complain(&key, error);
        }
        let mut running: FuturesUnordered<BoxFuture<'static, (Key, Passed)>> = FuturesUnordered::new();
        let mut heartbeat = tokio::time::interval(HEARTBEAT);
        loop {
            let now = Instant::now();
            let limit = passer.settings().concurrency.max(1);
            while running.len() < limit
                && let Some((key, late)) = queue.take(now)
            {
                let passer = passer.clone();
                running.push(Box::pin(async move {
                    let passed = passer.pass(&key, late).await;
                    (key, passed)
                }));
            }
            passer.metrics.late.set(queue.late(now) as i64);
            let next = queue.next().filter(|_| running.len() < limit);
            tokio::select! {
                () = told(stop) => {
                    let _ = tokio::time::timeout(LAST_WORDS, async { while running.next().await.is_some() {} }).await;
                    return true;
                }
                () = passer.leadership.lost() => return false,
                Some(signal) = self.signals.recv() => self.signal(&mut queue, signal),
                Some((key, passed)) = running.next() => match passed {
                    Passed::Done | Passed::Deposed => queue.done(&key, Instant::now()),
                    Passed::Gone => queue.remove(&key),
                },
                () = tokio::time::sleep_until(next.unwrap_or(now)), if next.is_some() => {}
                Ok(()) = self.changed.changed() => self.resettle(&mut queue),
                _ = heartbeat.tick() => self.turn(),
            }
        }
    }

    fn signal(&self, queue: &mut Queue, signal: Signal) {
        let now = Instant::now();
        let settings = self.passer.settings();
        let period = |key: &Key| self.passer.eyes.world().get(key).map(|entry| entry.period(&settings));
        match signal {
            Signal::New(key) => {
                if let Some(period) = period(&key) {
                    queue.add(&key, now, period);
                }
            }
            Signal::Changed(key) => {
                if let Some(period) = period(&key) {
                    queue.hurry(&key, now, period);
                }
            }
            Signal::Unreadable(key, error) => self.complain(&key, error),
        }
    }

    /// An object that cannot be read gets an event, since nothing else can be written on it.
    fn complain(&self, key: &Key, error: String) {
        tracing::warn!(autoscaler = %key, error, "an autoscaler cannot be read and is left alone");
        self.passer.metrics.unreadable();
        let about = About {
            api_version: key.kind.api_version(),
            kind: key.kind.name(),
            namespace: key.namespace.to_string(),
            name: key.name.to_string(),
            uid: String::new(),
            resource_version: String::new(),
        };
        self.passer.recorder.record(&about, &Event::warning("InvalidObject", error));
    }

    /// New settings are in force.
    fn resettle(&self, queue: &mut Queue) {
        let settings = self.passer.settings();
        let now = Instant::now();
        for entry in self.passer.eyes.world().entries() {
            queue.hurry(&entry.key, now, entry.period(&settings));
        }
    }

    /// What is done every second: the clock, targets that nobody watched yet, figures.
    fn turn(&mut self) {
        if let Some(step) = self.steady.resync() {
            tracing::warn!(seconds = step.as_secs_f64(), "the clock has jumped; windows keep their length");
            self.passer.memories().shift(step);
        }
        let wanted: HashSet<TargetKind> = {
            let world = self.passer.eyes.world();
            self.passer.metrics.autoscalers.set(world.len() as i64);
            self.passer.metrics.pods(world.pods.len());
            world.target_kinds()
        };
        let healths = self.watches.targets(&wanted);
        *self.passer.eyes.targets.lock().unwrap_or_else(PoisonError::into_inner) = healths;
        let since = self.pulse.began.get().map_or(0, |began| began.elapsed().as_secs());
        self.pulse.turned.store(since, Ordering::Relaxed);
    }
}

/// Waits until somebody says stop, or nobody is left to say it.
async fn told(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

impl Handle {
    /// The decisions that are kept.
    pub fn records(&self) -> Records {
        self.passer.records.clone()
    }

    /// What shadow mode has found.
    pub fn differences(&self, namespace: Option<&str>) -> DifferenceList {
        self.passer.shadow.lock().unwrap_or_else(PoisonError::into_inner).report(namespace)
    }

    /// Figures for Prometheus, as text.
    pub fn exposition(&self) -> String {
        let passer = &self.passer;
        let gate = self.pulse.gate.get().map(Gate::snapshot);
        let (bytes, events) = (passer.records.approximate_bytes(), passer.recorder.counts());
        passer.metrics.take_over(bytes, passer.eyes.metrics.traffic(), events, gate.as_ref());
        passer.metrics.text()
    }

    /// Lets the figures tell how many requests the API server bears.
    pub fn measure(&self, gate: &Gate) {
        self.pulse.gate.get_or_init(|| gate.clone());
    }

    /// Puts new settings into force. Namespaces stay as they were at the start.
    pub fn update(&self, mut settings: Settings) {
        let mut held = self.passer.settings.write().unwrap_or_else(PoisonError::into_inner);
        settings.namespaces.clone_from(&held.namespaces);
        *held = Arc::new(settings);
        drop(held);
        self.changed.send_modify(|count| *count += 1);
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
}
