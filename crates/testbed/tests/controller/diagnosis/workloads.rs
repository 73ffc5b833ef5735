//! Targets of set-ups: workloads, pods and samples, which have no fault other than the named one.

use http::Method;
use jiff::{SignedDuration, Timestamp};
use localkube::metrics::{DescribedObject, PodUsage, SampleTime, Series};
use serde_json::{Value, json};

use super::set_ups::{PodState, READY_POD, SetUp, TestPod, TestTarget};
use crate::env::ControllerEnv;

const PODS: &str = "/api/v1/namespaces/{ns}/pods";
const TOYS: &str = "/apis/toys.example.com/v1/namespaces/{ns}";

/// Creates the objects that all set-ups share: definitions of custom resources, a node whose kubelet does not respond, a StatefulSet.
pub(super) async fn create_shared(env: &ControllerEnv) {
    for (plural, kind, scale) in [("widgets", "Widget", true), ("gadgets", "Gadget", false)] {
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        env.create(path, definition(plural, kind, scale)).await;
        env.until_found(&format!("{TOYS}/{plural}")).await;
    }
    // The names of nodes are unique in the whole cluster.
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "{ns}"}});
    env.create("/api/v1/nodes", node).await;
    let silent = json!({"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown",
        "lastTransitionTime": ago(SignedDuration::from_hours(1))});
    env.patch("/api/v1/nodes/{ns}/status", json!({"status": {"conditions": [silent]}})).await;
    // This metric is served in addition to the misspelt one, so that the metric and not its API is missing.
    let pod = DescribedObject::pod(&env.namespace, "by-pods-0");
    env.script.set_custom(pod, "hits", Series::milli(1000).of_object(&[("app", "by-pods")]));
    for number in 0..2 {
        create_pod(env, &format!("overlap-{number}"), "overlap", &READY_POD, None).await;
    }
}

/// A definition; with `scale` its replicas are `spec.size`.
fn definition(plural: &str, kind: &str, scale: bool) -> Value {
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let mut subresources = json!({"status": {}});
    if scale {
        subresources["scale"] = json!({"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size",
            "labelSelectorPath": ".status.selector"});
    }
    let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": open, "status": open}}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.toys.example.com")},
        "spec": {
            "group": "toys.example.com", "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List")},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": subresources, "schema": schema}],
        },
    })
}

/// Creates the target of one set-up.
pub(super) async fn create_target(env: &ControllerEnv, set_up: &SetUp) {
    let name = set_up.name;
    match &set_up.target {
        TestTarget::Nothing => {}
        TestTarget::Empty(replicas) => env.deployment(name, *replicas).await,
        TestTarget::Recommended { replicas, wanted } => {
            env.deployment(name, *replicas).await;
            env.ask_for(name, *wanted);
        }
        TestTarget::Pods(pods) => {
            env.deployment(name, pods.len()).await;
            for (number, pod) in pods.iter().enumerate() {
                create_pod(env, &format!("{name}-{number}"), name, pod, None).await;
            }
        }
        TestTarget::Labelled(label) => {
            env.create("/apis/apps/v1/namespaces/{ns}/deployments", workload("Deployment", name, label))
                .await;
            env.set_ready_replicas(name, 2).await;
        }
        TestTarget::Wide => create_wide(env, name).await,
        TestTarget::Widget { selector } => {
            create_toy(env, "widgets", "Widget", name).await;
            let status = json!({"status": {"size": 2, "selector": selector}});
            env.patch(&format!("{TOYS}/widgets/{name}/status"), status).await;
        }
        TestTarget::Gadget => create_toy(env, "gadgets", "Gadget", name).await,
    }
}

async fn create_toy(env: &ControllerEnv, plural: &str, kind: &str, name: &str) {
    let object = json!({"apiVersion": "toys.example.com/v1", "kind": kind, "metadata": {"name": name}, "spec": {"size": 2}});
    // An API server may serve a new kind to readers before it accepts writes.
    env.until(&format!("{kind} {name}"), async || {
        match env.send(Method::POST, &format!("{TOYS}/{plural}"), Some(&object)).await {
            (201 | 409, _) => Ok(()),
            refused => Err(refused),
        }
    })
    .await;
}

