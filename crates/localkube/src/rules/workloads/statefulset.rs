//! Stateful sets.

use api::autoscaling::FeatureGates;
use api::field::{AsJson, FieldError};
use api::names::dns_label_faults;
use serde_json::{Value, json};

use super::deployment::{PERCENT, percent};
use super::shared::{collisions, lasting_template, selector, selects_template};
use crate::release::ApiServerBehavior;
use crate::rules::faults::{Faults, IMMUTABLE};
use crate::rules::json::{at, each, fill, has, list, number, part, put, remove, text, tidy};
use crate::rules::pod::defaults::{claim_spec, template};
use crate::rules::pod::validate::template_meta;
use crate::rules::{GatedRules, NONE, Rules};

/// The rules of stateful sets.
pub const RULES: Rules = Rules {
    default,
    create,
    name: dns_label_faults,
    gated: Some(&GatedRules {
        adapt: max_unavailable,
        validate: |set, _| faults(set).into(),
        validate_update,
        validate_status: |new, old, _| validate_status(new, old),
        counts_generation: |_| true,
        spec_differs: |old, new| at(old, "spec") != at(new, "spec"),
    }),
    ..NONE
};

/// The fields that cannot change.
const FIXED: [&str; 4] = ["selector", "volumeClaimTemplates", "serviceName", "podManagementPolicy"];

/// The fields that may change.
const CHANGEABLE: [&str; 7] = [
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
];

fn default(set: &mut Value, _version: &str) {
    tidy(set);
    let spec = part(set, "spec");
    fill(spec, "replicas", 1);
    template(part(spec, "template"));
    for claim in each(spec, "volumeClaimTemplates") {
        fill(claim, "kind", "PersistentVolumeClaim");
        fill(claim, "apiVersion", "v1");
        part(claim, "metadata");
        claim_spec(claim);
        fill(part(claim, "status"), "phase", "Pending");
    }
    fill(spec, "serviceName", "");
    fill(spec, "podManagementPolicy", "OrderedReady");
    let strategy = part(spec, "updateStrategy");
    fill(strategy, "type", "RollingUpdate");
    if text(strategy, "type") == "RollingUpdate" {
        fill(part(strategy, "rollingUpdate"), "partition", 0);
    }
    fill(spec, "revisionHistoryLimit", 10);
    let retention = part(spec, "persistentVolumeClaimRetentionPolicy");
    fill(retention, "whenDeleted", "Retain");
    fill(retention, "whenScaled", "Retain");
    let status = part(set, "status");
    fill(status, "replicas", 0);
    fill(status, "availableReplicas", 0);
    for condition in each(status, "conditions") {
        fill(condition, "lastTransitionTime", Value::Null);
    }
}

/// `maxUnavailable` is behind a feature gate, which decides whether it is dropped or has a default.
fn max_unavailable(set: &mut Value, gates: FeatureGates) {
    let strategy = part(part(set, "spec"), "updateStrategy");
    if text(strategy, "type") == "RollingUpdate" {
        let update = part(strategy, "rollingUpdate");
        if ApiServerBehavior::of(gates.kubernetes).stateful_set_max_unavailable {
            fill(update, "maxUnavailable", 1);
        } else {
            remove(update, "maxUnavailable");
        }
    }
}

fn create(set: &mut Value) {
    put(set, "status", json!({"replicas": 0, "availableReplicas": 0}));
}

fn faults(set: &Value) -> Faults {
    let mut faults = Faults::default();
    let spec = at(set, "spec");
    let management = text(spec, "podManagementPolicy");
    if !matches!(management, "OrderedReady" | "Parallel") {
        faults.invalid("spec.podManagementPolicy", management, "must be 'OrderedReady' or 'Parallel'");
    }
    strategy(&mut faults, at(spec, "updateStrategy"));
    let retention = "persistentVolumeClaimRetentionPolicy";
    for when in ["whenDeleted", "whenScaled"] {
        let path = format!("{retention}.{when}");
        faults.one_of(format_args!("spec.{path}"), text(spec, &path), &["Retain", "Delete"]);
    }
    for field in ["replicas", "minReadySeconds", "ordinals.start"] {
        faults.not_negative(format_args!("spec.{field}"), number(spec, field));
    }
    let service = text(spec, "serviceName");
    if !service.is_empty() {
        faults.follows("spec.serviceName", service, dns_label_faults);
    }
    claims(&mut faults, spec);
    if let Some(selector) = selector(&mut faults, spec, "statefulset", "") {
        selects_template(&mut faults, spec, &selector);
        template_meta(&mut faults, "spec.template", at(spec, "template"));
        lasting_template(&mut faults, &with_claims(spec), "StatefulSet");
    }
    faults
}

