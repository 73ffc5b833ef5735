//! `plimsoll operator`, the binary, on both clusters, under the roles of `deploy/operator`, by kubectl.
//!
//! | file | what it shows |
//! |---|---|
//! | `arguments` | it starts as KEDA's own Deployment starts KEDA, and works under its roles |
//! | `adapter` | KEDA's own metrics adapter asks it |
//! | `replicas` | two of them: one certificate, renewed while they run; both answer, one acts |
//! | `figures` | health and figures in the open, and every figure of KEDA |
//! | `life` | a ScaledObject from its creation to its end, through an HPA that Kubernetes' own controller acts on |
//! | `pauses` | all forms of pauses |
//! | `sources` | fallback while a source is dead, and its return; a real Prometheus |
//! | `edits` | what is edited reaches the HPA |
//! | `direct` | the same life without an HPA, and the way there and back |
//! | `jobs` | ScaledJobs |
//! | `admission` | objects that make no sense are refused |
//! | `trouble` | secrets that vanish, sources that hang, a process that is killed |
//! | `vault` | a secret of HashiCorp Vault, by both logins |
//! | `switch` | what KEDA left behind is taken over as it is |
//! | `roles` | it works under its roles, and needs all of them |
//! | `env` | what these stand on |

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    reason = "tests"
)]

mod adapter;
mod admission;
mod arguments;
mod direct;
mod edits;
mod env;
mod figures;
mod jobs;
mod life;
mod pauses;
mod replicas;
mod roles;
#[path = "../shared/mod.rs"]
#[allow(dead_code, reason = "shared with other test programs, which use more of it")]
mod shared;
mod sources;
mod switch;
mod trouble;
mod vault;
