//! The environments that tests share on each of the two clusters, and running a test on both clusters at the same time.

use std::panic::resume_unwind;
use std::sync::LazyLock;

use testbed::harness::{Cluster, Failure, Workloads};
use tokio::runtime::Runtime;
use tokio::sync::OnceCell;

/// One runtime for all tests, because what environments hold must outlive each test.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
});

/// The environment of each cluster, which the first test creates; none if the cluster is not available.
pub(crate) struct Environments<S> {
    real: OnceCell<Option<S>>,
    local: OnceCell<Option<S>>,
}

impl<S> Environments<S> {
    pub(crate) const fn new() -> Self {
        Self { real: OnceCell::const_new(), local: OnceCell::const_new() }
    }

    /// The environment of the real cluster or of localkube. `Cluster::real` reports a real cluster that cannot be built.
    pub(crate) async fn of(
        &self,
        real: bool,
        workloads: Workloads,
        make: impl AsyncFnOnce(Cluster) -> Option<S>,
    ) -> Result<Option<&S>, Failure> {
        let made = async || -> Result<Option<S>, Failure> {
            let cluster =
                if real { Cluster::real(workloads).await? } else { Some(Cluster::local(workloads).await?) };
            match cluster {
                Some(cluster) => Ok(make(cluster).await),
                None => Ok(None),
            }
        };
        let cell = if real { &self.real } else { &self.local };
        Ok(cell.get_or_try_init(made).await?.as_ref())
    }
}

/// Runs a test on both clusters at the same time, because tests mostly wait. `run` gets whether its cluster is the real one.
pub(crate) fn side_by_side<T>(run: impl Fn(bool) -> T + Sync) -> Result<(), Failure>
where
    T: Future<Output = Result<(), Failure>>,
{
    let run = &run;
    std::thread::scope(|scope| {
        let ended = [true, false].map(|real| scope.spawn(move || on_one(run(real))));
        let ended = ended.map(std::thread::ScopedJoinHandle::join);
        ended.into_iter().try_for_each(|ended| ended.unwrap_or_else(|panic| resume_unwind(panic)))
    })
}

/// Runs a test on one cluster.
pub(crate) fn on_one<T>(run: impl Future<Output = T>) -> T {
    RUNTIME.block_on(run)
}
