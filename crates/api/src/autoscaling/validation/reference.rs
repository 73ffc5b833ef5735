//! Validation of references to other objects.

use crate::autoscaling::v2::CrossVersionObjectReference;
use crate::field::FieldError;
use crate::names;

/// Which `apiVersion`s a reference may have.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReferenceRules {
    /// Any; it is not validated.
    pub(crate) any_api_version: bool,
    /// One with or without a group.
    pub(crate) empty_group: bool,
}

pub(crate) fn reference_faults(
    path: &str,
    reference: &CrossVersionObjectReference,
    rules: ReferenceRules,
) -> Vec<FieldError> {
    let mut faults = Vec::new();
    for (field, value) in [("kind", &reference.kind), ("name", &reference.name)] {
        if value.is_empty() {
            faults.push(FieldError::required(format_args!("{path}.{field}"), ""));
        }
        for wrong in names::path_segment_faults(value) {
            faults.push(FieldError::invalid(format_args!("{path}.{field}"), value, wrong));
        }
    }
    if let Some(wrong) = api_version_fault(reference, rules) {
        faults.push(FieldError::invalid(format_args!("{path}.apiVersion"), &reference.api_version, wrong));
    }
    faults
}

pub(super) fn api_version_fault(
    reference: &CrossVersionObjectReference,
    rules: ReferenceRules,
) -> Option<String> {
    let version = reference.api_version.as_str();
    if rules.any_api_version {
        return None;
    }
    // Without a slash there is no group; a lone slash counts as empty.
    let group = match version.split_once('/') {
        None => "",
        Some((_, rest)) if rest.contains('/') => {
            return Some(format!("unexpected GroupVersion string: {version}"));
        }
        Some((group, _)) => group,
    };
    (group.is_empty() && !rules.empty_group).then(|| "apiVersion must specify API group".to_owned())
}
