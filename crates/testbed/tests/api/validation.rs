//! Validation of each kind.

use serde_json::{Value, json};
use testbed::cases;
use testbed::harness::{Case, Session};

use crate::objects::*;

pub(crate) const CASES: &[Case] = cases![
    of_pods,
    of_containers,
    of_deployments,
    of_stateful_sets,
    of_jobs,
    of_services,
    of_secrets,
    of_leases,
    of_events,
    of_nodes_and_namespaces,
    of_resources,
    of_webhooks,
    of_api_services,
];

async fn wrong(s: &Session, collection: &str, object: &Value, changes: &[(&str, Value)]) {
    for (pointer, value) in changes {
        let (parent, field) = pointer.rsplit_once('/').unwrap();
        let mut object = object.clone();
        let parent = object.pointer_mut(parent).unwrap();
        match field.parse::<usize>() {
            Ok(at) if parent.is_array() => parent[at] = value.clone(),
            _ => parent[field] = value.clone(),
        }
        s.post(collection, object).await;
    }
}

async fn of_pods(s: Session) {
    wrong(
        &s,
        PODS,
        &pod("a"),
        &[
            ("/spec/containers", json!([])),
            ("/spec/containers", json!(null)),
            ("/spec", json!({})),
            ("/spec/restartPolicy", json!("Sometimes")),
            ("/spec/terminationGracePeriodSeconds", json!(-1)),
            ("/spec/nodeSelector", json!({"a b": "c"})),
            ("/spec/activeDeadlineSeconds", json!(0)),
        ],
    )
    .await;
}

async fn of_containers(s: Session) {
    wrong(
        &s,
        PODS,
        &pod("a"),
        &[
            ("/spec/containers/0/name", json!("")),
            ("/spec/containers/0/name", json!("Not_Allowed")),
            ("/spec/containers/0/image", json!("")),
            ("/spec/containers/0/imagePullPolicy", json!("Perhaps")),
            ("/spec/containers/0/ports", json!([{"containerPort": 0}])),
            (
                "/spec/containers/0/ports",
                json!([{"containerPort": 70000, "protocol": "XTP", "name": "Wrong!"}]),
            ),
            ("/spec/containers/0/env", json!([{"name": ""}])),
            ("/spec/containers", json!([{"name": "a", "image": "x"}, {"name": "a", "image": "x"}])),
            ("/spec/containers/0/volumeMounts", json!([{"name": "absent", "mountPath": "/x"}])),
            ("/spec/containers/0/readinessProbe", json!({"periodSeconds": -1})),
        ],
    )
    .await;
}

async fn of_deployments(s: Session) {
    wrong(
        &s,
        DEPLOYMENTS,
        &deployment("a"),
        &[
            ("/spec/selector", json!(null)),
            ("/spec/selector", json!({})),
            ("/spec/selector/matchLabels", json!({"app": "other"})),
            ("/spec/selector/matchExpressions", json!([{"key": "a", "operator": "Wish"}])),
            ("/spec/replicas", json!(-1)),
            ("/spec/template", json!({})),
            ("/spec/template/spec/restartPolicy", json!("Never")),
            ("/spec/strategy", json!({"type": "Sideways"})),
            ("/spec/strategy", json!({"type": "Recreate", "rollingUpdate": {"maxSurge": 1}})),
            ("/spec/strategy", json!({"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}})),
            ("/spec/strategy", json!({"rollingUpdate": {"maxUnavailable": "150%"}})),
            ("/spec/minReadySeconds", json!(-1)),
            ("/spec/progressDeadlineSeconds", json!(0)),
            ("/spec/revisionHistoryLimit", json!(-1)),
        ],
    )
    .await;
    s.post(DEPLOYMENTS, json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}}))
        .await;
}

async fn of_stateful_sets(s: Session) {
    wrong(
        &s,
        STATEFUL_SETS,
        &stateful_set("a"),
        &[
            ("/spec/selector", json!(null)),
            ("/spec/replicas", json!(-1)),
            ("/spec/podManagementPolicy", json!("Random")),
            ("/spec/updateStrategy", json!({"type": "Sideways"})),
            ("/spec/selector/matchLabels", json!({"app": "other"})),
        ],
    )
    .await;
    wrong(
        &s,
        REPLICA_SETS,
        &replica_set("a"),
        &[("/spec/selector", json!(null)), ("/spec/replicas", json!(-1))],
    )
    .await;
}

