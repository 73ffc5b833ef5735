//! The manifests in `deploy/`, on localkube and on a real Kubernetes. localkube does not enforce roles: there, the tests only check that no
//! request exceeds them.
//!
//! | file | what it tests |
//! |---|---|
//! | `definition` | the definition of Autoscaler accepts every field, has the documented defaults, and rejects invalid objects |
//! | `active` | the controller works with its role, and needs every permission |
//! | `shadow` | shadow mode works with its role, which cannot write status or scale |
//! | `chart` | Helm and both API servers accept the chart in all combinations of roles and modes |
//! | `values` | every value of the chart has an effect |
//! | `conditional` | permissions, ports, definitions and annotations that depend on values |
//! | `one_process` | one process understands the flags of the replaced programs, converted to values |
//! | `guides` | commands of Helm and kubectl in the documentation have flags and values that exist |
//! | `removal` | `helm uninstall` keeps definitions, and deletes the Secrets and Leases that the roles create |
//! | `image` | the files that the Dockerfile names exist |
//! | `release` | the files of a release: archives, chart, manifests, checksums, krew's plugin manifest |
//! | `manifests`, `account`, `serving`, `full` | helpers of these tests |

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
mod conditional;
mod definition;
#[path = "../controller/env/mod.rs"]
#[allow(dead_code, unused_imports, reason = "shared with the tests of the controller, which use more of it")]
mod env;
mod full;
mod guides;
mod image;
mod manifests;
mod one_process;
mod release;
mod removal;
mod serving;
mod shadow;
#[path = "../shared/mod.rs"]
#[allow(dead_code, reason = "shared with other test programs, which use more of it")]
mod shared;
mod values;
