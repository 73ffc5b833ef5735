//! One way to ask others over HTTP: TLS, tokens that are read again, time and size always limited.
//!
//! ```text
//! endpoint   where a server is and how it wants to be asked
//! trust      certificates and authorities, from files that may change
//! client     sends, once, within a time and a size
//! error      what went wrong, in one sentence, and what to do about it
//! ```
//!
//! Redirects are not followed and no proxy is used: credentials go where they were meant to go, or nowhere.

mod client;
mod endpoint;
mod error;
#[cfg(test)]
pub(crate) mod tests;
mod trust;

pub use client::{Ask, Client, Response, Streamed};
pub use endpoint::{Auth, Endpoint, Secret};
pub use error::{Cause, Error};
