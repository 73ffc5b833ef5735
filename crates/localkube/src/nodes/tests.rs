//! Nodes on localkube in this process, with paused time.

use std::pin::pin;

use futures::StreamExt;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::json;
use sim::load::{CurveShape, LoadCurve};
use sim::workload::{ContainerUsageModel, ServiceCapacity, UsageModel};
use tokio::time::{Duration, Instant};

use super::*;
use crate::list_watch::{ListWatchEvent, list_watch};
use crate::{Cluster, Options, Running};

struct NodesFixture {
    /// Held because dropping it stops the cluster.
    #[allow(dead_code)]
    cluster: Running,
    nodes: Nodes,
    pods: Api<Pod>,
}

impl NodesFixture {
    async fn new(plan: Plan) -> Self {
        let cluster = Cluster::start(Options::default()).await.unwrap();
        let plan = Plan { serve: false, clock: cluster.cluster().0.clock, ..plan };
        let nodes = Nodes::start(cluster.client(), plan).await.unwrap();
        let pods = Api::default_namespaced(cluster.client());
        Self { cluster, nodes, pods }
    }

    async fn create(&self, name: &str) {
        let container =
            json!({"name": "web", "image": "shop/web:1", "resources": {"limits": {"cpu": "500m"}}});
        let pod = json!({"metadata": {"name": name, "labels": {"app": "web"}}, "spec": {"containers": [container]}});
        self.pods.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
    }

    /// Waits until a pod fulfils a condition; returns the time that took, in tenths of a second.
    async fn until(&self, name: &str, fine: impl Fn(Option<&Pod>) -> bool) -> f64 {
        let start = Instant::now();
        let mut events = pin!(list_watch(self.pods.clone()));
        let waited = async {
            let mut current = None;
            while let Some(event) = events.next().await {
                match event {
                    ListWatchEvent::Listed(pod) | ListWatchEvent::Applied(pod) if pod.name_any() == name => {
                        current = Some(pod);
                    }
                    ListWatchEvent::Deleted(pod) if pod.name_any() == name => current = None,
                    ListWatchEvent::ListStarted | ListWatchEvent::Listed(_) => continue,
                    _ => {}
                }
                if fine(current.as_ref()) {
                    return;
                }
            }
        };
        let waited = tokio::time::timeout(Duration::from_hours(1), waited).await;
        waited.unwrap_or_else(|_| panic!("{name}: {:?}", self.nodes.last_error()));
        (start.elapsed().as_secs_f64() * 10.0).round() / 10.0
    }
}

fn is(pod: Option<&Pod>, kind: &str) -> bool {
    let conditions = pod.and_then(|pod| pod.status.as_ref()?.conditions.as_ref());
    conditions.into_iter().flatten().any(|c| c.type_ == kind && c.status == "True")
}

fn phase(pod: Option<&Pod>) -> &str {
    pod.and_then(|pod| pod.status.as_ref()?.phase.as_deref()).unwrap_or("none")
}

/// CPU seconds of the containers on all nodes.
fn cpu(nodes: &Nodes) -> f64 {
    let pages = nodes.names().iter().map(|node| nodes.metrics(node).unwrap());
    let of_page = |page: String| -> f64 {
        let lines = page.lines().filter(|line| line.starts_with("container_cpu_usage_seconds_total{"));
        lines.map(|line| line.split(' ').nth(1).unwrap().parse::<f64>().unwrap()).sum()
    };
    pages.map(of_page).sum()
}

