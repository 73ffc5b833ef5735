//! Changes of an installation: leader election, certificates, updates, drained nodes and restarts.

use serde_json::{Value, json};

use crate::cluster::{Cluster, ROLES, SYSTEM_NAMESPACE};

pub(crate) const NODE_METRICS: &str = "/apis/metrics.k8s.io/v1beta1/nodes";
const CONTROLLER_NAME: &str = "plimsoll-controller";
/// A memory limit that is below what the HPAs of [`large_hpas`] need.
const TOO_LITTLE_MEMORY: &str = "16Mi";
const LARGE_HPAS: usize = 300;
const METRICS_OF_A_LARGE_HPA: usize = 100;
const BYTES_OF_A_METRIC_NAME: usize = 700;

/// The certificates of all roles.
const SERVING_CERTIFICATES: [ServingCertificate; 3] = [
    ServingCertificate {
        secret: "plimsoll-controller-certs",
        path: "/apis/decisions.plimsoll.dev/v1alpha1",
        api_services: &["v1alpha1.decisions.plimsoll.dev"],
        webhook: None,
    },
    ServingCertificate {
        secret: "plimsoll-metrics-certs",
        path: NODE_METRICS,
        api_services: &["v1beta1.metrics.k8s.io", "v1.metrics.k8s.io", "v1alpha1.metrics.plimsoll.dev"],
        webhook: None,
    },
    ServingCertificate {
        secret: "kedaorg-certs",
        path: "/apis/operator.plimsoll.dev/v1alpha1",
        api_services: &["v1beta1.external.metrics.k8s.io", "v1alpha1.operator.plimsoll.dev"],
        webhook: Some("keda-admission"),
    },
];

/// The certificate with which a role serves.
struct ServingCertificate {
    /// The Secret with the certificate and its CA.
    secret: &'static str,
    /// A path that the role serves.
    path: &'static str,
    /// The APIServices with the CA.
    api_services: &'static [&'static str],
    /// The ValidatingWebhookConfiguration with the CA.
    webhook: Option<&'static str>,
}

fn pod_name(pod: &Value) -> String {
    pod["metadata"]["name"].as_str().unwrap_or_default().to_owned()
}

fn leader_of(cluster: &Cluster, lease: &str) -> Option<String> {
    let lease = cluster.get(&format!("lease {lease} --namespace {SYSTEM_NAMESPACE}"));
    let holder = lease["spec"]["holderIdentity"].as_str()?;
    // The holder is the name of a pod and a unique suffix.
    (!holder.is_empty()).then(|| holder.to_owned())
}

pub(crate) fn leader(cluster: &Cluster) {
    for (role, lease) in
        [("plimsoll-controller", "plimsoll-controller"), ("plimsoll-operator", "operator.keda.sh")]
    {
        // After a switch, the lease names a deleted pod until it has expired.
        let (old, leading) = cluster.until("a pod is the leader", || {
            let holder = leader_of(cluster, lease)?;
            let leading =
                cluster.pods(role).iter().map(pod_name).find(|pod| holder.starts_with(pod.as_str()))?;
            Some((holder, leading))
        });
        cluster.kubectl(&format!("delete pod {leading} --namespace {SYSTEM_NAMESPACE} --wait=false"));
        cluster.until("another leader", || leader_of(cluster, lease).filter(|new| *new != old));
        cluster.rolled_out(role);
    }
}

pub(crate) fn certificates(cluster: &Cluster) {
    cluster.until("the webhook denies objects before", || webhook_denies(cluster));
    for certificate in &SERVING_CERTIFICATES {
        certificate.is_renewed(cluster);
    }
}

