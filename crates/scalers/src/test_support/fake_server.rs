//! A server for stand-ins of other protocols than HTTP: it counts connections, and drops them when it is told to.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

#[derive(Clone)]
pub(crate) struct FakeServer {
    pub(crate) port: u16,
    connections: Arc<AtomicUsize>,
    drop_all: Arc<Notify>,
}

impl FakeServer {
    /// Starts a server on this machine that serves each connection with this function until the test ends.
    pub(crate) async fn start<F>(serve: impl Fn(TcpStream) -> F + Send + 'static) -> Self
    where
        F: Future<Output = Option<()>> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let fake = Self { port, connections: Arc::default(), drop_all: Arc::default() };
        let running = fake.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                running.connections.fetch_add(1, Ordering::Relaxed);
                let (drop_all, served) = (Arc::clone(&running.drop_all), serve(stream));
                tokio::spawn(async move {
                    tokio::select! {
                        // In this order, so that no request is answered after the connections were dropped.
                        biased;
                        () = drop_all.notified() => {}
                        _ = served => {}
                    }
                });
            }
        });
        fake
    }

    /// Number of connections so far.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    pub(crate) fn drop_connections(&self) {
        self.drop_all.notify_waiters();
    }
}
