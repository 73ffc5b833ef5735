//! The control loops. Each observes, decides, acts and reports; decisions are computed by `engine` and `keda`, not here.
//!
//! | loop | what it drives |
//! |---|---|
//! | [`hpa`] | `autoscaling` HorizontalPodAutoscalers and `plimsoll.dev` Autoscalers |
//! | [`metrics`] | the numbers behind `metrics.k8s.io`, `custom.metrics.k8s.io` and `external.metrics.k8s.io` |
//! | [`operator`] | KEDA's ScaledObjects and ScaledJobs |

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests may read the clock of the machine"))]

pub mod hpa;
pub mod metrics;
pub mod operator;

#[cfg(test)]
mod faulty_client;
