//! A cluster in memory with a real operator, and a namespace that is not the tenant's.

use std::sync::Arc;
use std::time::Duration;

use cluster::Clock;
use cluster::discovery::Discovery;
use cluster::events::EventRecorder;
use cluster::lease::Leadership;
use cluster::request::{ApiError, Request, send};
use http::Method;
use kube::Client;
use localkube::{Cluster, Options, Running};
use serde_json::{Value, json};
use sources::http::Secret;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::super::env::definitions;
use super::canaries::{OTHER_SECRET, OperatorFiles, RecordingServer, VAULT_TOKEN};
use crate::hpa::Records;
use crate::operator::auth::{AuthRules, VaultRules};
use crate::operator::operator_identity::IdentityRules;
use crate::operator::operator_identity::audiences::TokenAudiences;
use crate::operator::operator_identity::outbound::OutboundFilter;
use crate::operator::{Operator, OperatorHandle, OperatorParts, OperatorSettings};

/// Time limit of every wait.
const WAIT_TIMEOUT: Duration = Duration::from_mins(4);

pub(super) struct HostileEnv {
    /// Keeps the cluster.
    _running: Running,
    pub(super) client: Client,
    pub(super) handle: OperatorHandle,
    /// The server of the tenant.
    pub(super) server: RecordingServer,
    /// A Vault that an administrator listed.
    pub(super) listed: RecordingServer,
    pub(super) files: OperatorFiles,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
    recorder: EventRecorder,
}

/// HTTP settings of scalers: they may connect to loopback, where the tenant's server is.
pub(super) fn web() -> scalers::web::HttpSettings {
    scalers::web::HttpSettings::allowing_loopback()
}

/// A cluster with the tenant's namespace `shop` and another one.
pub(super) async fn cluster() -> (Running, Client) {
    let running = Cluster::start(Options { workloads: false, ..Options::default() }).await.unwrap();
    let client = running.client();
    let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    for definition in definitions() {
        create(&client, crds, &definition).await.unwrap();
    }
    for namespace in ["shop", "other", "keda"] {
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        create(&client, "/api/v1/namespaces", &object).await.unwrap();
        let value = if namespace == "shop" { "7" } else { OTHER_SECRET };
        let core = |kind: &str| json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "canary"}});
        let mut secret = core("Secret");
        secret["stringData"] = json!({"token": value});
        let mut map = core("ConfigMap");
        map["data"] = json!({"token": value});
        for (resource, object) in
            [("secrets", secret), ("configmaps", map), ("serviceaccounts", core("ServiceAccount"))]
        {
            create(&client, &format!("/api/v1/namespaces/{namespace}/{resource}"), &object).await.unwrap();
        }
    }
    let secrets = json!([{"parameter": "token", "name": "canary", "key": "token"}]);
    let authentication = json!({
        "apiVersion": "keda.sh/v1alpha1", "kind": "TriggerAuthentication", "metadata": {"name": "canary"},
        "spec": {"secretTargetRef": secrets},
    });
    create(&client, "/apis/keda.sh/v1alpha1/namespaces/other/triggerauthentications", &authentication)
        .await
        .unwrap();
    (running, client)
}

impl HostileEnv {
    pub(super) async fn start() -> Self {
        let (running, client) = cluster().await;
        let (server, listed) = (RecordingServer::start().await, RecordingServer::start().await);
        let files = OperatorFiles::new("operator");
        let settings = OperatorSettings {
            http_timeout: Duration::from_secs(1),
            source_deadline: Duration::from_secs(2),
            file_root: Some(files.folder().to_owned()),
            ..OperatorSettings::default()
        };
        let filter = json!({"hashiCorpVault": {"allowedEndpoints": [listed.url()]}});
        let identity = IdentityRules {
            outbound: OutboundFilter::parse(&filter.to_string()).unwrap(),
            audiences: TokenAudiences::parse("- audience: vault").unwrap(),
            own_token_file: files.path("token").into(),
            vault_token_file: files.path("vault-token").into(),
            ..IdentityRules::default()
        };
        let vault = VaultRules { token: Some(Secret::new(VAULT_TOKEN)), ..VaultRules::default() };
        let clock = Clock::system();
        let recorder = EventRecorder::start(client.clone(), "keda-operator", clock.clone());
        let (operator, handle) = Operator::new(OperatorParts {
            client: client.clone(),
            discovery: Discovery::new(client.clone()),
            leadership: Leadership::without_election(),
            recorder: recorder.clone(),
            clock,
            auth: Some(AuthRules { vault, identity, ..AuthRules::from(&settings) }),
            settings,
            web: web(),
            samples: None,
            build: None,
            records: Records::default(),
        });
        let (stop, stopped) = watch::channel(false);
        let task = tokio::spawn(operator.run(stopped));
        let env = Self { _running: running, client, handle, server, listed, files, stop, task, recorder };
        env.until("the operator sees the cluster", async || env.handle.synced().then_some(()).ok_or(()))
            .await;
        env
    }

