//! Tests of the runner itself: it passes equal results, and fails different ones.

use std::path::Path;

use serde_json::{Value, json};

use super::{ConformanceArgs, Tally, VectorKind, check, kind, replay};

/// One step: three pods at 90 % of a target of 50 % go from 3 to 6.
fn scenario() -> Value {
    let pod = |name: &str| {
        json!({
            "metadata": {"name": name, "namespace": "default", "labels": {"app": "web"}},
            "spec": {"containers": [{"name": "app", "resources": {"requests": {"cpu": "1"}}}]},
            "status": {"phase": "Running", "startTime": "2025-12-31T20:00:00Z",
                "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2025-12-31T20:00:10Z"}]},
        })
    };
    let usage = |name: &str| {
        json!({"metadata": {"name": name, "namespace": "default"}, "timestamp": "2025-12-31T23:59:59Z", "window": "15s",
            "containers": [{"name": "app", "usage": {"cpu": "900m"}}]})
    };
    let condition = |kind: &str, status: &str, reason: &str, message: &str| json!({"type": kind, "status": status, "lastTransitionTime": "2026-01-01T00:00:15Z", "reason": reason, "message": message});
    let name = "cpu resource utilization (percentage of request)";
    json!({
        "id": "any-0", "family": "never heard of", "base": "2026-01-01T00:00:00Z",
        "config": {"downscaleStabilizationSeconds": 300, "tolerance": 0.1, "cpuInitializationPeriodSeconds": 300,
            "initialReadinessDelaySeconds": 30,
            "featureGates": {"HPAScaleToZero": false, "HPAConfigurableTolerance": true, "PodLevelResources": true}},
        "hpas": [{"metadata": {"name": "web", "namespace": "default"},
            "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "web", "apiVersion": "apps/v1"}, "minReplicas": 1,
                "maxReplicas": 10, "metrics": [{"type": "Resource",
                    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}]},
            "status": {"desiredReplicas": 0, "currentMetrics": null}}],
        "podObjects": [pod("a"), pod("b"), pod("c")],
        "steps": [{
            "advance": 15, "hpa": 0, "scale": {"specReplicas": 3, "statusReplicas": 3, "selector": "app=web"},
            "pods": [0, 1, 2], "metrics": {"resource": {"items": [usage("a"), usage("b"), usage("c")]}},
            "expect": {
                "scaleTo": 6, "statusWritten": true,
                "status": {"lastScaleTime": "2026-01-01T00:00:15Z", "currentReplicas": 3, "desiredReplicas": 6,
                    "currentMetrics": [{"type": "Resource", "resource": {"name": "cpu",
                        "current": {"averageValue": "900m", "averageUtilization": 90}}}],
                    "conditions": [
                        condition("AbleToScale", "True", "SucceededRescale",
                            "the HPA controller was able to update the target scale to 6"),
                        condition("ScalingActive", "True", "ValidMetricFound",
                            &format!("the HPA was able to successfully calculate a replica count from {name}")),
                        condition("ScalingLimited", "False", "DesiredWithinRange",
                            "the desired count is within the acceptable range"),
                    ]},
                "events": [["Normal", "SuccessfulRescale", format!("New size: 6; reason: {name} above target")]],
                "monitor": {"action": "scale_up", "error": "none", "metrics": [["Resource", "scale_up", "none"]]},
                "requests": ["GET /apis/metrics.k8s.io/v1beta1/namespaces/default/pods?labelSelector=app=web"],
            },
        }],
    })
}

#[test]
fn matching_scenario_passes() {
    let differences = check(VectorKind::Scenario, &scenario()).unwrap();
    assert!(differences.is_empty(), "{differences:?}");
}

#[test]
fn every_field_of_a_step_is_compared() {
    for (pointer, wrong, field) in [
        ("/scaleTo", json!(7), "step 0 scaleTo"),
        ("/statusWritten", json!(false), "step 0 statusWritten"),
        ("/status/desiredReplicas", json!(7), "step 0 status.desiredReplicas"),
        ("/status/conditions/0/reason", json!("No"), "step 0 status.conditions[0].reason"),
        (
            "/status/conditions/2/lastTransitionTime",
            json!(null),
            "step 0 status.conditions[2].lastTransitionTime",
        ),
        ("/events/0/2", json!("New size: 6"), "step 0 events[0][2]"),
        ("/monitor/metrics/0/1", json!("none"), "step 0 monitor.metrics[0][1]"),
        ("/requests/0", json!("GET /"), "step 0 requests[0]"),
    ] {
        let mut record = scenario();
        *record.pointer_mut(&format!("/steps/0/expect{pointer}")).unwrap() = wrong;
        let differences = check(VectorKind::Scenario, &record).unwrap();
        assert_eq!(differences.iter().map(|d| d.at.as_str()).collect::<Vec<_>>(), [field]);
    }
}

#[test]
fn record_kinds_are_recognized_by_shape_then_file_name() {
    let unseen = Path::new("somewhere/else.jsonl");
    assert_eq!(kind(unseen, &scenario()), Some(VectorKind::Scenario));
    assert_eq!(kind(unseen, &json!({"operation": "create", "object": {}})), Some(VectorKind::Validation));
    assert_eq!(
        kind(unseen, &json!({"from": "autoscaling/v1", "to": "autoscaling/v2", "object": {}})),
        Some(VectorKind::Conversion)
    );
    assert_eq!(kind(unseen, &json!({"cells": [], "columns": [], "object": {}})), Some(VectorKind::Printing));
    let parse = json!({"op": "parse", "in": "1"});
    assert_eq!(kind(Path::new("quantity.jsonl.zst"), &parse), Some(VectorKind::Quantity));
    assert_eq!(kind(Path::new("x/selector.jsonl"), &parse), Some(VectorKind::Selector));
    assert_eq!(kind(unseen, &parse), None);
}

#[test]
fn unknown_records_fail_the_run() {
    let folder = std::env::temp_dir().join(format!("plimsoll-conformance-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("unheard.jsonl");
    std::fs::write(&file, format!("{}\n\n{}\n", scenario(), json!({"id": "x", "what": 1}))).unwrap();
    let mut tally = Tally::default();
    let args = ConformanceArgs { paths: Vec::new(), only: None, show: 0, improvements: false };
    replay(&file, &args, &mut tally).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!((tally.passed, tally.failed), (1, 1));
}

/// Records without a listed improvement are compared with strict answers only, unless `--improvements` is set.
#[test]
fn unlisted_recordings_are_compared_strictly() {
    let folder = std::env::temp_dir().join(format!("plimsoll-unseen-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("kubelet.jsonl");
    // A kubelet that fails the second time: strictly its node is gone, else it stays for a while.
    let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/vectors/metrics/kubelet.jsonl.zst");
    let mut record = super::read::records(&ours)
        .unwrap()
        .map(Result::unwrap)
        .find(|record| record["id"] == "dual-refused")
        .unwrap();
    record["id"] = json!("unseen");
    std::fs::write(&file, record.to_string()).unwrap();
    let judged = |improvements: bool| {
        let mut tally = Tally::default();
        let args = ConformanceArgs { paths: Vec::new(), only: Some("unseen".into()), show: 0, improvements };
        replay(&file, &args, &mut tally).unwrap();
        (tally.passed, tally.failed, tally.better, tally.unlisted)
    };
    let (alone, asked) = (judged(false), judged(true));
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(alone, (1, 0, 1, 1));
    assert_eq!(asked, (0, 1, 1, 1));
}
