//! Requests to the API server, built without a client.

use http::Request as HttpRequest;
use jiff::Timestamp;
use kube::core::Request;
use kube::core::params::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use serde_json::{Value, json};
use sim::time::to_the_second;

use super::state::PodRef;

/// The namespace of node leases.
pub(crate) const LEASE_NAMESPACE: &str = "kube-node-lease";

const KUBELET: &str = "kubelet";
const SCHEDULER: &str = "default-scheduler";

/// A request; `None` if it cannot be built, because no server accepts such a name.
type PreparedRequest = Option<HttpRequest<Vec<u8>>>;

pub(crate) fn create_node(node: &Value) -> PreparedRequest {
    nodes().create(&by(KUBELET), node.to_string().into_bytes()).ok()
}

pub(crate) fn patch_node(name: &str, patch: &Value) -> PreparedRequest {
    nodes().patch(name, &patching(KUBELET), &Patch::Merge(patch)).ok()
}

pub(crate) fn patch_node_status(name: &str, patch: &Value) -> PreparedRequest {
    nodes().patch_subresource("status", name, &patching(KUBELET), &Patch::Strategic(patch)).ok()
}

pub(crate) fn delete_node(name: &str) -> PreparedRequest {
    nodes().delete(name, &DeleteParams::background()).ok()
}

pub(crate) fn create_lease(lease: &Value) -> PreparedRequest {
    leases().create(&by(KUBELET), lease.to_string().into_bytes()).ok()
}

pub(crate) fn patch_lease(name: &str, patch: &Value) -> PreparedRequest {
    leases().patch(name, &patching(KUBELET), &Patch::Merge(patch)).ok()
}

pub(crate) fn bind(key: &PodRef, node: &str) -> PreparedRequest {
    let PodRef { namespace, name, uid } = key;
    let binding = json!({
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"namespace": namespace, "name": name, "uid": uid},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    });
    pods(key).create_subresource("binding", name, &by(SCHEDULER), binding.to_string().into_bytes()).ok()
}

pub(crate) fn patch_pod_status(key: &PodRef, patch: &Value, scheduling: bool) -> PreparedRequest {
    let manager = if scheduling { SCHEDULER } else { KUBELET };
    pods(key).patch_subresource("status", &key.name, &patching(manager), &Patch::Strategic(patch)).ok()
}

pub(crate) fn remove_pod(key: &PodRef) -> PreparedRequest {
    let this = Preconditions { uid: Some(key.uid.clone()), ..Preconditions::default() };
    pods(key).delete(&key.name, &DeleteParams::default().grace_period(0).preconditions(this)).ok()
}

/// The event for a pod that cannot be scheduled.
pub(crate) fn failed_scheduling(key: &PodRef, message: &str, now: Timestamp) -> PreparedRequest {
    let PodRef { namespace, name, uid } = key;
    let time = to_the_second(now).to_string();
    let event = json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"namespace": namespace, "name": format!("{name}.{:x}", now.as_nanosecond())},
        "involvedObject": {"apiVersion": "v1", "kind": "Pod", "namespace": namespace, "name": name, "uid": uid},
        "type": "Warning",
        "reason": "FailedScheduling",
        "message": message,
        "source": {"component": SCHEDULER},
        "reportingComponent": SCHEDULER,
        "reportingInstance": "",
        "firstTimestamp": time,
        "lastTimestamp": time,
        "count": 1,
    });
    let events = Request::new(format!("/api/v1/namespaces/{namespace}/events"));
    events.create(&by(SCHEDULER), event.to_string().into_bytes()).ok()
}

fn nodes() -> Request {
    Request::new("/api/v1/nodes")
}

fn leases() -> Request {
    Request::new(format!("/apis/coordination.k8s.io/v1/namespaces/{LEASE_NAMESPACE}/leases"))
}

fn pods(key: &PodRef) -> Request {
    Request::new(format!("/api/v1/namespaces/{}/pods", key.namespace))
}

fn by(manager: &str) -> PostParams {
    PostParams { field_manager: Some(manager.into()), ..PostParams::default() }
}

fn patching(manager: &str) -> PatchParams {
    PatchParams { field_manager: Some(manager.into()), ..PatchParams::default() }
}
