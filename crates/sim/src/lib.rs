//! Virtual time, workload and load models: the engine without a cluster.
//!
//! A [`Scenario`] is read from ordinary Kubernetes manifests and a `Scenario` document; a [`Simulation`] runs it, and
//! every decision in it is made by [`engine::State::step`], the same function that the live controller calls. The same
//! files give the same run, bit for bit.
//!
//! ```text
//! files ─► Scenario ─► Simulation ──► Summary
//!          scenario    workload (pods, work, measurements)
//!                      inputs   (what metrics APIs would answer)
//!                      engine   (what the autoscaler decides)
//!                         └─► Observer: Recording, Capture, …
//! ```

pub mod inputs;
pub mod load;
pub mod observer;
pub mod random;
pub mod recording;
pub mod replay;
pub mod report;
pub mod scenario;
pub mod simulation;
pub mod summary;
pub mod time;
pub mod workload;

pub use observer::{DecisionCapture, DueDecision, NullObserver, Observer, WorkloadSample};
pub use recording::Recording;
pub use scenario::{Files, Scenario};
pub use simulation::Simulation;
pub use summary::{AutoscalerSummary, Summary};
pub use time::Millis;
pub use workload::WorkloadSummary;
