//! Responses as tables, with the columns that kubectl prints.

use http::Method;
use serde_json::json;
use testbed::cases;
use testbed::harness::{Case, Session};

use crate::objects::*;

pub(crate) const CASES: &[Case] = cases![
    of_config_maps,
    of_secrets,
    of_accounts,
    of_events,
    of_pods,
    of_pods_in_every_state,
    of_services,
    of_deployments,
    of_replica_sets,
    of_stateful_sets,
    of_jobs,
    of_hpas,
    of_hpas_with_metrics,
    of_leases,
    of_namespaces,
    of_nodes,
    of_definitions,
    of_webhooks,
    of_api_services,
    with_objects,
    of_nothing,
    of_errors,
    older_and_unknown,
];

async fn table(s: &Session, collection: &str, name: &str) {
    // A list of all objects would contain those of concurrent cases.
    s.get_as_table(&format!("{collection}?fieldSelector=metadata.name%3D{name}")).await;
    s.get_as_table(&at(collection, name)).await;
}

async fn made(s: &Session, collection: &str, object: &serde_json::Value) {
    let response = s.request(Method::POST, collection).json(object).send_unrecorded().await;
    assert_eq!(response.code, 201, "{}", response.body);
}

async fn status(s: &Session, path: &str, status: &serde_json::Value) {
    let ask = s
        .request(Method::PATCH, &format!("{path}/status"))
        .header("content-type", "application/merge-patch+json");
    let response = ask.body(json!({"status": status})).send_unrecorded().await;
    assert_eq!(response.code, 200, "{}", response.body);
}

async fn of_config_maps(s: Session) {
    made(&s, CONFIG_MAPS, &config_map("a")).await;
    table(&s, CONFIG_MAPS, "a").await;
}

async fn of_secrets(s: Session) {
    made(&s, SECRETS, &secret("a")).await;
    table(&s, SECRETS, "a").await;
}

async fn of_accounts(s: Session) {
    made(&s, ACCOUNTS, &account("a")).await;
    table(&s, ACCOUNTS, "a").await;
}

async fn of_events(s: Session) {
    made(&s, EVENTS, &event("a")).await;
    table(&s, EVENTS, "a").await;
    let mut once = event("b");
    once["count"] = json!(1);
    once["involvedObject"]["fieldPath"] = json!("spec.containers{main}");
    made(&s, EVENTS, &once).await;
    table(&s, EVENTS, "b").await;
}

async fn of_pods(s: Session) {
    made(&s, PODS, &pod("a")).await;
    table(&s, PODS, "a").await;
    let mut object = pod("b");
    object["spec"]["containers"] = json!([{"name": "one", "image": "x"}, {"name": "two", "image": "y"}]);
    object["spec"]["readinessGates"] = json!([{"conditionType": "example.com/gate"}]);
    made(&s, PODS, &object).await;
    table(&s, PODS, "b").await;
}

async fn of_pods_in_every_state(s: Session) {
    let container = |ready: bool, restarts: u32, state: serde_json::Value| json!({"name": "main", "image": "web", "imageID": "", "ready": ready, "restartCount": restarts, "state": state});
    let ran = json!({"exitCode": 1, "reason": "Error", "finishedAt": "2001-02-03T04:05:06Z"});
    for (name, value) in [
        (
            "running",
            json!({"phase": "Running", "podIP": "10.1.2.3", "podIPs": [{"ip": "10.1.2.3"}],
            "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [container(true, 0, json!({"running": {}}))]}),
        ),
        (
            "creating",
            json!({"phase": "Pending", "containerStatuses": [container(false, 0, json!({"waiting": {"reason": "ContainerCreating"}}))]}),
        ),
        (
            "crashing",
            json!({"phase": "Running", "containerStatuses": [container(false, 3, json!({"waiting": {"reason": "CrashLoopBackOff"}}))]}),
        ),
        (
            "failed",
            json!({"phase": "Failed", "containerStatuses": [container(false, 0, json!({"terminated": ran}))]}),
        ),
        (
            "done",
            json!({"phase": "Succeeded", "containerStatuses": [container(false, 0, json!({"terminated": {"exitCode": 0, "reason": "Completed"}}))]}),
        ),
        ("evicted", json!({"phase": "Failed", "reason": "Evicted"})),
    ] {
        made(&s, PODS, &pod(name)).await;
        status(&s, &at(PODS, name), &value).await;
        table(&s, PODS, name).await;
    }
    let mut object = pod("going");
    object["spec"]["nodeName"] = json!("nowhere");
    made(&s, PODS, &object).await;
    status(
        &s,
        &at(PODS, "going"),
        &json!({"phase": "Running", "containerStatuses": [container(true, 0, json!({"running": {}}))]}),
    )
    .await;
    s.request(Method::DELETE, &at(PODS, "going")).send_unrecorded().await;
    table(&s, PODS, "going").await;
    s.request(Method::DELETE, &at(PODS, "going?gracePeriodSeconds=0")).send_unrecorded().await;
}

async fn of_services(s: Session) {
    for (name, spec) in [
        (
            "headless",
            json!({"clusterIP": "None", "ports": [{"port": 80}, {"port": 53, "protocol": "UDP", "name": "dns"}], "selector": {"b": "2", "a": "1"}}),
        ),
        ("external", json!({"type": "ExternalName", "externalName": "localhost"})),
    ] {
        let mut spec = spec;
        if name == "headless" {
            spec["ports"][0]["name"] = json!("http");
        }
        made(
            &s,
            SERVICES,
            &json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}),
        )
        .await;
        table(&s, SERVICES, name).await;
    }
}

