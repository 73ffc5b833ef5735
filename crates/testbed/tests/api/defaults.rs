//! Defaults that the server sets in each kind at creation and at updates.

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
    of_pods_with_probes_and_ports,
    of_pods_with_an_account_token,
    of_services,
    of_services_of_other_types,
    of_deployments,
    of_deployments_with_strategies,
    of_replica_sets,
    of_stateful_sets,
    of_jobs,
    of_leases,
    of_namespaces,
    of_nodes,
    of_webhooks,
    quantities_are_kept_as_written,
];

async fn of_config_maps(s: Session) {
    s.post(CONFIG_MAPS, config_map("a")).await;
    s.post(
        CONFIG_MAPS,
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}, "immutable": true, "binaryData": {"x": "AAEC"}}),
    )
    .await;
}

async fn of_secrets(s: Session) {
    s.post(SECRETS, secret("a")).await;
    s.post(
        SECRETS,
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "b"}, "type": "example.com/own", "data": {"x": "AAEC"}}),
    )
    .await;
    s.get(&at(SECRETS, "a")).await;
}

async fn of_accounts(s: Session) {
    s.post(ACCOUNTS, account("a")).await;
}

async fn of_events(s: Session) {
    s.post(EVENTS, event("a")).await;
    s.post(
        EVENTS,
        json!({
            "apiVersion": "v1", "kind": "Event", "metadata": {"generateName": "a."},
            "involvedObject": {"kind": "Pod", "name": "a", "namespace": "{ns}"},
        }),
    )
    .await;
}

async fn of_pods(s: Session) {
    s.post(PODS, pod("a")).await;
    s.get(&at(PODS, "a")).await;
}

async fn of_pods_with_probes_and_ports(s: Session) {
    let mut object = pod("a");
    object["spec"]["containers"] = json!([
        {
            "name": "main", "image": "web:1.2",
            "ports": [{"containerPort": 80}, {"containerPort": 53, "protocol": "UDP", "name": "dns"}],
            "env": [{"name": "A", "value": "1"}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
            "resources": {"requests": {"cpu": "100m"}, "limits": {"cpu": "0.5", "memory": "64Mi"}},
            "readinessProbe": {"httpGet": {"port": 80}},
            "livenessProbe": {"tcpSocket": {"port": "dns"}, "periodSeconds": 3},
            "lifecycle": {"preStop": {"sleep": {"seconds": 1}}},
        },
        {"name": "side", "image": "proxy:latest", "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}},
    ]);
    object["spec"]["initContainers"] = json!([{"name": "init", "image": "web@sha256:0123456789012345678901234567890123456789012345678901234567890123"}]);
    object["spec"]["volumes"] = json!([
        {"name": "config", "configMap": {"name": "a"}},
        {"name": "secret", "secret": {"secretName": "a"}},
        {"name": "empty", "emptyDir": {}},
    ]);
    s.post(PODS, object).await;
}

async fn of_pods_with_an_account_token(s: Session) {
    // The volume's name ends in random letters; the rest of it is compared.
    let mut object = pod("a");
    object["spec"].as_object_mut().unwrap().remove("automountServiceAccountToken");
    let response = s.request(http::Method::POST, PODS).json(object).send_unrecorded().await;
    let volume = response.text("/spec/volumes/0/name");
    assert!(volume.starts_with("kube-api-access-"), "{}", response.body);
    assert_eq!(response.text("/spec/containers/0/volumeMounts/0/name"), volume);
    s.post(
        PODS,
        json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "b"},
            "spec": {"containers": [{"name": "main", "image": "web"}], "serviceAccountName": "absent"},
        }),
    )
    .await;
}

async fn of_services(s: Session) {
    s.post(SERVICES, service("a")).await;
    let named = json!([{"port": 80, "name": "http", "targetPort": "web"}, {"port": 53, "name": "dns", "protocol": "UDP"}]);
    let mut object = service("b");
    object["spec"]["ports"] = named;
    s.post(SERVICES, object).await;
    s.get(&at(SERVICES, "a")).await;
}

async fn of_services_of_other_types(s: Session) {
    for (name, spec) in [
        ("headless", json!({"clusterIP": "None", "ports": [{"port": 80}]})),
        ("external", json!({"type": "ExternalName", "externalName": "localhost"})),
        ("node", json!({"type": "NodePort", "ports": [{"port": 80}]})),
    ] {
        let object = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec});
        s.post(SERVICES, object).await;
    }
}

async fn of_deployments(s: Session) {
    s.post(DEPLOYMENTS, deployment("a")).await;
    s.get(&at(DEPLOYMENTS, "a")).await;
    let mut object = deployment("b");
    object["spec"].as_object_mut().unwrap().remove("replicas");
    s.post(DEPLOYMENTS, object).await;
}

async fn of_deployments_with_strategies(s: Session) {
    for (name, strategy) in [
        ("recreate", json!({"type": "Recreate"})),
        ("rolling", json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 2}})),
        ("none", json!({"rollingUpdate": {"maxUnavailable": "10%"}})),
    ] {
        let mut object = deployment(name);
        object["spec"]["strategy"] = strategy;
        s.post(DEPLOYMENTS, object).await;
    }
}

async fn of_replica_sets(s: Session) {
    s.post(REPLICA_SETS, replica_set("a")).await;
}

async fn of_stateful_sets(s: Session) {
    s.post(STATEFUL_SETS, stateful_set("a")).await;
}

async fn of_jobs(s: Session) {
    s.post(JOBS, job("a")).await;
    let mut object = job("b");
    object["spec"]["parallelism"] = json!(3);
    object["spec"]["completions"] = json!(6);
    object["spec"]["completionMode"] = json!("Indexed");
    s.post(JOBS, object).await;
}

async fn of_leases(s: Session) {
    s.post(LEASES, lease("a")).await;
    s.post(
        LEASES,
        json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "b"}}),
    )
    .await;
}

async fn of_namespaces(s: Session) {
    s.delete_at_end("/api/v1/namespaces/{ns}-more");
    s.post(NAMESPACES, namespace("{ns}-more")).await;
    s.get("/api/v1/namespaces/{ns}-more").await;
}

async fn of_nodes(s: Session) {
    s.delete_at_end("/api/v1/nodes/{ns}-node");
    let mut object = node("{ns}-node");
    object["spec"] = json!({"podCIDR": "10.9.0.0/24", "providerID": "sim://1"});
    object["status"] = json!({"capacity": {"cpu": "4", "memory": "16Gi", "pods": "110"}});
    s.post(NODES, object).await;
    s.get("/api/v1/nodes/{ns}-node").await;
}

async fn of_webhooks(s: Session) {
    s.delete_at_end(&at(WEBHOOKS, "{ns}"));
    s.post(WEBHOOKS, webhook("{ns}")).await;
    s.get(&at(WEBHOOKS, "{ns}")).await;
}

async fn quantities_are_kept_as_written(s: Session) {
    for (name, cpu, memory) in [
        ("a", json!("1000m"), json!("1024Mi")),
        ("b", json!(0.5), json!(1_000_000)),
        ("c", json!("1e3"), json!("1.5Gi")),
    ] {
        let mut object = pod(name);
        object["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": cpu, "memory": memory}});
        s.post(PODS, object).await;
    }
}
