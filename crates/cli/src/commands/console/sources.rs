//! Where metrics and decisions come from: API groups, what the metrics server reports about its own sources, and triggers.

use std::collections::BTreeMap;

use api::decisions::{self, DecisionRecord};
use api::reports::{self, BackendReport, ReportedProblem, ServerReport};
use jiff::SignedDuration;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::live::cluster_client::RecordingSummary;
use crate::live::{ClusterClient, RequestError};

/// The API groups, what they serve, and what to do if they are missing.
const GROUPS: [(&str, &str, &str); 5] = [
    (
        "metrics.k8s.io",
        "metrics API",
        "run `plimsoll metrics` or metrics-server, if autoscalers use cpu or memory",
    ),
    ("custom.metrics.k8s.io", "metrics API", ""),
    ("external.metrics.k8s.io", "metrics API", ""),
    (
        decisions::GROUP,
        "decisions",
        "run `plimsoll controller`; without it, only conditions and events are known",
    ),
    (decisions::OPERATOR_GROUP, "decisions", ""),
];
/// Problems of one kind that are shown.
const MAX_PROBLEMS: usize = 20;

/// The triggers of one scaler type.
#[derive(Default)]
struct TriggerSummary<'a> {
    count: usize,
    failed: usize,
    /// The first error.
    error: &'a str,
    /// The longest query of the latest polls.
    latency: Option<SignedDuration>,
}

/// Queries every source.
pub(super) async fn read(client: &ClusterClient) -> Value {
    if let Some(recording) = client.recording() {
        let RecordingSummary { path, from, until, passes, autoscalers } = recording;
        let text = format!("{passes} passes of {autoscalers} autoscalers, from {from} to {until}");
        return json!([source(path, "recording", "ok", None, &text, "")]);
    }
    let groups: Option<Value> = client.get("/apis").await.ok();
    let mut found = Vec::new();
    for (group, kind, remedy) in GROUPS {
        let version = groups.as_ref().and_then(|groups| preferred(groups, group));
        let Some(version) = version else {
            let text =
                if groups.is_some() { "not served by this cluster" } else { "not known: discovery failed" };
            found.push(source(
                group,
                kind,
                if groups.is_some() { "missing" } else { "unknown" },
                None,
                text,
                remedy,
            ));
            continue;
        };
        let began = Instant::now();
        let answer = client.get::<Value>(&format!("/apis/{version}")).await;
        let latency = began.elapsed().as_secs_f64() * 1000.0;
        found.push(match answer {
            Ok(_) => source(group, kind, "ok", Some(latency), &format!("serves {version}"), ""),
            Err(error) => {
                let health = if error.code() == Some(403) { "unknown" } else { "failing" };
                source(group, kind, health, Some(latency), &error.to_string(), remedy_of(&error))
            }
        });
    }
    let path = format!("/apis/{}/{}/{}", reports::API_VERSION, reports::RESOURCE, reports::CURRENT);
    if groups.as_ref().is_some_and(|groups| preferred(groups, reports::GROUP).is_some())
        && let Ok(report) = client.get::<ServerReport>(&path).await
    {
        found.extend(reported(&report));
    }
    Value::from(found)
}

/// The triggers of ScaledObjects and ScaledJobs by scaler type, as their latest polls found them.
pub(super) fn triggers<'a>(records: impl Iterator<Item = &'a DecisionRecord>) -> Vec<Value> {
    let mut by_type: BTreeMap<&str, TriggerSummary<'_>> = BTreeMap::new();
    for trigger in records.filter_map(|record| record.round.as_ref()).flat_map(|round| &round.triggers) {
        let of_metrics = trigger.metrics.iter().find_map(|metric| metric.failure.as_deref());
        let failure = trigger.failure.as_deref().or(of_metrics);
        let summary = by_type.entry(&trigger.type_).or_default();
        summary.count += 1;
        summary.latency = trigger
            .metrics
            .iter()
            .filter_map(|metric| metric.read)
            .map(|read| read.took)
            .max()
            .max(summary.latency);
        if let Some(failure) = failure {
            summary.failed += 1;
            if summary.error.is_empty() {
                summary.error = failure;
            }
        }
    }
    let one = |(name, summary): (&str, TriggerSummary<'_>)| {
        let TriggerSummary { count, failed, error, latency } = summary;
        let latency = latency.map(milliseconds);
        if failed == 0 {
            let text = format!("{count} read in the latest polls");
            return source(name, "triggers", "ok", latency, &text, "");
        }
        let text = format!("{failed} of {count} cannot be read: {error}");
        source(name, "triggers", "failing", latency, &text, "Problems names the autoscalers and what to do")
    };
    by_type.into_iter().map(one).collect()
}

fn remedy_of(error: &RequestError) -> &'static str {
    match error.code() {
        Some(502..=504) => "check that its pods run and that its Service leads to them",
        Some(401 | 403) => "ask for the right to read it",
        _ => "",
    }
}