async fn of_deployments(s: Session) {
    made(&s, DEPLOYMENTS, &deployment("a")).await;
    table(&s, DEPLOYMENTS, "a").await;
    status(
        &s,
        &at(DEPLOYMENTS, "a"),
        &json!({"replicas": 2, "readyReplicas": 1, "updatedReplicas": 2, "availableReplicas": 1}),
    )
    .await;
    table(&s, DEPLOYMENTS, "a").await;
}

async fn of_replica_sets(s: Session) {
    made(&s, REPLICA_SETS, &replica_set("a")).await;
    status(&s, &at(REPLICA_SETS, "a"), &json!({"replicas": 2, "readyReplicas": 1})).await;
    table(&s, REPLICA_SETS, "a").await;
}

async fn of_stateful_sets(s: Session) {
    made(&s, STATEFUL_SETS, &stateful_set("a")).await;
    status(&s, &at(STATEFUL_SETS, "a"), &json!({"replicas": 2, "readyReplicas": 1})).await;
    table(&s, STATEFUL_SETS, "a").await;
}

async fn of_jobs(s: Session) {
    made(&s, JOBS, &job("a")).await;
    table(&s, JOBS, "a").await;
    status(&s, &at(JOBS, "a"), &json!({"active": 1, "startTime": "2001-02-03T04:05:06Z"})).await;
    table(&s, JOBS, "a").await;
}

async fn of_hpas(s: Session) {
    made(&s, HPAS, &hpa("a")).await;
    table(&s, HPAS, "a").await;
    table(&s, HPAS_V1, "a").await;
}

async fn of_hpas_with_metrics(s: Session) {
    let mut object = hpa("a");
    object["spec"]["metrics"] = json!([
        {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}},
        {"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "100Mi"}}},
        {"type": "Pods", "pods": {"metric": {"name": "requests"}, "target": {"type": "AverageValue", "averageValue": "1k"}}},
        {"type": "External", "external": {"metric": {"name": "queue"}, "target": {"type": "Value", "value": "30"}}},
    ]);
    made(&s, HPAS, &object).await;
    status(&s, &at(HPAS, "a"), &json!({"currentReplicas": 3, "desiredReplicas": 4, "currentMetrics": [
        {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 70, "averageValue": "140m"}}},
        {"type": "Resource", "resource": {"name": "memory", "current": {"averageValue": "120Mi"}}},
    ]}))
    .await;
    table(&s, HPAS, "a").await;
}

async fn of_leases(s: Session) {
    made(&s, LEASES, &lease("a")).await;
    table(&s, LEASES, "a").await;
}

async fn of_namespaces(s: Session) {
    table(&s, NAMESPACES, "{ns}").await;
}

async fn of_nodes(s: Session) {
    s.delete_at_end("/api/v1/nodes/{ns}-node");
    let mut object = node("{ns}-node");
    object["metadata"]["labels"] = json!({"node-role.kubernetes.io/worker": "", "kubernetes.io/role": "big"});
    made(&s, NODES, &object).await;
    table(&s, NODES, "{ns}-node").await;
    status(&s, "/api/v1/nodes/{ns}-node", &json!({
        "conditions": [{"type": "Ready", "status": "True", "reason": "x", "message": "y"}],
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}, {"type": "Hostname", "address": "n"}],
        "nodeInfo": {"kubeletVersion": "v1.36.4", "osImage": "Plain", "kernelVersion": "6", "containerRuntimeVersion": "sim://1",
            "machineID": "", "systemUUID": "", "bootID": "", "kubeProxyVersion": "", "operatingSystem": "linux", "architecture": "amd64"},
    }))
    .await;
    table(&s, NODES, "{ns}-node").await;
    let unschedulable = s
        .request(Method::PATCH, "/api/v1/nodes/{ns}-node")
        .header("content-type", "application/merge-patch+json");
    unschedulable.body(json!({"spec": {"unschedulable": true}})).send_unrecorded().await;
    table(&s, NODES, "{ns}-node").await;
}

async fn of_definitions(s: Session) {
    crate::widgets::define(&s, &crate::widgets::definition()).await;
    table(&s, CRDS, "widgets.{ns}.example.com").await;
}

async fn of_webhooks(s: Session) {
    s.delete_at_end(&at(WEBHOOKS, "{ns}"));
    made(&s, WEBHOOKS, &webhook("{ns}")).await;
    table(&s, WEBHOOKS, "{ns}").await;
}

async fn of_api_services(s: Session) {
    table(&s, API_SERVICES, "v1.apps").await;
}

async fn with_objects(s: Session) {
    made(&s, LEASES, &lease("a")).await;
    for include in ["None", "Metadata", "Object", "Dream", ""] {
        s.get_as_table(&format!("{LEASES}?includeObject={include}")).await;
    }
}

async fn of_nothing(s: Session) {
    s.get_as_table(LEASES).await;
    s.get_as_table(PODS).await;
}

async fn of_errors(s: Session) {
    s.get_as_table(&at(LEASES, "absent")).await;
    s.get_as_table("/api/v1/namespaces/{ns}/dreams").await;
}

async fn older_and_unknown(s: Session) {
    made(&s, LEASES, &lease("a")).await;
    // The `Accept` header of kubectl.
    let both = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
    s.get_as(&at(LEASES, "a"), both).await;
    s.get_as(&at(LEASES, "a"), "application/json;as=Table;v=v7;g=meta.k8s.io").await;
    s.get_as(&at(LEASES, "a"), "application/json;as=Table;v=v7;g=meta.k8s.io,application/json").await;
}
