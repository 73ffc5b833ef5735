//! The metrics server: what is watched, who measures, how all of it fares. Glue, no arithmetic.
//!
//! ```text
//! watches   nodes and running pods into the inventory          needs a client
//! described what a rule may speak of: kinds, names of objects, pods, nodes   needs a client
//! kubelets  scrapes become resource metrics                    needs a client
//! rules     Prometheus becomes custom, external and resource metrics   needs a client
//! server    all of it: checks, report, figures                 pure
//! local     resource metrics for the controller in the same process   pure
//! replicas  who divides the nodes with us                     needs a client
//! check     what must hold for the server to be well           pure
//! ```

pub mod check;
mod described;
pub mod kubelets;
mod local;
mod replicas;
pub mod rules;
mod server;
mod watches;

pub use check::{CheckScope, HealthCheck};
pub use kubelets::Kubelets;
pub use local::LocalResourceMetrics;
pub use rules::Rules;
pub use runtime::exported_metrics::{self, MetricsWriter};
pub use server::{Providers, Sources};
pub use watches::ClusterInventory;