/// Group and version that the cluster prefers.
fn preferred<'a>(groups: &'a Value, name: &str) -> Option<&'a str> {
    let all = groups.get("groups")?.as_array()?;
    let group = all.iter().find(|group| group.get("name").and_then(Value::as_str) == Some(name))?;
    group.pointer("/preferredVersion/groupVersion")?.as_str()
}

/// What the metrics server reports about kubelets, Prometheus and other servers.
fn reported(report: &ServerReport) -> Vec<Value> {
    let mut found = Vec::new();
    if let Some(resource) = &report.resource {
        let text = format!(
            "{} of {} nodes fresh, {} of {} pods served",
            resource.fresh_nodes, resource.nodes, resource.served_pods, resource.pods
        );
        let health = if resource.node_problems.is_empty() { "ok" } else { "failing" };
        let latency = resource.latency.map(milliseconds);
        found.push(source(&resource.source, "nodes", health, latency, &text, ""));
        let problems = resource.node_problems.iter().chain(&resource.pod_problems);
        found.extend(problems.take(MAX_PROBLEMS).map(|one| problem(&resource.source, one)));
    }
    let backends = [("Prometheus", &report.prometheus), ("metrics server", &report.upstreams)];
    for (kind, backends) in backends {
        found.extend(backends.iter().map(|one| backend(kind, one)));
    }
    found.extend(report.problems.iter().take(MAX_PROBLEMS).map(|one| problem("metrics server", one)));
    found
}

fn backend(kind: &str, one: &BackendReport) -> Value {
    let name = if one.name.is_empty() { &one.address } else { &one.name };
    let metrics = one.metrics.map(|count| format!(", {count} metrics")).unwrap_or_default();
    let latency = one.latency.map(milliseconds);
    if one.healthy {
        source(name, kind, "ok", latency, &format!("{}{metrics}", one.address), "")
    } else {
        source(name, kind, "failing", latency, &one.error, &one.remedy)
    }
}

fn problem(of: &str, one: &ReportedProblem) -> Value {
    let names = one.names.iter().take(3).map(String::as_str).collect::<Vec<_>>().join(", ");
    let text = format!("{} ({}: {names})", one.cause, one.count);
    source(of, "problem", "failing", None, &text, &one.remedy)
}

fn milliseconds(duration: SignedDuration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

fn source(name: &str, kind: &str, health: &str, latency: Option<f64>, detail: &str, remedy: &str) -> Value {
    json!({"name": name, "kind": kind, "health": health, "latencyMs": latency.map(f64::round), "detail": detail, "remedy": remedy})
}

#[cfg(test)]
mod tests {
    use engine::TriggerPoll;
    use engine::trigger_poll::{PolledTrigger, SampleRead, TriggerMetric};

    use super::*;
    use crate::live::sample::record_of;

    #[test]
    fn failing_backends_keep_cause_and_remedy() {
        let report = ServerReport {
            prometheus: vec![BackendReport {
                address: "http://prometheus:9090".into(),
                error: "refused".into(),
                remedy: "start it".into(),
                latency: Some(SignedDuration::from_millis(12)),
                ..BackendReport::default()
            }],
            ..ServerReport::default()
        };
        let found = reported(&report);
        assert_eq!(
            found[0],
            json!({"name": "http://prometheus:9090", "kind": "Prometheus", "health": "failing", "latencyMs": 12.0, "detail": "refused", "remedy": "start it"})
        );
    }

    #[test]
    fn triggers_are_counted_by_type() {
        let trigger = |type_: &str, failure: Option<&str>| PolledTrigger {
            type_: type_.into(),
            failure: failure.map(str::to_owned),
            ..PolledTrigger::default()
        };
        let mut record = record_of("orders", "2026-01-05T09:15:00Z", 1, &[100]);
        let mut all = vec![trigger("kafka", None), trigger("cron", None), trigger("kafka", Some("refused"))];
        let read =
            |took| SampleRead { at: record.last, took: SignedDuration::from_millis(took), shared: false };
        all[0].metrics = [30, 20]
            .map(|took| TriggerMetric { read: Some(read(took)), ..TriggerMetric::default() })
            .to_vec();
        record.round = Some(TriggerPoll { triggers: all, ..TriggerPoll::default() });
        let found = triggers([record].iter());
        assert_eq!((&found[0]["latencyMs"], &found[1]["latencyMs"]), (&Value::Null, &json!(30.0)));
        let shown: Vec<_> = found.iter().map(|one| (&one["name"], &one["health"], &one["detail"])).collect();
        assert_eq!(
            shown,
            [
                (&json!("cron"), &json!("ok"), &json!("1 read in the latest polls")),
                (&json!("kafka"), &json!("failing"), &json!("1 of 2 cannot be read: refused")),
            ]
        );
    }

    #[test]
    fn version_of_a_group_is_the_preferred_one() {
        let groups = json!({"groups": [{"name": "metrics.k8s.io", "preferredVersion": {"groupVersion": "metrics.k8s.io/v1beta1"}}]});
        assert_eq!(preferred(&groups, "metrics.k8s.io"), Some("metrics.k8s.io/v1beta1"));
        assert_eq!(preferred(&groups, "custom.metrics.k8s.io"), None);
    }
}
