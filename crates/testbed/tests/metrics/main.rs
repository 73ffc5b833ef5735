//! `plimsoll metrics`, the binary, on both clusters: over simulated kubelets, a real Prometheus and a sample application.
//!
//! | file | what it tests |
//! |---|---|
//! | `top` | the output of `kubectl top` |
//! | `urls` | every form of URL, as JSON and as protobuf |
//! | `scaling` | Kubernetes' own HPA controller scales on all kinds of metrics that it serves, and so does ours in one process with it |
//! | `access` | authentication and authorization |
//! | `dashboards` | every query of the chart's dashboards and alerts returns data (`make test-dashboards`) |
//! | `doctor` | the findings of `plimsoll metrics doctor`, with cause and remedy |
//! | `faults` | bad kubelets, a bad Prometheus, a bad configuration |
//! | `roles` | it works under the roles of `deploy/`, and needs all of them |
//! | `arguments` | the server starts with the arguments of the servers that it replaces |
//! | `replicas` | two replicas that share nodes |
//! | `versions` | a rolling update to another version of the binary and back, under load (`make test-upgrade`) |
//! | `switch` | the commands of `plimsoll migrate plan` lead the APIs to another server and back |
//! | `env` | cluster, kubelets and servers of the tests |
//!
//! With `PLIMSOLL_METRICS=peers` most tests run with metrics-server and prometheus-adapter instead, which verifies the tests themselves.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    reason = "tests"
)]

mod access;
mod arguments;
#[path = "../controller/env/controller.rs"]
#[allow(dead_code, reason = "shared with the tests of the controller, which use more of it")]
mod controller;
mod dashboards;
mod doctor;
mod env;
mod faults;
mod replicas;
mod roles;
mod scaling;
#[path = "../shared/mod.rs"]
#[allow(dead_code, reason = "shared with other test programs, which use more of it")]
mod shared;
mod switch;
mod top;
mod urls;
mod versions;
