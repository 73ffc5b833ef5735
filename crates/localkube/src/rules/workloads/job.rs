//! Jobs.

use api::field::{AsJson, FieldError};
use serde_json::{Value, json};

use super::shared::{same_selector, selector, selects_template};
use crate::rules::faults::{Faults, IMMUTABLE, label_selector, sorted};
use crate::rules::json::{at, each, fill, flag, has, number, part, part_of, put, remove, text, tidy};
use crate::rules::pod::defaults::template;
use crate::rules::pod::validate;
use crate::rules::{NONE, Rules};

/// The rules of jobs.
pub const RULES: Rules =
    Rules { default, create, validate: |job| faults(job).into(), validate_update, validate_status, ..NONE };

/// Prefixes of generated labels: the legacy one and the current one.
const PREFIXES: [&str; 2] = ["", "batch.kubernetes.io/"];

fn default(job: &mut Value, _version: &str) {
    tidy(job);
    let spec = part(job, "spec");
    // Without `completions` and `parallelism`, a job runs one pod; with parallelism alone it is a work queue.
    if !has(spec, "completions") && !has(spec, "parallelism") {
        put(spec, "completions", 1);
    }
    fill(spec, "parallelism", 1);
    fill(spec, "backoffLimit", if has(spec, "backoffLimitPerIndex") { i32::MAX } else { 6 });
    fill(spec, "manualSelector", false);
    fill(spec, "completionMode", "NonIndexed");
    fill(spec, "suspend", false);
    let replaced = if has(spec, "podFailurePolicy") { "Failed" } else { "TerminatingOrFailed" };
    fill(spec, "podReplacementPolicy", replaced);
    if let Some(policy) = part_of(spec, "podFailurePolicy") {
        for rule in each(policy, "rules") {
            for condition in each(rule, "onPodConditions") {
                fill(condition, "status", "True");
            }
        }
    }
    // The template's default is not allowed in jobs, so it stays unset.
    let template_ = part(spec, "template");
    let policy = at(template_, "spec.restartPolicy").clone();
    template(template_);
    if policy.is_null() {
        remove(part(template_, "spec"), "restartPolicy");
    }
    let labels = at(template_, "metadata.labels").clone();
    if !labels.is_null() {
        fill(part(job, "metadata"), "labels", labels);
    }
    for condition in each(part(job, "status"), "conditions") {
        fill(condition, "lastProbeTime", Value::Null);
        fill(condition, "lastTransitionTime", Value::Null);
    }
}

fn create(job: &mut Value) {
    put(job, "status", json!({}));
    if flag(job, "spec.manualSelector") {
        return;
    }
    let uid = text(job, "metadata.uid").to_owned();
    let name = text(job, "metadata.name").to_owned();
    let spec = part(job, "spec");
    let shared = at(spec, "template.metadata.labels").clone();
    let labels = part(part(part(spec, "template"), "metadata"), "labels");
    for prefix in PREFIXES {
        fill(labels, &format!("{prefix}controller-uid"), uid.as_str());
        fill(labels, &format!("{prefix}job-name"), name.as_str());
    }
    let labels = labels.clone();
    put(part(part(spec, "selector"), "matchLabels"), "batch.kubernetes.io/controller-uid", uid);
    // Labels that were defaulted from the template follow its generated labels.
    if at(job, "metadata.labels") == &shared {
        put(part(job, "metadata"), "labels", labels);
    }
}

fn faults(job: &Value) -> Faults {
    let mut faults = Faults::default();
    if !flag(job, "spec.manualSelector") {
        generated(&mut faults, job);
    }
    spec_faults(&mut faults, at(job, "spec"));
    faults
}

