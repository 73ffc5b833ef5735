//! The operator: ScaledObjects and ScaledJobs, from what is watched to what is written.
//!
//! ```text
//! run        the loop: changes come in, turns go out when they are due           needs a client
//! wheel      when each object is due, and how many turns run at once             pure
//! world      what was watched                                                    pure
//! watches    what fills the world                                                needs a client
//! round      one turn of one object: reconcile if asked for, then poll           needs a client
//!   reconcile  the object as it is meant: target, HPA, conditions                needs a client
//!   poll       what its sources say, and what follows from it                    needs a client
//!   direct     the same without an HPA                                           needs a client
//! triggers   the built scalers of each object, and what they last said
//! auth       what a TriggerAuthentication gives; reader: what that is read from  needs a client
//! answer     external metrics for whoever asks
//! ears       whoever wants to hear every value as it is read
//! admission  which writes are refused                                           needs a client
//! eyes       what is looked up: counts, pods, endpoints                          needs a client
//! hand       what is written, at the edge: only a leader writes                  needs a client
//! record     what was decided, for people who ask why
//! core       what all of these share
//! tell       events for people; cloud_events for programs
//! figures    what Prometheus sees
//! settings   flags and environment, resolved
//! ```

mod admission;
mod answer;
pub mod auth;
mod cloud_events;
mod core;
mod direct;
mod ears;
mod eyes;
mod figures;
mod hand;
pub mod id;
mod poll;
mod reader;
mod reconcile;
mod record;
mod round;
mod run;
pub mod settings;
mod tell;
#[cfg(test)]
mod tests;
mod triggers;
mod watches;
pub mod wheel;
mod world;

pub use admission::Admission;
pub use ears::{Asker, Listener, Overheard};
pub use eyes::of_cluster;
pub use run::{Handle, Operator, Parts};
pub use settings::{Act, Settings};
pub use triggers::Build;
