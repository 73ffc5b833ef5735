//! Opens TCP connections to addresses that tenants choose: the one place that decides where they may lead.
//!
//! ```text
//! policy     which resolved addresses are allowed
//! connector  the system's resolver and sockets, replaceable in tests
//! lookups    limits of name resolutions under way
//! uri        connections of HTTP and gRPC clients
//! proxy      connections through an HTTP proxy
//! ```
//!
//! The decision is taken on the resolved address, and that very address is connected to: a name that resolves differently a
//! moment later gains nothing. Clients call [`Dialer::connect`] for every connection, so reconnections and addresses that a
//! server returned are checked as well.

mod connector;
mod lookups;
mod policy;
mod proxy;
#[cfg(test)]
mod tests;
mod uri;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, RwLock};
use std::time::Duration;

use locks::RwLockExt as _;
use tokio::net::TcpStream;
use tokio::time::timeout;

pub use connector::{ConnectFuture, Connector, SystemConnector};
pub use policy::{AddressClass, Cidr, InvalidCidr, OutboundPolicy};
pub use proxy::ProxyServer;
pub use uri::{DialedStream, UriConnector};

/// Time limit for connecting to one host, name resolution included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Head start of the address family that the resolver prefers (RFC 8305).
const FAMILY_DELAY: Duration = Duration::from_millis(300);

/// Opens connections where its policy allows it. Cheap to clone; two are equal if they are clones of one, so that it can be part
/// of the key of a connection pool.
#[derive(Clone)]
pub struct Dialer(Arc<DialerInner>);

struct DialerInner {
    policy: OutboundPolicy,
    connector: Box<dyn Connector>,
    /// Addresses of the Kubernetes API server.
    api_servers: RwLock<Vec<SocketAddr>>,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    /// The host name does not resolve.
    #[error("{0}")]
    Lookup(#[source] io::Error),
    /// The host name has no address.
    #[error("{0} has no address")]
    NoAddress(String),
    /// The address is not allowed.
    #[error(
        "connections to {address} ({class}) are not allowed: the administrator can allow them with --allow-source-cidr"
    )]
    NotAllowed {
        /// The resolved address.
        address: IpAddr,
        /// What it is.
        class: AddressClass,
    },
    /// The connection failed.
    #[error("{0}")]
    Connect(#[source] io::Error),
    /// There was no connection in time.
    #[error("no connection within {0:?}")]
    TimedOut(Duration),
    /// The proxy cannot be reached, or refuses.
    #[error("{0}")]
    Proxy(String),
    /// The text is not `host:port`.
    #[error("{0:?} is no address: write host:port")]
    Invalid(String),
}

impl From<DialError> for io::Error {
    fn from(error: DialError) -> Self {
        match error {
            DialError::Connect(error) => error,
            // Wrapped, so that its type tells it from a connection that failed.
            DialError::Lookup(ref cause) => Self::new(cause.kind(), error),
            DialError::NotAllowed { .. } => Self::new(io::ErrorKind::PermissionDenied, error),
            DialError::TimedOut(_) => Self::new(io::ErrorKind::TimedOut, error),
            DialError::Proxy(_) => Self::other(error),
            DialError::NoAddress(_) | DialError::Invalid(_) => Self::new(io::ErrorKind::InvalidInput, error),
        }
    }
}

impl Default for Dialer {
    /// Connects to no address that the default policy refuses.
    fn default() -> Self {
        Self::new(OutboundPolicy::default())
    }
}

impl Dialer {
    /// A dialer on the system's sockets.
    pub fn new(policy: OutboundPolicy) -> Self {
        Self::with_connector(policy, SystemConnector)
    }

    /// A dialer for addresses that an administrator has written.
    pub fn unrestricted() -> Self {
        Self::new(OutboundPolicy::unrestricted())
    }

    /// A dialer that also connects to this machine, for clusters on a desk and for tests.
    pub fn allowing_loopback() -> Self {
        Self::new(OutboundPolicy::allowing(Cidr::LOOPBACK))
    }

    /// A dialer on other sockets.
    pub fn with_connector(policy: OutboundPolicy, connector: impl Connector + 'static) -> Self {
        let connector = Box::new(connector);
        Self(Arc::new(DialerInner { policy, connector, api_servers: RwLock::default() }))
    }

    /// Whether every address is allowed.
    fn is_unrestricted(&self) -> bool {
        self.0.policy == OutboundPolicy::unrestricted()
    }

    /// Sets the addresses of the Kubernetes API server, which are refused unless a range allows them.
    pub fn protect(&self, api_servers: Vec<SocketAddr>) {
        *self.0.api_servers.write_locked() = api_servers;
    }

