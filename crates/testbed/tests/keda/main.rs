//! KEDA's resources, on localkube and on a real Kubernetes.
//!
//! | file | what it shows |
//! |---|---|
//! | `definitions` | the definitions take what KEDA's take, and refuse what they refuse |
//! | `fields` | they keep every field that KEDA publishes |
//! | `recorded` | so do objects of the recordings |
//! | `webhook` | the API servers ask our admission and heed it |
//! | `asking` | what these stand on |

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    reason = "tests"
)]

mod asking;
mod definitions;
mod fields;
mod recorded;
mod webhook;
