//! KEDA's resources: `keda.sh/v1alpha1` and `eventing.keda.sh/v1alpha1`, as KEDA 2.20 and 2.21 serve and store them.

pub mod annotations;
mod authentication;
mod behavior;
mod cloud_events;
mod conditions;
mod credential_refs;
mod profile;
mod scaled_job;
mod scaled_object;
mod secret_managers;
mod trigger;

pub use authentication::*;
pub use behavior::{AdmissionBehavior, KedaBehavior, OperatorBehavior, ReplicaWarnings, TriggerBehavior};
pub use cloud_events::*;
pub use conditions::{Condition, ConditionStatus, Conditions, types};
pub use credential_refs::*;
pub use profile::{KedaProfile, UnknownProfile};
pub use scaled_job::*;
pub use scaled_object::*;
pub use secret_managers::*;
pub use trigger::{AuthenticationRef, Trigger};

/// The group of all but cloud event sources.
pub const GROUP: &str = "keda.sh";
/// The group of cloud event sources.
pub const EVENTING_GROUP: &str = "eventing.keda.sh";
/// Group and version of all but cloud event sources.
pub const API_VERSION: &str = "keda.sh/v1alpha1";
/// The finalizer, which keeps an object until it has been cleaned up.
pub const FINALIZER: &str = "finalizer.keda.sh";
/// The KEDA release of the default profile.
pub const VERSION: &str = "2.20.2";
/// Name of the metric that a formula computes.
pub const COMPOSITE_METRIC: &str = "composite-metric";
