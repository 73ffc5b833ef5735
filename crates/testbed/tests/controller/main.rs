//! The controller on localkube and on a real Kubernetes: the same tests on both.
//!
//! | file | what it tests |
//! |---|---|
//! | `metric_types` | scaling up and down on each of the five metric types; conditions, events, status |
//! | `golden` | scenarios of one pass with exactly the status and events of Kubernetes |
//! | `faults` | faults of the API server, injected by a proxy |
//! | `metrics_faults` | metrics APIs that are missing, broken or return absurd values |
//! | `clocks` | stabilization windows when the clock is set |
//! | `restart` | windows and scale events survive a restart of the controller; the writes that this costs |
//! | `durations` | the histogram of each metric's computation time, compared with Kubernetes' own |
//! | `election` | leader election of several controllers, whose leader is killed at random times |
//! | `takeover` | the history of a killed leader, read from the replica that took over |
//! | `modes` | the modes shadow, dry run and off, by flag and by annotation |
//! | `switch` | from Kubernetes' own controller to ours and back (`make test-switch`) |
//! | `diagnosis` | broken set-ups: the first line of `why` names the cause |
//! | `bad_objects` | invalid objects |
//! | `autoscalers` | our own kind `Autoscaler` |
//! | `supervision` | watch tasks that panic or end, reconciles that panic |
//! | `versions` | a rolling update to another version of the binary and back, under load (`make test-upgrade`) |
//! | `upgrade` | a real control plane of another release under a running controller (`make test-1.37`) |
//!
//! `PLIMSOLL_SOAK=1` (`make soak`) runs the long versions of the tests.

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
