//! Validation of pod updates.

use api::field::{AsJson, FieldError};
use serde_json::Value;

use super::admission;
use super::validate::spec;
use crate::rules::faults::Faults;
use crate::rules::json::{at, each, fill, has, list, number, part, put, remove, text};

const FORBIDDEN_CHANGE: &str = "pod updates may not change fields other than `spec.containers[*].image`,\
     `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing \
     tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// Prepares a changed pod.
pub(super) fn prepare(new: &mut Value, old: &Value) {
    let class = at(old, "status.qosClass").clone();
    if !class.is_null() {
        fill(part(new, "status"), "qosClass", class);
    }
    let spec = part(new, "spec");
    admission::tolerate_faults(spec);
}

/// Validates a changed pod.
pub(super) fn validate(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut faults = Faults::default();
    let (new, old) = (at(new, "spec"), at(old, "spec"));
    spec(&mut faults, "spec", new);
    for kind in ["containers", "initContainers"] {
        if list(new, kind).len() != list(old, kind).len() {
            let detail = "pod updates may not add or remove containers";
            faults.forbidden(format_args!("spec.{kind}"), detail);
            return faults.into();
        }
        for (i, container) in list(new, kind).iter().enumerate() {
            faults.present(format_args!("spec.{kind}[{i}].image"), text(container, "image"));
        }
    }
    deadline(&mut faults, new, old);
    for (i, gate) in list(new, "schedulingGates").iter().enumerate() {
        if !list(old, "schedulingGates").contains(gate) {
            let name = text(gate, "name");
            let detail = format!("only deletion is allowed, but found new scheduling gate '{name}'");
            faults.forbidden(format_args!("spec.schedulingGates[{i}].name"), detail);
        }
    }
    tolerations(&mut faults, new, old);
    if faults.is_empty() {
        let allowed = with_allowed(new, old);
        if &allowed != old {
            faults.forbidden("spec", format!("{FORBIDDEN_CHANGE}\n{}\n", difference(old, &allowed)));
        }
    }
    faults.into()
}

fn deadline(faults: &mut Faults, new: &Value, old: &Value) {
    let path = "spec.activeDeadlineSeconds";
    match (number(new, "activeDeadlineSeconds"), number(old, "activeDeadlineSeconds")) {
        (Some(new), Some(old)) if new > old => {
            faults.invalid(path, new, "must be less than or equal to previous value");
        }
        (None, Some(_)) => {
            faults.invalid(
                path,
                AsJson(&Value::Null),
                "must not update from a positive integer to nil value",
            );
        }
        _ => {}
    }
}

/// Tolerations may be added, and their seconds changed.
fn tolerations(faults: &mut Faults, new: &Value, old: &Value) {
    let timeless = |toleration: &Value| {
        let mut toleration = toleration.clone();
        remove(&mut toleration, "tolerationSeconds");
        toleration
    };
    let kept: Vec<Value> = list(new, "tolerations").iter().map(timeless).collect();
    if !list(old, "tolerations").iter().all(|toleration| kept.contains(&timeless(toleration))) {
        let detail = "existing toleration can not be modified except its tolerationSeconds";
        faults.forbidden("spec.tolerations", detail);
    }
}

/// The new spec with all changeable fields restored.
fn with_allowed(new: &Value, old: &Value) -> Value {
    let mut spec = new.clone();
    for kind in ["containers", "initContainers"] {
        for (container, before) in each(&mut spec, kind).zip(list(old, kind)) {
            put(container, "image", text(before, "image"));
        }
    }
    let mut fields = vec!["activeDeadlineSeconds", "tolerations", "schedulingGates"];
    // The placement of a gated pod may still change.
    if has(old, "schedulingGates") {
        fields.extend(["nodeSelector", "affinity"]);
    }
    if number(old, "terminationGracePeriodSeconds").is_some_and(|seconds| seconds < 0)
        && number(new, "terminationGracePeriodSeconds") == Some(1)
    {
        fields.push("terminationGracePeriodSeconds");
    }
    for field in fields {
        match at(old, field) {
            Value::Null => {
                remove(&mut spec, field);
            }
            before => put(&mut spec, field, before.clone()),
        }
    }
    spec
}

/// The lines in which two values differ.
fn difference(old: &Value, new: &Value) -> String {
    let [old, new] = [old, new].map(|value| serde_json::to_string_pretty(value).unwrap_or_default());
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let before = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let most = old.len().min(new.len()) - before;
    let after = old.iter().rev().zip(new.iter().rev()).take(most).take_while(|(old, new)| old == new).count();
    let gone = old.get(before..old.len() - after).unwrap_or_default();
    let come = new.get(before..new.len() - after).unwrap_or_default();
    gone.iter()
        .map(|line| format!("-{line}"))
        .chain(come.iter().map(|line| format!("+{line}")))
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn difference_contains_only_changed_lines() {
        let text = difference(&json!({"a": 1, "b": 2, "c": 3}), &json!({"a": 1, "b": 4, "c": 3}));
        assert_eq!(text, "-  \"b\": 2,\n+  \"b\": 4,");
        assert_eq!(difference(&json!([1]), &json!([1, 1])), "+  1,");
    }
}
