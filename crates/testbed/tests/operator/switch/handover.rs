//! The guide for KEDA (docs/switching.md) under changing load, there and back, on a real cluster of its own: an API server has one server
//! of external metrics at a time. KEDA's operator stops, ours starts, and external metrics are led to it, while Kubernetes' own HPA
//! controller reads them.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use testbed::harness::Failure;
use testbed::keda::{Keda, KedaOptions};
use testbed::{ControlPlane, Options};
use tokio::time::Instant;

use crate::env::{Operator, Scaler, SourceResponse, TestNamespace, deployment, folder};
use crate::shared::outage_watch::{DEFAULT_SYNC_PERIOD, OutageWatch};
use crate::shared::replica_watch::ReplicaWatch;
use crate::shared::{environments, manifests};

/// The polling interval of a ScaledObject without one: a gap that is shorter contains at most one poll. ScaledObjects of this test are
/// polled every second.
const DEFAULT_POLLING_INTERVAL: Duration = Duration::from_secs(30);
/// The HPA of the ScaledObject `worker`, as both operators name it.
const HPA: &str = "keda-hpa-worker";
/// Queries of a source that show that an operator polls.
const POLLS: u64 = 3;

/// What one change of the operator costs.
struct Handover {
    direction: &'static str,
    /// From the end of one operator until the next one serves.
    unserved: Duration,
    /// The longest time between two polls.
    without_poll: Duration,
    /// For how long the HPA could not read its metric.
    without_metric: Duration,
}

impl Handover {
    /// Prints the times, and asserts that beside `excused` at most one poll and one sync of the default periods are missed.
    fn check(&self, excused: Duration) {
        let Self { direction, unserved, without_poll, without_metric } = self;
        println!(
            "{direction}: no operator for {unserved:.1?}; at most {without_poll:.1?} between two polls, and no metric for {without_metric:.1?}"
        );
        assert!(*without_poll > Duration::ZERO, "{direction}: nothing was polled");
        assert!(*without_poll < DEFAULT_POLLING_INTERVAL + excused, "{direction}: {without_poll:?}");
        assert!(*without_metric < DEFAULT_SYNC_PERIOD + excused, "{direction}: {without_metric:?}");
    }
}

/// The measurement of a handover that has begun.
struct Measurement {
    direction: &'static str,
    from: Instant,
    outage: OutageWatch,
}

impl Measurement {
    async fn start(ns: &TestNamespace, direction: &'static str) -> Self {
        ns.rounds("idle", POLLS).await;
        let outage = OutageWatch::start(ns.client(), &ns.namespace, HPA);
        Self { direction, from: Instant::now(), outage }
    }

    /// Ends the measurement when the next operator serves, which now holds, and the HPA has followed the load to `replicas`.
    async fn end(self, ns: &TestNamespace, worker: &ReplicaWatch, replicas: i64) -> Handover {
        let until = Instant::now();
        worker.until_last(ns, replicas).await;
        ns.rounds("idle", POLLS).await;
        let polls = ns.env.sources.query_times(&ns.namespace, "idle");
        let gaps = polls.windows(2).filter(|pair| pair[0] <= until && pair[1] >= self.from);
        Handover {
            direction: self.direction,
            unserved: until - self.from,
            without_poll: gaps.map(|pair| pair[1] - pair[0]).max().unwrap_or_default(),
            without_metric: self.outage.longest(),
        }
    }
}

/// Changes the load, ten for each replica, and waits until the HPA has followed.
async fn follow(ns: &TestNamespace, worker: &ReplicaWatch, replicas: i64) {
    ns.set_response("worker", SourceResponse::Value(10 * replicas as u32));
    worker.until_last(ns, replicas).await;
}

/// Removes what leads to our operator, except the API of external metrics, which KEDA's adapter takes over.
async fn remove_registrations(ns: &TestNamespace) {
    for object in folder("deploy/operator") {
        let is_registration =
            matches!(object["kind"].as_str(), Some("APIService" | "ValidatingWebhookConfiguration"));
        if is_registration && object["spec"]["group"] != "external.metrics.k8s.io" {
            let (code, response) = ns.send(Method::DELETE, &manifests::path(&object), None).await;
            assert_eq!(code, 200, "{response}");
        }
    }
}

#[test]
#[ignore = "builds KEDA, which takes nine minutes: make differential-keda"]
fn switch_from_keda_and_back_misses_at_most_one_poll_and_one_sync() -> Result<(), Failure> {
    let plane = match ControlPlane::start(&Options::default()) {
        Ok(plane) => plane,
        Err(error) if error.is_out_of_reach() => return Ok(()),
        Err(error) => panic!("{error}"),
    };
    // The environment of a test lives as long as the process.
    environments::on_one(there_and_back(Box::leak(Box::new(plane))))
}

async fn there_and_back(plane: &'static ControlPlane) -> Result<(), Failure> {
    let Some(ns) = TestNamespace::on_plane(plane).await? else { return Ok(()) };
    let kubectl = ns.kubectl();
    for (name, replicas) in [("worker", 4), ("idle", 0)] {
        kubectl.apply(&deployment(name, replicas));
        ns.set_response(name, SourceResponse::Value(10 * replicas));
        kubectl.apply(&ns.scaled_object(name, &json!({})));
    }
    // While `idle` has no replicas, its HPA reads no metric, so that its source is queried by polls only.
    let watch = async |name: &str| ReplicaWatch::start(ns.client(), &ns.namespace, name).await;
    let (worker, idle) = (watch("worker").await, watch("idle").await);
    let options =
        KedaOptions { namespace: Some(ns.namespace.clone()), adapter: true, ..KedaOptions::default() };
    let keda = Keda::start(plane.access(), &options).await.unwrap();
    let _scaler = Scaler::start(&ns).await;
    let reads = |hpa: &Value| TestNamespace::condition(hpa, "ScalingActive") == "True ValidMetricFound";
    let hpa = ns.until_hpa(HPA, "a metric", reads).await;
    follow(&ns, &worker, 7).await;
    follow(&ns, &worker, 2).await;

    let measurement = Measurement::start(&ns, "from KEDA to ours").await;
    drop(keda);
    // The load changes while no operator runs.
    ns.set_response("worker", SourceResponse::Value(60));
    let (operator, _proxy) = Operator::serving(&ns).await;
    measurement.end(&ns, &worker, 6).await.check(Duration::ZERO);
    follow(&ns, &worker, 3).await;

    let measurement = Measurement::start(&ns, "back to KEDA").await;
    operator.kill();
    remove_registrations(&ns).await;
    ns.set_response("worker", SourceResponse::Value(50));
    let _keda = Keda::start(plane.access(), &options).await.unwrap();
    let back = measurement.end(&ns, &worker, 5).await;
    // The time until KEDA serves depends on KEDA alone, so it is allowed.
    back.check(back.unserved);

    assert_eq!(worker.counts(), [4, 7, 2, 6, 3, 5]);
    assert_eq!(idle.counts(), [0]);
    let after = ns.hpa(HPA).await;
    assert_eq!((&after["metadata"]["uid"], &after["spec"]), (&hpa["metadata"]["uid"], &hpa["spec"]));
    Ok(())
}
