#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod bytes;
mod clusters;
mod faults;
mod server;
