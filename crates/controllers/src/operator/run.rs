//! The loop: changes come in, turns go out when they are due.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use api::meta::ObjectMeta;
use api::provider::ExternalMetricsProvider;
use cluster::Clock;
use cluster::discovery::Discovery;
use cluster::events::EventRecorder;
use cluster::lease::Leadership;
use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt};
use keda::activity::MetricValue;
use keda::environment::SourceRef;
use keda::event::Event;
use kube::Client;
use scalers::backends::Backends;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::auth::{AuthResolver, AuthRules};
use super::cloud_events::CloudEvents;
use super::cluster_reader::ClusterReader;
use super::context::OperatorContext;
use super::credential_reader::CredentialReader;
use super::event_recorder::{EventSubject, OperatorEventRecorder};
use super::exported_metrics::{self, HttpRequestDurations, OperatorCounters};
use super::external_metrics::Answers;
use super::id::{Id, Kind, Name};
use super::leader_client::LeaderClient;
use super::poll::pushed;
use super::poll_scheduler::{ConcurrencyLimits, PollScheduler};
use super::process::{ProcessOutcome, process};
use super::raw_metrics::{RawMetricsSubscriber, RawMetricsSubscribers};
use super::reconcile::authentication;
use super::scalers_cache::{BuildScaler, PushNotification, PushSender, ScalerBuilder};
use super::settings::OperatorSettings;
use super::store::{Store, StoreEvent, authentication_name};
use super::watches::Watches;
use crate::hpa::Records;

/// SampleQuery often targets that nobody watched yet are looked at.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// SampleQuery long turns may take to end when the operator stops.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// ScalersCache that nobody asked for so long are dropped where nobody polls.
const UNUSED: Duration = Duration::from_mins(10);
/// Between the turns of two objects that use a TriggerAuthentication that has changed.
const NEXT: Duration = Duration::from_millis(2);
/// So many secrets and config maps are looked at at a time.
const TOGETHER: usize = 8;

/// What an operator is made of.
pub struct OperatorParts {
    /// The API server.
    pub client: Client,
    /// What it knows.
    pub discovery: Discovery,
    /// Whether we lead.
    pub leadership: Leadership,
    /// Where events go.
    pub recorder: EventRecorder,
    /// What time it is in the store.
    pub clock: Clock,
    /// Flags and environment.
    pub settings: OperatorSettings,
    /// SampleQuery scalers use HTTP.
    pub web: scalers::web::HttpSettings,
    /// SampleQuery credentials are looked up; by default as the settings say.
    pub auth: Option<AuthRules>,
    /// Whom to ask for metrics of pods, where we act ourselves (`cpu`, `memory`).
    pub samples: Option<cluster::metrics::MetricsClient>,
    /// Makes scalers; by default those of the table.
    pub build: Option<BuildScaler>,
    /// Where decisions are kept.
    pub records: Records,
}

/// The operator, not yet running.
pub struct Operator {
    context: Arc<OperatorContext>,
    signals: mpsc::UnboundedReceiver<StoreEvent>,
    pushes: mpsc::UnboundedReceiver<PushNotification>,
    watches: Watches,
    pulse: Arc<Pulse>,
    jobs_seen: bool,
}

