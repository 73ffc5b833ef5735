//! The controller with its own role: no request is refused, and each permission is needed.

use std::time::Duration;

use cluster::Clock;
use cluster::lease::{Election, LeaseSettings};
use controllers::hpa::HpaSettings;
use http::Method;
use localkube::metrics::{DescribedObject, Series};
use serde_json::json;
use testbed::harness::{Failure, REAL};

use crate::account::Account;
use crate::env::{ControllerEnv, RunningController, alone_on_both};
use crate::manifests::may;
use crate::serving;
use crate::shared::manifests::{folder, is_quiet, path};
use crate::shared::{roles, send};

const SYSTEM_NAMESPACE: &str = "plimsoll-system";
const CONTROLLER_NAME: &str = "plimsoll-controller";

/// A kind of target that localkube does not serve.
const KIND_UNKNOWN_TO_LOCALKUBE: &str = "ReplicationController";

/// Permissions that the controller must not have in any namespace.
const FORBIDDEN_PERMISSIONS: [(&str, &str); 20] = [
    ("get", "/secrets"),
    ("list", "/secrets"),
    ("list", "/configmaps"),
    ("create", "/pods"),
    ("delete", "/pods"),
    ("create", "/pods/exec"),
    ("create", "/serviceaccounts/token"),
    ("impersonate", "/users"),
    ("get", "/nodes"),
    ("create", "apps/deployments"),
    ("update", "apps/deployments"),
    ("patch", "apps/deployments"),
    ("delete", "apps/deployments"),
    ("patch", "apps/deployments/scale"),
    ("update", "apps/deployments/status"),
    ("update", "autoscaling/horizontalpodautoscalers"),
    ("delete", "autoscaling/horizontalpodautoscalers"),
    ("delete", "plimsoll.dev/autoscalers"),
    ("delete", "/events"),
    ("create", "rbac.authorization.k8s.io/clusterrolebindings"),
];

impl ControllerEnv {
    /// Creates HPAs with a metric that is not served, and with one of each kind that is. The HPA `queue` scales.
    async fn autoscalers(&self) {
        self.workload("web", 2).await;
        self.usage("web", 2, 100, 1 << 20);
        for number in 0..2 {
            let pod = DescribedObject::pod(&self.namespace, &format!("web-{number}"));
            self.script.set_custom(pod, "rps", Series::milli(1000).of_object(&[("app", "web")]));
        }
        self.queue(20);
        let aim = json!({"type": "AverageValue", "averageValue": "10"});
        let external =
            |name: &str| json!({"type": "External", "external": {"metric": {"name": name}, "target": aim}});
        let metrics = json!([
            external("queue"),
            {"type": "Pods", "pods": {"metric": {"name": "rps"}, "target": aim}},
            {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}},
        ]);
        self.hpa("web", 1, 10, metrics).await;
        self.workload("blind", 1).await;
        self.hpa("blind", 1, 10, json!([external("nobody-knows")])).await;
        self.workload("own", 1).await;
        let own = json!({
            "apiVersion": "plimsoll.dev/v1alpha1", "kind": "Autoscaler", "metadata": {"name": "own"},
            "spec": {
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "own"}, "maxReplicas": 3,
                "metrics": [external("queue")]
            }
        });
        self.create("/apis/plimsoll.dev/v1alpha1/namespaces/{ns}/autoscalers", own).await;
        self.other_targets().await;
    }

    /// Creates a target of each other kind that is watched and that the cluster serves.
    async fn other_targets(&self) {
        let template = json!({
            "metadata": {"labels": {"app": "other"}}, "spec": {"containers": [{"name": "app", "image": "app"}]}
        });
        let selector = json!({"matchLabels": {"app": "other"}});
        for (version, kind) in
            [("apps/v1", "StatefulSet"), ("apps/v1", "ReplicaSet"), ("v1", "ReplicationController")]
        {
            if self.cluster != REAL && kind == KIND_UNKNOWN_TO_LOCALKUBE {
                continue;
            }
            let name = kind.to_lowercase();
            let mut spec = json!({"replicas": 0, "selector": selector, "template": template});
            if version == "v1" {
                spec["selector"] = json!({"app": "other"});
            }
            let metadata = json!({"name": name, "namespace": self.namespace});
            let object = json!({"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec});
            let one = path(&object);
            self.create(one.rsplit_once('/').unwrap().0, object).await;
            let hpa = json!({
                "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": name},
                "spec": {"scaleTargetRef": {"apiVersion": version, "kind": kind, "name": name}, "maxReplicas": 3}
            });
            self.create("/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers", hpa).await;
        }
    }

    fn queue(&self, length: i64) {
        self.script.set_external(&self.namespace, "queue", Series::milli(length * 1000));
    }

    /// Creates a service account in the test's namespace, with a ClusterRole in this namespace, if one is given.
    async fn user(&self, name: &str, role: Option<&str>) -> Account {
        self.create("/api/v1/namespaces/{ns}/serviceaccounts", json!({"metadata": {"name": name}})).await;
        if let Some(role) = role.filter(|_| self.cluster == REAL) {
            let binding = json!({
                "metadata": {"name": name},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
                "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": self.namespace}]
            });
            self.create("/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/rolebindings", binding).await;
        }
        self.account(&self.namespace, name).await
    }
}

