//! A namespace with Deployments and the ScaledObjects that scale them.

use std::sync::Arc;

use http::Method;
use kube::Client;
use serde_json::{Value, json};
use testbed::harness::write;

use crate::shared::write_many;

/// The number of objects, and their triggers.
#[derive(Clone)]
pub(crate) struct OperatorWorkloads {
    pub(crate) namespace: &'static str,
    pub(crate) objects: usize,
    /// The initial replicas of each Deployment.
    pub(crate) replicas: i32,
    /// `pollingInterval` in seconds.
    pub(crate) interval: u64,
    /// `cooldownPeriod` in seconds.
    pub(crate) cooldown: u64,
    pub(crate) trigger: Arc<dyn Fn(usize) -> Value + Send + Sync>,
}

/// Which queries the objects send to Prometheus.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Queries {
    /// Every object has its own query.
    Distinct,
    /// All objects have the same query.
    Same,
}

impl Queries {
    /// The trigger of an object.
    pub(crate) fn trigger(self, url: &str, number: usize) -> Value {
        let name = match self {
            Self::Distinct => name(number),
            Self::Same => "all".to_owned(),
        };
        let query = format!(r#"sum(rate(http_requests_total{{namespace="shop",deployment="{name}"}}[2m]))"#);
        let metadata =
            json!({"serverAddress": url, "query": query, "threshold": "100", "activationThreshold": "1"});
        json!({"type": "prometheus", "metadata": metadata})
    }
}

impl OperatorWorkloads {
    /// Objects with a prometheus trigger each, polled every 30 s.
    pub(crate) fn new(namespace: &'static str, objects: usize, url: &str, queries: Queries) -> Self {
        let url = url.to_owned();
        let trigger = Arc::new(move |number| queries.trigger(&url, number));
        Self { namespace, objects, replicas: 1, interval: 30, cooldown: 300, trigger }
    }

    /// Creates the namespace and all objects in it.
    pub(crate) async fn create(&self, client: &Client) {
        eprintln!("creating {} ScaledObjects and their deployments in {}", self.objects, self.namespace);
        let namespace = json!({"metadata": {"name": self.namespace}});
        write(client, Method::POST, "/api/v1/namespaces", &namespace).await;
        let (workloads, client) = (self.clone(), client.clone());
        write_many(self.objects, move |number| {
            let (workloads, client) = (workloads.clone(), client.clone());
            async move { workloads.create_object(&client, number).await }
        })
        .await;
    }

    async fn create_object(&self, client: &Client, number: usize) {
        let (namespace, name) = (self.namespace, name(number));
        let labels = json!({"app": name, "app.kubernetes.io/part-of": "shop"});
        let container = json!({
            "name": "app", "image": "registry.example/shop/worker:1.2.3",
            "env": [{"name": "LOG_LEVEL", "value": "info"}, {"name": "QUEUE", "value": name}],
            "resources": {"requests": {"cpu": "200m", "memory": "256Mi"}, "limits": {"memory": "512Mi"}}
        });
        let template = json!({"metadata": {"labels": labels}, "spec": {"containers": [container]}});
        let spec = json!({"replicas": self.replicas, "selector": {"matchLabels": {"app": name}}, "template": template});
        let deployment = json!({"metadata": {"name": name, "labels": labels}, "spec": spec});
        write(
            client,
            Method::POST,
            &format!("/apis/apps/v1/namespaces/{namespace}/deployments"),
            &deployment,
        )
        .await;
        // No controller creates pods here, so the status is written.
        let counts = ["replicas", "updatedReplicas", "readyReplicas", "availableReplicas"];
        let status: Value =
            counts.into_iter().map(|count| (count.to_owned(), json!(self.replicas))).collect();
        let path = format!("/apis/apps/v1/namespaces/{namespace}/deployments/{name}/status");
        write(client, Method::PATCH, &path, &json!({"status": status})).await;
        let object = json!({
            "apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject",
            "metadata": {"name": name, "labels": labels},
            "spec": {
                "scaleTargetRef": {"name": name}, "pollingInterval": self.interval,
                "cooldownPeriod": self.cooldown, "maxReplicaCount": 20,
                "triggers": [(self.trigger)(number)],
            },
        });
        let path = format!("/apis/keda.sh/v1alpha1/namespaces/{namespace}/scaledobjects");
        write(client, Method::POST, &path, &object).await;
    }
}

pub(crate) fn name(number: usize) -> String {
    format!("checkout-{number:05}")
}
