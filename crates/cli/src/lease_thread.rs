//! A thread of its own for the renewal of the lease and for probes, so that work on the main thread delays neither.

use std::thread::JoinHandle;

use cluster::connect::{ConnectTarget, Connection, connect};
use cluster::lease::Heartbeat;
use kube::Client;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

use crate::failure::Failure;

/// Where the lease is renewed and probes are answered.
#[derive(Clone)]
pub(crate) struct LeaseRuntime {
    /// The runtime of the thread.
    pub(crate) handle: Handle,
    /// A client whose connections belong to that runtime.
    pub(crate) client: Client,
    /// Beats of the main thread; none where there is only one thread.
    pub(crate) heartbeat: Option<Heartbeat>,
}

/// The thread; it ends when this is dropped.
pub(crate) struct LeaseThread {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl LeaseRuntime {
    /// The thread of the caller: for `plimsoll up`, where all roles share a process.
    #[cfg_attr(not(feature = "desk"), allow(dead_code))]
    pub(crate) fn same_thread(connection: &Connection) -> Self {
        Self { handle: Handle::current(), client: connection.client.clone(), heartbeat: None }
    }

    /// Whether the main thread makes progress.
    pub(crate) fn is_beating(&self) -> bool {
        self.heartbeat.as_ref().is_none_or(Heartbeat::is_beating)
    }

    /// Runs a future on the thread, such as the start of a listener, whose tasks then run there too.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        future: impl Future<Output = Result<T, Failure>> + Send + 'static,
    ) -> Result<T, Failure> {
        let done = self.handle.spawn(future).await;
        done.unwrap_or_else(|error| Err(Failure::Outside(format!("the thread of the lease ended: {error}"))))
    }
}

impl LeaseThread {
    /// Starts the thread and connects it to the cluster. The calling runtime beats from now on.
    pub(crate) async fn start(target: &ConnectTarget) -> Result<(Self, LeaseRuntime), Failure> {
        let (stop, stopped) = oneshot::channel::<()>();
        let (connected, connection) = oneshot::channel();
        let runtime = Builder::new_current_thread().enable_all().thread_name("lease").build()?;
        let handle = runtime.handle().clone();
        let target = target.clone();
        let thread = std::thread::Builder::new().name("lease".to_owned()).spawn(move || {
            runtime.block_on(async {
                let _ = connected.send(connect(&target).await);
                let _ = stopped.await;
            });
        })?;
        let owner = Self { stop: Some(stop), thread: Some(thread) };
        let ended = || Failure::Outside("the thread of the lease ended".to_owned());
        let connection = connection.await.map_err(|_| ended())?;
        let connection = connection.map_err(|error| Failure::Outside(error.to_string()))?;
        let heartbeat = Heartbeat::default();
        tokio::spawn(heartbeat.clone().run());
        Ok((owner, LeaseRuntime { handle, client: connection.client, heartbeat: Some(heartbeat) }))
    }
}

impl Drop for LeaseThread {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::io::{Read as _, Write as _};
    use std::net::{SocketAddr, TcpStream};
    use std::sync::mpsc;
    use std::time::Duration;

    use cluster::Clock;
    use cluster::lease::{Election, LeaseSettings};
    use localkube::{Cluster, Options};
    use serve::{ExtraListener, HealthChecks};

    use super::*;

    const LIMIT: Duration = Duration::from_mins(1);

    /// A cluster on a thread of its own, until the returned sender is dropped; and its kubeconfig.
    fn cluster() -> (oneshot::Sender<()>, String) {
        let (stop, stopped) = oneshot::channel::<()>();
        let (started, kubeconfig) = mpsc::channel();
        std::thread::spawn(move || {
            Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
                let running = Cluster::start(Options::default()).await.unwrap();
                let server = running.serve().await.unwrap();
                started.send(server.kubeconfig.clone()).unwrap();
                let _ = stopped.await;
            });
        });
        (stop, kubeconfig.recv_timeout(LIMIT).unwrap())
    }

    fn get(address: SocketAddr, path: &str) -> String {
        let mut stream = TcpStream::connect_timeout(&address, LIMIT).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[tokio::test]
    async fn probes_answer_and_the_lease_is_taken_while_the_main_thread_is_stuck() {
        let (_cluster, kubeconfig) = cluster();
        let file = std::env::temp_dir().join(format!("plimsoll-lease-thread-{}", std::process::id()));
        std::fs::write(&file, kubeconfig).unwrap();
        let target = ConnectTarget { kubeconfig: Some(file.clone()), context: None };
        let (_thread, beside) = LeaseThread::start(&target).await.unwrap();
        std::fs::remove_file(&file).unwrap();
        let mut checks = HealthChecks::new();
        let main = beside.clone();
        checks.add_live(
            "loop",
            move || if main.is_beating() { Ok(()) } else { Err("the loop is stuck".into()) },
        );
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let listener = beside.run(async move { Ok(ExtraListener::health(address, checks).await) });
        let listener = listener.await.unwrap().unwrap();
        let address = listener.address();
        let LeaseRuntime { handle, client, heartbeat } = beside.clone();
        let settings = LeaseSettings::new("default", "test", "one");
        let (_election, leadership) =
            Election::start_on(&handle, client, settings, Clock::system(), heartbeat);

        // Blocks this thread, and with it the main runtime, until another thread has seen both.
        let outside = std::thread::spawn(move || {
            let answer = get(address, "/healthz");
            let waiting = Builder::new_current_thread().enable_all().build().unwrap();
            waiting.block_on(async { tokio::time::timeout(LIMIT, leadership.acquired()).await.unwrap() });
            answer
        });
        let answer = outside.join().unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        listener.stop().await;
    }
}
