//! A real control plane with both controllers, each in its own namespace.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use api::decisions::DecisionMode;
use cluster::Clock;
use cluster::discovery::Discovery;
use cluster::events::EventRecorder;
use cluster::lease::Leadership;
use cluster::metrics::MetricsClient;
use cluster::request::{self, ApiError, Request};
use controllers::hpa::{
    HpaController, HpaControllerHandle, HpaControllerParts, HpaSettings, ProfileChoice, Records,
};
use http::Method;
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use localkube::metrics::{MetricsApi, Script};
use serde_json::{Value, json};
use testbed::peer::{Peer, PeerOptions};
use testbed::proxy::{Fault, Proxy, Rule, Rules};
use testbed::{Access, ControlPlane, Options, Release};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::scenario::target;

/// Configuration of both controllers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    /// The title for people.
    pub(crate) name: &'static str,
    /// The release of Kubernetes, which ours reproduces.
    pub(crate) release: Release,
    /// `HPAScaleToZero`, on the API server too.
    pub(crate) to_zero: bool,
    /// `--horizontal-pod-autoscaler-downscale-stabilization`.
    pub(crate) stabilization: Duration,
    /// `--horizontal-pod-autoscaler-tolerance`.
    pub(crate) tolerance: f64,
    /// Our controller gets another tolerance than theirs, so that the comparison must find differences.
    pub(crate) sabotage: bool,
}

/// Time between two reconciles of an autoscaler.
pub(crate) const SYNC_PERIOD: Duration = Duration::from_secs(1);

/// The flag that disables workload controllers.
pub(super) const NO_WORKLOADS: &str = "--controllers=-deployment-controller,-replicaset-controller,-statefulset-controller,\
    -replicationcontroller-controller,-job-controller,-cronjob-controller,-daemonset-controller,-ttl-controller,\
    -pod-garbage-collector-controller,-taint-eviction-controller,-ttl-after-finished-controller,-disruption-controller";

/// Time without requests after which a controller counts as held.
const IDLE_TIME: Duration = Duration::from_millis(150);
/// Time until the watch has delivered a controller's own write.
const WATCH_DELAY: Duration = Duration::from_millis(200);
/// How long a reconcile that has begun may take.
const RECONCILE_TIMEOUT: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(30);
/// How long one request, and the start of a controller, may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Both controllers and their cluster. Fields are dropped in this order.
pub(crate) struct HpaEnv {
    ours: RunningController,
    _peer: Peer,
    peers_rules: Rules,
    hold: watch::Sender<bool>,
    _api: MetricsApi,
    pub(crate) script: Script,
    pub(crate) client: Client,
    /// Theirs and ours.
    pub(crate) namespaces: [String; 2],
    _plane: ControlPlane,
}

struct RunningController {
    handle: HpaControllerHandle,
    settings: HpaSettings,
    rules: Rules,
    task: JoinHandle<()>,
    _stop: watch::Sender<bool>,
    _proxy: Proxy,
}

/// Starts the control plane; blocks.
pub(crate) fn plane(setting: &Setting) -> anyhow::Result<ControlPlane> {
    let options = Options {
        release: Some(setting.release),
        controller_manager_args: vec![NO_WORKLOADS.to_owned()],
        feature_gates: gates(setting),
        ..Options::default()
    };
    Ok(ControlPlane::start(&options)?)
}

fn gates(setting: &Setting) -> std::collections::BTreeMap<String, bool> {
    if setting.to_zero { [("HPAScaleToZero".to_owned(), true)].into() } else { [].into() }
}