async fn of_jobs(s: Session) {
    wrong(
        &s,
        JOBS,
        &job("a"),
        &[
            ("/spec/template/spec/restartPolicy", json!("Always")),
            ("/spec/parallelism", json!(-1)),
            ("/spec/completions", json!(-1)),
            ("/spec/backoffLimit", json!(-1)),
            ("/spec/completionMode", json!("Sometimes")),
            ("/spec/ttlSecondsAfterFinished", json!(-1)),
        ],
    )
    .await;
}

async fn of_services(s: Session) {
    wrong(
        &s,
        SERVICES,
        &service("a"),
        &[
            ("/spec/ports", json!([])),
            ("/spec/ports", json!([{"port": 0}])),
            ("/spec/ports", json!([{"port": 80}, {"port": 81}])),
            ("/spec/ports", json!([{"port": 80, "name": "a"}, {"port": 81, "name": "a"}])),
            ("/spec/ports", json!([{"port": 80, "protocol": "XTP"}])),
            ("/spec/ports", json!([{"port": 80, "targetPort": "Not allowed"}])),
            ("/spec/type", json!("Dream")),
            ("/spec/type", json!("ExternalName")),
            ("/spec/sessionAffinity", json!("Maybe")),
            ("/spec/clusterIP", json!("300.1.2.3")),
            ("/spec/selector", json!({"a b": "c"})),
        ],
    )
    .await;
}

async fn of_secrets(s: Session) {
    wrong(
        &s,
        SECRETS,
        &secret("a"),
        &[
            ("/stringData", json!({"not allowed": "x"})),
            ("/type", json!("kubernetes.io/tls")),
            ("/type", json!("kubernetes.io/basic-auth")),
            ("/type", json!("kubernetes.io/dockerconfigjson")),
        ],
    )
    .await;
}

async fn of_leases(s: Session) {
    wrong(
        &s,
        LEASES,
        &lease("a"),
        &[
            ("/spec/leaseDurationSeconds", json!(0)),
            ("/spec/leaseTransitions", json!(-1)),
            ("/spec/holderIdentity", json!("")),
        ],
    )
    .await;
}

async fn of_events(s: Session) {
    wrong(
        &s,
        EVENTS,
        &event("a"),
        &[("/involvedObject/namespace", json!("elsewhere")), ("/type", json!("Odd"))],
    )
    .await;
}

async fn of_nodes_and_namespaces(s: Session) {
    s.post(NODES, node("Not_Allowed")).await;
    s.post(NAMESPACES, namespace("Not_Allowed")).await;
    let mut object = node("{ns}-node");
    object["spec"] = json!({"taints": [{"key": "a b", "effect": "Sideways"}]});
    s.post(NODES, object).await;
}

async fn of_resources(s: Session) {
    wrong(
        &s,
        PODS,
        &pod("a"),
        &[
            ("/spec/containers/0/resources", json!({"requests": {"cpu": "-1"}})),
            ("/spec/containers/0/resources", json!({"requests": {"cpu": "2"}, "limits": {"cpu": "1"}})),
            ("/spec/containers/0/resources", json!({"requests": {"": "1"}})),
            ("/spec/containers/0/resources", json!({"requests": {"dream": "1"}})),
            ("/spec/containers/0/resources", json!({"requests": {"example.com/gpu": "1"}})),
        ],
    )
    .await;
}

async fn of_webhooks(s: Session) {
    wrong(
        &s,
        WEBHOOKS,
        &webhook("{ns}"),
        &[
            ("/webhooks/0/name", json!("check")),
            ("/webhooks/0/sideEffects", json!("Some")),
            ("/webhooks/0/admissionReviewVersions", json!([])),
            ("/webhooks/0/clientConfig", json!({})),
            ("/webhooks/0/clientConfig", json!({"url": "http://127.0.0.1/"})),
            ("/webhooks/0/failurePolicy", json!("Perhaps")),
            ("/webhooks/0/timeoutSeconds", json!(31)),
            (
                "/webhooks/0/rules",
                json!([{"apiGroups": [], "apiVersions": ["v1"], "operations": ["WISH"], "resources": ["a"]}]),
            ),
        ],
    )
    .await;
}

async fn of_api_services(s: Session) {
    let service = json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": "v1.{ns}.example.com"},
        "spec": {"group": "{ns}.example.com", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 100,
            "insecureSkipTLSVerify": true, "service": {"namespace": "{ns}", "name": "a"}},
    });
    wrong(
        &s,
        API_SERVICES,
        &service,
        &[
            ("/metadata/name", json!("other")),
            ("/spec/group", json!("")),
            ("/spec/version", json!("")),
            ("/spec/groupPriorityMinimum", json!(0)),
            ("/spec/versionPriority", json!(0)),
            ("/spec/service", json!({})),
            ("/spec/caBundle", json!("AAAA")),
        ],
    )
    .await;
}
