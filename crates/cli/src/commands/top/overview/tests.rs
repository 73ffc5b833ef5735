use api::decisions::DecisionMode;
use cluster::AutoscalerKind;
use serde_json::json;

use super::super::view::TopColumns;
use super::*;
use crate::live::objects::{Object, sample as object};
use crate::live::page::Page;
use crate::live::sample::{at, record_of};

const NOW: &str = "2026-01-05T09:15:00Z";
const MADE: &str = "2026-01-05T09:14:45Z";

fn entry(name: &str, replicas: i32, usages: &[i64]) -> Entry {
    let status = json!({"currentReplicas": replicas, "desiredReplicas": replicas});
    Entry { object: object(name, status), record: Some(record_of(name, MADE, replicas, usages)) }
}

fn entries() -> Vec<Entry> {
    vec![
        entry("busy", 4, &[150; 4]),
        entry("calm", 2, &[50; 2]),
        entry("blind-b", 3, &[]),
        entry("full", 10, &[400; 10]),
        entry("blind-a", 3, &[]),
    ]
}

fn overview(entries: &[Entry], sort: Sort) -> Overview {
    Overview::of(entries, None, sort, at(NOW))
}

fn names(overview: &Overview) -> Vec<&str> {
    overview.autoscalers.iter().map(|line| line.name.as_str()).collect()
}

#[test]
fn autoscalers_with_problems_are_listed_first() {
    let all = entries();
    assert_eq!(
        names(&overview(&all, Sort::Pressure)),
        ["hpa/blind-a", "hpa/blind-b", "hpa/full", "hpa/busy", "hpa/calm"]
    );
    assert_eq!(
        names(&overview(&all, Sort::Name)),
        ["hpa/blind-a", "hpa/blind-b", "hpa/busy", "hpa/calm", "hpa/full"]
    );
    assert_eq!(names(&overview(&all, Sort::Replicas))[0], "hpa/full");
}

#[test]
fn problems_are_grouped_by_cause() {
    let text = TopColumns { namespace: false }.text(
        &overview(&entries(), Sort::Pressure),
        Page { width: Some(100), colour: false },
        usize::MAX,
    );
    assert_eq!(
        text,
        "\
✗ cpu cannot be read: metrics.k8s.io is not available: 2 autoscalers hold (shop/hpa/blind-b,
shop/hpa/blind-a)
  docs/diagnosis.md#metrics-api-unavailable
  remedy: `plimsoll metrics doctor` says why; kubectl get apiservices shows the Service of
  metrics.k8s.io
✗ more is wanted than max allows: 1 autoscaler is at max (shop/hpa/full)
  max is 10, metrics want 40
  remedy: raise maxReplicas if the cluster and the services that the pods use can handle more

NAME         PRESSURE  METRICS             REPLICAS    LAST DECISION
hpa/blind-a  -         cpu: <unknown>/50%  3 of 1–10   held: cpu cannot be read: metrics.k8s.io is…
hpa/blind-b  -         cpu: <unknown>/50%  3 of 1–10   held: cpu cannot be read: metrics.k8s.io is…
hpa/full     4.00×     cpu: <unknown>/50%  10 of 1–10  cpu wants 40; max is 10
hpa/busy     1.50×     cpu: <unknown>/50%  4 of 1–10   4 → 6: cpu 75 % of 50 %
hpa/calm     0.50×     cpu: <unknown>/50%  2 of 1–10   cpu wants 1; window holds 2 until 09:19:45
"
    );
}

#[test]
fn short_terminal_reports_the_number_of_hidden_rows() {
    let all: Vec<Entry> = (0..20).map(|i| entry(&format!("web-{i:02}"), 4, &[100; 4])).collect();
    let text = TopColumns { namespace: false }.text(
        &overview(&all, Sort::Name),
        Page { width: Some(100), colour: false },
        8,
    );
    assert_eq!(text.lines().count(), 8);
    assert_eq!(text.lines().last().unwrap(), "… and 14 more");
}

#[test]
fn controller_without_recent_decisions_is_a_problem() {
    let overview =
        Overview::of(&[entry("calm", 4, &[100; 4])], None, Sort::Pressure, at("2026-01-05T09:30:00Z"));
    assert_eq!(overview.problems[0].cause, "the controller has stopped deciding");
    assert_eq!(overview.problems[0].detail, "its last decision was 15m ago");
}

