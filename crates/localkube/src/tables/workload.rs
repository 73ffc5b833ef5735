//! Tables of deployments, replica sets, stateful sets, jobs and autoscalers.

use api::autoscaling::print::Row;
use api::autoscaling::{Version, Versioned};
use api::selector::LabelSelector;
use jiff::Timestamp;
use serde_json::Value;

use super::read::{age, at, holds, instant, items, name, number, text};

pub(super) fn deployment(object: &Value, now: Timestamp) -> Vec<Value> {
    let (spec, status) = (at(object, "spec"), at(object, "status"));
    vec![
        name(object),
        format!("{}/{}", number(status, "readyReplicas"), number(spec, "replicas")).into(),
        number(status, "updatedReplicas").into(),
        number(status, "availableReplicas").into(),
        age(object, now),
        containers(spec, "name"),
        containers(spec, "image"),
        selector(spec),
    ]
}

pub(super) fn replica_set(object: &Value, now: Timestamp) -> Vec<Value> {
    let (spec, status) = (at(object, "spec"), at(object, "status"));
    vec![
        name(object),
        number(spec, "replicas").into(),
        number(status, "replicas").into(),
        number(status, "readyReplicas").into(),
        age(object, now),
        containers(spec, "name"),
        containers(spec, "image"),
        selector(spec),
    ]
}

pub(super) fn stateful_set(object: &Value, now: Timestamp) -> Vec<Value> {
    let (spec, status) = (at(object, "spec"), at(object, "status"));
    vec![
        name(object),
        format!("{}/{}", number(status, "readyReplicas"), number(spec, "replicas")).into(),
        age(object, now),
        containers(spec, "name"),
        containers(spec, "image"),
    ]
}

pub(super) fn job(object: &Value, now: Timestamp) -> Vec<Value> {
    let (spec, status) = (at(object, "spec"), at(object, "status"));
    let succeeded = number(status, "succeeded");
    let completions = match (at(spec, "completions").as_i64(), number(spec, "parallelism")) {
        (Some(completions), _) => format!("{succeeded}/{completions}"),
        // One success is enough.
        (None, parallelism @ 2..) => format!("{succeeded}/1 of {parallelism}"),
        (None, _) => format!("{succeeded}/1"),
    };
    let duration = instant(status, "startTime").map(|start| {
        let end = instant(status, "completionTime").unwrap_or(now);
        api::age::since(Some(start), end)
    });
    vec![
        name(object),
        job_status(object).into(),
        completions.into(),
        duration.unwrap_or_default().into(),
        age(object, now),
        containers(spec, "name"),
        containers(spec, "image"),
        selector(spec),
    ]
}

fn job_status(job: &Value) -> &'static str {
    let deleted = !at(job, "metadata.deletionTimestamp").is_null();
    match () {
        () if holds(job, "Complete") => "Complete",
        () if holds(job, "Failed") => "Failed",
        () if deleted => "Terminating",
        () if holds(job, "Suspended") => "Suspended",
        () if holds(job, "FailureTarget") => "FailureTarget",
        () if holds(job, "SuccessCriteriaMet") => "SuccessCriteriaMet",
        () => "Running",
    }
}

/// Autoscalers are shown as v2 in every version.
pub(super) fn autoscaler(object: &Value, now: Timestamp) -> Vec<Value> {
    let version = Version::from_api_version(text(object, "apiVersion")).unwrap_or(Version::V2);
    let decoded = Versioned::decode_as(object, version).ok().and_then(|object| object.into_v2().ok());
    match decoded {
        Some(object) => Row::new(&object, now).cells().into(),
        None => vec![name(object)],
    }
}

/// A field of each container of the template.
fn containers(spec: &Value, field: &str) -> Value {
    let all: Vec<&str> =
        items(spec, "template.spec.containers").iter().map(|container| text(container, field)).collect();
    all.join(",").into()
}

fn selector(spec: &Value) -> Value {
    let selector: Option<LabelSelector> = serde_json::from_value(at(spec, "selector").clone()).ok();
    LabelSelector::display(selector.as_ref()).into()
}
