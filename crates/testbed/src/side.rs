//! The runtime of simulated servers: its own threads, which outlive the runtimes of tests.

use std::sync::LazyLock;

use tokio::runtime::{Builder, Handle, Runtime};

/// The runtime of everything that is simulated in this process.
pub(crate) fn handle() -> &'static Handle {
    static RUNTIME: LazyLock<Option<Runtime>> = LazyLock::new(|| {
        Builder::new_multi_thread().worker_threads(2).thread_name("simulated").enable_all().build().ok()
    });
    static FALLBACK: LazyLock<Option<Runtime>> =
        LazyLock::new(|| Builder::new_current_thread().enable_all().build().ok());
    match (&*RUNTIME, &*FALLBACK) {
        (Some(runtime), _) | (None, Some(runtime)) => runtime.handle(),
        // A machine that gives no threads gives no tests either.
        (None, None) => std::process::abort(),
    }
}
