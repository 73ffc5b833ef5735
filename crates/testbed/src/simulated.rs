//! Simulated servers, and their runtime. It has its own threads, because the servers outlive the runtimes of tests.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::LazyLock;

use http::{Request, Response};
use hyper::body::{Body, Incoming};
use localkube::listen;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::AbortHandle;

use crate::error::{Attempt as _, Error};

/// A simulated server on a free port of this machine; it ends when it is dropped.
pub(crate) struct SimulatedServer {
    pub(crate) port: u16,
    task: AbortHandle,
}

impl SimulatedServer {
    /// Serves every connection; `what` names the server in errors.
    pub(crate) fn start<F>(
        what: &str,
        serve: impl Fn(TcpStream) -> F + Send + Sync + 'static,
    ) -> Result<Self, Error>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let failed = || format!("listen for {what}");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).attempt(failed)?;
        let port = listener.local_addr().attempt(failed)?.port();
        listener.set_nonblocking(true).attempt(failed)?;
        let _inside = handle().enter();
        let listener = tokio::net::TcpListener::from_std(listener).attempt(failed)?;
        let task = tokio::spawn(async move { listen::accept(listener, serve).await });
        Ok(Self { port, task: task.abort_handle() })
    }

    /// Serves HTTP without TLS.
    pub(crate) fn start_http<F, R, B>(what: &str, answer: F) -> Result<Self, Error>
    where
        F: Fn(Request<Incoming>) -> R + Clone + Send + Sync + 'static,
        R: Future<Output = Response<B>> + Send + 'static,
        B: Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        Self::start(what, move |stream| listen::serve_http(stream, answer.clone()))
    }
}

impl Drop for SimulatedServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The runtime of all simulated servers of this process.
pub(crate) fn handle() -> &'static Handle {
    static RUNTIME: LazyLock<Option<Runtime>> = LazyLock::new(|| {
        Builder::new_multi_thread().worker_threads(2).thread_name("simulated").enable_all().build().ok()
    });
    static FALLBACK: LazyLock<Option<Runtime>> =
        LazyLock::new(|| Builder::new_current_thread().enable_all().build().ok());
    match (&*RUNTIME, &*FALLBACK) {
        (Some(runtime), _) | (None, Some(runtime)) => runtime.handle(),
        // A runtime that cannot be started fails all tests, so this panics.
        (None, None) => std::process::abort(),
    }
}
