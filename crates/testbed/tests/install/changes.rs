//! What happens to an installation over time.

use serde_json::Value;

use crate::cluster::{Cluster, ROLES, SYSTEM};

const NODE_METRICS: &str = "/apis/metrics.k8s.io/v1beta1/nodes";
const OPERATOR: &str = "plimsoll-operator";
/// From too little for a debug build to too little for any program, in small steps: with much less, not even the sandbox of a pod can be
/// started. They are written as the API server writes them.
const MEMORY_LIMITS: [&str; 5] = ["6Mi", "5632Ki", "5Mi", "4608Ki", "4Mi"];

fn leader_of(cluster: &Cluster, lease: &str) -> Option<String> {
    let lease = cluster.get(&format!("lease {lease} --namespace {SYSTEM}"));
    let holder = lease["spec"]["holderIdentity"].as_str()?;
    // A name of a pod, and behind it what makes the holder unique.
    (!holder.is_empty()).then(|| holder.to_owned())
}

pub(crate) fn leader(cluster: &Cluster) {
    for (role, lease) in
        [("plimsoll-controller", "plimsoll-controller"), ("plimsoll-operator", "operator.keda.sh")]
    {
        let name = |pod: &Value| pod["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        // After a switch, the lease names a pod that is gone until it has expired.
        let (old, leading) = cluster.until("a pod is the leader", || {
            let holder = leader_of(cluster, lease)?;
            let leading = cluster.pods(role).iter().map(name).find(|pod| holder.starts_with(pod.as_str()))?;
            Some((holder, leading))
        });
        cluster.kubectl(&format!("delete pod {leading} --namespace {SYSTEM} --wait=false"));
        cluster.until("another leader", || leader_of(cluster, lease).filter(|new| *new != old));
        cluster.rolled_out(role);
    }
}

/// Without its certificate, and then without its CA, the Secret of a role is what it is when they have expired.
pub(crate) fn certificates(cluster: &Cluster) {
    let secret = format!("secret plimsoll-metrics-certs --namespace {SYSTEM}");
    let part = |name: &str| cluster.get(&secret)["data"][name].as_str().unwrap_or_default().to_owned();
    let empty = |parts: &str| cluster.kubectl(&format!("patch {secret} --patch {{\"data\":{{{parts}}}}}"));
    let renewed = |name: &str, old: &str| {
        cluster.until(&format!("there is a new {name}"), || {
            let new = part(name);
            (!new.is_empty() && new != old).then_some(())
        });
    };
    let (certificate, authority) = (part("tls.crt"), part("ca.crt"));
    let errors = cluster.while_asking(NODE_METRICS, || {
        empty(r#""tls.crt":"""#);
        renewed("tls.crt", &certificate);
    });
    assert!(errors.is_empty(), "{errors:#?}");
    assert_eq!(part("ca.crt"), authority);
    empty(r#""ca.crt":"","ca.key":"","tls.crt":"","tls.key":"""#);
    renewed("ca.crt", &authority);
    cluster.until("the API server knows the new CA", || {
        let service = cluster.get("apiservice v1beta1.metrics.k8s.io");
        (service["spec"]["caBundle"] == part("ca.crt").as_str()).then_some(())
    });
    cluster
        .until("the API server trusts it", || cluster.try_kubectl(&format!("get --raw {NODE_METRICS}")).ok());
}

pub(crate) fn rolling_update(cluster: &Cluster) {
    let errors = cluster.while_asking(NODE_METRICS, || {
        for role in ROLES {
            cluster.kubectl(&format!("rollout restart deployment/{role} --namespace {SYSTEM}"));
        }
        for role in ROLES {
            cluster.rolled_out(role);
        }
    });
    assert!(errors.is_empty(), "{errors:#?}");
}

pub(crate) fn drain(cluster: &Cluster) {
    let errors = cluster.while_asking(NODE_METRICS, || {
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

/// A limit below what the process needs: the kernel kills it, the kubelet restarts it, the rest of the cluster goes on. What it needs
/// depends on how it was built, so the limit is lowered until a container does not become ready under it.
pub(crate) fn out_of_memory(cluster: &Cluster) {
    let killed = MEMORY_LIMITS.into_iter().any(|limit| {
        limit_memory(cluster, limit);
        cluster.until("a container becomes ready, or runs out of memory", || {
            let pods = cluster.pods(OPERATOR);
            let limited = pods
                .iter()
                .filter(|pod| pod["spec"]["containers"][0]["resources"]["limits"]["memory"] == limit);
            let statuses: Vec<&Value> = limited.map(|pod| &pod["status"]["containerStatuses"][0]).collect();
            if statuses.iter().any(|status| ran_out_of_memory(status)) {
                return Some(true);
            }
            statuses.iter().any(|status| status["ready"] == true).then_some(false)
        })
    });
    assert!(killed, "a container becomes ready with each of {MEMORY_LIMITS:?}");
    limit_memory(cluster, "512Mi");
    cluster.rolled_out(OPERATOR);
}

fn limit_memory(cluster: &Cluster, limit: &str) {
    let set = format!("set resources deployment/{OPERATOR} --namespace {SYSTEM} --containers operator");
    cluster.kubectl(&format!("{set} --requests cpu=50m,memory={limit} --limits memory={limit}"));
}

/// Whether a container was killed for its memory, or has too little to be started at all.
fn ran_out_of_memory(status: &Value) -> bool {
    let status = status.to_string();
    status.contains("OOMKilled") || status.contains("memory limit")
}
