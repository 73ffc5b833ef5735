//! A ScaledObject that scales a worker from zero and back.

use testbed::node::TOOL_IMAGE;

use crate::cluster::Cluster;

fn deployment(name: &str, replicas: u32) -> String {
    format!(
        "apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}}}
spec:
  replicas: {replicas}
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - {{name: {name}, image: {TOOL_IMAGE}, imagePullPolicy: Never}}
---
"
    )
}

/// One worker for each pod of the queue.
fn scaled_object(name: &str) -> String {
    format!(
        "apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {{name: {name}}}
spec:
  scaleTargetRef: {{name: worker}}
  pollingInterval: 2
  cooldownPeriod: 5
  advanced: {{horizontalPodAutoscalerConfig: {{behavior: {{scaleDown: {{stabilizationWindowSeconds: 5}}}}}}}}
  triggers:
  - type: kubernetes-workload
    metadata: {{podSelector: app=queue, value: '1'}}
"
    )
}

pub(crate) fn wake_a_worker(cluster: &Cluster) {
    cluster.apply(&(deployment("queue", 0) + &deployment("worker", 0) + &scaled_object("worker")));
    let workers = |wanted: u64| {
        cluster.until(&format!("there are {wanted} workers"), || {
            let worker = cluster.get("deployment worker");
            let ready = worker["status"]["readyReplicas"].as_u64().unwrap_or(0);
            (worker["spec"]["replicas"] == wanted && ready == wanted).then_some(())
        });
    };
    cluster.kubectl("scale deployment queue --replicas 2");
    workers(2);
    cluster.kubectl("scale deployment queue --replicas 0");
    workers(0);
    let second = cluster.try_apply(&scaled_object("second")).expect_err("the webhook refuses a second one");
    assert!(second.to_string().contains("worker"), "{second}");
    cluster.kubectl("delete scaledobject,deployment worker");
    cluster.kubectl("delete deployment queue");
}
