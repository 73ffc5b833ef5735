//! The system's resolver and sockets, replaceable in tests.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use futures::future::BoxFuture;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::lookups::LOOKUPS;

/// Idle time before the first TCP keepalive, which detects dead peers of long streams.
const KEEPALIVE_TIME: Duration = Duration::from_secs(30);

/// A pending connection or resolution.
pub type ConnectFuture<'a, T> = BoxFuture<'a, io::Result<T>>;

/// Resolves names and opens sockets. Tests replace it, so that nothing is sent to an address that must be refused even if the
/// decision is wrong.
pub trait Connector: Send + Sync {
    /// The addresses of a name.
    fn resolve<'a>(&'a self, host: &'a str, port: u16) -> ConnectFuture<'a, Vec<SocketAddr>>;

    /// The addresses of a name; none if its name servers do not answer within this time. An error of the kind `ResourceBusy` says that
    /// they were not asked yet.
    fn resolve_within<'a>(
        &'a self,
        host: &'a str,
        port: u16,
        within: Duration,
    ) -> ConnectFuture<'a, Option<Vec<SocketAddr>>> {
        Box::pin(async move { timeout(within, self.resolve(host, port)).await.ok().transpose() })
    }

    /// Connects to an address that is allowed.
    fn connect(&self, address: SocketAddr) -> ConnectFuture<'_, TcpStream>;
}

/// The system's resolver and sockets.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemConnector;

impl Connector for SystemConnector {
    fn resolve<'a>(&'a self, host: &'a str, port: u16) -> ConnectFuture<'a, Vec<SocketAddr>> {
        Box::pin(LOOKUPS.run(host, lookup(host.to_owned(), port)))
    }

    fn resolve_within<'a>(
        &'a self,
        host: &'a str,
        port: u16,
        within: Duration,
    ) -> ConnectFuture<'a, Option<Vec<SocketAddr>>> {
        Box::pin(LOOKUPS.run_within(host, within, lookup(host.to_owned(), port)))
    }

    fn connect(&self, address: SocketAddr) -> ConnectFuture<'_, TcpStream> {
        Box::pin(async move {
            let stream = TcpStream::connect(address).await?;
            // Without keepalive the connection is as good, so a failure is ignored.
            let _ = SockRef::from(&stream).set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEPALIVE_TIME));
            Ok(stream)
        })
    }
}

async fn lookup(host: String, port: u16) -> io::Result<Vec<SocketAddr>> {
    Ok(tokio::net::lookup_host((host, port)).await?.collect())
}
