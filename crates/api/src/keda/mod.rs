//! KEDA's resources: `keda.sh/v1alpha1` and `eventing.keda.sh/v1alpha1`, as KEDA 2.20 serves and stores them.

pub mod annotations;
mod authentication;
mod cloud_events;
mod conditions;
mod scaled_job;
mod scaled_object;
mod trigger;

pub use authentication::*;
pub use cloud_events::*;
pub use conditions::{Condition, ConditionStatus, Conditions, types};
pub use scaled_job::*;
pub use scaled_object::*;
pub use trigger::{AuthenticationRef, Trigger};

/// The group of all but cloud event sources.
pub const GROUP: &str = "keda.sh";
/// The group of cloud event sources.
pub const EVENTING_GROUP: &str = "eventing.keda.sh";
/// Group and version of all but cloud event sources.
pub const API_VERSION: &str = "keda.sh/v1alpha1";
/// Group and version of cloud event sources.
pub const EVENTING_API_VERSION: &str = "eventing.keda.sh/v1alpha1";
/// Who holds an object until we have cleaned up behind it.
pub const FINALIZER: &str = "finalizer.keda.sh";
/// The release whose behaviour this is; it stands in labels.
pub const VERSION: &str = "2.20.2";
/// The name of the metric that a formula makes of the others.
pub const COMPOSITE_METRIC: &str = "composite-metric";
