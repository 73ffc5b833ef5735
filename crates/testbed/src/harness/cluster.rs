//! The real cluster and localkube behind one interface.

use std::io::Write;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Once, OnceLock};

use http::Method;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::json;

use super::Failure;
use super::namespace::TestNamespace;
use super::session::Session;
use crate::{Access, Cache, ControlPlane, Error, Options, Parts, Release};

/// The name of the real cluster in messages.
pub const REAL: &str = "the real one";
/// The name of localkube in messages.
pub const LOCAL: &str = "localkube";

/// Whether workload controllers act on what tests write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workloads {
    /// Controllers of Deployments, ReplicaSets, StatefulSets and Jobs run.
    On,
    /// These controllers do not run, so that objects stay as they were written and can be compared. The default service account, garbage
    /// collection and the deletion of namespaces still work.
    Off,
}

/// The flag that disables the controllers of kube-controller-manager that write to objects of tests.
const WORKLOAD_CONTROLLERS: &str = "--controllers=-deployment-controller,-replicaset-controller,\
    -statefulset-controller,-job-controller,-ttl-controller,-pod-garbage-collector-controller,\
    -taint-eviction-controller,-ttl-after-finished-controller,-disruption-controller";

/// One of the two clusters.
pub struct Cluster {
    /// Its name in messages.
    pub name: &'static str,
    /// An administrator's client.
    pub client: Client,
    /// An administrator's kubeconfig.
    pub kubeconfig: String,
    /// Files and ports of the real cluster; none for localkube.
    pub access: Option<&'static Access>,
    /// Keeps localkube running.
    running: Option<(localkube::Running, localkube::Server)>,
}

impl Cluster {
    /// A new, empty localkube.
    pub async fn local(workloads: Workloads) -> Result<Self, Failure> {
        let release = Release::chosen().map_err(|error| Failure::new("failed to start localkube", &error))?;
        let options = localkube::Options {
            workloads: workloads == Workloads::On,
            kubernetes: release.kubernetes,
            ..localkube::Options::default()
        };
        let running = localkube::Cluster::start(options).await;
        let running = running.map_err(|error| Failure::new("failed to start localkube", &error))?;
        let server = running.serve().await;
        let server = server.map_err(|error| Failure::new("failed to serve localkube", &error))?;
        let (client, kubeconfig) = (running.client(), server.kubeconfig.clone());
        Ok(Self { name: LOCAL, client, kubeconfig, access: None, running: Some((running, server)) })
    }

    /// The real cluster that all tests of this process share. None where it cannot be built, which is reported once.
    pub async fn real(workloads: Workloads) -> Result<Option<Self>, Failure> {
        let access = match workloads {
            Workloads::On => crate::shared(),
            Workloads::Off => without_workloads(),
        };
        let access = match access {
            Ok(access) => access,
            Err(error) if error.is_out_of_reach() => {
                static REPORTED: Once = Once::new();
                REPORTED.call_once(|| {
                    // The message is written to standard error directly, which the test runner does not capture: a run without the real
                    // cluster is incomplete, which must be reported.
                    let _ = writeln!(
                        std::io::stderr(),
                        "left out: everything on the real cluster. This run is not complete.\n{error}"
                    );
                });
                return Ok(None);
            }
            Err(error) => return Err(Failure::new("failed to start the real cluster", error)),
        };
        let reached = Self::reached(REAL, &access.kubeconfig_for(access.admin())).await?;
        Ok(Some(Self { access: Some(access), ..reached }))
    }

    /// A cluster that is reached over the network, with the text of a kubeconfig.
    pub async fn reached(name: &'static str, kubeconfig: &str) -> Result<Self, Failure> {
        let client = connect(kubeconfig).await?;
        Ok(Self { name, client, kubeconfig: kubeconfig.to_owned(), access: None, running: None })
    }

    /// The store of localkube; none for the real cluster.
    pub fn in_memory(&self) -> Option<&localkube::Cluster> {
        self.running.as_ref().map(|(running, _)| running.cluster())
    }

    /// A session in a new namespace whose name begins with `prefix`.
    pub async fn session(&self, prefix: &str) -> Result<Session, Failure> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let session = Session::new(self.client.clone(), &format!("{prefix}-{}-{count}", std::process::id()));
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "{ns}"}});
        let response =
            session.request(Method::POST, "/api/v1/namespaces").json(namespace).send_unrecorded().await;
        if response.code != 201 {
            return Err(Failure::text(format!(
                "failed to make a namespace on {}: {}",
                self.name, response.body
            )));
        }
        // The API server refuses pods until the default service account exists.
        let account = "/api/v1/namespaces/{ns}/serviceaccounts/default";
        if !session.wait(account, |response| response.code == 200).await {
            return Err(Failure::text(format!("{} made no default service account", self.name)));
        }
        Ok(session)
    }

    /// The namespace of a session.
    pub fn namespace(&self, session: &Session) -> TestNamespace {
        TestNamespace {
            client: self.client.clone(),
            namespace: session.namespace().to_owned(),
            cluster: self.name,
            kubeconfig: self.kubeconfig.clone(),
        }
    }

    /// Deletes the namespace of a session, and the objects that it registered.
    pub async fn delete_namespace(&self, session: &Session) {
        session.delete_leftovers().await;
        session.request(Method::DELETE, "/api/v1/namespaces/{ns}").send_unrecorded().await;
    }
}

fn without_workloads() -> Result<&'static Access, &'static Error> {
    static STARTED: OnceLock<Result<ControlPlane, Error>> = OnceLock::new();
    let started = STARTED.get_or_init(|| {
        // `make test` compares localkube with recordings of other releases, and must not build these releases.
        let release = Release::chosen()?;
        if !release.is_default() {
            Parts::require_in(&Cache::of_user()?, release)?;
        }
        let controller_manager_args = vec![WORKLOAD_CONTROLLERS.to_owned()];
        ControlPlane::start(&Options { controller_manager_args, ..Options::default() })
    });
    started.as_ref().map(ControlPlane::access)
}

/// A client from the text of a kubeconfig.
pub async fn connect(kubeconfig: &str) -> Result<Client, Failure> {
    let failed = "failed to connect";
    let parsed = Kubeconfig::from_yaml(kubeconfig).map_err(|error| Failure::new(failed, &error))?;
    let config = Config::from_custom_kubeconfig(parsed, &KubeConfigOptions::default()).await;
    let mut config = config.map_err(|error| Failure::new(failed, &error))?;
    // Tests must see every response, also errors that a retry would hide.
    config.default_retry = false;
    Client::try_from(config).map_err(|error| Failure::new(failed, &error))
}
