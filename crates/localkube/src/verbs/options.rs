//! Validation of write options: field manager, dry run, field validation.

use api::field::FieldError;
use http::Method;

use super::{ApiCall, patch};
use crate::status::Status;

/// The maximum length of a field manager's name.
const MAX_MANAGER_BYTES: usize = 128;

/// Refuses invalid options.
pub(crate) fn check(call: &ApiCall, method: &Method, content_type: &str) -> Result<(), Status> {
    let kind = match *method {
        Method::POST => "CreateOptions",
        Method::PUT => "UpdateOptions",
        Method::PATCH => "PatchOptions",
        _ => return Ok(()),
    };
    let apply = content_type.split(';').next().unwrap_or_default().trim() == patch::APPLY;
    let query = |name: &str| call.query.get(name).unwrap_or_default();
    let mut faults = Vec::new();
    if kind == "PatchOptions" && !apply && call.query.get("force").is_some() {
        faults.push(FieldError::forbidden("force", "may not be specified for non-apply patch"));
    }
    let manager = query("fieldManager");
    if apply && manager.is_empty() {
        faults.push(FieldError::required("fieldManager", "is required for apply patch"));
    }
    if manager.len() > MAX_MANAGER_BYTES {
        faults.push(FieldError::too_long("fieldManager", MAX_MANAGER_BYTES));
    }
    faults.extend(dry_run(query("dryRun")));
    let validation = query("fieldValidation");
    if !matches!(validation, "" | "Ignore" | "Warn" | "Strict") {
        faults.push(FieldError::not_supported(
            "fieldValidation",
            validation,
            &["", "Ignore", "Strict", "Warn"],
        ));
    }
    if faults.is_empty() { Ok(()) } else { Err(ApiCall::invalid_options(kind, &faults)) }
}

/// Error in the value of `dryRun`.
pub(crate) fn dry_run(value: &str) -> Option<FieldError> {
    let wrong = !matches!(value, "" | "All");
    wrong.then(|| FieldError::not_supported("dryRun", api::field::AsJson(&[value]), &["All"]))
}