/// Checks that generated labels and the selector are unchanged.
fn generated(faults: &mut Faults, job: &Value) {
    const PATH: &str = "spec.template.metadata.labels";
    let labels = at(job, PATH);
    let uid = text(job, "metadata.uid");
    let label = |key: &str| labels.get(key).and_then(Value::as_str).unwrap_or_default();
    // The job was not prepared; the missing selector is reported below.
    if !has(job, "spec.selector") {
        return;
    }
    for prefix in PREFIXES {
        for (key, value) in [("controller-uid", uid), ("job-name", text(job, "metadata.name"))] {
            let key = format!("{prefix}{key}");
            if label(&key) != value {
                let path = format!("{PATH}[{key}]");
                faults.invalid(path, AsJson(&sorted(job, PATH)), format!("must be '{value}'"));
            }
        }
    }
    let selector = label_selector(at(job, "spec.selector"));
    let expected = label_selector(&json!({"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}));
    if selector != expected {
        faults.invalid("spec.selector", AsJson(&selector), "`selector` not auto-generated");
    }
}

fn spec_faults(faults: &mut Faults, spec: &Value) {
    let selector = selector(faults, spec, "", "");
    let field = |name: &str| format!("spec.{name}");
    for name in [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ] {
        faults.not_negative(field(name), number(spec, name));
    }
    let mode = text(spec, "completionMode");
    if has(spec, "maxFailedIndexes") && !has(spec, "backoffLimitPerIndex") {
        faults.add(FieldError::required(field("backoffLimitPerIndex"), "when maxFailedIndexes is specified"));
    }
    let manager = text(spec, "managedBy");
    if has(spec, "managedBy") && !manager.contains('/') {
        let detail = "must be a domain-prefixed path (such as \"acme.io/foo\")";
        faults.invalid(field("managedBy"), manager, detail);
    }
    faults.one_of(field("completionMode"), mode, &["NonIndexed", "Indexed"]);
    if mode == "NonIndexed" {
        for name in ["backoffLimitPerIndex", "maxFailedIndexes"] {
            if let Some(value) = number(spec, name) {
                faults.invalid(field(name), value, "requires indexed completion mode");
            }
        }
    } else if mode == "Indexed" && !has(spec, "completions") {
        let detail = "when completion mode is Indexed";
        faults.add(FieldError::required(field("completions"), detail));
    }
    let replacement: &[&str] =
        if has(spec, "podFailurePolicy") { &["Failed"] } else { &["Failed", "TerminatingOrFailed"] };
    faults.one_of(field("podReplacementPolicy"), text(spec, "podReplacementPolicy"), replacement);
    if let Some(selector) = &selector {
        selects_template(faults, spec, selector);
    }
    template_faults(faults, spec);
}

fn template_faults(faults: &mut Faults, spec: &Value) {
    const PATH: &str = "spec.template.spec.restartPolicy";
    validate::template(faults, "spec.template", at(spec, "template"));
    match text(spec, "template.spec.restartPolicy") {
        "" | "Always" => {
            faults.add(FieldError::required(PATH, "valid values: \"OnFailure\", \"Never\""));
        }
        policy => faults.one_of(PATH, policy, &["OnFailure", "Never"]),
    }
    if has(spec, "podFailurePolicy") && text(spec, "template.spec.restartPolicy") == "OnFailure" {
        let detail = "only \"Never\" is supported when podFailurePolicy is specified";
        faults.invalid(PATH, "OnFailure", detail);
    }
}

fn validate_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut faults = faults(new);
    // The real server validates the spec twice.
    spec_faults(&mut faults, at(new, "spec"));
    completions(&mut faults, new, old);
    same_selector(&mut faults, new, old);
    same_template(&mut faults, new, old);
    for field in ["completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"]
    {
        faults.unchanged(&format!("spec.{field}"), new, old);
    }
    faults.into()
}

fn completions(faults: &mut Faults, new: &Value, old: &Value) {
    let path = "spec.completions";
    let (now, before) = (at(new, path), at(old, path));
    if now == before {
        return;
    }
    if text(new, "spec.completionMode") != "Indexed" {
        faults.unchanged(path, new, old);
    } else if number(new, path) != number(new, "spec.parallelism") {
        faults.invalid(path, AsJson(now), "can only be modified in tandem with spec.parallelism");
    }
}

/// The template is immutable, except scheduling fields and resources of a job that has not started.
fn same_template(faults: &mut Faults, new: &Value, old: &Value) {
    let [mut now, mut before] = [new, old].map(|job| at(job, "spec.template").clone());
    let waits = flag(old, "spec.suspend") && !has(old, "status.startTime");
    let mut path = "spec.template";
    if waits {
        path = "spec.template.spec";
        for template in [&mut now, &mut before] {
            *template = at(template, "spec").clone();
            for field in ["nodeSelector", "affinity", "tolerations", "schedulingGates"] {
                remove(template, field);
            }
            for kind in ["containers", "initContainers"] {
                each(template, kind).for_each(|container| put(container, "resources", json!({})));
            }
        }
    }
    if now != before {
        faults.invalid(path, AsJson(at(new, path)), IMMUTABLE);
    }
}

fn validate_status(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut faults = Faults::default();
    faults.counts(at(new, "status"), &["active", "succeeded", "failed"], &[]);
    for counter in ["failed", "succeeded"] {
        let path = format!("status.{counter}");
        let [now, before] = [new, old].map(|job| number(job, &path).unwrap_or_default());
        if now < before {
            faults.invalid(path, now, format!("cannot decrease the {counter} counter"));
        }
    }
    faults.into()
}
