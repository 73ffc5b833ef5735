//! The pure core of Plimsoll: what was observed goes in, a [`Decision`] comes out.
//!
//! ```text
//! Observation ─► Evaluation ─► Recommendation ─► Normalized ─► effect ─► report
//! observe        evaluate      recommend         normalize     act       report
//! ```
//!
//! Nothing here knows a clock, a network or a Kubernetes client: time is an argument, the scale write is a value that
//! somebody else carries out ([`act`]), and everything that must be remembered between steps is in [`State`], which can
//! be saved and loaded. The live controller and the simulator call the same [`State::step`].

pub mod act;
pub mod activation;
pub mod config;
pub mod decision;
pub mod evaluate;
pub mod explain;
mod float;
pub mod memory;
pub mod normalize;
pub mod observe;
pub mod pod;
pub mod recommend;
pub mod report;
pub mod round;
pub mod settle;
pub mod spec;
pub mod state;
pub mod step;

pub use activation::{Activation, ActivationVerdict};
pub use config::{ControllerConfig, Gates};
pub use decision::{Course, Decision, ScaleOutcome};
pub use memory::StateSnapshot;
pub use observe::{MetricSamples, Observation, PodSamples, PodSelection, Sample, Scale, ScaleReadError};
pub use pod::{Pod, PodPhase, PodTemplate};
pub use report::{Condition, Event, Status};
pub use round::TriggerPoll;
pub use settle::ScaleWriteResult;
pub use spec::Spec;
pub use state::State;
pub use step::DecisionDetail;

/// Text that is usually one of ours (static) and sometimes a user's.
pub type CowStr = std::borrow::Cow<'static, str>;
