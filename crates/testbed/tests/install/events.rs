//! A ScaledObject that scales a worker from zero and back, for entries in a real Redis and for pods.

use testbed::backends::{Redis, RedisSetup};
use testbed::node::TOOL_IMAGE;

use crate::cluster::{Cluster, runtime};

/// The password of the Redis, which the operator reads from a Secret.
const PASSWORD: &str = "hunter2";
/// The key of the list in the Redis.
const LIST: &str = "jobs";

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

/// The password, for the trigger that uses it.
fn credentials() -> String {
    format!(
        "apiVersion: v1
kind: Secret
metadata: {{name: queue}}
stringData: {{password: {PASSWORD}}}
---
apiVersion: keda.sh/v1alpha1
kind: TriggerAuthentication
metadata: {{name: queue}}
spec:
  secretTargetRef:
  - {{parameter: password, name: queue, key: password}}
---
"
    )
}

/// One worker for each two entries of the list, and at least one for each pod of the queue.
fn scaled_object(name: &str, redis: &str) -> String {
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
  - type: redis
    metadata: {{address: '{redis}', listName: {LIST}, listLength: '2'}}
    authenticationRef: {{name: queue}}
  - type: kubernetes-workload
    metadata: {{podSelector: app=queue, value: '1'}}
"
    )
}

pub(crate) fn wake_a_worker(cluster: &Cluster) {
    let runtime = runtime();
    // The operator refuses to connect to loopback, so Redis also listens on the address of the machine for pods.
    let address = cluster.machine_address();
    let setup = RedisSetup { password: PASSWORD, address: Some(address), ..RedisSetup::default() };
    let redis = runtime.block_on(Redis::start(&setup)).unwrap();
    let send = |words: &[&str]| runtime.block_on(redis.command(words)).unwrap();
    let address = format!("{address}:{}", redis.port());
    let worker = scaled_object("worker", &address);
    cluster.apply(&(deployment("queue", 0) + &deployment("worker", 0) + &credentials() + &worker));
    let workers = |wanted: u64| {
        cluster.until(&format!("there are {wanted} workers"), || {
            let worker = cluster.get("deployment worker");
            let ready = worker["status"]["readyReplicas"].as_u64().unwrap_or(0);
            (worker["spec"]["replicas"] == wanted && ready == wanted).then_some(())
        });
    };
    assert_eq!(send(&["RPUSH", LIST, "a", "b", "c", "d"]), ":4");
    workers(2);
    cluster.kubectl("scale deployment queue --replicas 3");
    workers(3);
    // Neither trigger is active when the list is empty and the queue has no pods.
    cluster.kubectl("scale deployment queue --replicas 0");
    assert_eq!(send(&["DEL", LIST]), ":1");
    workers(0);
    let second = scaled_object("second", &address);
    let second = cluster.try_apply(&second).expect_err("the webhook refuses a second one");
    assert!(second.to_string().contains("worker"), "{second}");
    cluster.kubectl("delete scaledobject,deployment worker");
    cluster.kubectl("delete deployment,triggerauthentication,secret queue");
}
