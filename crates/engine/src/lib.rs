//! The pure core of Plimsoll: an [`Observation`] goes in, a [`Decision`] comes out.
//!
//! ```text
//! Observation ─► Evaluation ─► Recommendation ─► Normalized ─► scale write ─► status
//! observe        evaluate      recommend         normalize     act           report
//! ```
//!
//! Nothing here uses a clock, a network or a Kubernetes client: time is an argument, the scale write is a value that
//! the caller carries out ([`act`]), and everything that is kept between steps is in [`State`], which can be saved and
//! loaded. The live controller and the simulator call the same [`State::step`].

pub mod act;
pub mod activation;
mod activation_step;
pub mod config;
mod course;
pub mod decision;
mod detail;
mod error;
pub mod evaluate;
pub mod explain;
pub mod failure;
mod float;
pub mod nanoseconds;
pub mod normalize;
pub mod observe;
pub mod pod;
pub mod profile;
pub mod provenance;
pub mod recommend;
pub mod report;
mod request_failure;
pub mod settle;
pub mod snapshot;
pub mod spec;
pub mod state;
pub mod step;
pub mod trigger_poll;
mod units;

pub use activation::{Activation, ActivationVerdict};
pub use config::{ControllerConfig, Gates};
pub use decision::{Course, Decision, ScaleOutcome};
pub use error::RecordedError;
pub use failure::{FailureCause, RequestFailure};
pub use observe::{MetricSamples, Observation, PodSamples, PodSelection, Sample, Scale, ScaleReadError};
pub use pod::{Pod, PodPhase, PodTemplate};
pub use profile::{KubernetesProfile, KubernetesVersion};
pub use provenance::Provenance;
pub use report::{Condition, Event, Status};
pub use settle::ScaleWriteResult;
pub use snapshot::StateSnapshot;
pub use spec::Spec;
pub use state::State;
pub use step::DecisionDetail;
pub use trigger_poll::TriggerPoll;
pub use units::{MilliValue, Replicas};

/// Text that is usually static and sometimes made at run time.
pub type CowStr = std::borrow::Cow<'static, str>;
