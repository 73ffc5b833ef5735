//! Converts API objects to engine types and the engine's status back.

mod spec;
mod status;

pub use spec::{spec_of_autoscaler, spec_of_hpa};
pub use status::{current_values, engine_status, hpa_status, same_status, stored_status};
