//! Small objects of each kind, and the paths of their collections.

use serde_json::{Value, json};

pub(crate) const NAMESPACES: &str = "/api/v1/namespaces";
pub(crate) const NODES: &str = "/api/v1/nodes";
pub(crate) const PODS: &str = "/api/v1/namespaces/{ns}/pods";
pub(crate) const SERVICES: &str = "/api/v1/namespaces/{ns}/services";
pub(crate) const CONFIG_MAPS: &str = "/api/v1/namespaces/{ns}/configmaps";
pub(crate) const SECRETS: &str = "/api/v1/namespaces/{ns}/secrets";
pub(crate) const ACCOUNTS: &str = "/api/v1/namespaces/{ns}/serviceaccounts";
pub(crate) const EVENTS: &str = "/api/v1/namespaces/{ns}/events";
pub(crate) const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/{ns}/deployments";
pub(crate) const REPLICA_SETS: &str = "/apis/apps/v1/namespaces/{ns}/replicasets";
pub(crate) const STATEFUL_SETS: &str = "/apis/apps/v1/namespaces/{ns}/statefulsets";
pub(crate) const JOBS: &str = "/apis/batch/v1/namespaces/{ns}/jobs";
pub(crate) const HPAS: &str = "/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers";
pub(crate) const HPAS_V1: &str = "/apis/autoscaling/v1/namespaces/{ns}/horizontalpodautoscalers";
pub(crate) const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases";
pub(crate) const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
pub(crate) const API_SERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";
pub(crate) const WEBHOOKS: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

/// `COLLECTION/NAME`.
pub(crate) fn at(collection: &str, name: &str) -> String {
    format!("{collection}/{name}")
}

pub(crate) fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

pub(crate) fn node(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
}

pub(crate) fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "1"}})
}

pub(crate) fn labelled(name: &str, labels: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}})
}

pub(crate) fn secret(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": {"word": "open"}})
}

pub(crate) fn account(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}})
}

pub(crate) fn event(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": name},
        "involvedObject": {"apiVersion": "v1", "kind": "Pod", "name": "web-1", "namespace": "{ns}"},
        "reason": "Started", "message": "Started container web", "type": "Normal",
        "source": {"component": "kubelet", "host": "node-1"}, "count": 2,
        "firstTimestamp": "2001-02-03T04:05:06Z", "lastTimestamp": "2001-02-03T04:05:07Z",
    })
}

pub(crate) fn lease(name: &str) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name},
        "spec": {"holderIdentity": "me", "leaseDurationSeconds": 15, "renewTime": "2001-02-03T04:05:06.000007Z"},
    })
}

pub(crate) fn service(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
        "spec": {"selector": {"app": name}, "ports": [{"port": 80}]},
    })
}

pub(crate) fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"containers": [{"name": "main", "image": "web"}], "automountServiceAccountToken": false},
    })
}

fn template(name: &str) -> Value {
    json!({
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [{"name": "main", "image": "web:1", "resources": {"requests": {"cpu": "200m"}}}]},
    })
}

fn set(version: &str, kind: &str, name: &str) -> Value {
    json!({
        "apiVersion": version, "kind": kind, "metadata": {"name": name},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": name}}, "template": template(name)},
    })
}

pub(crate) fn deployment(name: &str) -> Value {
    set("apps/v1", "Deployment", name)
}

pub(crate) fn replica_set(name: &str) -> Value {
    set("apps/v1", "ReplicaSet", name)
}

pub(crate) fn stateful_set(name: &str) -> Value {
    let mut set = set("apps/v1", "StatefulSet", name);
    set["spec"]["serviceName"] = json!(name);
    set
}

pub(crate) fn job(name: &str) -> Value {
    let mut template = template(name);
    template["spec"]["restartPolicy"] = json!("Never");
    json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {"template": template}})
}

pub(crate) fn hpa(name: &str) -> Value {
    json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": name},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
            "maxReplicas": 10,
            "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}],
        },
    })
}

pub(crate) fn hpa_v1(name: &str) -> Value {
    json!({
        "apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata": {"name": name},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
            "minReplicas": 1, "maxReplicas": 10, "targetCPUUtilizationPercentage": 50,
        },
    })
}

pub(crate) fn webhook(name: &str) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [{
            "name": "check.example.com",
            "clientConfig": {"url": "https://127.0.0.1:1/check"},
            "rules": [{"apiGroups": ["none.example.com"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["things"]}],
            "sideEffects": "None", "admissionReviewVersions": ["v1"],
        }],
    })
}

/// One object of each namespaced kind that needs no other objects.
pub(crate) fn one_of_each(name: &str) -> Vec<(&'static str, Value)> {
    vec![
        (CONFIG_MAPS, config_map(name)),
        (SECRETS, secret(name)),
        (ACCOUNTS, account(name)),
        (EVENTS, event(name)),
        (PODS, pod(name)),
        (SERVICES, service(name)),
        (DEPLOYMENTS, deployment(name)),
        (REPLICA_SETS, replica_set(name)),
        (STATEFUL_SETS, stateful_set(name)),
        (JOBS, job(name)),
        (HPAS, hpa(name)),
        (LEASES, lease(name)),
    ]
}
