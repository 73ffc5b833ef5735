//! Registers a metrics server as an aggregated API.

use http::Method;
use kube::Client;
use serde_json::{Value, json};

use super::tested_server::{TestedServer, peers};
use super::{send, until};

const NAMESPACE: &str = "kube-system";
const APISERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";

/// Group, version, priority of the version.
const APIS: [(&str, &str, u32); 6] = [
    ("metrics.k8s.io", "v1beta1", 100),
    ("metrics.k8s.io", "v1", 50),
    ("custom.metrics.k8s.io", "v1beta1", 100),
    ("custom.metrics.k8s.io", "v1beta2", 200),
    ("external.metrics.k8s.io", "v1beta1", 100),
    ("metrics.plimsoll.dev", "v1alpha1", 100),
];

fn apis() -> impl Iterator<Item = (&'static str, &'static str, u32)> {
    // The replaced servers serve neither v1 nor reports.
    APIS.into_iter()
        .filter(|(group, version, _)| !peers() || (*version != "v1" && *group != "metrics.plimsoll.dev"))
}

/// Registers all APIs of a server, replacing earlier registrations, and waits until clients can use them.
pub(crate) async fn register(client: &Client, tested_server: &TestedServer) {
    for (service, port) in [("resource", tested_server.resource_port), ("custom", tested_server.custom_port)]
    {
        let object = json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": service, "namespace": NAMESPACE},
            "spec": {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]}
        });
        put(client, &format!("/api/v1/namespaces/{NAMESPACE}/services"), &object).await;
    }
    for (group, version, priority) in apis() {
        // Plimsoll serves all of them on one port.
        let (service, port) = match group {
            "custom.metrics.k8s.io" | "external.metrics.k8s.io" if peers() => {
                ("custom", tested_server.custom_port)
            }
            _ => ("resource", tested_server.resource_port),
        };
        let object = json!({
            "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
            "metadata": {"name": format!("{version}.{group}")},
            "spec": {
                "group": group, "version": version, "groupPriorityMinimum": 100, "versionPriority": priority,
                "insecureSkipTLSVerify": true, "service": {"name": service, "namespace": NAMESPACE, "port": port}
            }
        });
        put(client, APISERVICES, &object).await;
    }
    for (group, version, _) in apis() {
        until(&format!("{version}.{group}"), async || {
            let (code, response) = send(client, Method::GET, &format!("/apis/{group}/{version}"), None).await;
            let listed = send(client, Method::GET, "/apis", None).await.1.to_string();
            let (_, object) =
                send(client, Method::GET, &format!("{APISERVICES}/{version}.{group}"), None).await;
            let known = listed.contains(&format!("\"{group}/{version}\""));
            if code == 200 && known { Ok(()) } else { Err((code, response, object["status"].clone())) }
        })
        .await;
    }
}

/// Creates or replaces an object.
async fn put(client: &Client, all: &str, object: &Value) {
    let name = object["metadata"]["name"].as_str().unwrap();
    let (code, response) = send(client, Method::POST, all, Some(object)).await;
    if code == 409 {
        let (code, response) = send(client, Method::PATCH, &format!("{all}/{name}"), Some(object)).await;
        assert_eq!(code, 200, "{response}");
        return;
    }
    assert_eq!(code, 201, "{response}");
}