#[tokio::test(start_paused = true)]
async fn pod_stages_take_the_planned_delays() {
    let fixture = NodesFixture::new(Plan::default()).await;
    fixture.create("web").await;
    assert_eq!(fixture.until("web", |pod| phase(pod) == "Running").await, 3.0);
    assert_eq!(fixture.until("web", |pod| is(pod, "Ready")).await, 7.0);
    fixture.pods.delete("web", &DeleteParams::default()).await.unwrap();
    assert_eq!(fixture.until("web", |pod| pod.is_none()).await, 5.0);
    let nodes: Api<Node> = Api::all(fixture.cluster.client());
    assert_eq!(nodes.list(&ListParams::default()).await.unwrap().items.len(), 3);
    fixture.nodes.stop().await;
    assert_eq!(nodes.list(&ListParams::default()).await.unwrap().items.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn usage_follows_the_load_of_ready_pods() {
    let fixture = NodesFixture::new(Plan::default()).await;
    for name in ["web-0", "web-1"] {
        fixture.create(name).await;
    }
    for name in ["web-0", "web-1"] {
        fixture.until(name, |pod| is(pod, "Ready")).await;
    }
    let usage = |idle, per_unit| UsageModel { idle, per_unit, starting: idle, limit: f64::INFINITY };
    let load = |rate| Workload {
        namespace: "default".into(),
        selector: api::selector::Selector::parse("app=web").unwrap(),
        load: LoadCurve::new(vec![CurveShape::Constant(rate)], Vec::new()),
        service: ServiceCapacity { per_pod: Some(20.0), queue: 0.0 },
        containers: vec![ContainerUsageModel {
            name: "web".into(),
            cpu: usage(2.0, 25.0),
            memory: usage(1e9, 0.0),
        }],
        delays: None,
    };
    // Two pods with 8 units each, then more load than their limits allow, then none.
    for (rate, cores) in [(16.0, 2.0 * 0.202), (60.0, 2.0 * 0.5), (0.0, 2.0 * 0.002)] {
        fixture.nodes.set_load(load(rate));
        let before = cpu(&fixture.nodes);
        tokio::time::sleep(Duration::from_mins(1)).await;
        let used = (cpu(&fixture.nodes) - before) / 60.0;
        assert!((used - cores).abs() < 1e-3, "{rate}: {used} and not {cores}");
    }
}

fn node_of(pod: Option<&Pod>) -> String {
    pod.and_then(|pod| pod.spec.as_ref()?.node_name.clone()).unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn lost_node_loses_its_pods_and_gets_new_ones_when_it_is_back() {
    let fixture = NodesFixture::new(Plan { count: 1, ..Plan::default() }).await;
    fixture.create("web-0").await;
    fixture.until("web-0", |pod| is(pod, "Ready")).await;
    assert_eq!(fixture.nodes.busiest(), Some("node-1"));
    fixture.nodes.lose("node-1").await.unwrap();
    fixture.until("web-0", |pod| pod.is_none()).await;
    assert_eq!(fixture.nodes.busiest(), None);
    assert!(fixture.nodes.meter().read().is_empty());
    let nodes: Api<Node> = Api::all(fixture.cluster.client());
    let ready = |node: Node| {
        let conditions = node.status.unwrap().conditions.unwrap();
        let taints = node.spec.unwrap_or_default().taints.unwrap_or_default().len();
        assert_eq!(conditions.len(), 4, "{conditions:?}");
        (conditions.into_iter().find(|c| c.type_ == "Ready").unwrap().status, taints)
    };
    assert_eq!(ready(nodes.get("node-1").await.unwrap()), ("Unknown".to_owned(), 2));

    fixture.create("web-1").await;
    let is_refused = |pod: Option<&Pod>| {
        let conditions = pod.and_then(|pod| pod.status.as_ref()?.conditions.as_ref());
        conditions.into_iter().flatten().any(|c| c.reason.as_deref() == Some("Unschedulable"))
    };
    fixture.until("web-1", is_refused).await;
    fixture.nodes.restore("node-1").await.unwrap();
    assert_eq!(ready(nodes.get("node-1").await.unwrap()), ("True".to_owned(), 0));
    fixture.until("web-1", |pod| is(pod, "Ready") && node_of(pod) == "node-1").await;
    assert!(matches!(fixture.nodes.lose("node-9").await, Err(NodeLossError::Unknown(_))));
}
