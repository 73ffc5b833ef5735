//! A namespace full of deployments and the ScaledObjects that scale them.

use std::sync::Arc;

use http::Method;
use kube::Client;
use serde_json::{Value, json};
use testbed::harness::write;

use crate::shared::write_many;

/// How much there is, and what it asks.
#[derive(Clone)]
pub(crate) struct OperatorWorkloads {
    pub(crate) namespace: &'static str,
    pub(crate) objects: usize,
    /// Replicas of each deployment to begin with.
    pub(crate) replicas: i32,
    /// Seconds from poll to poll, and from the last activity to zero.
    pub(crate) interval: u64,
    pub(crate) cooldown: u64,
    pub(crate) trigger: Arc<dyn Fn(usize) -> Value + Send + Sync>,
}

/// What an object asks Prometheus.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Queries {
    /// Each something else.
    Distinct,
    /// All the same.
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

    /// Makes all of it.
    pub(crate) async fn make(&self, client: &Client) {
        eprintln!("making {} ScaledObjects and their deployments in {}", self.objects, self.namespace);
        let namespace = json!({"metadata": {"name": self.namespace}});
        write(client, Method::POST, "/api/v1/namespaces", &namespace).await;
        let (workloads, client) = (self.clone(), client.clone());
        write_many(self.objects, move |number| {
            let (workloads, client) = (workloads.clone(), client.clone());
            async move { workloads.make_one(&client, number).await }
        })
        .await;
    }

    async fn make_one(&self, client: &Client, number: usize) {
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
        // No controller makes pods here.
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
