//! The computation time of each metric in the histograms of our controller and of Kubernetes' own.

use std::time::Duration;

use controllers::hpa::HpaSettings;
use localkube::metrics::{DescribedObject, Series};
use serde_json::json;
use testbed::direct::{Caller, DirectClient};
use testbed::harness::Failure;
use testbed::peer::{Peer, PeerOptions};
use testbed::proxy::{Fault, Rule, Rules};

use crate::env::{ControllerEnv, RunningController, on_both, queue};

/// The delay of responses of the external metrics API.
const EXTERNAL_DELAY: Duration = Duration::from_millis(1500);
/// The delay of responses of the custom metrics API.
const OBJECT_DELAY: Duration = Duration::from_millis(100);
/// A bucket of the histograms, in seconds, between the two delays.
const BUCKET_BETWEEN_DELAYS: f64 = 1.024;
/// The sync period of Kubernetes' own controller, which accepts only whole seconds.
const PERIOD: Duration = Duration::from_secs(2);

fn delay(rules: &Rules) {
    rules.add(
        Rule::new(Fault::Delay(EXTERNAL_DELAY)).prefix("/apis/external.metrics.k8s.io/v1beta1/namespaces/"),
    );
    rules
        .add(Rule::new(Fault::Delay(OBJECT_DELAY)).prefix("/apis/custom.metrics.k8s.io/v1beta2/namespaces/"));
}

/// Computations of a type of metric: those that took less than [`BUCKET_BETWEEN_DELAYS`], and all.
fn computations(page: &str, metric_type: &str) -> (u64, u64) {
    let count = |bound: &dyn Fn(f64) -> bool| -> u64 {
        let name = "horizontal_pod_autoscaler_controller_metric_computation_duration_seconds_bucket{";
        let lines = page.lines().filter_map(|line| line.strip_prefix(name)?.split_once("} "));
        let label = format!("metric_type=\"{metric_type}\"");
        let wanted =
            lines.filter(|(labels, _)| labels.split(',').any(|own| own == label)).filter(|(labels, _)| {
                let le = labels.split(',').find_map(|own| own.strip_prefix("le=\"")?.strip_suffix('"'));
                le.is_some_and(|le| bound(if le == "+Inf" { f64::INFINITY } else { le.parse().unwrap() }))
            });
        wanted.map(|(_, value)| value.split(' ').next().unwrap().parse::<f64>().unwrap() as u64).sum()
    };
    (count(&|le| (le - BUCKET_BETWEEN_DELAYS).abs() < 1e-9), count(&|le| le.is_infinite()))
}

/// Waits until both metrics were computed several times, and checks that each has its own delay.
async fn until_apart(env: &ControllerEnv, who: &str, page: impl AsyncFn() -> String) {
    env.until(&format!("computations of {who}"), async || {
        let page = page().await;
        let (external, object) = (computations(&page, "External"), computations(&page, "Object"));
        assert_eq!(external.0, 0, "{who} on {}: the slow metric cannot be quick", env.cluster);
        // A busy machine may delay some, but not all, of the fast computations.
        if external.1 >= 3 && object.0 >= 1 { Ok(()) } else { Err((external, object)) }
    })
    .await;
}

/// Starts Kubernetes' own controller with delayed responses, and returns a client of its exported metrics.
async fn peer(env: &ControllerEnv, access: &testbed::Access) -> (Peer, DirectClient) {
    let port = testbed::ports::free().unwrap();
    let args = [format!("--secure-port={port}"), "--authorization-always-allow-paths=/metrics".to_owned()];
    let options = PeerOptions { args: args.into(), ..PeerOptions::of_test(&env.namespace, PERIOD) };
    let peer = Peer::start(access, &options).await.unwrap();
    delay(&peer.rules().unwrap());
    (peer, DirectClient::new(port, &Caller::anonymous()).unwrap())
}

#[test]
fn each_metric_is_measured_by_itself_as_in_kubernetes() -> Result<(), Failure> {
    on_both(async |env| {
        env.workload("web", 3).await;
        env.ask_for("web", 3);
        let service = DescribedObject::new(&env.namespace, "services", "front");
        env.script.set_custom(service, "rps", Series::milli(30_000));
        // The HPA is created when all requests are delayed.
        let kubernetes = match env.access {
            Some(access) => Some(peer(&env, access).await),
            None => None,
        };
        let object = json!({"type": "Object", "object": {
            "describedObject": {"apiVersion": "v1", "kind": "Service", "name": "front"},
            "metric": {"name": "rps"}, "target": {"type": "AverageValue", "averageValue": "10"}
        }});
        env.hpa("web", 1, 10, json!([queue("web"), object])).await;
        if let Some((peer, direct)) = kubernetes {
            let page = async || direct.get("/metrics").await.unwrap().text();
            until_apart(&env, "kube-controller-manager", page).await;
            drop(peer);
        }

        let proxied = env.proxied().await;
        delay(&proxied.rules);
        let settings = HpaSettings { period: PERIOD, ..env.settings() };
        let ours = RunningController::start(proxied.client.clone(), settings);
        until_apart(&env, "plimsoll", async || ours.handle.exposition()).await;
        let record = ours.handle.records().of(&env.namespace, "hpa.web").pop().unwrap();
        let took: Vec<Duration> =
            record.decision.provenance.iter().map(|from| from.took.unwrap().unsigned_abs()).collect();
        assert!(took[0] >= EXTERNAL_DELAY && took[1] >= OBJECT_DELAY, "on {}: {took:?}", env.cluster);
        ours.stop().await;
    })
}
