//! The controller on localkube and on a real Kubernetes: the same tests on both.
//!
//! | file | what it shows |
//! |---|---|
//! | `metric_types` | growing and shrinking on each of the five types; conditions, events, status |
//! | `golden` | scenarios of one pass that end as in Kubernetes, word for word |
//! | `faults` | an API server that fails in every way it can, seen through a proxy |
//! | `metrics_faults` | metrics APIs that are gone, broken or lie |
//! | `clocks` | clocks that jump |
//! | `restart` | windows and scale events outlive a controller; what its memory costs |
//! | `durations` | the histogram of each metric's computation, beside Kubernetes' own |
//! | `election` | several controllers, the leader killed at any moment |
//! | `takeover` | the history of a leader that was killed, asked from the replica that followed it |
//! | `modes` | shadow, dry run, off; by flag and on one object |
//! | `switch` | from Kubernetes' own controller to ours and back (`make test-switch`) |
//! | `diagnosis` | broken set-ups: the first line of `why` names the cause |
//! | `bad_objects` | objects that make no sense |
//! | `autoscalers` | our own kind |
//! | `supervision` | watch tasks that panic or end, reconciles that panic |
//! | `versions` | a rolling update to another version of the binary and back, under load (`make test-upgrade`) |
//! | `upgrade` | a real control plane of another release under a running controller (`make test-1.37`) |
//!
//! `PLIMSOLL_SOAK=1` (`make soak`) makes the long versions of them.

#![allow(clippy::disallowed_methods, reason = "tests and benches measure with the clock of the machine")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    reason = "tests"
)]

mod autoscalers;
mod bad_objects;
mod clocks;
mod diagnosis;
mod durations;
mod election;
mod env;
mod faults;
mod golden;
mod metric_types;
mod metrics_faults;
mod modes;
mod replica;
mod restart;
#[path = "../deploy/serving.rs"]
#[allow(dead_code, reason = "shared with the tests of deploy/, which use more of it")]
mod serving;
#[path = "../shared/mod.rs"]
#[allow(dead_code, reason = "shared with other test programs, which use more of it")]
mod shared;
mod supervision;
mod switch;
mod takeover;
mod upgrade;
mod versions;
