//! What differs between the API servers of the supported releases of Kubernetes, beside autoscaling, whose differences are in
//! [`api::autoscaling::KubernetesProfile`]. Recorded responses of both are in `tests/vectors/localkube`.

use api::autoscaling::KubernetesVersion;

/// The behavior of the API server of one release, where releases differ.
#[derive(Debug, PartialEq, Eq)]
pub struct ApiServerBehavior {
    /// An error of a built-in kind that two rules find is listed twice in `details.causes`.
    pub repeats_causes: bool,
    /// The text of a patch is checked before anything else: `invalid JSON patch`. Else the error is that of its type.
    pub checks_patch_text: bool,
    /// What an applied configuration that cannot be read is called in errors.
    pub applied_configuration: &'static str,
    /// Stateful sets have `maxUnavailable`, one by default.
    pub stateful_set_max_unavailable: bool,
    /// Each field of a stateful set that cannot change has an error of its own; else there is one of the whole spec.
    pub names_fixed_fields_of_stateful_sets: bool,
    /// A review without or with both kinds of attributes is refused by an error of its spec; else by one of the attributes.
    pub one_error_of_review_attributes: bool,
    /// Tables of resource definitions have columns of their own.
    pub definition_columns: bool,
}

const V1_36: ApiServerBehavior = ApiServerBehavior {
    repeats_causes: true,
    checks_patch_text: false,
    applied_configuration: "YAML",
    stateful_set_max_unavailable: false,
    names_fixed_fields_of_stateful_sets: false,
    one_error_of_review_attributes: false,
    definition_columns: false,
};

const V1_37: ApiServerBehavior = ApiServerBehavior {
    repeats_causes: false,
    checks_patch_text: true,
    applied_configuration: "patch",
    stateful_set_max_unavailable: true,
    names_fixed_fields_of_stateful_sets: true,
    one_error_of_review_attributes: true,
    definition_columns: true,
};

impl ApiServerBehavior {
    /// The behavior of a release.
    pub const fn of(version: KubernetesVersion) -> &'static Self {
        match version {
            KubernetesVersion::V1_36 => &V1_36,
            KubernetesVersion::V1_37 => &V1_37,
        }
    }
}
