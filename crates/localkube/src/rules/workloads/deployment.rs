//! Deployments.

use api::field::{AsJson, FieldError};
use serde_json::{Value, json};

use super::shared::{collisions, lasting_template, same_selector, selector, selects_template};
use crate::rules::faults::Faults;
use crate::rules::json::{at, each, fill, has, number, part, put, remove, text, tidy};
use crate::rules::pod::defaults::template;
use crate::rules::{NONE, Rules};

/// The rules of deployments.
pub const RULES: Rules = Rules {
    default,
    create: |deployment| put(deployment, "status", json!({})),
    validate: |deployment| faults(deployment).into(),
    validate_update: |new, old| {
        let mut faults = faults(new);
        same_selector(&mut faults, new, old);
        faults.into()
    },
    validate_status: status_faults,
    ..NONE
};

pub(super) const PERCENT: &str = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', \
                       regex used for validation is '[0-9]+%')";

fn default(deployment: &mut Value, _version: &str) {
    tidy(deployment);
    let spec = part(deployment, "spec");
    fill(spec, "replicas", 1);
    template(part(spec, "template"));
    let strategy = part(spec, "strategy");
    fill(strategy, "type", "RollingUpdate");
    if text(strategy, "type") == "RollingUpdate" {
        let update = part(strategy, "rollingUpdate");
        fill(update, "maxUnavailable", "25%");
        fill(update, "maxSurge", "25%");
    }
    fill(spec, "revisionHistoryLimit", 10);
    fill(spec, "progressDeadlineSeconds", 600);
    let status = part(deployment, "status");
    for count in ["replicas", "availableReplicas"] {
        if number(status, count) == Some(0) {
            remove(status, count);
        }
    }
    for condition in each(status, "conditions") {
        fill(condition, "lastUpdateTime", Value::Null);
        fill(condition, "lastTransitionTime", Value::Null);
    }
}

fn faults(deployment: &Value) -> Faults {
    let mut faults = Faults::default();
    let spec = at(deployment, "spec");
    faults.not_negative("spec.replicas", number(spec, "replicas"));
    if let Some(selector) = selector(&mut faults, spec, "deployment", "invalid label selector") {
        selects_template(&mut faults, spec, &selector);
        lasting_template(&mut faults, spec, "ReplicaSet");
    }
    strategy(&mut faults, at(spec, "strategy"));
    for field in ["minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"] {
        faults.not_negative(format_args!("spec.{field}"), number(spec, field));
    }
    let deadline = number(spec, "progressDeadlineSeconds").unwrap_or(600);
    if deadline <= number(spec, "minReadySeconds").unwrap_or_default() {
        faults.invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds");
    }
    faults
}

fn strategy(faults: &mut Faults, strategy: &Value) {
    let update = at(strategy, "rollingUpdate");
    match text(strategy, "type") {
        "Recreate" => {
            if !update.is_null() {
                let detail = "may not be specified when strategy `type` is 'Recreate'";
                faults.forbidden("spec.strategy.rollingUpdate", detail);
            }
        }
        "RollingUpdate" => rolling(faults, update),
        other => {
            let shown = json!({"Type": other, "RollingUpdate": update});
            let supported = ["Recreate", "RollingUpdate"];
            faults.add(FieldError::not_supported("spec.strategy", AsJson(&shown), &supported));
        }
    }
}

fn rolling(faults: &mut Faults, update: &Value) {
    const PATH: &str = "spec.strategy.rollingUpdate";
    for name in ["maxUnavailable", "maxSurge"] {
        let path = format_args!("{PATH}.{name}");
        match at(update, name) {
            Value::String(text) if percent(text).is_none() => faults.invalid(path, text, PERCENT),
            value => faults.not_negative(path, value.as_i64()),
        }
    }
    let zero = |name| match at(update, name) {
        Value::String(text) => percent(text).unwrap_or_default() == 0,
        value => value.as_i64() == Some(0),
    };
    let path = format_args!("{PATH}.maxUnavailable");
    let unavailable = at(update, "maxUnavailable");
    if zero("maxUnavailable") && zero("maxSurge") {
        faults.invalid(path, AsJson(unavailable), "may not be 0 when `maxSurge` is 0");
    }
    if unavailable.as_str().and_then(percent).is_some_and(|percent| percent > 100) {
        faults.invalid(path, AsJson(unavailable), "must not be greater than 100%");
    }
}

/// The number of a percentage such as `25%`.
pub(super) fn percent(text: &str) -> Option<u64> {
    let digits = text.strip_suffix('%')?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

fn status_faults(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut faults = Faults::default();
    let mut counts = vec![
        "observedGeneration",
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
        "unavailableReplicas",
    ];
    if has(new, "status.collisionCount") {
        counts.push("collisionCount");
    }
    let parts = [
        ("updatedReplicas", "replicas", "status.replicas"),
        ("readyReplicas", "replicas", "status.replicas"),
        ("availableReplicas", "replicas", "status.replicas"),
        ("availableReplicas", "readyReplicas", "readyReplicas"),
    ];
    faults.counts(at(new, "status"), &counts, &parts);
    faults.extend(collisions(new, old));
    faults.into()
}