/// Creates two pods of a Deployment, and two of a StatefulSet with the same label.
async fn create_wide(env: &ControllerEnv, name: &str) {
    let path = "/apis/apps/v1/namespaces/{ns}/statefulsets";
    let database = env.create(path, workload("StatefulSet", "database", name)).await;
    let owner = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "database", "controller": true,
        "uid": database["metadata"]["uid"]});
    env.deployment(name, 2).await;
    for number in 0..4 {
        let owner = (number >= 2).then_some(&owner);
        create_pod(env, &format!("{name}-{number}"), name, &READY_POD, owner).await;
    }
}

/// Creates a workload of two replicas whose selector is one label.
fn workload(kind: &str, name: &str, label: &str) -> Value {
    let labels = json!({"app": label});
    let pods =
        json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": "app"}]}});
    let mut spec = json!({"replicas": 2, "selector": {"matchLabels": labels}, "template": pods});
    if kind == "StatefulSet" {
        spec["serviceName"] = json!(name);
    }
    json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": spec})
}

async fn create_pod(env: &ControllerEnv, name: &str, label: &str, pod: &TestPod, owner: Option<&Value>) {
    let container = |(name, cpu): &(&str, Option<&str>)| {
        let requests = cpu.map_or(json!({}), |cpu| json!({"requests": {"cpu": cpu}}));
        json!({"name": name, "image": "app", "resources": requests})
    };
    let containers: Vec<Value> = pod.containers.iter().map(container).collect();
    let mut object = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": label}}, "spec": {"containers": containers}});
    if pod.on_lost_node {
        object["spec"]["nodeName"] = json!("{ns}");
    }
    if let Some(owner) = owner {
        object["metadata"]["ownerReferences"] = json!([owner]);
    }
    env.create(PODS, object).await;
    set_state(env, name, pod.state).await;
    if let Some(usage) = pod.usage {
        let containers: Vec<(&str, i64, i64)> =
            pod.containers.iter().map(|(name, _)| (*name, usage, 1)).collect();
        let when = match pod.sample_age_minutes {
            0 => SampleTime::Now,
            minutes => SampleTime::At(Timestamp::now() - SignedDuration::from_mins(minutes)),
        };
        let usage = PodUsage::new(&[("app", label)], &containers).at(when);
        env.script.set_pod(&env.namespace, name, usage);
    }
}

/// Writes the status of a pod as a kubelet would.
async fn set_state(env: &ControllerEnv, name: &str, state: PodState) {
    let (phase, age, ready) = match state {
        PodState::Ready => ("Running", SignedDuration::from_hours(1), "True"),
        PodState::Unready => ("Running", SignedDuration::from_secs(30), "False"),
        PodState::Young => ("Running", SignedDuration::from_secs(20), "True"),
        PodState::Failed => ("Failed", SignedDuration::from_hours(1), "False"),
        PodState::Completed => ("Succeeded", SignedDuration::from_hours(1), "False"),
        // New pods are pending.
        PodState::Pending => return,
    };
    let since = ago(age);
    let ready = json!({"type": "Ready", "status": ready, "lastTransitionTime": since});
    let status = json!({"status": {"phase": phase, "startTime": since, "conditions": [ready]}});
    env.patch(&format!("{PODS}/{name}/status"), status).await;
}

/// Writes the status of a set-up's young pods again, so that they were started a few seconds ago even if the test has taken long.
pub(super) async fn renew_start_times(env: &ControllerEnv, set_up: &SetUp) {
    let TestTarget::Pods(pods) = &set_up.target else { return };
    for (number, pod) in pods.iter().enumerate() {
        if pod.state == PodState::Young {
            set_state(env, &format!("{}-{number}", set_up.name), pod.state).await;
        }
    }
}

fn ago(age: SignedDuration) -> String {
    api::instant::format(Timestamp::now() - age)
}
