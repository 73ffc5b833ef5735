//! Shared validation of workloads: selector and template.

use api::field::{AsJson, FieldError};
use api::selector::Selector;
use serde_json::Value;

use crate::rules::faults::{Faults, label_selector, sorted};
use crate::rules::json::{at, has, text};
use crate::rules::pod::validate;

/// Validates the selector of a workload; returns the parsed one. `invalid` is the text for an unparsable selector.
pub(super) fn selector(faults: &mut Faults, spec: &Value, what: &str, invalid: &str) -> Option<Selector> {
    if !has(spec, "selector") {
        faults.required("spec.selector");
        return Some(Selector::nothing());
    }
    let selector = at(spec, "selector");
    faults.selector("spec.selector", selector);
    let read = label_selector(selector);
    if read.match_labels.is_empty() && read.match_expressions.is_empty() && !what.is_empty() {
        faults.invalid("spec.selector", AsJson(&read), format!("empty selector is invalid for {what}"));
    }
    match read.to_selector() {
        Ok(selector) => Some(selector),
        Err(_) => {
            faults.invalid("spec.selector", AsJson(&read), invalid);
            None
        }
    }
}

/// Requires that the selector matches the template's labels.
pub(super) fn selects_template(faults: &mut Faults, spec: &Value, selector: &Selector) {
    let labels = at(spec, "template.metadata.labels");
    if !selector.matches(|key| labels.get(key).and_then(Value::as_str)) {
        faults.invalid(
            "spec.template.metadata.labels",
            AsJson(&sorted(spec, "template.metadata.labels")),
            "`selector` does not match template `labels`",
        );
    }
}

/// Validates a template of pods that run forever.
pub(super) fn lasting_template(faults: &mut Faults, spec: &Value, kind: &str) {
    validate::template(faults, "spec.template", at(spec, "template"));
    faults.one_of("spec.template.spec.restartPolicy", text(spec, "template.spec.restartPolicy"), &["Always"]);
    if has(spec, "template.spec.activeDeadlineSeconds") {
        let detail = format!("activeDeadlineSeconds in {kind} is not Supported");
        faults.forbidden("spec.template.spec.activeDeadlineSeconds", detail);
    }
}

/// The selector is immutable.
pub(super) fn same_selector(faults: &mut Faults, new: &Value, old: &Value) {
    if at(new, "spec.selector") != at(old, "spec.selector") {
        let selector = has(new, "spec.selector").then(|| label_selector(at(new, "spec.selector")));
        faults.invalid("spec.selector", AsJson(&selector), crate::rules::faults::IMMUTABLE);
    }
}

/// `collisionCount` must not decrease.
pub(super) fn collisions(new: &Value, old: &Value) -> Option<FieldError> {
    let count = |object| at(object, "status.collisionCount").as_i64();
    let before = count(old)?;
    let now = count(new).unwrap_or_default();
    (now < before).then(|| FieldError::invalid("status.collisionCount", now, "cannot be decremented"))
}
