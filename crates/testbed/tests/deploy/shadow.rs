//! Shadow mode with its own role: it decides, compares and reports, and has no permission to write.

use api::decisions::DecisionMode;
use controllers::hpa::HpaSettings;
use http::Method;
use localkube::metrics::Series;
use serde_json::{Value, json};
use testbed::harness::{Failure, REAL};

use crate::env::{RunningController, alone_on_both};
use crate::manifests::may;
use crate::shared::manifests::{folder, is_quiet};
use crate::shared::{roles, send};

const NAME: &str = "plimsoll-shadow";
const HPA: &str = "/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers/web/status";

/// Permissions that shadow mode must not have, in addition to those that no role may have.
const FORBIDDEN_PERMISSIONS: [(&str, &str); 8] = [
    ("update", "autoscaling/horizontalpodautoscalers/status"),
    ("patch", "autoscaling/horizontalpodautoscalers/status"),
    ("update", "plimsoll.dev/autoscalers/status"),
    ("patch", "plimsoll.dev/autoscalers"),
    ("update", "apps/deployments/scale"),
    ("patch", "apps/deployments/scale"),
    ("create", "coordination.k8s.io/leases"),
    ("get", "/secrets"),
];

#[test]
fn shadow_mode_works_with_its_role_and_cannot_write() -> Result<(), Failure> {
    alone_on_both(async |env| {
        env.define().await;
        let manifests = folder("deploy/shadow");
        env.apply(&manifests, is_quiet).await;
        env.workload("web", 2).await;
        env.script.set_external(&env.namespace, "queue", Series::milli(40_000));
        let metric = json!([{"type": "External", "external": {
            "metric": {"name": "queue"}, "target": {"type": "AverageValue", "averageValue": "10"}
        }}]);
        env.hpa("web", 1, 10, metric).await;
        // The active controller has no reason to scale.
        let condition = |kind: &str, reason: &str| json!({"type": kind, "status": "True", "reason": reason, "message": ""});
        let status = json!({"status": {"currentReplicas": 2, "desiredReplicas": 2, "conditions": [
            condition("AbleToScale", "ReadyForNewScale"), condition("ScalingActive", "ValidMetricFound"),
        ]}});
        let before = env.patch(HPA, status).await;

        let account = env.account(NAME, NAME).await;
        let settings = HpaSettings { namespaces: Vec::new(), mode: DecisionMode::Shadow, ..env.settings() };
        let ours = RunningController::start(account.client.clone(), settings);
        env.until("a difference", async || {
            let events = env.events("web").await;
            let reported =
                events.iter().any(|event| event.contains("ShadowDifference") && event.contains("say 4"));
            if reported { Ok(()) } else { Err((events, ours.handle.records().latest(None).len())) }
        })
        .await;
        let decided = ours.handle.records().of(&env.namespace, "hpa.web");
        assert_eq!(decided.last().unwrap().decision.desired, 4);
        ours.stop().await;

        assert_eq!(env.replicas("web").await, 2);
        let after = env.hpa_object("web").await;
        assert_eq!(after["status"], before["status"]);
        assert_eq!(after["metadata"]["annotations"], Value::Null);
        let log = account.rules.log();
        roles::check_answers(&env.namespace, &log);
        let role = roles::granted(&manifests, NAME);
        for needed in roles::needed(&log) {
            assert!(role.iter().any(|held| held.covers(&needed)), "{needed:?}");
        }
        let writes = role.iter().filter(|held| !matches!(held.verb.as_str(), "get" | "list" | "watch"));
        let writes: Vec<_> = writes.map(|held| format!("{} {}", held.verb, held.resource)).collect();
        let questions = ["create tokenreviews", "create subjectaccessreviews"];
        assert_eq!(writes, [&["create events", "patch events"][..], &questions].concat());
        if env.cluster == REAL {
            for (verb, resource) in FORBIDDEN_PERMISSIONS {
                assert!(!may(&account.client, verb, resource, &env.namespace).await, "may {verb} {resource}");
            }
            let uri = HPA.replace("{ns}", &env.namespace);
            assert_eq!(send(&account.client, Method::PUT, &uri, Some(&after)).await.0, 403);
        }
    })
}