impl HpaEnv {
    /// Starts both controllers, held.
    pub(crate) async fn start(plane: ControlPlane, setting: &Setting) -> anyhow::Result<Self> {
        let access = plane.access().clone();
        let client = testbed::harness::connect(&access.kubeconfig_for(access.admin())).await?;
        let api = MetricsApi::start(localkube::metrics::MetricsSettings::default()).await?;
        api.register(&client, "kube-system").await?;
        let namespaces = ["theirs", "ours"].map(str::to_owned);
        let [theirs, ours] = &namespaces;
        prepare(&client, &[theirs, ours]).await?;
        let (hold, held) = watch::channel(true);
        let peer = peer(&access, setting, theirs).await?;
        let peers_rules = peer.rules().context("the peer has no proxy")?;
        // Every reconcile begins with a GET of the scale, before pods and metrics are read.
        peers_rules.add(Rule::new(Fault::Hold(held)).method(Method::GET).suffix("/scale"));
        // A key that was held is reconciled again as soon as its reconcile ends, often before the watch has delivered its own
        // write, so that the next write conflicts. A delay of the write avoids that.
        let status =
            Rule::new(Fault::DelayResponse(WATCH_DELAY)).method(Method::PUT).prefix("/apis/autoscaling/");
        peers_rules.add(status.suffix("/status"));
        let ours = RunningController::start(&access, setting, ours).await?;
        let script = api.script();
        Ok(Self {
            ours,
            _peer: peer,
            peers_rules,
            hold,
            _api: api,
            script,
            client,
            namespaces,
            _plane: plane,
        })
    }

    /// Releases both controllers, so that they reconcile.
    pub(crate) fn open(&self) {
        self.peers_rules.clear_log();
        self.ours.rules.clear_log();
        self.ours.handle.update(self.ours.settings.clone());
        let _ = self.hold.send(false);
    }

