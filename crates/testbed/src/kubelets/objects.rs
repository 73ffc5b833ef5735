//! Node and Pod objects as a cluster stores them, with status and managed fields.

use std::net::Ipv4Addr;

use serde_json::{Value, json};

/// The creation and start time of all objects, which is so long ago that no pod counts as starting.
pub const SINCE: &str = "2026-01-01T00:00:00Z";

/// A node that is ready.
pub fn node(name: &str, address: Ipv4Addr, port: u16, images: usize) -> Value {
    let resources = json!({"cpu": "8", "memory": "32Gi", "pods": "110"});
    let condition = |kind: &str, status: &str| {
        json!({
            "type": kind, "status": status, "lastHeartbeatTime": SINCE, "lastTransitionTime": SINCE,
            "reason": "Simulated", "message": "simulated"
        })
    };
    let image = |number: usize| {
        let digest = format!("{:064x}", number + 1);
        json!({
            "names": [
                format!("registry.example/shop/part-{number}@sha256:{digest}"),
                format!("registry.example/shop/part-{number}:1.{number}.0")
            ],
            "sizeBytes": 50_000_000 + number
        })
    };
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": metadata(name, None, &json!({
            "beta.kubernetes.io/arch": "amd64", "beta.kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
            "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "topology.kubernetes.io/zone": "a"
        })),
        "spec": {},
        "status": {
            "capacity": resources, "allocatable": resources,
            "conditions": [
                condition("MemoryPressure", "False"), condition("DiskPressure", "False"),
                condition("PIDPressure", "False"), condition("Ready", "True")
            ],
            "addresses": [
                {"type": "InternalIP", "address": address.to_string()}, {"type": "Hostname", "address": name}
            ],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
            "nodeInfo": {
                "machineID": "", "systemUUID": "", "bootID": "", "kernelVersion": "6.12.0", "osImage": "Simulated",
                "containerRuntimeVersion": "containerd://2.2.0", "kubeletVersion": "v1.36.4", "kubeProxyVersion": "",
                "operatingSystem": "linux", "architecture": "amd64"
            },
            "images": (0..images).map(image).collect::<Vec<_>>()
        }
    })
}

/// A pod that is running and ready, whose containers each request one core and one GiB.
pub fn pod(namespace: &str, name: &str, node: &str, labels: &Value, containers: &[&str]) -> Value {
    let requests = json!({"requests": {"cpu": "1", "memory": "1Gi"}});
    let container = |name: &&str| {
        json!({
            "name": name, "image": "registry.example/shop/part:1.2.3", "imagePullPolicy": "IfNotPresent",
            "resources": requests, "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File"
        })
    };
    let running = |name: &&str| {
        json!({
            "name": name, "image": "registry.example/shop/part:1.2.3", "imageID": "", "ready": true, "started": true,
            "restartCount": 0, "state": {"running": {"startedAt": SINCE}}
        })
    };
    let condition = |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": SINCE});
    let conditions = ["Initialized", "Ready", "ContainersReady", "PodScheduled"].map(condition);
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": metadata(name, Some(namespace), labels),
        "spec": {
            "nodeName": node, "restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "schedulerName": "default-scheduler",
            "securityContext": {}, "terminationGracePeriodSeconds": 30, "enableServiceLinks": true,
            "containers": containers.iter().map(container).collect::<Vec<_>>()
        },
        "status": {
            "phase": "Running", "startTime": SINCE, "hostIP": "127.0.0.1", "podIP": "10.1.2.3", "qosClass": "Burstable",
            "conditions": conditions,
            "containerStatuses": containers.iter().map(running).collect::<Vec<_>>()
        }
    })
}

/// The object as a client would create it through the API: without the fields that the server sets, and without status.
pub fn to_create(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(meta) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        meta.retain(|field, _| matches!(field.as_str(), "name" | "namespace" | "labels" | "annotations"));
    }
    object
}

fn metadata(name: &str, namespace: Option<&str>, labels: &Value) -> Value {
    let key = |text: &str| format!("f:{text}");
    let fields_of_labels: serde_json::Map<String, Value> =
        labels.as_object().into_iter().flatten().map(|(label, _)| (key(label), json!({}))).collect();
    let entry = |manager: &str, subresource: Option<&str>, fields: Value| {
        let mut entry = json!({
            "manager": manager, "operation": "Update", "apiVersion": "v1", "time": SINCE, "fieldsType": "FieldsV1",
            "fieldsV1": fields
        });
        if let (Some(subresource), Some(entry)) = (subresource, entry.as_object_mut()) {
            entry.insert("subresource".into(), subresource.into());
        }
        entry
    };
    let made = json!({
        "f:metadata": {"f:labels": fields_of_labels, "f:generateName": {}, "f:ownerReferences": {".": {}}},
        "f:spec": {"f:containers": {"k:{\"name\":\"app\"}": {
            ".": {}, "f:image": {}, "f:imagePullPolicy": {}, "f:name": {}, "f:ports": {".": {}},
            "f:resources": {".": {}, "f:limits": {".": {}, "f:memory": {}}, "f:requests": {".": {}, "f:cpu": {}}},
            "f:terminationMessagePath": {}, "f:terminationMessagePolicy": {}
        }}, "f:dnsPolicy": {}, "f:enableServiceLinks": {}, "f:restartPolicy": {}, "f:schedulerName": {},
            "f:securityContext": {}, "f:terminationGracePeriodSeconds": {}}
    });
    let reported = json!({"f:status": {
        "f:conditions": {".": {}, "k:{\"type\":\"Ready\"}": {".": {}, "f:lastTransitionTime": {}, "f:status": {}, "f:type": {}}},
        "f:containerStatuses": {}, "f:hostIP": {}, "f:phase": {}, "f:podIP": {}, "f:startTime": {}
    }});
    let mut meta = json!({
        "name": name, "uid": uid(namespace.unwrap_or_default(), name), "creationTimestamp": SINCE, "labels": labels,
        "managedFields": [
            entry("kube-controller-manager", None, made), entry("kubelet", Some("status"), reported)
        ]
    });
    if let (Some(namespace), Some(meta)) = (namespace, meta.as_object_mut()) {
        meta.insert("namespace".into(), namespace.into());
    }
    meta
}

/// A uid that is derived from a name, so that it is the same in every run.
fn uid(namespace: &str, name: &str) -> String {
    let hash = |text: &str, start: u64| {
        text.bytes().fold(start, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
    };
    let low = hash(name, hash(namespace, 0xcbf2_9ce4_8422_2325));
    let high = hash(namespace, hash(name, 0x8422_2325_cbf2_9ce4));
    format!(
        "{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}",
        high >> 32,
        high >> 16 & 0xffff,
        high & 0xfff,
        low >> 48 & 0xfff,
        low & 0xffff_ffff_ffff
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn created_objects_omit_managed_fields_and_uid() {
        let pod = pod("shop", "web-0", "node-1", &json!({"app": "web"}), &["app"]);
        assert_eq!(pod.pointer("/metadata/managedFields").and_then(Value::as_array).unwrap().len(), 2);
        assert_eq!(pod.pointer("/metadata/uid").and_then(Value::as_str).unwrap().len(), 36);
        let sent = to_create(&pod);
        assert!(sent.pointer("/metadata/managedFields").is_none() && sent.pointer("/metadata/uid").is_none());
        assert_eq!(sent.pointer("/metadata/namespace"), Some(&json!("shop")));
        assert_ne!(uid("a", "b"), uid("b", "a"));
    }
}
