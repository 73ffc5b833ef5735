//! A thread of its own for probes, so that work on the other threads of a process does not delay them.

use std::thread::JoinHandle;

use cluster::lease::Heartbeat;
use http::Request;
use serve::{Body, Route, response};
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tower::{ServiceExt as _, service_fn};

use crate::failure::Failure;

/// Where probes are answered.
#[derive(Clone)]
pub(crate) struct ProbeRuntime {
    /// The runtime of the thread.
    pub(crate) handle: Handle,
    /// Beats of the runtime that does the work; none where there is only one runtime.
    pub(crate) heartbeat: Option<Heartbeat>,
}

/// The thread; it ends when this is dropped.
pub(crate) struct ProbeThread {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ProbeRuntime {
    /// The runtime of the caller: for `plimsoll up`, where all roles share a process.
    #[cfg_attr(not(feature = "desk"), allow(dead_code))]
    pub(crate) fn same_thread() -> Self {
        Self { handle: Handle::current(), heartbeat: None }
    }

    /// Whether the runtime that does the work makes progress.
    pub(crate) fn is_beating(&self) -> bool {
        self.heartbeat.as_ref().is_none_or(Heartbeat::is_beating)
    }

    /// Runs a future on the thread, such as the start of a listener, whose tasks then run there too.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        future: impl Future<Output = Result<T, Failure>> + Send + 'static,
    ) -> Result<T, Failure> {
        let done = self.handle.spawn(future).await;
        done.unwrap_or_else(|error| Err(Failure::Outside(format!("the thread of probes ended: {error}"))))
    }
}

impl ProbeThread {
    /// Starts the thread. The calling runtime beats from now on.
    pub(crate) fn start(name: &str) -> Result<(Self, ProbeRuntime), Failure> {
        let (stop, stopped) = oneshot::channel::<()>();
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            runtime.block_on(async {
                let _ = stopped.await;
            });
        })?;
        let heartbeat = Heartbeat::default();
        tokio::spawn(heartbeat.clone().run());
        let owner = Self { stop: Some(stop), thread: Some(thread) };
        Ok((owner, ProbeRuntime { handle, heartbeat: Some(heartbeat) }))
    }
}

impl Drop for ProbeThread {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A route whose work is done on this runtime, although its listener runs on another: the thread of the listener stays free for
/// probes.
pub(crate) fn on_runtime(route: Route, runtime: &Handle) -> Route {
    let runtime = runtime.clone();
    Route::new(service_fn(move |request: Request<Body>| {
        let (route, runtime) = (route.clone(), runtime.clone());
        async move {
            // A task without a waiting caller is aborted with its set: the client has gone.
            let mut task = JoinSet::new();
            task.spawn_on(route.oneshot(request), &runtime);
            match task.join_next().await {
                Some(Ok(answer)) => answer,
                _ => Ok(response::text(500, "the request could not be answered\n")),
            }
        }
    }))
}
