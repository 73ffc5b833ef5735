//! The runtime of a process with one main thread, whose worker threads have a lower priority.

use std::io::Result;

use tokio::runtime::{Builder, Runtime};

/// What is added to the nice value of worker threads: on a CPU that both use, a worker gets a tenth of the time of the main thread.
#[cfg(target_os = "linux")]
const WORKER_NICE: i32 = 10;

/// A runtime that runs all tasks on the calling thread. What servers and clients send is decoded on its worker threads. They have a
/// lower priority than this thread and the thread of lease and probes.
pub(crate) fn main_runtime() -> Result<Runtime> {
    Builder::new_current_thread().enable_all().on_thread_start(lower_priority).build()
}

/// Lowers the priority of the calling thread. If the system refuses, the priority does not change.
#[cfg(target_os = "linux")]
fn lower_priority() {
    let _ = rustix::process::nice(WORKER_NICE);
}

/// On other systems a nice value applies to the whole process.
#[cfg(not(target_os = "linux"))]
const fn lower_priority() {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use rustix::process::getpriority_process;

    use super::*;

    #[test]
    fn only_workers_have_a_lower_priority() {
        let own = getpriority_process(None).unwrap();
        let (task, worker) = main_runtime().unwrap().block_on(async {
            let task = tokio::spawn(async { getpriority_process(None).unwrap() });
            let worker = tokio::task::spawn_blocking(|| getpriority_process(None).unwrap());
            (task.await.unwrap(), worker.await.unwrap())
        });
        assert_eq!(task, own);
        // 19 is the lowest priority.
        assert_eq!(worker, (own + WORKER_NICE).min(19));
        assert_eq!(getpriority_process(None).unwrap(), own);
    }
}
