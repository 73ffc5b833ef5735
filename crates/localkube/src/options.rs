//! What is wrong with the options of a write: its manager, its dry run, its field validation.

use api::field::FieldError;
use http::Method;

use crate::status::Status;
use crate::verbs::{Call, patch};

/// The longest name a manager may have.
const LONGEST_MANAGER: usize = 128;

/// Refuses options that no write can have.
pub(crate) fn check(call: &Call, method: &Method, content_type: &str) -> Result<(), Status> {
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
    if manager.len() > LONGEST_MANAGER {
        faults.push(FieldError::too_long("fieldManager", LONGEST_MANAGER));
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
    if faults.is_empty() { Ok(()) } else { Err(Call::invalid_options(kind, &faults)) }
}

/// What is wrong with the value of a dry run.
pub(crate) fn dry_run(value: &str) -> Option<FieldError> {
    let wrong = !matches!(value, "" | "All");
    wrong.then(|| FieldError::not_supported("dryRun", api::field::AsJson(&[value]), &["All"]))
}
