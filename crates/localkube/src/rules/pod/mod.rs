//! Pods and pod templates.

mod admission;
mod container;
pub(super) mod defaults;
mod placement;
mod probe;
mod quality;
mod resources;
mod update;
pub(super) mod validate;
mod volumes;

use super::{NONE, Rules, json};

/// The rules of pods.
pub const RULES: Rules = Rules {
    default: |pod, _| {
        json::tidy(pod);
        defaults::pod(pod);
    },
    create: admission::admit,
    update: update::prepare,
    validate: validate::new_pod,
    validate_update: update::validate,
    validate_status: validate::status,
    ..NONE
};
