//! Leases.

use api::field::FieldError;
use serde_json::Value;

use super::faults::Faults;
use super::json::{number, part, remove, tidy};
use super::{NONE, Rules};

/// The rules of leases.
pub const RULES: Rules = Rules { default, validate, validate_update: |new, _| validate(new), ..NONE };

fn default(lease: &mut Value, _version: &str) {
    tidy(lease);
    let spec = part(lease, "spec");
    // Disabled by default in Kubernetes.
    remove(spec, "preferredHolder");
    remove(spec, "strategy");
}

fn validate(lease: &Value) -> Vec<FieldError> {
    let mut faults = Faults::default();
    let path = "spec.leaseDurationSeconds";
    if let Some(seconds) = number(lease, path).filter(|seconds| *seconds <= 0) {
        faults.invalid(path, seconds, "must be greater than 0");
    }
    faults.not_negative("spec.leaseTransitions", number(lease, "spec.leaseTransitions"));
    faults.into()
}
