//! The subresources status, scale and others.

use serde_json::json;
use testbed::cases;
use testbed::harness::{Case, Patch, Session};

use crate::objects::*;

pub(crate) const CASES: &[Case] = cases![
    scale_is_read,
    scale_is_written,
    scale_is_patched,
    scale_with_an_old_version,
    scale_beyond_its_bounds,
    scale_of_each_kind,
    scale_of_what_has_none,
    scale_with_a_selector_of_expressions,
    scale_under_another_name,
    status_leaves_the_spec_alone,
    status_is_left_alone,
    status_is_patched,
    status_is_checked,
    status_of_each_kind,
    status_moves_no_generation,
    status_of_what_has_none,
    a_pod_is_bound,
    a_pod_is_bound_once,
    what_no_object_has,
    methods_that_are_not_allowed,
];

async fn scale_is_read(s: Session) {
    s.post(DEPLOYMENTS, deployment("a")).await;
    s.get(&at(DEPLOYMENTS, "a/scale")).await;
    s.get(&at(DEPLOYMENTS, "absent/scale")).await;
    s.patch(&at(DEPLOYMENTS, "a/status"), Patch::Merge, json!({"status": {"replicas": 2}})).await;
    s.get(&at(DEPLOYMENTS, "a/scale")).await;
}

async fn scale_is_written(s: Session) {
    s.post(DEPLOYMENTS, deployment("a")).await;
    let mut scale = s.get(&at(DEPLOYMENTS, "a/scale")).await.body;
    scale["spec"]["replicas"] = json!(7);
    scale["status"]["replicas"] = json!(99);
    s.put(&at(DEPLOYMENTS, "a/scale"), scale).await;
    s.get(&at(DEPLOYMENTS, "a")).await;
    // An empty value removes the field.
    let scale = json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "a", "namespace": "{ns}"}});
    s.put(&at(DEPLOYMENTS, "a/scale"), scale).await;
}

async fn scale_is_patched(s: Session) {
    s.post(DEPLOYMENTS, deployment("a")).await;
    let path = at(DEPLOYMENTS, "a/scale");
    s.patch(&path, Patch::Merge, json!({"spec": {"replicas": 3}})).await;
    s.patch(&path, Patch::Json, json!([{"op": "replace", "path": "/spec/replicas", "value": 4}])).await;
    s.patch(&path, Patch::Strategic, json!({"spec": {"replicas": 5}})).await;
    s.patch(&path, Patch::Merge, json!({"spec": {"replicas": 5}})).await;
    s.patch(&at(DEPLOYMENTS, "absent/scale"), Patch::Merge, json!({"spec": {"replicas": 5}})).await;
}

async fn scale_with_an_old_version(s: Session) {
    s.post(DEPLOYMENTS, deployment("a")).await;
    let mut scale = s.get(&at(DEPLOYMENTS, "a/scale")).await.body;
    scale["spec"]["replicas"] = json!(7);
    s.put(&at(DEPLOYMENTS, "a/scale"), &scale).await;
    scale["spec"]["replicas"] = json!(8);
    s.put(&at(DEPLOYMENTS, "a/scale"), &scale).await;
}

async fn scale_beyond_its_bounds(s: Session) {
    s.post(DEPLOYMENTS, deployment("a")).await;
    let path = at(DEPLOYMENTS, "a/scale");
    for replicas in [json!(-1), json!(2_147_483_648_u32), json!("3"), json!(0)] {
        s.patch(&path, Patch::Merge, json!({"spec": {"replicas": replicas}})).await;
    }
    s.patch(&at(DEPLOYMENTS, "a"), Patch::Merge, json!({"spec": {"replicas": -1}})).await;
}

async fn scale_of_each_kind(s: Session) {
    for (collection, object) in [(REPLICA_SETS, replica_set("a")), (STATEFUL_SETS, stateful_set("a"))] {
        s.post(collection, object).await;
        s.get(&at(collection, "a/scale")).await;
        s.patch(&at(collection, "a/scale"), Patch::Merge, json!({"spec": {"replicas": 3}})).await;
        s.get(&at(collection, "a")).await;
    }
}

