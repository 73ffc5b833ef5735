//! What is in `deploy/`, on localkube and on a real Kubernetes. localkube knows no roles: there, only that nothing more is
//! asked for than they grant.
//!
//! | file | what it shows |
//! |---|---|
//! | `definition` | the definition of Autoscaler takes every field, defaults as documented, and refuses nonsense |
//! | `active` | the controller does all it does under its role, and needs all of it |
//! | `shadow` | so does shadow mode, which cannot write status or scale |
//! | `chart` | Helm and both API servers accept the chart, whatever is switched on |
//! | `values` | every value of the chart has an effect |
//! | `guides` | commands of Helm and kubectl in the documentation have flags and values that exist |
//! | `image` | what the Dockerfile names is there |
//! | `manifests`, `account`, `serving`, `full` | what these stand on |

#![allow(clippy::disallowed_methods, reason = "tests and benches measure with the clock of the machine")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    reason = "tests"
)]

mod account;
mod active;
mod chart;
mod definition;
#[path = "../controller/env/mod.rs"]
#[allow(dead_code, unused_imports, reason = "shared with the tests of the controller, which use more of it")]
mod env;
mod full;
mod guides;
mod image;
mod manifests;
mod serving;
mod shadow;
#[path = "../shared/mod.rs"]
#[allow(dead_code, reason = "shared with other test programs, which use more of it")]
mod shared;
mod values;
