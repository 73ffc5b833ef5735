//! Two replicas that share nodes: each serves all metrics, and each kubelet is scraped by one; when one ends, the other
//! takes its nodes over. On the real cluster only, in whose store their addresses can be put: no API server takes endpoints
//! on loopback.

use std::path::Path;

use serde_json::{Value, json};
use testbed::etcd::{self, Etcd};
use testbed::harness::Failure;
use testbed::kubelets::{Kubelets, Measures, PodLoad, objects};
use testbed::program::{Program, TempFolder};

use crate::env::tested_server::{kubelet_flags, serving_flags, started};
use crate::env::{
    TestNamespace, authority, direct, free_port, make_node, make_pod, milli, on_real, peers, program, until,
};
use crate::faults::admin;

pub(crate) const NODES: usize = 6;
const REPLICAS: [&str; 2] = ["metrics-a", "metrics-b"];

/// Nodes that only these replicas scrape, each with a pod of every workload, which uses so many thousandths of a core. The nodes have
/// addresses in 127.`network`.
pub(crate) async fn nodes(ns: &TestNamespace, network: u8, workloads: &[(&str, u64)]) -> Kubelets {
    let kubelets = Kubelets::new(&authority(&ns.env.cluster.kubeconfig), network).unwrap();
    for number in 0..NODES {
        let node = node(ns, number);
        let address = kubelets.add_node(&node, Measures::Always).unwrap();
        let mut object = objects::node(&node, address, kubelets.port(), 1);
        object["metadata"]["labels"]["pool"] = ns.namespace.as_str().into();
        make_node(&ns.client, &object).await;
        for (workload, used) in workloads {
            let (pod, labels) = (format!("{workload}-{number}"), json!({"app": workload}));
            kubelets.set_pod(&node, PodLoad::new(&ns.namespace, &pod, &[("app", *used, 64 << 20)]));
            make_pod(&ns.client, &objects::pod(&ns.namespace, &pod, &node, &labels, &["app"])).await;
        }
    }
    kubelets
}

/// The name of one of these nodes.
pub(crate) fn node(ns: &TestNamespace, number: usize) -> String {
    format!("{}-shared-{number}", ns.namespace)
}

/// The token with which replicas authenticate to each other.
pub(crate) async fn token(ns: &TestNamespace) -> String {
    ns.create("/api/v1/namespaces/{ns}/serviceaccounts", &json!({"metadata": {"name": "metrics"}})).await;
    let role = json!({
        "metadata": {"name": ns.namespace}, "rules": [{"nonResourceURLs": ["/plimsoll/samples"], "verbs": ["get"]}]
    });
    ns.create("/apis/rbac.authorization.k8s.io/v1/clusterroles", &role).await;
    let binding = json!({
        "metadata": {"name": ns.namespace},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": ns.namespace},
        "subjects": [{"kind": "ServiceAccount", "name": "metrics", "namespace": ns.namespace}]
    });
    ns.create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", &binding).await;
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let made = ns.create("/api/v1/namespaces/{ns}/serviceaccounts/metrics/token", &request).await;
    made["status"]["token"].as_str().unwrap().to_owned()
}

/// Stores an EndpointSlice with the endpoint of one replica.
pub(crate) async fn announce(ns: &TestNamespace, name: &str, port: u16) {
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {
            "name": name, "namespace": ns.namespace, "creationTimestamp": objects::SINCE,
            "uid": format!("00000000-0000-4000-8000-{port:012x}"),
            "labels": {"kubernetes.io/service-name": "metrics", "endpointslice.kubernetes.io/managed-by": "tests"}
        },
        "endpoints": [{
            "addresses": ["127.0.0.1"], "conditions": {"ready": true},
            "targetRef": {"kind": "Pod", "namespace": ns.namespace, "name": name}
        }],
        "ports": [{"name": "https", "port": port, "protocol": "TCP"}]
    });
    let key = etcd::key("endpointslices", &ns.namespace, name);
    Etcd::of(ns.access().unwrap()).put(&key, &slice).await.unwrap();
}