async fn scale_of_what_has_none(s: Session) {
    s.post(CONFIG_MAPS, config_map("a")).await;
    s.get(&at(CONFIG_MAPS, "a/scale")).await;
    s.post(JOBS, job("a")).await;
    s.get(&at(JOBS, "a/scale")).await;
}

async fn scale_with_a_selector_of_expressions(s: Session) {
    let mut object = deployment("a");
    object["spec"]["selector"]["matchExpressions"] = json!([{"key": "tier", "operator": "In", "values": ["web", "db"]}, {"key": "old", "operator": "DoesNotExist"}]);
    object["spec"]["template"]["metadata"]["labels"]["tier"] = json!("web");
    s.post(DEPLOYMENTS, object).await;
    s.get(&at(DEPLOYMENTS, "a/scale")).await;
}

async fn scale_under_another_name(s: Session) {
    s.post(DEPLOYMENTS, deployment("a")).await;
    let scale = |name: &str, kind: &str| json!({"apiVersion": "autoscaling/v1", "kind": kind, "metadata": {"name": name, "namespace": "{ns}"}, "spec": {"replicas": 3}});
    s.put(&at(DEPLOYMENTS, "a/scale"), scale("b", "Scale")).await;
    s.put(&at(DEPLOYMENTS, "a/scale"), scale("a", "Deployment")).await;
    s.put(&at(DEPLOYMENTS, "absent/scale"), scale("absent", "Scale")).await;
}

async fn status_leaves_the_spec_alone(s: Session) {
    let mut object = s.post(DEPLOYMENTS, deployment("a")).await.body;
    object["spec"]["replicas"] = json!(9);
    object["metadata"]["labels"] = json!({"a": "b"});
    object["status"] = json!({"observedGeneration": 1, "replicas": 2, "readyReplicas": 1});
    s.put(&at(DEPLOYMENTS, "a/status"), object).await;
    s.get(&at(DEPLOYMENTS, "a/status")).await;
}

async fn status_is_left_alone(s: Session) {
    s.post(DEPLOYMENTS, deployment("a")).await;
    s.patch(&at(DEPLOYMENTS, "a/status"), Patch::Merge, json!({"status": {"replicas": 2}})).await;
    s.patch(&at(DEPLOYMENTS, "a"), Patch::Merge, json!({"status": {"replicas": 9}, "spec": {"replicas": 1}}))
        .await;
}

async fn status_is_patched(s: Session) {
    s.post(HPAS, hpa("a")).await;
    let path = at(HPAS, "a/status");
    s.patch(&path, Patch::Merge, json!({"status": {"currentReplicas": 1, "desiredReplicas": 2}})).await;
    s.patch(&path, Patch::Json, json!([{"op": "add", "path": "/status/observedGeneration", "value": 1}]))
        .await;
    s.patch(&path, Patch::Strategic, json!({"status": {"conditions": [{"type": "AbleToScale", "status": "True", "reason": "X", "message": "y", "lastTransitionTime": "2001-02-03T04:05:06Z"}]}})).await;
    s.patch(&path, Patch::Merge, json!({"metadata": {"labels": {"a": "b"}}, "spec": {"maxReplicas": 3}}))
        .await;
}

async fn status_is_checked(s: Session) {
    s.post(HPAS, hpa("a")).await;
    s.patch(&at(HPAS, "a/status"), Patch::Merge, json!({"status": {"currentReplicas": -1}})).await;
    s.patch(&at(HPAS, "a/status"), Patch::Merge, json!({"status": {"currentReplicas": "one"}})).await;
    s.post(DEPLOYMENTS, deployment("a")).await;
    s.patch(
        &at(DEPLOYMENTS, "a/status"),
        Patch::Merge,
        json!({"status": {"replicas": -1, "readyReplicas": 3}}),
    )
    .await;
}

