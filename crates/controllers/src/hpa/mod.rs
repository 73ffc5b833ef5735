//! The HPA controller: reconciles every autoscaler once per period.
//!
//! ```text
//! run               the loop: takes keys from the work queue when they are due     needs a client
//! watches           reflectors of autoscalers, pods and targets                    needs a client
//! store             watched autoscalers, pods and targets                          pure
//! reconcile         one reconcile, step by step                                    needs a client
//!   observe           scale, pods, samples                                         needs a client
//!   (decide)          engine::State::step                                          pure
//!   act               the scale write; only a leader writes                        needs a client
//!   report            status and events, only where they changed                   needs a client
//! profile           the release of Kubernetes to reproduce                         needs a client
//! release           follows the release of the API server                          needs a client
//! consistency       skips autoscalers older than our own status write              pure
//! persisted_state   state that survives a restart, in an annotation                pure
//! shadow            comparison with the decisions of the acting controller         pure
//! records           the last decisions of each autoscaler
//! exported_metrics  metrics for Prometheus
//! settings          flags and configuration file, resolved
//! ```

mod act;
mod autoscaler;
mod consistency;
pub mod exported_metrics;
mod observe;
mod persisted_state;
mod profile;
mod reconcile;
pub mod records;
mod release;
mod report;
mod run;
pub mod settings;
pub mod shadow;
mod store;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod upgrade_tests;
mod watches;

pub use profile::{ProfileChoice, UnknownProfileChoice};
pub use records::Records;
pub use run::{HpaController, HpaControllerHandle, HpaControllerParts};
pub use runtime::work_queue::GROUP_SHARE_OF_PERIOD;
pub use settings::HpaSettings;
pub use watches::{ApplyPodEvent, PodObserver};