/// Sees and asks a running operator. Cheap to clone.
#[derive(Clone)]
pub struct OperatorHandle {
    context: Arc<OperatorContext>,
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
    pub fn new(parts: OperatorParts) -> (Self, OperatorHandle) {
        let store = Arc::new(Mutex::new(Store::default()));
        let settings = Arc::new(parts.settings);
        let (tell, signals) = mpsc::unbounded_channel();
        let (push, pushes) = mpsc::unbounded_channel();
        let client = LeaderClient::new(parts.client.clone(), parts.discovery, parts.leadership);
        let reader = ClusterReader::new(client.clone(), store.clone(), settings.compat);
        let credentials = CredentialReader::new(client.clone(), store.clone());
        let rules = parts.auth.unwrap_or_else(|| AuthRules::from(&*settings));
        let cloud_events = CloudEvents::start(client.clone(), &settings, parts.clock.clone());
        let builder = ScalerBuilder {
            build: parts.build.unwrap_or_else(|| Arc::new(scalers::table::build)),
            backends: Backends::new(Arc::new(reader.clone()), parts.web, settings.compat),
            auth: AuthResolver::new(Arc::new(credentials.clone()), rules),
            credentials,
            client: client.clone(),
            http_timeout: settings.http_timeout,
            durations: HttpRequestDurations::default(),
        };
        let watches = Watches::new(parts.client, store.clone(), settings.clone(), tell);
        let context = Arc::new(OperatorContext {
            store,
            settings: settings.clone(),
            clock: parts.clock,
            client,
            reader,
            builder,
            samples: parts.samples,
            events: OperatorEventRecorder::new(&parts.recorder, cloud_events, settings.compat),
            push: PushSender(push),
            raw_metrics: RawMetricsSubscribers::default(),
            counters: OperatorCounters::default(),
            records: parts.records,
            entries: Mutex::default(),
        });
        let pulse = Arc::new(Pulse::default());
        let answers = Answers::new(context.clone());
        let handle = OperatorHandle { context: context.clone(), answers, pulse: pulse.clone() };
        (Self { context, signals, pushes, watches, pulse, jobs_seen: false }, handle)
    }

    /// Runs until `stop` is told; turns that have begun may end.
    pub async fn run(mut self, mut stop: watch::Receiver<bool>) {
        self.pulse.began.get_or_init(Instant::now);
        tokio::select! {
            () = self.watches.start() => {}
            () = told(&mut stop) => return,
        }
        self.pulse.synced.store(true, Ordering::Relaxed);
        let leadership = self.context.client.leadership.clone();
        loop {
            tokio::select! {
                () = leadership.acquired() => {}
                () = told(&mut stop) => return,
                () = self.idle() => {}
            }
            tracing::info!("leading");
            if self.lead(&mut stop).await {
                return;
            }
            tracing::warn!("no longer leading; another instance may take over");
            self.context.forget_all();
        }
    }

