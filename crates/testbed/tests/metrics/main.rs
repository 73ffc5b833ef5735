//! `plimsoll metrics`, the binary, on both clusters: over simulated kubelets, a real Prometheus and a sample application.
//!
//! | file | what it shows |
//! |---|---|
//! | `top` | what kubectl prints of it |
//! | `urls` | every form of address, as JSON and as protobuf |
//! | `scaling` | Kubernetes' own HPA controller scales on all kinds of metrics that it serves, and so does ours in one process with it |
//! | `access` | who may read, and who is not believed |
//! | `dashboards` | every query of the chart's dashboards and alerts returns data (`make test-dashboards`) |
//! | `doctor` | what is wrong, in words, with cause and remedy |
//! | `faults` | bad kubelets, a bad Prometheus, a bad configuration |
//! | `roles` | it works under the roles of `deploy/`, and needs all of them |
//! | `arguments` | the arguments of those it replaces start it |
//! | `replicas` | two that share nodes |
//! | `switch` | the commands of `plimsoll migrate plan` lead the APIs to another server and back |
//! | `env` | what these stand on |
//!
//! With `PLIMSOLL_METRICS=peers` the tests run over metrics-server and prometheus-adapter instead, where that makes sense:
//! that is how the tests themselves are tested.

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
