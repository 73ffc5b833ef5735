//! An in-memory Kubernetes API server, small enough to read: what `plimsoll up` will run on and what integration tests
//! talk to.
//!
//! This is its pure floor, on which the HTTP server will stand:
//!
//! ```text
//! kinds   the table of what is served
//! request what a path and a query ask for
//! store   objects by resource, namespace and name; revisions; what changed since one
//! patch   JSON patch, merge patch, strategic merge patch
//! status  errors with the codes, reasons and texts clients expect
//! ```

pub mod kinds;
pub mod patch;
pub mod request;
pub mod status;
pub mod store;
