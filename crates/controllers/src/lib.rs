//! The loops: observe, decide, act, report. Glue, no arithmetic.
//!
//! | loop | what it drives |
//! |---|---|
//! | [`hpa`] | `autoscaling` HorizontalPodAutoscalers and `plimsoll.dev` Autoscalers |

pub mod hpa;