    /// Connects to the first address of a host that is allowed and accepts.
    ///
    /// # Errors
    /// The host has no address, none is allowed, or none accepts in time.
    pub async fn connect(&self, host: &str, port: u16) -> Result<TcpStream, DialError> {
        let dialed =
            timeout(CONNECT_TIMEOUT, async { self.any(self.resolve(host, port).await?).await }).await;
        let stream = dialed.unwrap_or(Err(DialError::TimedOut(CONNECT_TIMEOUT)))?;
        // Requests are small, so they are sent without delay.
        let _ = stream.set_nodelay(true);
        Ok(stream)
    }

    /// Connects to `host:port`.
    ///
    /// # Errors
    /// As [`Dialer::connect`], and if the text is no such address.
    pub async fn connect_to(&self, address: &str) -> Result<TcpStream, DialError> {
        let parts = address.rsplit_once(':');
        let parts = parts.and_then(|(host, port)| Some((host, port.parse::<u16>().ok()?)));
        let Some((host, port)) = parts else { return Err(DialError::Invalid(address.to_owned())) };
        self.connect(host, port).await
    }

    /// The addresses of a host that are allowed, for clients that connect by themselves. They must connect to these addresses and
    /// not to the name.
    ///
    /// # Errors
    /// The host has no address, or none that is allowed.
    pub async fn resolve(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, DialError> {
        let found = self.lookup(host, port).await?;
        self.allowed(host, &found)
    }

    /// Fails if any address of a host is refused, as far as its name servers answer within this time: for hosts to which a proxy
    /// connects, which may choose any of the addresses.
    async fn check_all(&self, host: &str, port: u16, within: Duration) -> Result<(), DialError> {
        let inner = without_brackets(host);
        let found = match inner.parse::<IpAddr>() {
            Ok(address) => Some(vec![SocketAddr::new(address, port)]),
            Err(_) => {
                self.0.connector.resolve_within(inner, port, within).await.map_err(DialError::Lookup)?
            }
        };
        for address in found.unwrap_or_default() {
            self.allowed(host, &[address])?;
        }
        Ok(())
    }

    /// The addresses of a host.
    async fn lookup(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, DialError> {
        let inner = without_brackets(host);
        match inner.parse::<IpAddr>() {
            Ok(address) => Ok(vec![SocketAddr::new(address, port)]),
            Err(_) => self.0.connector.resolve(inner, port).await.map_err(DialError::Lookup),
        }
    }

    /// The allowed ones among these addresses.
    fn allowed(&self, host: &str, found: &[SocketAddr]) -> Result<Vec<SocketAddr>, DialError> {
        let api_servers = self.0.api_servers.read_locked();
        let mut refused = None;
        let mut allowed = Vec::new();
        for address in found {
            match self.0.policy.check(*address, &api_servers) {
                Ok(()) => allowed.push(*address),
                Err(class) => {
                    refused = Some(DialError::NotAllowed { address: address.ip().to_canonical(), class });
                }
            }
        }
        match refused {
            _ if !allowed.is_empty() => Ok(allowed),
            Some(refused) => Err(refused),
            None => Err(DialError::NoAddress(host.to_owned())),
        }
    }

    /// Connects to any of these addresses; the other address family starts a moment later.
    async fn any(&self, addresses: Vec<SocketAddr>) -> Result<TcpStream, DialError> {
        let is_ipv4 = addresses.first().is_some_and(SocketAddr::is_ipv4);
        let (preferred, others): (Vec<_>, Vec<_>) =
            addresses.into_iter().partition(|address| address.is_ipv4() == is_ipv4);
        let mut first = std::pin::pin!(self.in_turn(&preferred));
        if others.is_empty() {
            return first.await;
        }
        if let Ok(early) = timeout(FAMILY_DELAY, &mut first).await {
            return match early {
                Ok(stream) => Ok(stream),
                Err(error) => self.in_turn(&others).await.map_err(|_| error),
            };
        }
        let mut second = std::pin::pin!(self.in_turn(&others));
        tokio::select! {
            made = &mut first => match made {
                Ok(stream) => Ok(stream),
                Err(error) => second.await.map_err(|_| error),
            },
            made = &mut second => match made {
                Ok(stream) => Ok(stream),
                Err(_) => first.await,
            },
        }
    }

    async fn in_turn(&self, addresses: &[SocketAddr]) -> Result<TcpStream, DialError> {
        let mut failed = DialError::NoAddress("the host".to_owned());
        let share = CONNECT_TIMEOUT / u32::try_from(addresses.len().max(1)).unwrap_or(u32::MAX);
        for address in addresses {
            match timeout(share, self.0.connector.connect(*address)).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => failed = DialError::Connect(error),
                Err(_) => failed = DialError::TimedOut(share),
            }
        }
        Err(failed)
    }
}

/// The address in brackets, or else the host as it is.
fn without_brackets(host: &str) -> &str {
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

impl fmt::Debug for Dialer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Dialer").field(&self.0.policy).finish()
    }
}

impl PartialEq for Dialer {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Dialer {}

impl Hash for Dialer {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::ptr::hash(Arc::as_ptr(&self.0), state);
    }
}