impl ServingCertificate {
    /// Removes the certificate, and then the CA, from the Secret, which has the same effect as their expiry.
    fn is_renewed(&self, cluster: &Cluster) {
        let secret = format!("secret {} --namespace {SYSTEM_NAMESPACE}", self.secret);
        let part = |name: &str| cluster.get(&secret)["data"][name].as_str().unwrap_or_default().to_owned();
        let empty =
            |parts: &str| cluster.kubectl(&format!("patch {secret} --patch {{\"data\":{{{parts}}}}}"));
        let renewed = |name: &str, old: &str| {
            cluster.until(&format!("{} has a new {name}", self.secret), || {
                let new = part(name);
                (!new.is_empty() && new != old).then_some(())
            });
        };
        let (certificate, authority) = (part("tls.crt"), part("ca.crt"));
        let errors = cluster.while_asking(self.path, || {
            empty(r#""tls.crt":"""#);
            renewed("tls.crt", &certificate);
        });
        assert!(errors.is_empty(), "{}: {errors:#?}", self.secret);
        assert_eq!(part("ca.crt"), authority, "{}", self.secret);
        empty(r#""ca.crt":"","ca.key":"","tls.crt":"","tls.key":"""#);
        renewed("ca.crt", &authority);
        for name in self.api_services {
            cluster.until(&format!("{name} has the new CA"), || {
                let service = cluster.get(&format!("apiservice {name}"));
                (service["spec"]["caBundle"] == part("ca.crt").as_str()).then_some(())
            });
        }
        cluster.until("the API server trusts it", || {
            cluster.try_kubectl(&format!("get --raw {}", self.path)).ok()
        });
        if let Some(name) = self.webhook {
            cluster.until(&format!("{name} has the new CA"), || {
                let found = cluster.get(&format!("validatingwebhookconfiguration {name}"));
                let authority = part("ca.crt");
                let webhooks = found["webhooks"].as_array()?;
                let is_new = |webhook: &Value| webhook["clientConfig"]["caBundle"] == authority.as_str();
                (!webhooks.is_empty() && webhooks.iter().all(is_new)).then_some(())
            });
            // The API server accepts every object while it cannot ask the webhook.
            cluster.until("the webhook denies objects after", || webhook_denies(cluster));
        }
    }
}

/// Asks the webhook about an object that it has to deny, and that the rules of the definition let pass. It is asked for dry runs,
/// too, so that nothing is created.
fn webhook_denies(cluster: &Cluster) -> Option<()> {
    let trigger =
        json!({"type": "kubernetes-workload", "metadata": {"podSelector": "app=denied", "value": "1"}});
    let target = json!({"name": "denied"});
    let spec =
        json!({"scaleTargetRef": target, "idleReplicaCount": 3, "minReplicaCount": 2, "triggers": [trigger]});
    let object =
        json!({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": target, "spec": spec});
    let path = "/apis/keda.sh/v1alpha1/namespaces/default/scaledobjects?dryRun=All";
    let error = cluster.try_create(path, &object).err()?;
    error.to_string().contains("denied the request").then_some(())
}

pub(crate) fn rolling_update(cluster: &Cluster) {
    let errors = cluster.while_asking(NODE_METRICS, || {
        for role in ROLES {
            cluster.kubectl(&format!("rollout restart deployment/{role} --namespace {SYSTEM_NAMESPACE}"));
        }
        for role in ROLES {
            cluster.rolled_out(role);
        }
    });
    assert!(errors.is_empty(), "{errors:#?}");
}

pub(crate) fn drain(cluster: &Cluster) {
    let errors = cluster.while_asking(NODE_METRICS, || {
        for role in ROLES {
            evict_both_pods(cluster, role);
        }
        cluster.kubectl("drain node-2 --ignore-daemonsets --delete-emptydir-data --timeout 5m");
        for role in ROLES {
            cluster.rolled_out(role);
        }
    });
    assert!(errors.is_empty(), "{errors:#?}");
    for pod in ROLES.iter().flat_map(|role| cluster.pods(role)) {
        assert_eq!(pod["spec"]["nodeName"], "node-1");
    }
    cluster.kubectl("uncordon node-2");
}

/// Evicts both pods of a role, as two concurrent drains do: its PodDisruptionBudget refuses the second eviction until the pod that replaces
/// the first one is ready.
fn evict_both_pods(cluster: &Cluster, role: &str) {
    until_an_eviction_is_allowed(cluster, role);
    let pods: Vec<String> = cluster.pods(role).iter().map(pod_name).collect();
    let [first, second] = pods.as_slice() else { panic!("{role} does not have two pods: {pods:?}") };
    evict(cluster, first).unwrap();
    let refused = evict(cluster, second).expect_err("the budget refuses the second eviction").to_string();
    // The reason of code 429.
    assert!(refused.contains("TooManyRequests") && refused.contains("disruption budget"), "{refused}");
    until_an_eviction_is_allowed(cluster, role);
    evict(cluster, second).unwrap();
    until_an_eviction_is_allowed(cluster, role);
}

/// Waits until both pods of a role are ready. The eviction itself sets the number to 0, so that an outdated status does not end the wait.
fn until_an_eviction_is_allowed(cluster: &Cluster, role: &str) {
    cluster.until(&format!("the budget of {role} allows an eviction"), || {
        let budget = cluster.get(&format!("poddisruptionbudget {role} --namespace {SYSTEM_NAMESPACE}"));
        (budget["status"]["disruptionsAllowed"] == 1).then_some(())
    });
}

fn evict(cluster: &Cluster, pod: &str) -> Result<String, testbed::Error> {
    let metadata = json!({"name": pod, "namespace": SYSTEM_NAMESPACE});
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata});
    let path = format!("/api/v1/namespaces/{SYSTEM_NAMESPACE}/pods/{pod}/eviction");
    cluster.try_create(&path, &eviction)
}

/// Sets a memory limit below what the objects of the cluster need: the kernel kills the process, the kubelet restarts it, and the rest of the
/// cluster continues.
pub(crate) fn out_of_memory(cluster: &Cluster) {
    cluster.apply(&large_hpas());
    limit_memory(cluster, TOO_LITTLE_MEMORY);
    cluster.until("a container runs out of memory and is restarted", || {
        let pods = cluster.pods(CONTROLLER_NAME);
        let mut statuses = pods.iter().map(|pod| &pod["status"]["containerStatuses"][0]);
        statuses
            .any(|status| {
                status["lastState"]["terminated"]["reason"] == "OOMKilled" && status["restartCount"] != 0
            })
            .then_some(())
    });
    limit_memory(cluster, "512Mi");
    cluster.rolled_out(CONTROLLER_NAME);
    cluster.kubectl("delete hpa --selector size=large");
}

fn limit_memory(cluster: &Cluster, limit: &str) {
    let set = format!(
        "set resources deployment/{CONTROLLER_NAME} --namespace {SYSTEM_NAMESPACE} --containers controller"
    );
    cluster.kubectl(&format!("{set} --requests cpu=50m,memory={limit} --limits memory={limit}"));
}

/// Creates HPAs that the controller stores but does not scale. All metric names differ, because equal names would be stored once.
fn large_hpas() -> String {
    let metric = |hpa: usize, metric: usize| {
        let name = format!("{hpa}-{metric}-{}", "x".repeat(BYTES_OF_A_METRIC_NAME));
        format!(
            "  - {{type: External, external: {{metric: {{name: {name}}}, target: {{type: Value, value: '1'}}}}}}\n"
        )
    };
    let hpa = |hpa: usize| {
        let metrics: String = (0..METRICS_OF_A_LARGE_HPA).map(|number| metric(hpa, number)).collect();
        format!(
            "apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {{name: large-{hpa}, labels: {{size: large}}, annotations: {{plimsoll.dev/mode: 'off'}}}}
spec:
  scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: large-{hpa}}}
  maxReplicas: 2
  metrics:
{metrics}---
"
        )
    };
    (0..LARGE_HPAS).map(hpa).collect()
}
