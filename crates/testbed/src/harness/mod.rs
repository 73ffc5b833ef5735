//! Tests that are written once and run on both clusters, each in its own namespace.
//!
//! ```text
//! cluster    the real cluster and localkube behind one interface
//! namespace  a namespace, and workloads and autoscalers in it
//! requests   plain requests, and waiting for a condition
//! session    a client that records its requests and the responses
//! watch      events of a watch, one by one
//! transcript recorded requests and responses
//! volatile   values that differ from run to run, and their placeholders
//! compare    two transcripts, field by field
//! recording  transcripts of the real server in a file
//! suite      cases, run on both clusters and compared with the recording
//! ```
//!
//! [`Topic::check`] compares responses; [`on_both`] is for tests with assertions.

mod cluster;
mod compare;
pub mod namespace;
mod recording;
mod requests;
mod session;
mod suite;
mod transcript;
mod volatile;
mod watch;

use std::any::Any;
use std::error::Error;
use std::fmt;
use std::panic::{AssertUnwindSafe, resume_unwind};

use futures::FutureExt;

pub use cluster::{Cluster, LOCAL, REAL, Workloads, connect};
pub use compare::{DELIBERATE, Deliberate, Difference, FieldDifference, compare};
pub use namespace::TestNamespace;
pub use recording::{RECORD_VARIABLE, Recording};
pub use requests::{WAIT_TIMEOUT, eventually, respond, send, until, write};
pub use session::{ApiRequest, ApiResponse, Patch, Payload, Session};
pub use suite::{CASE_VARIABLE, Case, Topic};
pub use transcript::{Exchange, Transcript};
pub use watch::Watch;

/// The message of a failed test on both clusters.
pub struct Failure(String);

/// Runs a test on each cluster in its own namespace; a panic names the cluster.
pub fn on_both<F, T>(test: F) -> Result<(), Failure>
where
    F: Fn(TestNamespace) -> T,
    T: Future<Output = ()>,
{
    on_both_with(Workloads::On, test)
}

/// Runs a test as [`on_both`] does, with or without workload controllers.
pub fn on_both_with<F, T>(workloads: Workloads, test: F) -> Result<(), Failure>
where
    F: Fn(TestNamespace) -> T,
    T: Future<Output = ()>,
{
    block_on(async {
        let local = Cluster::local(workloads).await?;
        for cluster in std::iter::once(local).chain(Cluster::real(workloads).await?) {
            let session = cluster.session("both").await?;
            let result = AssertUnwindSafe(test(cluster.namespace(&session))).catch_unwind().await;
            cluster.delete_namespace(&session).await;
            if let Err(panic) = result {
                eprintln!("on {}: {}", cluster.name, panic_message(panic.as_ref()));
                resume_unwind(panic);
            }
        }
        Ok(())
    })
}

fn block_on<T>(future: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.map_err(|error| Failure::new("failed to start a runtime", &error))?.block_on(future)
}

/// The message of a panic.
fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("a panic")
}

impl Failure {
    fn text(text: String) -> Self {
        Self(text)
    }

    fn new(attempt: &str, error: &dyn Error) -> Self {
        let mut text = format!("{attempt}: {error}");
        let mut source = error.source();
        while let Some(error) = source {
            text += &format!(": {error}");
            source = error.source();
        }
        Self(text)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// `Debug` prints the same text as `Display`, because the test runner prints a failed result with `Debug`.
impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Failure {}