/// Starts a replica, and returns when it is ready. With a token it shares the nodes with the other replicas; without, it scrapes all of
/// them.
pub(crate) async fn replica(
    ns: &TestNamespace,
    kubelets: &Kubelets,
    program: &Path,
    (name, port): (&str, u16),
    token: Option<&str>,
) -> Program {
    let temp_folder = TempFolder::new().unwrap();
    let mut arguments = vec![format!("POD_NAME={name}"), program.display().to_string(), "metrics".to_owned()];
    arguments.extend(serving_flags(&temp_folder, &ns.env.cluster.kubeconfig, port));
    arguments.push(format!("--kubeconfig={}", temp_folder.path("kubeconfig").display()));
    arguments.extend(kubelet_flags(&temp_folder, kubelets));
    arguments.push(format!("--node-selector=pool={}", ns.namespace));
    if let Some(token) = token {
        let token = temp_folder.write("token", token).unwrap();
        arguments.push(format!("--shares={}/metrics", ns.namespace));
        arguments.push(format!("--shares-token-file={}", token.display()));
        arguments.push("--shares-insecure-tls".to_owned());
    }
    started("plimsoll", Path::new("/usr/bin/env"), &arguments, temp_folder, port).await.unwrap()
}

#[test]
fn replicas_share_nodes_and_one_takes_over() -> Result<(), Failure> {
    if peers() {
        return Ok(());
    }
    on_real(async |ns| {
        let kubelets = nodes(&ns, 83, &[("web", 200)]).await;
        let token = token(&ns).await;
        let ports = [free_port(), free_port()];
        for (name, port) in REPLICAS.iter().zip(ports) {
            announce(&ns, name, port).await;
        }
        let [a, b] = REPLICAS;
        let (first, second) = tokio::join!(
            replica(&ns, &kubelets, program(), (a, ports[0]), Some(&token)),
            replica(&ns, &kubelets, program(), (b, ports[1]), Some(&token))
        );
        let caller = admin(&ns);
        let pods = format!("/apis/metrics.k8s.io/v1beta1/namespaces/{}/pods", ns.namespace);
        let listed = async |port: u16| -> Vec<Value> {
            let body = direct(port, &caller, &pods).await.map(|response| response.json()).unwrap_or_default();
            body["items"].as_array().cloned().unwrap_or_default()
        };
        for port in ports {
            until("all pods", async || {
                let found = listed(port).await;
                if found.len() == NODES { Ok(()) } else { Err((found.len(), first.log(), second.log())) }
            })
            .await;
        }
        let request_counts =
            || (0..NODES).map(|number| kubelets.requests(&node(&ns, number))).collect::<Vec<_>>();
        let since = |before: &[u64]| {
            request_counts().iter().zip(before).map(|(now, before)| now - before).collect::<Vec<_>>()
        };
        // The replicas know each other at the end of the start: a new replica gets no nodes at once.
        let before = request_counts();
        until("two rounds", async || {
            let found = since(&before);
            if found.iter().all(|count| *count >= 2) { Ok(()) } else { Err(found) }
        })
        .await;
        let before = request_counts();
        until("two more", async || {
            let found = since(&before);
            if found.iter().all(|count| *count >= 2) { Ok(()) } else { Err(found) }
        })
        .await;
        let counts = since(&before);
        assert!(counts.iter().all(|count| *count <= 3), "asked by both: {counts:?}");
        for port in ports {
            assert_eq!(listed(port).await.len(), NODES);
        }
        drop(first.end());
        let before = request_counts();
        until("the other one at all nodes", async || {
            let found = since(&before);
            if found.iter().all(|count| *count >= 2) { Ok(()) } else { Err((found, second.log())) }
        })
        .await;
        let found = listed(ports[1]).await;
        assert_eq!(found.len(), NODES);
        assert!(
            found.iter().all(|pod| milli(&pod["containers"][0]["usage"]["cpu"]) == Some(200)),
            "{found:?}"
        );
    })
}
