//! Scenarios of one reconcile, each with the replicas, conditions, status and events of Kubernetes.
//!
//! All scenarios of a test run in one namespace with one controller, and must not affect each other. A feature gate is
//! enabled in the controller only, so that it works on both clusters. An object that an API server without the gate would reject is
//! written to the store directly.

use std::time::Duration;

use controllers::hpa::HpaSettings;
use http::Method;
use localkube::metrics::Series;
use serde_json::{Value, json};
use testbed::harness::{Failure, namespace};
use testbed::proxy::{Fault, Rule};

use crate::env::{ControllerEnv, RunningController, cpu, on_both};

/// The expected result of a scenario.
struct Expected {
    name: &'static str,
    /// `spec.replicas` of the target, if there is one.
    count: Option<i64>,
    able: &'static str,
    active: &'static str,
    limited: &'static str,
    /// `desiredReplicas` of the status.
    desired: i64,
    /// Prefixes of the expected events.
    events: &'static [&'static str],
}

fn external(name: &str) -> Value {
    json!({"type": "External", "external": {
        "metric": {"name": name}, "target": {"type": "AverageValue", "averageValue": "10"}
    }})
}

/// Waits for the expected result; a failure shows the differences.
async fn expect(env: &ControllerEnv, expected: &Expected) {
    let name = expected.name;
    env.until(name, async || {
        let count = match expected.count {
            Some(_) => Some(env.replicas(name).await),
            None => None,
        };
        let hpa = env.hpa_object(name).await;
        let condition = |kind: &str| {
            let [status, reason, _] = namespace::condition(&hpa, kind);
            format!("{status} {reason}").trim().to_owned()
        };
        let seen = (
            count,
            [condition("AbleToScale"), condition("ScalingActive"), condition("ScalingLimited")],
            hpa["status"]["desiredReplicas"].as_i64().unwrap_or_default(),
        );
        let wanted = [expected.able, expected.active, expected.limited].map(str::to_owned);
        if seen != (expected.count, wanted, expected.desired) {
            return Err(format!("{seen:?}"));
        }
        let events = env.events(name).await;
        let fits = |(event, wanted): (&String, &&str)| event.starts_with(wanted);
        if events.len() == expected.events.len() && events.iter().zip(expected.events).all(fits) {
            Ok(())
        } else {
            Err(format!("{events:#?}"))
        }
    })
    .await;
}

/// Lets every autoscaler reconcile once, because a second reconcile changes the conditions after a scale.
fn once(ours: &RunningController, settings: HpaSettings) {
    ours.handle.update(HpaSettings { period: Duration::from_hours(1), ..settings });
}

const READY_FOR_NEW_SCALE: &str = "True ReadyForNewScale";
const SUCCEEDED_GET_SCALE: &str = "True SucceededGetScale";
const SUCCEEDED_RESCALE: &str = "True SucceededRescale";
const VALID_METRIC_FOUND: &str = "True ValidMetricFound";
const DESIRED_WITHIN_RANGE: &str = "False DesiredWithinRange";
const RESCALE_EVENT: &str = "Normal/SuccessfulRescale: New size: 6; reason: cpu resource utilization (percentage of request) above target";
const NO_SCALE: &str = "False FailedGetScale";

