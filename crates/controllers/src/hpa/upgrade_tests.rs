//! A running controller whose cluster is upgraded and rolled back, or which no longer leads.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::time::Duration;

use cluster::Clock;
use cluster::discovery::Discovery;
use cluster::events::EventRecorder;
use cluster::lease::Leadership;
use cluster::metrics::MetricsClient;
use engine::KubernetesVersion::{self, V1_36, V1_37};
use http::Method;
use jiff::SignedDuration;
use kube::Client;
use localkube::{Cluster, Options, Running};
use runtime::leader::{LeadershipTerm, LeadershipView};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;

use super::{HpaController, HpaControllerHandle, HpaControllerParts, HpaSettings, ProfileChoice, Records};

const HPA: &str = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers/web";
const DEPLOYMENT: &str = "/apis/apps/v1/namespaces/default/deployments/web";
/// How long a condition may take on a busy machine.
const TIMEOUT: Duration = Duration::from_mins(2);
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// How many reconciles must leave an unchanged status alone.
const QUIET_RECONCILES: u64 = 5;

struct UpgradedCluster {
    running: Running,
    client: Client,
    handle: HpaControllerHandle,
    _stop: watch::Sender<bool>,
}

impl UpgradedCluster {
    /// A cluster of 1.36 with a Deployment above the upper bound of its HPA, and a controller that follows the release.
    async fn start(leadership: Leadership) -> Self {
        let running = Cluster::start(Options { workloads: false, ..Options::default() }).await.unwrap();
        let client = running.client();
        let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {
            "replicas": 5, "selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": "web"}]}}}});
        send(&client, Method::POST, "/apis/apps/v1/namespaces/default/deployments", &deployment).await;
        let hpa = json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "web"},
            "spec": {"minReplicas": 1, "maxReplicas": 3,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}});
        let hpas = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers";
        send(&client, Method::POST, hpas, &hpa).await;
        let discovery = Discovery::new(client.clone());
        let (controller, handle) = HpaController::new(HpaControllerParts {
            samples: MetricsClient::new(client.clone(), discovery.clone(), Duration::from_secs(1)),
            recorder: EventRecorder::start(client.clone(), "horizontal-pod-autoscaler", Clock::system()),
            leadership,
            settings: HpaSettings {
                kubernetes: ProfileChoice::Auto,
                release_poll_interval: POLL_INTERVAL,
                period: Duration::from_millis(100),
                // Without the annotation, every write of the HPA is a change of its status.
                persist_state: false,
                ..HpaSettings::default()
            },
            records: Records::default(),
            client: client.clone(),
            discovery,
            clock: Clock::system(),
        });
        let (stop, stopped) = watch::channel(false);
        tokio::spawn(controller.run(stopped));
        Self { running, client, handle, _stop: stop }
    }

    async fn get(&self, path: &str) -> Value {
        send(&self.client, Method::GET, path, &Value::Null).await
    }

    /// Waits until the HPA is as wanted, and returns it.
    async fn until(&self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let found = async {
            loop {
                let hpa = self.get(HPA).await;
                if wanted(&hpa) {
                    return hpa;
                }
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        };
        let found = tokio::time::timeout(TIMEOUT, found).await;
        found.unwrap_or_else(|_| panic!("not {what}"))
    }

    /// How many reconciles there were.
    fn reconciles(&self) -> u64 {
        let text = self.handle.exposition();
        let name = "horizontal_pod_autoscaler_controller_reconciliations_total{";
        let counts = text.lines().filter(|line| line.starts_with(name));
        counts.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
    }

    /// Waits for further reconciles and checks that they write neither status nor scale.
    async fn stays(&self, replicas: i64) {
        let before = [self.get(HPA).await, self.get(DEPLOYMENT).await];
        let wanted = self.reconciles() + QUIET_RECONCILES;
        self.until("reconciled further", |_| self.reconciles() >= wanted).await;
        let after = [self.get(HPA).await, self.get(DEPLOYMENT).await];
        assert_eq!(after[1]["spec"]["replicas"], replicas);
        for (before, after) in before.iter().zip(&after) {
            assert_eq!(
                before["metadata"]["resourceVersion"], after["metadata"]["resourceVersion"],
                "{after}"
            );
        }
    }

    fn change_release(&self, version: KubernetesVersion) {
        self.running.cluster().change_release(version);
    }
}

async fn send(client: &Client, method: Method, path: &str, body: &Value) -> Value {
    let content = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
    let request = http::Request::builder().method(method).uri(path).header("content-type", content);
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    client.request(request.body(body).unwrap()).await.unwrap()
}

fn condition(hpa: &Value, kind: &str) -> Option<String> {
    let conditions = hpa["status"]["conditions"].as_array()?;
    let found = conditions.iter().find(|condition| condition["type"] == kind)?;
    Some(found["reason"].as_str()?.to_owned())
}

/// Scaled to the upper bound, and then without metrics: there is no metrics API.
fn is_settled(hpa: &Value) -> bool {
    hpa["status"]["currentReplicas"] == 3
        && condition(hpa, "ScalingActive").as_deref() == Some("FailedGetResourceMetric")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upgraded_cluster_changes_the_profile_without_a_restart() {
    let cluster = UpgradedCluster::start(Leadership::without_election()).await;
    let old = cluster.until("settled", is_settled).await;
    assert_eq!(cluster.handle.kubernetes(), V1_36);
    assert_eq!(old["status"].get("observedGeneration"), None);
    assert_eq!(condition(&old, "ScaledToZero"), None);
    cluster.stays(3).await;

    cluster.change_release(V1_37);
    let observed = |generation: i64| move |hpa: &Value| hpa["status"]["observedGeneration"] == generation;
    let new = cluster.until("upgraded", observed(0)).await;
    assert_eq!(cluster.handle.kubernetes(), V1_37);
    assert!(is_settled(&new), "nothing else changes: {new}");
    assert_eq!(old["status"]["conditions"], new["status"]["conditions"]);
    cluster.stays(3).await;

    send(&cluster.client, Method::PATCH, HPA, &json!({"spec": {"maxReplicas": 2}})).await;
    let edited = cluster.until("edited", observed(1)).await;
    assert_eq!(edited["metadata"]["generation"], 1);
    cluster.until("scaled", |hpa| condition(hpa, "ScaledToZero").as_deref() == Some("NotScaledToZero")).await;
    cluster.until("settled", |hpa| hpa["status"]["currentReplicas"] == 2).await;
    cluster.stays(2).await;

    cluster.change_release(V1_36);
    cluster.until("rolled back", |hpa| hpa["status"].get("observedGeneration").is_none()).await;
    assert_eq!(cluster.handle.kubernetes(), V1_36);
    cluster.stays(2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_no_longer_leads_exports_no_decisions() {
    let clock = Clock::system();
    let until = Instant::now() + Duration::from_hours(1);
    let term = LeadershipTerm { until, wall: clock.now() + SignedDuration::from_hours(1) };
    let (election, view) = watch::channel(LeadershipView { term: Some(term), ..LeadershipView::default() });
    let cluster = UpgradedCluster::start(Leadership::elected(view, clock)).await;
    let exports = |series: &str| cluster.handle.exposition().contains(series);
    let desired = "desired_replicas{namespace=\"default\",hpa_name=\"web\"}";
    cluster.until("decided", |_| exports(desired) && exports("num_horizontal_pod_autoscalers 1\n")).await;
    election.send_replace(LeadershipView::default());
    cluster.until("following", |_| exports("plimsoll_leader 0\n")).await;
    assert!(!exports(desired));
    assert!(exports("num_horizontal_pod_autoscalers 0\n"));
}