fn strategy(faults: &mut Faults, strategy: &Value) {
    let update = at(strategy, "rollingUpdate");
    match text(strategy, "type") {
        "OnDelete" => {
            if !update.is_null() {
                let shown =
                    json!({"Partition": number(update, "partition").unwrap_or(0), "MaxUnavailable": null});
                let detail = "only allowed for updateStrategy 'RollingUpdate'";
                faults.invalid("spec.updateStrategy.rollingUpdate", AsJson(&shown), detail);
            }
        }
        "RollingUpdate" => {
            faults.not_negative("spec.updateStrategy.rollingUpdate.partition", number(update, "partition"));
            unavailable(
                faults,
                "spec.updateStrategy.rollingUpdate.maxUnavailable",
                at(update, "maxUnavailable"),
            );
        }
        other => {
            let shown = json!({"Type": other, "RollingUpdate": update});
            faults.invalid("spec.updateStrategy", AsJson(&shown), "must be 'RollingUpdate' or 'OnDelete'");
        }
    }
}

fn claims(faults: &mut Faults, spec: &Value) {
    for (i, claim) in list(spec, "volumeClaimTemplates").iter().enumerate() {
        let path = format!("spec.volumeClaimTemplates[{i}].spec");
        if list(claim, "spec.accessModes").is_empty() {
            let detail = "at least 1 access mode is required";
            faults.add(FieldError::required(format_args!("{path}.accessModes"), detail));
        }
        if !has(claim, "spec.resources.requests.storage") {
            faults.required(format_args!("{path}.resources[storage]"));
        }
    }
}

/// The spec with a volume for each claim template, as its pods have.
fn with_claims(spec: &Value) -> Value {
    let mut spec = spec.clone();
    let names: Vec<String> = list(&spec, "volumeClaimTemplates")
        .iter()
        .map(|claim| text(claim, "metadata.name").to_owned())
        .collect();
    if !names.is_empty() {
        let pod = part(part(&mut spec, "template"), "spec");
        let own = list(pod, "volumes")
            .iter()
            .filter(|volume| !names.iter().any(|name| name == text(volume, "name")));
        let claimed =
            names.iter().map(|name| json!({"name": name, "persistentVolumeClaim": {"claimName": name}}));
        let volumes: Vec<Value> = claimed.chain(own.cloned()).collect();
        put(pod, "volumes", volumes);
    }
    spec
}

/// The errors of `maxUnavailable`; there are none without it.
fn unavailable(faults: &mut Faults, path: &str, value: &Value) {
    let share = match value {
        Value::Null => return,
        Value::String(text) => {
            let share = percent(text);
            if share.is_none() {
                faults.invalid(path, text, PERCENT);
            }
            share
        }
        _ => None,
    };
    faults.not_negative(path, value.as_i64());
    if value.as_i64().unwrap_or(share.unwrap_or_default() as i64) == 0 {
        faults.invalid(path, AsJson(value), "cannot be 0");
    }
    if share.is_some_and(|share| share > 100) {
        faults.invalid(path, AsJson(value), "must not be greater than 100%");
    }
}

fn validate_update(new: &Value, old: &Value, gates: FeatureGates) -> Vec<FieldError> {
    let mut faults = faults(new);
    if ApiServerBehavior::of(gates.kubernetes).names_fixed_fields_of_stateful_sets {
        let (new, old) = (at(new, "spec"), at(old, "spec"));
        for field in FIXED.into_iter().filter(|field| at(new, field) != at(old, field)) {
            faults.invalid(format_args!("spec.{field}"), AsJson(at(new, field)), IMMUTABLE);
        }
        return faults.into();
    }
    let fixed = |set: &Value| {
        let mut spec = at(set, "spec").clone();
        for field in CHANGEABLE {
            remove(&mut spec, field);
        }
        spec
    };
    if fixed(new) != fixed(old) {
        faults.forbidden(
            "spec",
            "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', \
             'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
        );
    }
    faults.into()
}

fn validate_status(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut faults = Faults::default();
    let mut counts = vec![
        "replicas",
        "readyReplicas",
        "currentReplicas",
        "updatedReplicas",
        "availableReplicas",
        "observedGeneration",
    ];
    if has(new, "status.collisionCount") {
        counts.push("collisionCount");
    }
    let parts = [
        ("readyReplicas", "replicas", "status.replicas"),
        ("currentReplicas", "replicas", "status.replicas"),
        ("updatedReplicas", "replicas", "status.replicas"),
        ("availableReplicas", "replicas", "status.replicas"),
        ("availableReplicas", "readyReplicas", "status.readyReplicas"),
    ];
    faults.counts(at(new, "status"), &counts, &parts);
    faults.extend(collisions(new, old));
    faults.into()
}
