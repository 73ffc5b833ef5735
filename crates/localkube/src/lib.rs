//! An in-memory Kubernetes API server, small enough to read: what `plimsoll up` will run on and what integration tests
//! talk to.
//!
//! This is its pure floor, on which the HTTP server will stand:
//!
//! ```text
//! store   objects by resource, namespace and name; revisions; what changed since one
//! patch   JSON patch, merge patch, strategic merge patch
//! status  errors with the codes, reasons and texts clients expect
//! ```

pub mod patch;
pub mod status;
pub mod store;