#[test]
fn scenarios_end_with_the_status_of_kubernetes() -> Result<(), Failure> {
    on_both(async |env| {
        let hpas = "/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers";
        for name in ["e2", "e3", "e4", "e5", "e7", "e11"] {
            env.workload(name, 3).await;
        }
        env.workload("e6", 0).await;
        let hpa = async |name: &str, max: i32, metrics: Value| env.hpa(name, 1, max, metrics).await;
        env.usage("e2", 3, 500, 1);
        hpa("e2", 10, json!([cpu(50)])).await;
        hpa("e3", 10, json!([cpu(50)])).await;
        let status = json!({"status": {"currentReplicas": 3, "desiredReplicas": 7}});
        env.patch(&format!("{hpas}/e3/status"), status).await;
        env.usage("e4", 3, 900, 1);
        hpa("e4", 10, json!([cpu(50), external("nobody")])).await;
        env.usage("e5", 3, 100, 1);
        hpa("e5", 10, json!([external("nobody"), cpu(50)])).await;
        hpa("e6", 10, json!([cpu(50)])).await;
        hpa("e7", 2, json!([cpu(50)])).await;
        let of = |name: &str, api_version: &str, kind: &str| {
            json!({
                "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": name},
                "spec": {
                    "maxReplicas": 10, "metrics": [cpu(50)],
                    "scaleTargetRef": {"apiVersion": api_version, "kind": kind, "name": name}
                }
            })
        };
        env.store_raw("e8", of("e8", "a/b/c", "Deployment")).await;
        env.create(hpas, of("e9", "foo/v1", "Bar")).await;
        env.create(hpas, of("e10", "apps/v1", "Deployment")).await;
        env.usage("e11", 3, 900, 1);
        hpa("e11", 10, json!([cpu(50)])).await;
        let group = without_selector(&env).await;
        env.create(hpas, of("e12", &format!("{group}/v1"), "Thing")).await;

        let proxied = env.proxied().await;
        let boom = Fault::Status { code: 500, reason: "", message: "boom".into(), retry_after: None };
        proxied.rules.add(Rule::new(boom).method(Method::PUT).suffix("/deployments/e11/scale"));
        env.remembered().await;
        let ours = RunningController::start(proxied.client.clone(), env.settings());
        once(&ours, env.settings());

        let rows = [
            Expected {
                name: "e2",
                count: Some(3),
                able: READY_FOR_NEW_SCALE,
                active: VALID_METRIC_FOUND,
                limited: DESIRED_WITHIN_RANGE,
                desired: 3,
                events: &[],
            },
            Expected {
                name: "e3",
                count: Some(3),
                able: SUCCEEDED_GET_SCALE,
                active: "False FailedGetResourceMetric",
                limited: "",
                desired: 7,
                events: &[
                    "Warning/FailedGetResourceMetric: failed to get cpu utilization",
                    "Warning/FailedComputeMetricsReplicas: invalid metrics (1 invalid out of 1), first error is: ",
                ],
            },
            Expected {
                name: "e4",
                count: Some(6),
                able: SUCCEEDED_RESCALE,
                active: VALID_METRIC_FOUND,
                limited: DESIRED_WITHIN_RANGE,
                desired: 6,
                events: &["Warning/FailedGetExternalMetric: ", RESCALE_EVENT],
            },
            Expected {
                name: "e5",
                count: Some(3),
                able: SUCCEEDED_GET_SCALE,
                active: "False FailedGetExternalMetric",
                limited: "",
                desired: 0,
                events: &["Warning/FailedGetExternalMetric: ", "Warning/FailedComputeMetricsReplicas: "],
            },
            Expected {
                name: "e6",
                count: Some(0),
                able: SUCCEEDED_GET_SCALE,
                active: "False ScalingDisabled",
                limited: "",
                desired: 0,
                events: &[],
            },
            Expected {
                name: "e7",
                count: Some(2),
                able: SUCCEEDED_RESCALE,
                active: "",
                limited: "",
                desired: 2,
                events: &[
                    "Normal/SuccessfulRescale: New size: 2; reason: Current number of replicas above Spec.MaxReplicas",
                ],
            },
            Expected {
                name: "e8",
                count: None,
                able: NO_SCALE,
                active: "",
                limited: "",
                desired: 0,
                events: &["Warning/FailedGetScale: unexpected GroupVersion string: a/b/c"],
            },
            Expected {
                name: "e9",
                count: None,
                able: NO_SCALE,
                active: "",
                limited: "",
                desired: 0,
                events: &["Warning/FailedGetScale: no matches for kind \"Bar\" in group \"foo\""],
            },
            Expected {
                name: "e10",
                count: None,
                able: NO_SCALE,
                active: "",
                limited: "",
                desired: 0,
                events: &["Warning/FailedGetScale: deployments.apps \"e10\" not found"],
            },
            Expected {
                name: "e11",
                count: Some(3),
                able: "False FailedUpdateScale",
                active: VALID_METRIC_FOUND,
                limited: DESIRED_WITHIN_RANGE,
                desired: 0,
                events: &[
                    "Warning/FailedRescale: New size: 6; reason: cpu resource utilization (percentage of request) above \
                     target; error: boom",
                ],
            },
            Expected {
                name: "e12",
                count: None,
                able: SUCCEEDED_GET_SCALE,
                active: "False InvalidSelector",
                limited: "",
                desired: 0,
                events: &[
                    "Warning/SelectorRequired",
                    "Warning/FailedComputeMetricsReplicas: selector is required",
                ],
            },
        ];
        for row in &rows {
            expect(&env, row).await;
        }
        let e3 = env.hpa_object("e3").await;
        assert_eq!(e3["status"]["currentMetrics"], json!([{"type": ""}]));
        let e5 = env.hpa_object("e5").await;
        assert_eq!(e5["status"]["currentMetrics"][0], json!({"type": ""}));
        assert_eq!(e5["status"]["currentMetrics"][1]["resource"]["current"]["averageUtilization"], 10);
        ours.stop().await;
    })
}

/// Creates a custom resource whose scale has no selector, and returns its group.
async fn without_selector(env: &ControllerEnv) -> String {
    let group = format!("{}.example.com", env.namespace);
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("things.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": any, "status": any}}},
                "subresources": {"scale": {
                    "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"
                }}
            }]
        }
    });
    env.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition).await;
    let things = format!("/apis/{group}/v1/namespaces/{{ns}}/things");
    env.until_found(&things).await;
    let thing = json!({
        "apiVersion": format!("{group}/v1"), "kind": "Thing", "metadata": {"name": "e12"},
        "spec": {"replicas": 3}, "status": {"replicas": 3}
    });
    env.create(&things, thing).await;
    group
}

