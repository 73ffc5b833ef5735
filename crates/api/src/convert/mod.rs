//! Where wire objects become the engine's types, and its status becomes wire again. After this nothing can be missing.

mod spec;
mod status;

pub use spec::{spec_of_autoscaler, spec_of_hpa};
pub use status::{engine_status, hpa_status, same_status, stored_status};
