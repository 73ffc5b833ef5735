//! The runtime of every controller in this workspace. It knows neither autoscaling nor a Kubernetes client.
//!
//! ```text
//! clock             wall clock and steady clock, injected
//! store             watch events and ObjectStore: objects of one kind, applied synchronously
//! reflector         list-and-watch into a store; supervised: restarted with backoff when it ends or panics
//! work_queue        keys with due times, spread over their period
//! reconcile_loop    reconciles under way; a panic is caught and the key is retried with backoff
//! leader            whether this process holds the lease
//! health            liveness of a loop and health of watches, for /livez and /readyz
//! heartbeat         whether the main thread makes progress, for the threads that renew the lease and answer probes
//! single_flight     one request under way per key, shared by all callers
//! exported_metrics  metrics in the text format of Prometheus
//! build_info        version and git revision of the program
//! fault             faults that tests inject
//! ```

mod backoff;
pub mod build_info;
pub mod clock;
pub mod exported_metrics;
pub mod fault;
pub mod health;
pub mod heartbeat;
pub mod leader;
pub mod reconcile_loop;
pub mod reflector;
pub mod single_flight;
pub mod store;
pub mod work_queue;

use std::any::Any;

pub use clock::{Clock, SteadyClock};
pub use fault::{FaultInjector, WatchFault};
pub use health::{CheckFailure, Liveness, WatchCondition, WatchHealth};
pub use heartbeat::Heartbeat;
pub use leader::Leadership;
pub use reconcile_loop::{ReconcileResult, Reconciles};
pub use reflector::{Reflectors, WatchSet};
pub use single_flight::SingleFlight;
pub use store::{ObjectKey, ObjectStore, StoreChange, Versioned, WatchEvent};
pub use work_queue::WorkQueue;

/// The text of a panic, as far as it has one.
pub fn panic_text(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "unknown panic".to_owned())
}