#[test]
fn scale_to_zero_gate_scales_to_zero_and_back() -> Result<(), Failure> {
    on_both(async |env| {
        let hpa = |name: &str, min: i32, metric: &str, zero: bool| {
            let mut object = json!({
                "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": name},
                "spec": {
                    "minReplicas": min, "maxReplicas": 10, "metrics": [external(metric)],
                    "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
                }
            });
            if zero {
                object["status"] = json!({"currentReplicas": 0, "desiredReplicas": 0, "conditions": [{
                    "type": "ScaledToZero", "status": "True", "reason": "ScaledToZero", "message": "asleep",
                    "lastTransitionTime": "2026-01-01T00:00:00Z"
                }]});
            }
            object
        };
        for (name, count) in [("e17", 3), ("e18", 0), ("e19", 0), ("e20", 0)] {
            env.workload(name, count).await;
        }
        env.script.set_external(&env.namespace, "none", Series::milli(0));
        env.script.set_external(&env.namespace, "qlen", Series::milli(25_000));
        env.store_raw("e17", hpa("e17", 0, "none", false)).await;
        env.store_raw("e18", hpa("e18", 0, "qlen", true)).await;
        let mut e19 = hpa("e19", 2, "none", true);
        e19["spec"]["behavior"] = json!({"scaleUp": {"stabilizationWindowSeconds": 0, "selectPolicy": "Max", "policies": [
            {"type": "Pods", "value": 4, "periodSeconds": 15}
        ]}});
        env.store_raw("e19", e19).await;
        env.store_raw("e20", hpa("e20", 0, "qlen", false)).await;

        let mut config = (*env.settings().config).clone();
        config.gates.scale_to_zero = true;
        let settings = HpaSettings { config: config.into(), ..env.settings() };
        env.remembered().await;
        let ours = env.controller(settings.clone());
        once(&ours, settings.clone());

        let rows = [
            Expected {
                name: "e18",
                count: Some(3),
                able: SUCCEEDED_RESCALE,
                active: VALID_METRIC_FOUND,
                limited: DESIRED_WITHIN_RANGE,
                desired: 3,
                events: &[
                    "Normal/SuccessfulRescale: New size: 3; reason: external metric qlen(nil) above target",
                ],
            },
            Expected {
                name: "e19",
                count: Some(2),
                able: SUCCEEDED_RESCALE,
                active: VALID_METRIC_FOUND,
                limited: DESIRED_WITHIN_RANGE,
                desired: 2,
                events: &[
                    "Normal/SuccessfulRescale: New size: 2; reason: Current number of replicas below Spec.MinReplicas",
                ],
            },
            Expected {
                name: "e20",
                count: Some(0),
                able: SUCCEEDED_GET_SCALE,
                active: "False ScalingDisabled",
                limited: "",
                desired: 0,
                events: &[],
            },
        ];
        for row in &rows {
            expect(&env, row).await;
        }
        assert_eq!(env.condition("e18", "ScaledToZero").await, "False NotScaledToZero");
        let e18 = env.hpa_object("e18").await;
        let current = &e18["status"]["currentMetrics"][0]["external"]["current"]["averageValue"];
        assert_eq!(current, "-9223372036854775808m");
        // The initial count is a recommendation that holds it back once, even without a window.
        ours.handle.update(settings);
        env.until_replicas("e17", 0).await;
        env.until_condition("e17", "ScaledToZero", "True ScaledToZero").await;
        ours.stop().await;
        let events = env.events("e17").await;
        assert_eq!(events, ["Normal/SuccessfulRescale: New size: 0; reason: All metrics below target"]);
    })
}

/// E13. Selectors are known after the first reconcile, so the first of two autoscalers may act once.
#[test]
fn autoscalers_with_overlapping_selectors_stop_with_a_condition() -> Result<(), Failure> {
    on_both(async |env| {
        env.workload("web", 3).await;
        env.usage("web", 3, 500, 1);
        env.hpa("web", 1, 10, json!([cpu(50)])).await;
        let second = json!({
            "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "web-too"},
            "spec": {
                "maxReplicas": 10, "metrics": [cpu(50)],
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
            }
        });
        let hpas = "/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers";
        env.create(hpas, second).await;
        let ours = env.controller(env.settings());
        for name in ["web", "web-too"] {
            env.until_condition(name, "ScalingActive", "False AmbiguousSelector").await;
        }
        env.usage("web", 3, 900, 1);
        let observer = env.observer("web").await;
        env.until_decisions(&ours, &["web", "web-too"], 4).await;
        assert_eq!(observer.counts(), [3]);
        env.delete(&format!("{hpas}/web-too")).await;
        env.until_replicas("web", 6).await;
        ours.stop().await;
        let both = format!("[{0}/web {0}/web-too]", env.namespace);
        let message = format!("pods by selector app=web are controlled by multiple HPAs: {both}");
        let events = env.events("web-too").await;
        assert!(events.contains(&format!("Warning/AmbiguousSelector: {message}")), "{events:#?}");
    })
}