    /// Keeps up while somebody else leads.
    async fn idle(&mut self) {
        let mut heartbeat = tokio::time::interval(HEARTBEAT);
        loop {
            tokio::select! {
                signal = self.signals.recv() => match signal {
                    None => std::future::pending().await,
                    Some(StoreEvent::Authentication(name, _)) => self.renew(&name),
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
        let context = self.context.clone();
        // What was remembered in an earlier term may be out of date.
        context.forget_all();
        while self.signals.try_recv().is_ok() {}
        while self.pushes.try_recv().is_ok() {}
        let settings = &context.settings;
        let mut scheduler = PollScheduler::new(ConcurrencyLimits {
            quick: settings.concurrency,
            slow: settings.slow_concurrency,
        });
        let now = Instant::now();
        let (ids, names): (Vec<_>, Vec<Name>) = {
            let store = context.store();
            (store.ids(), store.all_authentications().map(|(name, _)| name.clone()).collect())
        };
        for (id, schedule) in &ids {
            scheduler.spread(id, now, *schedule);
        }
        context.events.cloud_events.update(&context.store());
        let mut running: FuturesUnordered<BoxFuture<'static, (Id, ProcessOutcome)>> = FuturesUnordered::new();
        // Small things beside: they have no place in the scheduler.
        let mut chores: FuturesUnordered<BoxFuture<'static, ()>> = FuturesUnordered::new();
        for name in names {
            chores.push(attend(context.clone(), name, false));
        }
        let mut heartbeat = tokio::time::interval(HEARTBEAT);
        let looks = settings.looks();
        let mut check = Instant::now() + looks;
        // Held by whoever looks at secrets: nobody begins anew while that takes its time.
        let looking = Arc::new(());
        loop {
            let now = Instant::now();
            while let Some(next) = scheduler.take(now) {
                running.push(Box::pin(process(context.clone(), next, self.jobs_seen)));
            }
            let next = scheduler.next();
            tokio::select! {
                () = told(stop) => {
                    let rest = async { while running.next().await.is_some() {} };
                    let _ = tokio::time::timeout(LAST_WORDS, rest).await;
                    return true;
                }
                () = context.client.leadership.lost() => return false,
                Some(signal) = self.signals.recv() => {
                    if let Some(chore) = self.signal(&mut scheduler, signal) {
                        chores.push(chore);
                    }
                }
                Some(told) = self.pushes.recv() => {
                    let context = context.clone();
                    chores.push(Box::pin(async move { pushed(&context, told).await }));
                }
                Some((id, ended)) = running.next() => {
                    let now = Instant::now();
                    if ended.is_gone && context.owner(&id).is_none() {
                        scheduler.remove(&id);
                        scheduler.done(&id, now);
                        continue;
                    }
                    scheduler.poll(&id, ended.schedule, now);
                    if ended.woke {
                        scheduler.hurry(&id, now);
                    }
                    if let Some(after) = ended.again {
                        scheduler.wake(&id, now + after);
                    }
                    scheduler.done(&id, now);
                }
                Some(()) = chores.next() => {}
                () = tokio::time::sleep_until(next.unwrap_or(now)), if next.is_some() => {}
                _ = heartbeat.tick() => {
                    self.beat();
                    let is_due = !looks.is_zero() && Instant::now() >= check;
                    if is_due && Arc::strong_count(&looking) == 1 {
                        check = Instant::now() + looks;
                        let (context, held) = (context.clone(), Arc::clone(&looking));
                        chores.push(Box::pin(async move {
                            look(context).await;
                            drop(held);
                        }));
                    }
                }
            }
        }
    }

    /// What a change means for the scheduler; what is to be done beside it.
    fn signal(&self, scheduler: &mut PollScheduler, signal: StoreEvent) -> Option<BoxFuture<'static, ()>> {
        let now = Instant::now();
        match signal {
            StoreEvent::New(id) | StoreEvent::Changed(id) | StoreEvent::Gone(id) => {
                self.wake(scheduler, &id, now)
            }
            StoreEvent::Unreadable(id, error) => {
                tracing::warn!(object = %id, error, "an object cannot be read and is left alone");
                self.complain(&id, &error);
                self.context.forget(&id);
                scheduler.remove(&id);
            }
            StoreEvent::Hpa(id, fingerprint) => {
                let known = self.context.known_entry(&id).and_then(|entry| entry.state().hpa);
                if known.is_some_and(|(_, found)| Some(found) != fingerprint) {
                    self.wake(scheduler, &id, now);
                }
            }
            StoreEvent::Target(id) => {
                let is_failing = |entry: &Arc<super::context::ObjectEntry>| entry.state().failures > 0;
                if self.context.known_entry(&id).as_ref().is_some_and(is_failing) {
                    self.wake(scheduler, &id, now);
                }
            }
            StoreEvent::Authentication(name, is_edited) => {
                self.renew(&name);
                let users = self.concerned(&name);
                // Many may use the same.
                for (place, id) in (0..).zip(&users) {
                    self.wake(scheduler, id, now + NEXT * place);
                }
                return Some(attend(self.context.clone(), name, is_edited));
            }
            StoreEvent::Destination => self.context.events.cloud_events.update(&self.context.store()),
        }
        None
    }

    /// An object that cannot be read gets an event, since nothing else can be written on it.
    fn complain(&self, id: &Id, error: &str) {
        let (reason, subject) = match id.kind {
            Kind::Object => ("ScaledObjectCheckFailed", EventSubject::Object),
            Kind::Job => ("ScaledJobCheckFailed", EventSubject::Job),
        };
        let metadata = ObjectMeta {
            namespace: id.namespace.to_string(),
            name: id.name.to_string(),
            ..ObjectMeta::default()
        };
        let event = Event::warning(reason, format!("it cannot be read: {error}"));
        self.context.events.record_reconcile(subject, &metadata, &event);
    }

    /// Asks for a turn in which the object is reconciled.
    fn wake(&self, scheduler: &mut PollScheduler, id: &Id, now: Instant) {
        if let Some(entry) = self.context.known_entry(id) {
            let mut object_state = entry.state();
            object_state.settled = false;
            object_state.failures = 0;
        }
        scheduler.add(id, now);
        scheduler.wake(id, now);
    }

    /// Whom a change of a TriggerAuthentication concerns: all that use it. To the original it matters when triggers are built
    /// (docs/spec/keda.md 2.9): what works is left alone.
    fn concerned(&self, name: &Name) -> Vec<Id> {
        let mut users = self.context.store().users(name);
        if self.context.settings.compat.is_strict() {
            let is_failing =
                |id: &Id| self.context.known_entry(id).is_some_and(|entry| entry.state().failures > 0);
            users.retain(is_failing);
        }
        users
    }

    /// Whoever is concerned is built anew.
    fn renew(&self, name: &Name) {
        for id in self.concerned(name) {
            if let Some(triggers) = self.context.known_entry(&id).and_then(|entry| entry.triggers()) {
                triggers.renew_users(|reference| authentication_name(&id.namespace, reference) == *name);
            }
        }
    }

    /// What is done every second.
    fn beat(&mut self) {
        let (wanted, has_jobs) = {
            let mut store = self.context.store();
            (store.target_kinds(), store.scaled_jobs.len() > 0)
        };
        self.context.reader.watched(self.watches.targets(&wanted));
        if has_jobs {
            self.jobs_seen = self.watches.jobs();
        }
        let since = self.pulse.began.get().map_or(0, |began| began.elapsed().as_secs());
        self.pulse.turned.store(since, Ordering::Relaxed);
    }

    /// Drops triggers that nobody asks.
    fn sweep(&self) {
        for (id, entry) in self.context.all_entries() {
            let used = entry.triggers().and_then(|triggers| triggers.last_used());
            if used.is_none_or(|used| used.elapsed() > UNUSED) {
                self.context.forget(&id);
            }
        }
    }
}

fn attend(context: Arc<OperatorContext>, name: Name, is_news: bool) -> BoxFuture<'static, ()> {
    Box::pin(async move { authentication(&context, &name, is_news).await })
}

/// Looks whether secrets and config maps in use have changed: whoever uses them is built anew.
async fn look(context: Arc<OperatorContext>) {
    let mut users: HashMap<SourceRef, Vec<Id>> = HashMap::new();
    for (id, entry) in context.all_entries() {
        let used: HashSet<SourceRef> = entry
            .triggers()
            .into_iter()
            .flat_map(|triggers| triggers.used())
            .map(|(object, _)| object)
            .collect();
        for object in used {
            users.entry(object).or_default().push(id.clone());
        }
    }
    let one = |(object, users): (SourceRef, Vec<Id>)| {
        let context = context.clone();
        async move {
            let Some(version) = context.builder.credentials.look(&object).await else { return };
            for id in users {
                if let Some(triggers) = context.known_entry(&id).and_then(|entry| entry.triggers()) {
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

impl OperatorHandle {
    /// Who answers `external.metrics.k8s.io`.
    pub fn external_metrics(&self) -> Arc<dyn ExternalMetricsProvider> {
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
    pub fn subscribe_raw_metrics(&self, subscriber: Arc<dyn RawMetricsSubscriber>) {
        self.context.raw_metrics.subscribe(subscriber);
    }

    /// Figures for Prometheus, as text.
    pub fn exported_metrics(&self) -> String {
        exported_metrics::text(&self.context)
    }

    /// Whether everything that is watched was seen at least once.
    pub fn synced(&self) -> bool {
        self.pulse.synced.load(Ordering::Relaxed)
    }

    /// Whether the loop still turns: not if it has been silent for this long.
    pub fn is_alive(&self, limit: Duration) -> bool {
        let Some(began) = self.pulse.began.get().filter(|_| self.synced()) else { return true };
        let silent = began.elapsed().as_secs().saturating_sub(self.pulse.turned.load(Ordering::Relaxed));
        silent <= limit.as_secs()
    }

    /// What was decided about each object.
    pub fn records(&self) -> Records {
        self.context.records.clone()
    }

    /// SampleQuery many objects there are of each kind.
    pub fn objects(&self) -> (usize, usize) {
        let store = self.context.store();
        (store.objects.len(), store.scaled_jobs.len())
    }
}
