//! `plimsoll operator`, the binary, on both clusters, under the roles of `deploy/operator`, by kubectl.
//!
//! | file | what it tests |
//! |---|---|
//! | `arguments` | it starts as KEDA's own Deployment starts KEDA, and works under its roles |
//! | `adapter` | KEDA's own metrics adapter queries it |
//! | `replicas` | two replicas: one certificate, renewed while they run; both serve, one leads |
//! | `exported_metrics` | health and exported metrics without TLS, and every metric of KEDA |
//! | `life` | a ScaledObject from its creation to its deletion, with an HPA that Kubernetes' own controller acts on |
//! | `pauses` | all forms of pauses |
//! | `sources` | fallback while a source fails, and its recovery; a real Prometheus |
//! | `edits` | edits reach the HPA |
//! | `direct` | the same without an HPA, and the change between both modes |
//! | `jobs` | ScaledJobs |
//! | `admission` | invalid objects are refused |
//! | `diagnosis` | broken set-ups: the first line of `why` names the cause |
//! | `failures` | deleted secrets, sources that hang, a process that is killed |
//! | `faults` | faults of the API server, leaders that are killed, delayed writes, a clock that is set |
//! | `vault` | a secret of HashiCorp Vault, by both logins |
//! | `supervision` | watches, reconciles and polls that die are reported and restarted; the others go on |
//! | `migrate` | `plimsoll migrate` names broken objects, and its plan stops and starts KEDA |
//! | `switch` | objects that KEDA left behind are adopted unchanged; a switch from KEDA and back under load (`make differential-keda`) |
//! | `versions` | a rolling update to another version of the binary and back, under load (`make test-upgrade`) |
//! | `roles` | it works under its roles, and needs all of them |
//! | `env` | cluster, sources and operators of the tests |

#![allow(clippy::disallowed_methods, reason = "tests and benches measure with the clock of the machine")]
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
mod diagnosis;
mod direct;
mod edits;
mod env;
mod exported_metrics;
mod failures;
mod faults;
mod jobs;
mod life;
mod migrate;
mod pauses;
mod replicas;
mod roles;
#[path = "../shared/mod.rs"]
#[allow(dead_code, reason = "shared with other test programs, which use more of it")]
mod shared;
mod sources;
mod stopped;
mod supervision;
mod switch;
mod vault;
mod versions;
