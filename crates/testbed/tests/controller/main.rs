//! The controller on localkube and on a real Kubernetes: the same tests on both.
//!
//! | file | what it shows |
//! |---|---|
//! | `metric_types` | growing and shrinking on each of the five types; conditions, events, status |

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    reason = "tests"
)]

mod ground;
mod metric_types;
