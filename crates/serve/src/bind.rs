//! Binds the address of a listener.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio::net::TcpListener;

use crate::tls::CertificateError;

/// Why a server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The address cannot be bound.
    #[error("failed to listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The cause.
        source: std::io::Error,
    },
    /// The certificate cannot be loaded or issued.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// TLS cannot be configured.
    #[error("failed to set up TLS: {0}")]
    Tls(#[from] rustls::Error),
}

/// Binds an address. As in Go, `0.0.0.0` is every IPv4 and IPv6 address.
pub(crate) async fn bind(address: SocketAddr) -> Result<(TcpListener, SocketAddr), StartError> {
    let every = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    let wide = SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), address.port());
    let found = match TcpListener::bind(if address.ip() == every { wide } else { address }).await {
        Err(error) if address.ip() == every && !in_use(&error) => TcpListener::bind(address).await,
        found => found,
    };
    let failed = |source| StartError::Listen { address, source };
    let listener = found.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok((listener, address))
}

fn in_use(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::AddrInUse | std::io::ErrorKind::PermissionDenied)
}
