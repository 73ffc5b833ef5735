//! Events.

use api::field::FieldError;
use api::names::{label_key_faults, path_segment_faults};
use serde_json::Value;

use super::faults::Faults;
use super::json::{fill, has, part, text, tidy};
use super::{NONE, Rules};

/// The rules of events.
pub const RULES: Rules =
    Rules { default, validate, validate_update: |new, _| validate(new), name: path_segment_faults, ..NONE };

fn default(event: &mut Value, _version: &str) {
    tidy(event);
    part(event, "involvedObject");
    part(event, "source");
    for time in ["firstTimestamp", "lastTimestamp", "eventTime"] {
        fill(event, time, Value::Null);
    }
    fill(event, "reportingComponent", "");
    fill(event, "reportingInstance", "");
}

fn validate(event: &Value) -> Vec<FieldError> {
    let mut faults = Faults::default();
    let namespace = text(event, "involvedObject.namespace");
    // Events of cluster-scoped objects are in the namespace `default`.
    let fits = match text(event, "metadata.namespace") {
        "default" => namespace.is_empty() || namespace == "default",
        other => namespace == other,
    };
    if !fits {
        faults.invalid("involvedObject.namespace", namespace, "does not match event.namespace");
    }
    if has(event, "eventTime") {
        new_style(&mut faults, event);
    }
    faults.into()
}

/// Checks events of the newer form, which have `eventTime`.
fn new_style(faults: &mut Faults, event: &Value) {
    let component = text(event, "reportingComponent");
    faults.present("reportingComponent", component);
    faults.follows("reportingComponent", component, label_key_faults);
    for (field, limit) in [("reportingInstance", 128), ("action", 128), ("reason", 128)] {
        if faults.present(field, text(event, field)) {
            short(faults, event, field, limit);
        }
    }
    short(faults, event, "message", 1024);
}

fn short(faults: &mut Faults, event: &Value, field: &str, limit: usize) {
    if text(event, field).len() > limit {
        faults.invalid(field, "", format!("can have at most {limit} characters"));
    }
}