    /// Holds both controllers; reconciles that have begun end first.
    pub(crate) async fn close(&self) -> anyhow::Result<()> {
        self.ours.handle.update(HpaSettings { mode: DecisionMode::Off, ..self.ours.settings.clone() });
        let _ = self.hold.send(true);
        let (until, mut before, mut since) =
            (Instant::now() + RECONCILE_TIMEOUT, [(usize::MAX, 0); 2], Instant::now());
        loop {
            let now = [traffic(&self.peers_rules), traffic(&self.ours.rules)];
            if now != before || now.iter().any(|(_, waiting)| *waiting > 0) {
                (before, since) = (now, Instant::now());
            }
            if since.elapsed() > IDLE_TIME {
                break;
            }
            if Instant::now() > until {
                bail!(
                    "the controllers still send requests after {RECONCILE_TIMEOUT:?}: {before:?} requests and requests under way"
                );
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        if self.ours.task.is_finished() {
            bail!("our controller has ended");
        }
        Ok(())
    }

    /// Sends a request to the API server.
    pub(crate) async fn send(&self, method: Method, path: &str, body: &Value) -> Result<Value, ApiError> {
        send(&self.client, method, path, body).await
    }
}

impl Drop for RunningController {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl RunningController {
    async fn start(access: &Access, setting: &Setting, namespace: &str) -> anyhow::Result<Self> {
        let proxy = Proxy::start(&access.kubeconfig_for(access.admin())).await?;
        let client = connect(access, "ours", &proxy.kubeconfig()).await?;
        let mut config = engine::ControllerConfig {
            downscale_stabilization: SignedDuration::try_from(setting.stabilization)?,
            tolerance: setting.tolerance + if setting.sabotage { 0.2 } else { 0.0 },
            ..engine::ControllerConfig::of(setting.release.kubernetes)
        };
        config.gates.scale_to_zero |= setting.to_zero;
        let settings = HpaSettings {
            config: Arc::new(config),
            kubernetes: ProfileChoice::Fixed(setting.release.kubernetes),
            period: SYNC_PERIOD,
            namespaces: vec![namespace.to_owned()],
            ..HpaSettings::default()
        };
        let (clock, discovery) = (Clock::system(), Discovery::new(client.clone()));
        let (controller, handle) = HpaController::new(HpaControllerParts {
            samples: MetricsClient::new(client.clone(), discovery.clone(), SYNC_PERIOD / 4),
            recorder: EventRecorder::start(client.clone(), "horizontal-pod-autoscaler", clock.clone()),
            client,
            discovery,
            leadership: Leadership::without_election(),
            clock,
            settings: HpaSettings { mode: DecisionMode::Off, ..settings.clone() },
            records: Records::default(),
        });
        let (stop, stopped) = watch::channel(false);
        let task = tokio::spawn(controller.run(stopped));
        until_synced("our controller", || handle.synced()).await?;
        Ok(Self { handle, settings, rules: proxy.rules(), task, _stop: stop, _proxy: proxy })
    }
}

async fn peer(access: &Access, setting: &Setting, namespace: &str) -> anyhow::Result<Peer> {
    let options = PeerOptions {
        namespace: Some(namespace.to_owned()),
        sync_period: Some(SYNC_PERIOD),
        downscale_stabilization: Some(setting.stabilization),
        tolerance: Some(setting.tolerance),
        // A held reconcile must not block others.
        concurrent_syncs: Some(200),
        feature_gates: gates(setting),
        ..PeerOptions::default()
    };
    Ok(Peer::start(access, &options).await?)
}

/// The number of requests, and of those under way, without requests that are held.
fn traffic(rules: &Rules) -> (usize, usize) {
    let log = rules.log();
    let held = |path: &str, method: &Method| method == Method::GET && path.ends_with("/scale");
    let waiting = log.iter().filter(|entry| entry.status.is_none() && !held(&entry.path, &entry.method));
    (log.iter().filter(|entry| !held(&entry.path, &entry.method)).count(), waiting.count())
}

/// Defines the custom resources of scale targets and creates the namespaces. This must happen before the controllers start,
/// because they list the served kinds seldom.
pub(super) async fn prepare(client: &Client, namespaces: &[&str]) -> anyhow::Result<()> {
    for definition in target::definitions() {
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        send(client, Method::POST, path, &definition).await.context("failed to define a custom resource")?;
    }
    for namespace in namespaces {
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        let created = send(client, Method::POST, "/api/v1/namespaces", &object).await;
        created.context("failed to create a namespace")?;
        until_found(client, &format!("/api/v1/namespaces/{namespace}/serviceaccounts/default")).await?;
        for kind in [target::Kind::Worker, target::Kind::Blind] {
            until_found(client, &kind.collection().replace("{ns}", namespace)).await?;
        }
    }
    Ok(())
}

/// Waits until a controller has filled its stores.
pub(super) async fn until_synced(what: &str, synced: impl Fn() -> bool) -> anyhow::Result<()> {
    let until = Instant::now() + REQUEST_TIMEOUT;
    while !synced() {
        anyhow::ensure!(
            Instant::now() < until,
            "{what} has not synced after {} s",
            REQUEST_TIMEOUT.as_secs()
        );
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    Ok(())
}

/// A client with Plimsoll's connection code, from the text of a kubeconfig.
pub(super) async fn connect(access: &Access, name: &str, kubeconfig: &str) -> anyhow::Result<Client> {
    let file = access.folder.join(format!("{name}.kubeconfig"));
    std::fs::write(&file, kubeconfig).context("failed to write a kubeconfig")?;
    let target = cluster::connect::ConnectTarget { kubeconfig: Some(file), context: None };
    Ok(cluster::connect::connect(&target).await?.client)
}

async fn until_found(client: &Client, path: &str) -> anyhow::Result<()> {
    let until = Instant::now() + REQUEST_TIMEOUT;
    while let Err(error) = send(client, Method::GET, path, &Value::Null).await {
        anyhow::ensure!(Instant::now() < until, "{path}: {error}");
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    Ok(())
}

/// Sends a request to the API server; a list as the body of a patch is a JSON patch.
pub(super) async fn send(
    client: &Client,
    method: Method,
    path: &str,
    body: &Value,
) -> Result<Value, ApiError> {
    let content = match (&method, body) {
        (&Method::PATCH, Value::Array(_)) => "application/json-patch+json",
        (&Method::PATCH, _) => "application/merge-patch+json",
        _ => "application/json",
    };
    let body = (!body.is_null()).then(|| (content, body.to_string().into_bytes()));
    let request = Request { method, body, ..Request::get(path, "", REQUEST_TIMEOUT) };
    let response = request::send(client, request).await?;
    Ok(serde_json::from_slice(&response).unwrap_or(Value::Null))
}

/// The current time.
pub(crate) fn now() -> Timestamp {
    Clock::system().now()
}