#[test]
fn controller_works_with_its_role_and_uses_every_permission() -> Result<(), Failure> {
    alone_on_both(async |env| {
        env.define().await;
        let manifests = folder("deploy");
        env.apply(&manifests, is_quiet).await;
        env.autoscalers().await;
        let account = env.account(SYSTEM_NAMESPACE, CONTROLLER_NAME).await;

        let lease = LeaseSettings {
            lease_duration: Duration::from_secs(5),
            renew_deadline: Duration::from_secs(3),
            retry_period: Duration::from_millis(500),
            ..LeaseSettings::new(SYSTEM_NAMESPACE, CONTROLLER_NAME, "deploy")
        };
        let (election, leadership) = Election::start(account.client.clone(), lease, Clock::system());
        let settings = HpaSettings { namespaces: Vec::new(), ..env.settings() };
        let ours =
            RunningController::start_with(account.client.clone(), settings, leadership, Clock::system());
        let served = serving::start(&account.client, &ours.handle, SYSTEM_NAMESPACE, CONTROLLER_NAME).await;
        let registered = served.api_services();
        env.apply(&registered, |_| true).await;

        env.until_replicas("web", 2).await;
        env.queue(70);
        env.until_replicas("web", 7).await;
        env.until_condition("web", "ScalingActive", "True ValidMetricFound").await;
        env.set_ready_replicas("web", 7).await;
        env.queue(30);
        env.until_replicas("web", 3).await;
        env.until_replicas("own", 3).await;
        remembers(&env).await;
        repeats(&env, "blind").await;
        is_shown(&env, &served).await;
        let holder = env
            .read(&format!(
                "/apis/coordination.k8s.io/v1/namespaces/{SYSTEM_NAMESPACE}/leases/{CONTROLLER_NAME}"
            ))
            .await;
        assert_eq!(holder["spec"]["holderIdentity"], "deploy");

        ours.stop().await;
        election.release().await;
        for object in registered.iter().rev() {
            send(&env.client, Method::DELETE, &path(object), None).await;
        }
        assert!(env.events("web").await.iter().any(|event| event.contains("New size: 7")));
        let mut role = roles::granted(&manifests, CONTROLLER_NAME);
        role.retain(|held| {
            env.cluster == REAL || held.resource != format!("{KIND_UNKNOWN_TO_LOCALKUBE}s").to_lowercase()
        });
        // Replicas that are not the leader copy its passes; here is one replica.
        role.retain(|held| held.resource != "passes");
        let log = account.rules.log();
        roles::check_answers(&env.namespace, &log);
        roles::check(&role, &log);
        if env.cluster == REAL {
            is_confined(&env, &account).await;
        }
    })
}

/// Waits until the state snapshot is stored in the annotation of the Autoscaler, which the controller patches.
async fn remembers(env: &ControllerEnv) {
    env.until("memory", async || {
        let own = env.read("/apis/plimsoll.dev/v1alpha1/namespaces/{ns}/autoscalers/own").await;
        let kept = own["metadata"]["annotations"]["plimsoll.dev/memory"].is_string();
        if kept && own["status"]["desiredReplicas"] == 3 { Ok(()) } else { Err(own) }
    })
    .await;
}

/// Waits until an event has the count two, for which the controller patches it.
async fn repeats(env: &ControllerEnv, name: &str) {
    env.until("an event twice", async || {
        let events = env.read("/api/v1/namespaces/{ns}/events").await;
        let items = events["items"].as_array().unwrap();
        let twice =
            |e: &serde_json::Value| e["involvedObject"]["name"] == name && e["count"].as_i64() > Some(1);
        if items.iter().any(twice) { Ok(()) } else { Err(items.len()) }
    })
    .await;
}

/// Users who may view the namespace can read decisions through the API server; others cannot. Requests that go to the controller directly
/// are authenticated.
async fn is_shown(env: &ControllerEnv, served: &serving::ServedDecisions) {
    let decisions = format!("/apis/decisions.plimsoll.dev/v1alpha1/namespaces/{}/decisions", env.namespace);
    let (viewer, stranger) = (env.user("viewer", Some("view")).await, env.user("stranger", None).await);
    env.until("decisions", async || {
        let (code, response) = send(&viewer.client, Method::GET, &decisions, None).await;
        let seen = response["items"].as_array().map_or(0, Vec::len);
        if code == 200 && seen > 3 { Ok(()) } else { Err((code, response)) }
    })
    .await;
    if env.cluster == REAL {
        let (code, response) = send(&stranger.client, Method::GET, &decisions, None).await;
        assert_eq!(code, 403, "{response}");
        assert_eq!(
            send(&viewer.client, Method::GET, &decisions.replace(&env.namespace, "default"), None).await.0,
            403
        );
    }
    let token = env.token(&env.namespace, "stranger").await;
    let (code, response) = send(&served.client(Some(&token)).await, Method::GET, "/metrics", None).await;
    assert_eq!(code, if env.cluster == REAL { 403 } else { 200 }, "{response}");
    let anonymous = served.client(None).await;
    assert_eq!(send(&anonymous, Method::GET, "/readyz", None).await.0, 200);
    let code = send(&anonymous, Method::GET, "/metrics", None).await.0;
    assert!(matches!(code, 401 | 403), "{code}");
}

async fn is_confined(env: &ControllerEnv, account: &Account) {
    for (verb, resource) in FORBIDDEN_PERMISSIONS {
        assert!(!may(&account.client, verb, resource, &env.namespace).await, "may {verb} {resource}");
    }
    assert!(!may(&account.client, "create", "coordination.k8s.io/leases", &env.namespace).await);
    assert!(
        !may(&account.client, "update", "coordination.k8s.io/leases", SYSTEM_NAMESPACE).await,
        "any lease, not only its own"
    );
    assert!(may(&account.client, "update", "apps/deployments/scale", &env.namespace).await);
    let deployment = format!("/apis/apps/v1/namespaces/{}/deployments/web", env.namespace);
    let (code, _) = send(&account.client, Method::DELETE, &deployment, None).await;
    assert_eq!(code, 403);
    let (code, _) = send(&account.client, Method::PUT, &deployment, Some(&env.read(&deployment).await)).await;
    assert_eq!(code, 403);
}
