//! Validation of scheduling constraints.

use api::field::FieldError;
use api::names::label_key_faults;
use serde_json::Value;

use crate::rules::faults::Faults;
use crate::rules::json::{at, has, list, number, text};

const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// Validates tolerations.
pub(super) fn tolerations(faults: &mut Faults, path: &str, spec: &Value) {
    for (i, toleration) in list(spec, "tolerations").iter().enumerate() {
        let path = format!("{path}.tolerations[{i}]");
        let [key, operator, value, effect] =
            ["key", "operator", "value", "effect"].map(|name| text(toleration, name));
        if !key.is_empty() {
            faults.follows(format_args!("{path}.key"), key, label_key_faults);
        } else if operator != "Exists" {
            let detail =
                "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            faults.invalid(format_args!("{path}.operator"), operator, detail);
        }
        if number(toleration, "tolerationSeconds").is_some() && effect != "NoExecute" {
            let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            faults.invalid(format_args!("{path}.effect"), effect, detail);
        }
        let at_operator = format_args!("{path}.operator");
        match operator {
            "Exists" if !value.is_empty() => {
                faults.invalid(at_operator, value, "value must be empty when `operator` is 'Exists'");
            }
            "" | "Exists" => {}
            other => faults.one_of(at_operator, other, &["Equal", "Exists"]),
        }
        if !effect.is_empty() {
            faults.one_of(format_args!("{path}.effect"), effect, &EFFECTS);
        }
    }
}

/// Validates topology spread constraints.
pub(super) fn spread(faults: &mut Faults, path: &str, spec: &Value) {
    for (i, constraint) in list(spec, "topologySpreadConstraints").iter().enumerate() {
        let path = format!("{path}.topologySpreadConstraints[{i}]");
        let skew = number(constraint, "maxSkew").unwrap_or_default();
        if skew <= 0 {
            faults.invalid(format_args!("{path}.maxSkew"), skew, "must be greater than zero");
        }
        if text(constraint, "topologyKey").is_empty() {
            faults.add(FieldError::required(format_args!("{path}.topologyKey"), "can not be empty"));
        }
        faults.one_of(
            format_args!("{path}.whenUnsatisfiable"),
            text(constraint, "whenUnsatisfiable"),
            &["DoNotSchedule", "ScheduleAnyway"],
        );
        faults.selector(&format!("{path}.labelSelector"), at(constraint, "labelSelector"));
    }
}

/// Validates affinity.
pub(super) fn affinity(faults: &mut Faults, path: &str, affinity: &Value) {
    let needed = at(affinity, "nodeAffinity").get(REQUIRED).unwrap_or(&Value::Null);
    if !needed.is_null() {
        let path = format!("{path}.nodeAffinity.{REQUIRED}.nodeSelectorTerms");
        let terms = list(needed, "nodeSelectorTerms");
        if terms.is_empty() {
            faults.add(FieldError::required(&path, "must have at least one node selector term"));
        }
        for (i, term) in terms.iter().enumerate() {
            node_term(faults, &format!("{path}[{i}]"), term);
        }
    }
    for (i, wish) in list(affinity, &format!("nodeAffinity.{PREFERRED}")).iter().enumerate() {
        let path = format!("{path}.nodeAffinity.{PREFERRED}[{i}]");
        weight(faults, &path, wish);
        node_term(faults, &format!("{path}.preference"), at(wish, "preference"));
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        for (i, term) in list(affinity, &format!("{kind}.{REQUIRED}")).iter().enumerate() {
            pod_term(faults, &format!("{path}.{kind}.{REQUIRED}[{i}]"), term);
        }
        for (i, wish) in list(affinity, &format!("{kind}.{PREFERRED}")).iter().enumerate() {
            let path = format!("{path}.{kind}.{PREFERRED}[{i}]");
            weight(faults, &path, wish);
            pod_term(faults, &format!("{path}.podAffinityTerm"), at(wish, "podAffinityTerm"));
        }
    }
}

fn weight(faults: &mut Faults, path: &str, wish: &Value) {
    let weight = number(wish, "weight").unwrap_or_default();
    if !(1..=100).contains(&weight) {
        faults.invalid(format_args!("{path}.weight"), weight, "must be in the range 1-100");
    }
}

fn node_term(faults: &mut Faults, path: &str, term: &Value) {
    for (i, expression) in list(term, "matchExpressions").iter().enumerate() {
        let path = format!("{path}.matchExpressions[{i}]");
        let operator = text(expression, "operator");
        let values = list(expression, "values");
        faults.values(&path, operator, !values.is_empty());
        if matches!(operator, "Gt" | "Lt") && values.len() != 1 {
            let detail = "must be specified single value when `operator` is 'Lt' or 'Gt'";
            faults.add(FieldError::required(format_args!("{path}.values"), detail));
        }
        if !matches!(operator, "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt") {
            faults.invalid(format_args!("{path}.operator"), operator, "not a valid selector operator");
        }
        faults.follows(format_args!("{path}.key"), text(expression, "key"), label_key_faults);
    }
}

fn pod_term(faults: &mut Faults, path: &str, term: &Value) {
    if has(term, "labelSelector") {
        faults.selector(&format!("{path}.labelSelector"), at(term, "labelSelector"));
    }
    let key = text(term, "topologyKey");
    if key.is_empty() {
        faults.add(FieldError::required(format_args!("{path}.topologyKey"), "can not be empty"));
    }
    faults.follows(format_args!("{path}.topologyKey"), key, label_key_faults);
}
