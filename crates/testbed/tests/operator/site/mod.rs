//! A cluster with KEDA's definitions and the roles of `deploy/operator`, sources that say what a test tells them to, and
//! namespaces in which operators act, each in its own.

mod folder;
mod kubectl;
mod objects;
mod operator;
mod scaler;
mod source;

use std::panic::resume_unwind;
use std::sync::LazyLock;
use std::time::Duration;

use http::{Method, Request};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use testbed::proxy::Proxy;
use testbed::twin::{Cluster, Failure, Workloads};
use tokio::runtime::Runtime;
use tokio::sync::OnceCell;

pub(crate) use folder::{apply, folder};
pub(crate) use kubectl::Kubectl;
pub(crate) use objects::{behavior, deployment, metrics_api, scripted};
pub(crate) use operator::{ACCOUNT, Operator, SYSTEM, free_port, program};
pub(crate) use source::{Says, Sources};

use scaler::Scaler;

/// How long to wait for something before giving up: busy machines are no reason to fail.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);

/// One for all: what a site holds must outlive each test.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
});
static REAL: OnceCell<Option<Site>> = OnceCell::const_new();
static LOCAL: OnceCell<Option<Site>> = OnceCell::const_new();
static SOURCES: OnceCell<Sources> = OnceCell::const_new();

/// One cluster, and what all tests on it share.
pub(crate) struct Site {
    pub(crate) cluster: Cluster,
    pub(crate) sources: &'static Sources,
    stage: OnceCell<Stage>,
}

/// The one operator whose metrics the API server serves, and whoever acts on HPAs, both in one namespace: a cluster has
/// one server of external metrics at a time.
pub(crate) struct Stage {
    pub(crate) namespace: String,
    pub(crate) operator: Operator,
    /// What it asks the API server for.
    pub(crate) proxy: Proxy,
    _scaler: Scaler,
}

/// A namespace on a site.
#[derive(Clone)]
pub(crate) struct Plot {
    pub(crate) site: &'static Site,
    pub(crate) namespace: String,
}

/// Runs a test on both clusters at once: most of it is waiting.
pub(crate) fn on_both<T: Future<Output = ()>>(test: impl Fn(Plot) -> T + Sync) -> Result<(), Failure> {
    let test = &test;
    std::thread::scope(|scope| {
        let ended = [true, false].map(|real| scope.spawn(move || RUNTIME.block_on(on_one(test, real))));
        let ended = ended.map(std::thread::ScopedJoinHandle::join);
        ended.into_iter().try_for_each(|ended| ended.unwrap_or_else(|panic| resume_unwind(panic)))
    })
}

async fn on_one<T: Future<Output = ()>>(test: &impl Fn(Plot) -> T, real: bool) -> Result<(), Failure> {
    let site = if real {
        REAL.get_or_try_init(async || Ok::<_, Failure>(site(Cluster::real(Workloads::On).await?).await))
            .await?
    } else {
        LOCAL
            .get_or_try_init(async || {
                Ok::<_, Failure>(site(Some(Cluster::local(Workloads::On).await?)).await)
            })
            .await?
    };
    // That the real one cannot be had was said.
    let Some(site) = site else { return Ok(()) };
    let session = site.cluster.session("operator").await?;
    let plot = Plot { site, namespace: session.namespace().to_owned() };
    eprintln!("on {} in {}", site.cluster.name, plot.namespace);
    test(plot).await;
    site.cluster.leave(&session).await;
    Ok(())
}

async fn site(cluster: Option<Cluster>) -> Option<Site> {
    let cluster = cluster?;
    // There is no kubectl where there is no Go to build it with.
    testbed::Parts::ensure().ok()?;
    let client = &cluster.client;
    let definitions = folder("deploy/crds/keda");
    apply(&cluster, &definitions).await;
    apply(&cluster, &folder("deploy")[..1]).await;
    apply(
        &cluster,
        &folder("deploy/operator").into_iter().filter(|object| !runs(object)).collect::<Vec<_>>(),
    )
    .await;
    for definition in &definitions {
        let spec = &definition["spec"];
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let path = format!("/apis/{}/v1alpha1/{}", text(&spec["group"]), text(&spec["names"]["plural"]));
        until(&path, async || {
            let (code, said) = send(client, Method::GET, &path, None).await;
            if code == 200 { Ok(()) } else { Err(said) }
        })
        .await;
    }
    let sources = SOURCES.get_or_init(Sources::start).await;
    Some(Site { cluster, sources, stage: OnceCell::new() })
}

/// Whether an object of `deploy/operator` is for a cluster with pods, or leads to them.
fn runs(object: &Value) -> bool {
    let kind = object["kind"].as_str().unwrap();
    matches!(kind, "Deployment" | "Service" | "APIService" | "ValidatingWebhookConfiguration")
}

/// Sends a request; code and answer.
pub(crate) async fn send(client: &Client, method: Method, path: &str, body: Option<&Value>) -> (u16, Value) {
    let content = match method {
        Method::PATCH if path.contains("fieldManager=") => "application/apply-patch+yaml",
        Method::PATCH => "application/merge-patch+json",
        _ => "application/json",
    };
    let body = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
    let request = Request::builder().method(method).uri(path).header("content-type", content);
    let answer = client.send(request.body(Body::from(body)).unwrap()).await.unwrap();
    let code = answer.status().as_u16();
    let text = answer.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&text).unwrap_or_else(|_| json!(String::from_utf8_lossy(&text))))
}

/// Waits until `look` is content; what it saw last is in the message if it never is.
pub(crate) async fn until<T: std::fmt::Debug>(what: &str, mut look: impl AsyncFnMut() -> Result<(), T>) {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
        match look().await {
            Ok(()) => return,
            Err(last) if tokio::time::Instant::now() > deadline => {
                panic!("{what} did not happen; last seen: {last:#?}")
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

impl Site {
    /// The operator that all HPAs of its namespace are served by, started when it is asked for first.
    pub(crate) async fn stage(&'static self) -> &'static Stage {
        self.stage
            .get_or_init(async || {
                let session = self.cluster.session("stage").await.unwrap();
                let plot = Plot { site: self, namespace: session.namespace().to_owned() };
                let (operator, proxy) = Operator::on_stage(&plot).await;
                let scaler = Scaler::start(&plot).await;
                Stage { namespace: plot.namespace, operator, proxy, _scaler: scaler }
            })
            .await
    }
}

impl Plot {
    /// The same on the stage, where HPAs are acted on.
    pub(crate) async fn on_stage(&self) -> (Self, &'static Operator) {
        let stage = self.site.stage().await;
        (Self { site: self.site, namespace: stage.namespace.clone() }, &stage.operator)
    }

    pub(crate) fn client(&self) -> &Client {
        &self.site.cluster.client
    }

    /// What a source of this namespace says from now on.
    pub(crate) fn say(&self, source: &str, says: Says) {
        self.site.sources.say(&self.namespace, source, says);
    }

    /// A path with the namespace of the test for `{ns}`.
    pub(crate) async fn get(&self, path: &str) -> (u16, Value) {
        self.send(Method::GET, path, None).await
    }

    pub(crate) async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> (u16, Value) {
        send(self.client(), method, &path.replace("{ns}", &self.namespace), body).await
    }

    /// Waits until something is so, and says on which cluster it was not.
    pub(crate) async fn until<T: std::fmt::Debug>(
        &self,
        what: &str,
        look: impl AsyncFnMut() -> Result<(), T>,
    ) {
        until(&format!("on {} in {}: {what}", self.site.cluster.name, self.namespace), look).await;
    }
}
