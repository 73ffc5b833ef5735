//! A cluster with KEDA's definitions and the roles of `deploy/operator`, sources whose responses a test sets, and
//! namespaces in which operators act, each in its own.

mod in_process;
mod objects;
mod operator;
mod scaler;
mod source;

use http::Method;
use kube::Client;
use serde_json::Value;
use testbed::ControlPlane;
use testbed::harness::{Cluster, Failure, REAL, Workloads};
use testbed::proxy::Proxy;
use tokio::sync::OnceCell;

pub(crate) use crate::shared::kubectl::Kubectl;
pub(crate) use crate::shared::manifests::folder;
pub(crate) use crate::shared::program::{free_port, program};
pub(crate) use in_process::InProcessOperator;
pub(crate) use objects::{behavior, deployment, metrics_api, scripted};
pub(crate) use operator::{ACCOUNT, Operator, SYSTEM_NAMESPACE, check_log, with_token};
pub(crate) use scaler::Scaler;
pub(crate) use source::{SourceResponse, Sources};
pub(crate) use testbed::harness::{send, until};

use crate::shared::environments::{Environments, side_by_side};
use crate::shared::manifests;

static ENVIRONMENTS: Environments<OperatorEnv> = Environments::new();
static SOURCES: OnceCell<Sources> = OnceCell::const_new();

/// One cluster, and what all tests on it share.
pub(crate) struct OperatorEnv {
    pub(crate) cluster: Cluster,
    pub(crate) sources: &'static Sources,
    serving: OnceCell<ServingOperator>,
}

/// The one operator whose metrics the API server serves, and a controller that acts on HPAs, both in one namespace: a cluster has
/// one server of external metrics at a time.
pub(crate) struct ServingOperator {
    pub(crate) namespace: String,
    pub(crate) operator: Operator,
    /// Records its requests to the API server.
    pub(crate) proxy: Proxy,
    _scaler: Scaler,
}

/// A namespace of a test.
#[derive(Clone)]
pub(crate) struct TestNamespace {
    pub(crate) env: &'static OperatorEnv,
    pub(crate) namespace: String,
}

/// Runs a test on both clusters at once.
pub(crate) fn on_both<T: Future<Output = ()>>(
    test: impl Fn(TestNamespace) -> T + Sync,
) -> Result<(), Failure> {
    side_by_side(|real| on_one(&test, real))
}

async fn on_one<T: Future<Output = ()>>(
    test: &impl Fn(TestNamespace) -> T,
    real: bool,
) -> Result<(), Failure> {
    let Some(env) = ENVIRONMENTS.of(real, Workloads::On, env).await? else { return Ok(()) };
    let session = env.cluster.session("operator").await?;
    let ns = TestNamespace { env, namespace: session.namespace().to_owned() };
    eprintln!("on {} in {}", env.cluster.name, ns.namespace);
    test(ns).await;
    env.cluster.delete_namespace(&session).await;
    Ok(())
}

async fn env(cluster: Cluster) -> Option<OperatorEnv> {
    // Without Go there is no kubectl.
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
            let (code, response) = send(client, Method::GET, &path, None).await;
            if code == 200 { Ok(()) } else { Err(response) }
        })
        .await;
    }
    let sources = SOURCES.get_or_init(Sources::start).await;
    Some(OperatorEnv { cluster, sources, serving: OnceCell::new() })
}

/// Whether an object of `deploy/operator` needs pods.
fn runs(object: &Value) -> bool {
    let kind = object["kind"].as_str().unwrap();
    matches!(kind, "Deployment" | "Service" | "APIService" | "ValidatingWebhookConfiguration")
}

/// Applies objects.
pub(crate) async fn apply(cluster: &Cluster, objects: &[Value]) {
    manifests::apply(&cluster.client, cluster.name, objects, |_| true).await;
}

impl OperatorEnv {
    /// The operator that serves all HPAs of its namespace, started on first use.
    pub(crate) async fn serving(&'static self) -> &'static ServingOperator {
        self.serving
            .get_or_init(async || {
                let session = self.cluster.session("serving").await.unwrap();
                let ns = TestNamespace { env: self, namespace: session.namespace().to_owned() };
                let (operator, proxy) = Operator::serving(&ns).await;
                let scaler = Scaler::start(&ns).await;
                ServingOperator { namespace: ns.namespace, operator, proxy, _scaler: scaler }
            })
            .await
    }
}

impl TestNamespace {
    /// A namespace on a cluster in memory of its own, for operators that watch all namespaces. The cluster lives as long as the
    /// process. None where there is no kubectl.
    pub(crate) async fn alone() -> Option<Self> {
        let cluster = Cluster::local(Workloads::On).await.unwrap();
        let env: &'static OperatorEnv = Box::leak(Box::new(env(cluster).await?));
        let session = env.cluster.session("alone").await.unwrap();
        Some(Self { env, namespace: session.namespace().to_owned() })
    }

    /// A namespace on a real cluster that no other test uses, for tests that lead APIs to other servers. None where there is no kubectl.
    pub(crate) async fn on_plane(plane: &'static ControlPlane) -> Result<Option<Self>, Failure> {
        let access = plane.access();
        let mut cluster = Cluster::reached(REAL, &access.kubeconfig_for(access.admin())).await?;
        cluster.access = Some(access);
        let Some(env) = env(cluster).await else { return Ok(None) };
        let env: &'static OperatorEnv = Box::leak(Box::new(env));
        let session = env.cluster.session("alone").await?;
        Ok(Some(Self { env, namespace: session.namespace().to_owned() }))
    }

    /// Another namespace on the same cluster.
    pub(crate) async fn another(&self) -> Self {
        let session = self.env.cluster.session("another").await.unwrap();
        Self { env: self.env, namespace: session.namespace().to_owned() }
    }

    /// The namespace of the serving operator, where HPAs are acted on.
    pub(crate) async fn serving(&self) -> (Self, &'static Operator) {
        let serving = self.env.serving().await;
        (Self { env: self.env, namespace: serving.namespace.clone() }, &serving.operator)
    }

    pub(crate) fn kubectl(&self) -> Kubectl {
        Kubectl::new(&self.env.cluster.kubeconfig, &self.namespace).unwrap()
    }

    pub(crate) fn client(&self) -> &Client {
        &self.env.cluster.client
    }

    /// Sets the response of a source of this namespace.
    pub(crate) fn set_response(&self, source: &str, says: SourceResponse) {
        self.env.sources.set_response(&self.namespace, source, says);
    }

    /// Reads a path, in which `{ns}` stands for the namespace of the test.
    pub(crate) async fn get(&self, path: &str) -> (u16, Value) {
        self.send(Method::GET, path, None).await
    }

    pub(crate) async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> (u16, Value) {
        send(self.client(), method, &path.replace("{ns}", &self.namespace), body).await
    }

    /// Waits until `look` succeeds; a failure names the cluster.
    pub(crate) async fn until<T: std::fmt::Debug>(
        &self,
        what: &str,
        look: impl AsyncFnMut() -> Result<(), T>,
    ) {
        until(&format!("on {} in {}: {what}", self.env.cluster.name, self.namespace), look).await;
    }
}
