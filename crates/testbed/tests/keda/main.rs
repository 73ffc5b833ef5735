//! Definitions of KEDA's resources, on localkube and on a real Kubernetes.
//!
//! | file | what it tests |
//! |---|---|
//! | `definitions` | the definitions accept and reject the same objects as KEDA's |
//! | `fields` | the definitions keep every field that KEDA publishes |
//! | `recorded` | the definitions accept the objects of the recordings |
//! | `webhook` | the API servers call our webhook and enforce its verdicts |
//! | `requests` | what these stand on |

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    reason = "tests"
)]

mod definitions;
mod fields;
mod recorded;
mod requests;
mod webhook;