#[test]
fn paused_object_without_recent_decisions_is_no_problem() {
    let mut paused = entry("orders", 4, &[]);
    paused.object.kind = AutoscalerKind::ScaledObject;
    paused.object.hpa.metadata.annotations.insert("autoscaling.keda.sh/paused".to_owned(), "true".to_owned());
    let later = at("2026-01-05T09:30:00Z");
    let shown = Overview::of(std::slice::from_ref(&paused), None, Sort::Pressure, later);
    assert_eq!((shown.problems.len(), shown.autoscalers[0].state), (0, Grade::Paused));
    let failed = json!([{"type": "Ready", "status": "False", "reason": "ScaledObjectCheckFailed", "message": "because"}]);
    paused.object =
        Object { kind: AutoscalerKind::ScaledObject, ..object("orders", json!({"conditions": failed})) };
    paused.object.hpa.metadata.annotations.insert("autoscaling.keda.sh/paused".to_owned(), "true".to_owned());
    let shown = Overview::of(&[paused], None, Sort::Pressure, later);
    assert_eq!(shown.problems[0].detail, "because", "the pause itself failed");
}

#[test]
fn conditions_are_used_without_decision_records() {
    let condition = |kind: &str, status: &str, reason: &str| json!({"type": kind, "status": status, "reason": reason, "message": "because"});
    let with = |name: &str, conditions: serde_json::Value, cpu: i32| Entry {
        object: object(
            name,
            json!({"currentReplicas": 2, "desiredReplicas": 2, "conditions": conditions, "currentMetrics":
            [{"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": cpu}}}]}),
        ),
        record: None,
    };
    let all = [
        with("ok", json!([condition("ScalingActive", "True", "ValidMetricFound")]), 75),
        with("off", json!([condition("ScalingActive", "False", "ScalingDisabled")]), 90),
        with("blind", json!([condition("ScalingActive", "False", "FailedGetResourceMetric")]), 0),
        with("full", json!([condition("ScalingLimited", "True", "TooManyReplicas")]), 100),
    ];
    let overview = overview(&all, Sort::Pressure);
    assert_eq!(names(&overview), ["hpa/blind", "hpa/full", "hpa/ok", "hpa/off"]);
    assert_eq!(overview.autoscalers[2].pressure, Some(1.5));
    let causes: Vec<&str> = overview.problems.iter().map(|problem| problem.cause.as_str()).collect();
    assert_eq!(causes, ["FailedGetResourceMetric", "more is wanted than max allows"]);
}

#[test]
fn conditions_of_another_controller_are_shown_in_mode_off() {
    let failing = json!([{"type": "ScalingActive", "status": "False", "reason": "FailedGetResourceMetric", "message": "because"}]);
    let status = json!({"currentReplicas": 2, "desiredReplicas": 2, "conditions": failing});
    let mut off = Entry { object: object("web", status), record: None };
    off.object.hpa.metadata.annotations.insert("plimsoll.dev/mode".to_owned(), "off".to_owned());
    let shown = overview(std::slice::from_ref(&off), Sort::Name);
    assert_eq!(shown.problems[0].cause, "FailedGetResourceMetric");
    assert_eq!(shown.autoscalers[0].state, Grade::Paused);
    off.record = Some(record_of("web", MADE, 2, &[]));
    let shown = overview(std::slice::from_ref(&off), Sort::Name);
    assert_eq!(shown.problems[0].detail, "because", "our last decision gave another reason");
    assert_eq!(shown.autoscalers[0].state, Grade::Paused);
}

#[test]
fn conditions_that_our_last_decision_wrote_are_over_in_mode_off() {
    let record = record_of("web", MADE, 2, &[]);
    let conditions: Vec<_> = record
        .decision
        .status
        .conditions
        .iter()
        .map(|c| json!({"type": c.kind, "status": c.status, "reason": c.reason, "message": c.message}))
        .collect();
    let status = json!({"currentReplicas": 2, "desiredReplicas": 2, "conditions": conditions});
    let mut off = Entry { object: object("web", status), record: Some(record) };
    assert_eq!(overview(std::slice::from_ref(&off), Sort::Name).autoscalers[0].state, Grade::Failing);
    off.object.hpa.metadata.annotations.insert("plimsoll.dev/mode".to_owned(), "off".to_owned());
    let shown = overview(std::slice::from_ref(&off), Sort::Name);
    assert_eq!((shown.problems.len(), shown.autoscalers[0].state), (0, Grade::Paused));
    off.record.as_mut().unwrap().mode = DecisionMode::Shadow;
    let shown = overview(&[off], Sort::Name);
    assert_eq!(shown.problems[0].cause, "FailedGetResourceMetric", "in shadow mode nothing was written");
}
