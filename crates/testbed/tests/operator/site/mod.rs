//! A cluster with KEDA's definitions and the roles of `deploy/operator`, sources that say what a test tells them to, and
//! namespaces in which operators act, each in its own.

mod objects;
mod operator;
mod scaler;
mod source;

use http::Method;
use kube::Client;
use serde_json::Value;
use testbed::proxy::Proxy;
use testbed::twin::{Cluster, Failure, Workloads};
use tokio::sync::OnceCell;

pub(crate) use crate::shared::kubectl::Kubectl;
pub(crate) use crate::shared::manifests::folder;
pub(crate) use crate::shared::program::{free_port, program};
pub(crate) use crate::shared::{send, until};
pub(crate) use objects::{behavior, deployment, metrics_api, scripted};
pub(crate) use operator::{ACCOUNT, Operator, SYSTEM, check_log, with_token};
pub(crate) use source::{Says, Sources};

use crate::shared::manifests;
use crate::shared::sites::{Sites, side_by_side};
use scaler::Scaler;

static SITES: Sites<Site> = Sites::new();
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

/// Runs a test on both clusters at once.
pub(crate) fn on_both<T: Future<Output = ()>>(test: impl Fn(Plot) -> T + Sync) -> Result<(), Failure> {
    side_by_side(|real| on_one(&test, real))
}

async fn on_one<T: Future<Output = ()>>(test: &impl Fn(Plot) -> T, real: bool) -> Result<(), Failure> {
    let Some(site) = SITES.of(real, Workloads::On, site).await? else { return Ok(()) };
    let session = site.cluster.session("operator").await?;
    let plot = Plot { site, namespace: session.namespace().to_owned() };
    eprintln!("on {} in {}", site.cluster.name, plot.namespace);
    test(plot).await;
    site.cluster.leave(&session).await;
    Ok(())
}

async fn site(cluster: Cluster) -> Option<Site> {
    // There is no kubectl where there is no Go to build it with.
    testbed::Parts::ensure().ok()?;
    let client = &cluster.client;
    let definitions = folder("deploy/crds/keda");
    let quiet = folder("deploy/operator").into_iter().filter(|object| !runs(object));
    let objects: Vec<Value> =
        definitions.iter().cloned().chain(folder("deploy").into_iter().take(1)).chain(quiet).collect();
    apply(&cluster, &objects).await;
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

/// Applies objects.
pub(crate) async fn apply(cluster: &Cluster, objects: &[Value]) {
    manifests::apply(&cluster.client, cluster.name, objects, |_| true).await;
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
    /// A namespace on a cluster in memory that nobody else has, for who acts in all namespaces. It lives as long as the
    /// process. None where there is no kubectl.
    pub(crate) async fn alone() -> Option<Self> {
        let cluster = Cluster::local(Workloads::On).await.unwrap();
        let site: &'static Site = Box::leak(Box::new(site(cluster).await?));
        let session = site.cluster.session("alone").await.unwrap();
        Some(Self { site, namespace: session.namespace().to_owned() })
    }

    /// Another namespace on the same site.
    pub(crate) async fn another(&self) -> Self {
        let session = self.site.cluster.session("another").await.unwrap();
        Self { site: self.site, namespace: session.namespace().to_owned() }
    }

    /// The same on the stage, where HPAs are acted on.
    pub(crate) async fn on_stage(&self) -> (Self, &'static Operator) {
        let stage = self.site.stage().await;
        (Self { site: self.site, namespace: stage.namespace.clone() }, &stage.operator)
    }

    pub(crate) fn kubectl(&self) -> Kubectl {
        Kubectl::new(&self.site.cluster.kubeconfig, &self.namespace).unwrap()
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