async fn status_of_each_kind(s: Session) {
    for (collection, object, status) in [
        (PODS, pod("a"), json!({"phase": "Running", "podIP": "10.1.2.3", "podIPs": [{"ip": "10.1.2.3"}]})),
        (REPLICA_SETS, replica_set("a"), json!({"replicas": 2, "observedGeneration": 1})),
        (STATEFUL_SETS, stateful_set("a"), json!({"replicas": 2, "currentRevision": "x"})),
        (JOBS, job("a"), json!({"active": 1, "startTime": "2001-02-03T04:05:06Z"})),
        (SERVICES, service("a"), json!({"conditions": []})),
    ] {
        s.request(http::Method::POST, collection).json(object).send_unrecorded().await;
        s.patch(&at(collection, "a/status"), Patch::Merge, json!({"status": status})).await;
        s.get(&at(collection, "a/status")).await;
    }
    s.delete_at_end("/api/v1/nodes/{ns}-node");
    s.post(NODES, node("{ns}-node")).await;
    let ready = json!({"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ok", "lastHeartbeatTime": "2001-02-03T04:05:06Z", "lastTransitionTime": "2001-02-03T04:05:06Z"});
    s.patch(
        "/api/v1/nodes/{ns}-node/status",
        Patch::Strategic,
        json!({"status": {"conditions": [ready], "capacity": {"cpu": "4"}}}),
    )
    .await;
}

async fn status_moves_no_generation(s: Session) {
    s.post(HPAS, hpa("a")).await;
    s.patch(
        &at(HPAS, "a/status"),
        Patch::Merge,
        json!({"status": {"currentReplicas": 1, "desiredReplicas": 2}}),
    )
    .await;
    s.patch(&at(HPAS, "a"), Patch::Merge, json!({"spec": {"maxReplicas": 3}})).await;
}

async fn status_of_what_has_none(s: Session) {
    s.post(CONFIG_MAPS, config_map("a")).await;
    s.get(&at(CONFIG_MAPS, "a/status")).await;
    s.patch(&at(LEASES, "a/status"), Patch::Merge, json!({})).await;
}

async fn a_pod_is_bound(s: Session) {
    s.post(PODS, pod("a")).await;
    let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "a"}, "target": {"kind": "Node", "name": "nowhere"}});
    s.post(&at(PODS, "a/binding"), binding).await;
    s.get(&at(PODS, "a")).await;
    s.delete_with(&at(PODS, "a"), json!({"gracePeriodSeconds": 0})).await;
}

async fn a_pod_is_bound_once(s: Session) {
    s.post(PODS, pod("a")).await;
    let binding = |node: &str| json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "a"}, "target": {"kind": "Node", "name": node}});
    s.post(&at(PODS, "a/binding"), binding("")).await;
    s.post(&at(PODS, "a/binding"), binding("nowhere")).await;
    s.post(&at(PODS, "a/binding"), binding("elsewhere")).await;
    s.post(&at(PODS, "absent/binding"), json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "absent"}, "target": {"kind": "Node", "name": "x"}})).await;
    s.delete_with(&at(PODS, "a"), json!({"gracePeriodSeconds": 0})).await;
}

async fn what_no_object_has(s: Session) {
    s.post(DEPLOYMENTS, deployment("a")).await;
    s.get(&at(DEPLOYMENTS, "a/dreams")).await;
    s.get(&at(DEPLOYMENTS, "a/scale/deeper")).await;
    s.put(&at(DEPLOYMENTS, "a/dreams"), json!({})).await;
}

async fn methods_that_are_not_allowed(s: Session) {
    s.post(DEPLOYMENTS, deployment("a")).await;
    s.delete(&at(DEPLOYMENTS, "a/scale")).await;
    s.post(&at(DEPLOYMENTS, "a/scale"), json!({})).await;
    s.delete(&at(DEPLOYMENTS, "a/status")).await;
    s.get(&at(PODS, "a/binding")).await;
}
