//! A control plane that is upgraded from 1.36 to 1.37, with its etcd kept, under a running controller.

use std::time::Duration;

use controllers::hpa::{HpaSettings, ProfileChoice};
use engine::KubernetesVersion::{V1_36, V1_37};
use http::Method;
use kube::Client;
use serde_json::{Value, json};
use testbed::harness::{connect, until, write};
use testbed::{ControlPlane, Options, Release};

use crate::env::RunningController;

const HPAS: &str = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
/// The number of decisions that must not write an unchanged status.
const QUIET_DECISIONS: u64 = 5;
/// Deployments must stay as the test and the controller wrote them.
const NO_WORKLOADS: &str = "--controllers=-deployment-controller,-replicaset-controller";

/// The object, or the error: connections to the replaced server have ended.
async fn get(client: &Client, path: &str) -> Result<Value, Value> {
    let request = http::Request::get(path).body(Vec::new()).unwrap();
    client.request(request).await.map_err(|error| json!(error.to_string()))
}

/// Waits until the HPA is as wanted.
async fn hpa(client: &Client, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    until(what, async || {
        let object = get(client, &format!("{HPAS}/web")).await?;
        if wanted(&object) { Ok(object) } else { Err(object) }
    })
    .await
}

fn reason(hpa: &Value, kind: &str) -> Option<String> {
    let conditions = hpa["status"]["conditions"].as_array()?;
    let found = conditions.iter().find(|condition| condition["type"] == kind)?;
    Some(found["reason"].as_str()?.to_owned())
}

/// The HPA is scaled to `maxReplicas`, and then has no metrics, because there is no metrics API.
fn is_settled(hpa: &Value) -> bool {
    hpa["status"]["currentReplicas"] == 3
        && reason(hpa, "ScalingActive").as_deref() == Some("FailedGetResourceMetric")
}

/// Waits for further decisions and checks that they write neither status nor scale.
async fn stays(client: &Client, ours: &RunningController, replicas: i64) {
    let paths = [format!("{HPAS}/web"), format!("{DEPLOYMENTS}/web")];
    let read = async |path: &str| get(client, path).await.unwrap();
    let before = [read(&paths[0]).await, read(&paths[1]).await];
    let wanted = ours.decisions("default", "web") + QUIET_DECISIONS;
    until("further decisions", async || {
        let made = ours.decisions("default", "web");
        if made >= wanted { Ok(()) } else { Err(made) }
    })
    .await;
    let after = [read(&paths[0]).await, read(&paths[1]).await];
    assert_eq!(after[1]["spec"]["replicas"], replicas);
    for (before, after) in before.iter().zip(&after) {
        assert_eq!(before["metadata"]["resourceVersion"], after["metadata"]["resourceVersion"], "{after}");
    }
}

#[test]
#[ignore = "builds Kubernetes 1.37.1: make test-1.37"]
fn an_upgraded_control_plane_changes_the_profile_without_a_restart() {
    let options = Options {
        release: Some("1.36.4".parse().unwrap()),
        controller_manager_args: vec![NO_WORKLOADS.to_owned()],
        ..Options::default()
    };
    let new: Release = "1.37.1".parse().unwrap();
    let mut plane = ControlPlane::start(&options).unwrap();
    let access = plane.access().clone();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (client, ours, old) = runtime.block_on(async {
        let client = connect(&access.kubeconfig_for(access.admin())).await.unwrap();
        let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {
            "replicas": 5, "selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": "web"}]}}}});
        write(&client, Method::POST, DEPLOYMENTS, &deployment).await;
        let object = json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "web"},
            "spec": {"minReplicas": 1, "maxReplicas": 3,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}});
        write(&client, Method::POST, HPAS, &object).await;
        let settings = HpaSettings {
            kubernetes: ProfileChoice::Auto,
            release_poll_interval: Duration::from_millis(200),
            period: Duration::from_secs(1),
            // Without the annotation, every write of the HPA is a change of its status.
            persist_state: false,
            ..HpaSettings::default()
        };
        let ours = RunningController::start(client.clone(), settings);
        let old = hpa(&client, "settled", is_settled).await;
        assert_eq!(ours.handle.kubernetes(), V1_36);
        assert_eq!(old["status"].get("observedGeneration"), None);
        stays(&client, &ours, 3).await;
        (client, ours, old)
    });
    plane.change_release(new, &options).unwrap();
    runtime.block_on(async {
        let observed = |generation: i64| move |hpa: &Value| hpa["status"]["observedGeneration"] == generation;
        let upgraded = hpa(&client, "observed generation", observed(0)).await;
        assert_eq!(ours.handle.kubernetes(), V1_37);
        assert!(ours.is_alive());
        let types = |hpa: &Value| {
            let conditions = hpa["status"]["conditions"].as_array().cloned().unwrap_or_default();
            conditions.iter().map(|condition| condition["type"].clone()).collect::<Vec<_>>()
        };
        assert_eq!(types(&old), types(&upgraded), "a condition is added by the first rescale");
        hpa(&client, "settled again", is_settled).await;
        stays(&client, &ours, 3).await;
        let path = format!("{HPAS}/web");
        let mut object = get(&client, &path).await.unwrap();
        object["spec"]["maxReplicas"] = json!(2);
        write(&client, Method::PUT, &path, &object).await;
        let edited = hpa(&client, "observed change", observed(1)).await;
        assert_eq!(edited["metadata"]["generation"], 1);
        let two =
            |hpa: &Value| hpa["status"]["currentReplicas"] == 2 && reason(hpa, "ScaledToZero").is_some();
        hpa(&client, "scaled", two).await;
        stays(&client, &ours, 2).await;
        ours.stop().await;
    });
}