    /// Waits for something; what is missing is shown in the end.
    pub(super) async fn until<E: std::fmt::Debug>(
        &self,
        what: &str,
        mut so: impl AsyncFnMut() -> Result<(), E>,
    ) {
        let began = Instant::now();
        while let Err(missing) = so().await {
            assert!(began.elapsed() < WAIT_TIMEOUT, "in vain: {what}: {missing:?}");
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// Creates an object of the tenant; false if the API server refuses it.
    pub(super) async fn create(&self, group: &str, resource: &str, object: &Value) -> bool {
        let path = format!("{group}/namespaces/shop/{resource}");
        match create(&self.client, &path, object).await {
            Ok(()) => true,
            Err(error) => {
                assert!(matches!(error.code, Some(400 | 422)), "{error}: {object}");
                false
            }
        }
    }

    /// Creates a deployment of the tenant.
    pub(super) async fn deployment(&self, name: &str) {
        let labels = json!({"app": name});
        let template =
            json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
        let spec = json!({"replicas": 0, "selector": {"matchLabels": labels}, "template": template});
        let object =
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec});
        assert!(self.create("/apis/apps/v1", "deployments", &object).await);
    }

    pub(super) async fn list(&self, path: &str) -> Vec<Value> {
        let answer = send(&self.client, Request::get(path, "", Duration::from_secs(20))).await.unwrap();
        let mut list: Value = serde_json::from_slice(&answer).unwrap();
        std::mem::take(list["items"].as_array_mut().unwrap())
    }

    /// Waits until every ScaledObject and ScaledJob of the tenant was reconciled, and polled if it could be: a poll queries the
    /// control trigger of the object.
    pub(super) async fn until_all_are_processed(&self) {
        for resource in ["scaledobjects", "scaledjobs"] {
            let path = format!("/apis/keda.sh/v1alpha1/namespaces/shop/{resource}");
            self.until(resource, async || {
                let polled = self.server.controls();
                let mut waiting = self.list(&path).await;
                // An object of which some triggers fail is polled too, and its condition stays Unknown.
                waiting.retain(|object| {
                    let name = object["metadata"]["name"].as_str().unwrap();
                    ready(object) != "False" && !polled.contains(name)
                });
                waiting.truncate(2);
                if waiting.is_empty() { Ok(()) } else { Err(waiting) }
            })
            .await;
        }
    }

    /// Everything that the operator shows to a tenant, but not what the tenant wrote.
    pub(super) async fn shown(&self) -> String {
        let mut shown = self.handle.exported_metrics();
        for record in self.handle.records().latest(None) {
            shown.push_str(&serde_json::to_string(&record).unwrap());
        }
        for (group, resource) in [
            ("/apis/keda.sh/v1alpha1", "scaledobjects"),
            ("/apis/keda.sh/v1alpha1", "scaledjobs"),
            ("/apis/keda.sh/v1alpha1", "triggerauthentications"),
            ("/apis/eventing.keda.sh/v1alpha1", "cloudeventsources"),
        ] {
            for object in self.list(&format!("{group}/namespaces/shop/{resource}")).await {
                shown.push_str(&object["status"].to_string());
            }
        }
        for (group, resource) in [
            ("/api/v1", "events"),
            ("/apis/autoscaling/v2", "horizontalpodautoscalers"),
            ("/apis/batch/v1", "jobs"),
        ] {
            for object in self.list(&format!("{group}/namespaces/shop/{resource}")).await {
                shown.push_str(&object.to_string());
            }
        }
        shown
    }

    /// Stops the operator and waits until its events are written.
    pub(super) async fn stop(&self) {
        let _ = self.stop.send(true);
        self.until("an operator that stops", async || self.task.is_finished().then_some(()).ok_or(())).await;
        self.recorder.flush(Duration::from_secs(10)).await;
    }
}

/// The status of the condition `Ready`; empty if there is none.
fn ready(object: &Value) -> String {
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions.into_iter().find(|condition| condition["type"] == "Ready");
    found.map(|found| found["status"].as_str().unwrap_or_default().to_owned()).unwrap_or_default()
}

pub(super) async fn create(client: &Client, path: &str, object: &Value) -> Result<(), ApiError> {
    let body = Some(("application/json", object.to_string().into_bytes()));
    let request = Request { method: Method::POST, body, ..Request::get(path, "", Duration::from_secs(20)) };
    send(client, request).await.map(|_| ())
}

/// What the operator may read for scalers.
pub(super) fn reader(client: &Client) -> Arc<dyn scalers::backends::Cluster> {
    crate::operator::cluster_reader(
        client.clone(),
        Discovery::new(client.clone()),
        api::provider::Compat::Better,
    )
}
