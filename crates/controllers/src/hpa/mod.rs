//! The HPA controller: every autoscaler once per period, from what is watched to what is written.
//!
//! ```text
//! run        the loop: changes come in, passes go out when they are due        needs a client
//! store      what was watched: autoscalers, pods, targets                      pure
//! pass       one pass, step by step                                            needs a client
//!   observe    scale, pods, samples                                            needs a client
//!   (decide)   engine::State::step                                             pure
//!   act        the scale write, at the edge: only a leader writes              needs a client
//!   report     status and events, only where they changed                      needs a client
//! recall     what survives a restart, and where it is kept                     pure
//! shadow     comparison with the controller that acts                          pure
//! records    the last decisions of each autoscaler
//! metrics    what Prometheus sees
//! settings   flags and configuration file, resolved
//! ```

mod act;
mod autoscaler;
pub mod exported_metrics;
mod observe;
mod persisted_state;
mod reconcile;
pub mod records;
mod report;
mod run;
pub mod settings;
pub mod shadow;
mod store;
mod watches;

pub use records::Records;
pub use run::{HpaController, HpaControllerHandle, HpaControllerParts};
pub use runtime::work_queue::GROUP_SHARE_OF_PERIOD;
pub use settings::HpaSettings;
