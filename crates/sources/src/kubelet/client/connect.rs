//! Opens connections to kubelets and classifies connection errors.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{CertificateError, ClientConfig, OtherError};
use tokio::net::TcpStream;

use super::ScrapeError;
use super::stream::{KubeletStream, StreamError};
use crate::kubelet::address::KubeletAddress;
use crate::kubelet::report::{RequestStage, ScrapeErrorCause};
use crate::kubelet::trust::CertificateNameMismatch;

/// Connects and performs the TLS handshake; `stage` is set to the stage reached.
pub(super) async fn connect(
    target: &KubeletAddress,
    authority: &str,
    config: Arc<ClientConfig>,
    stage: &mut RequestStage,
) -> Result<KubeletStream, ScrapeError> {
    *stage = RequestStage::Connecting;
    let tcp = dial(target).await.map_err(|error| unreachable(target, authority, &error))?;
    // Requests are single small packets and must not be delayed by the Nagle algorithm.
    let _ = tcp.set_nodelay(true);
    if target.plain {
        return Ok(KubeletStream::plain(tcp));
    }
    let name = ServerName::try_from(&*target.host).map_err(|_| {
        ScrapeError::new(unknown(target), format!("failed to connect to {authority}: not a host name"))
    })?;
    *stage = RequestStage::Handshake;
    KubeletStream::handshake(tcp, config, name.to_owned()).await.map_err(|broken| {
        ScrapeError::new(refused(target, &broken), format!("TLS handshake with {authority} failed: {broken}"))
    })
}

/// Why no TCP connection was opened.
enum TcpError {
    /// The name does not resolve.
    Lookup(io::Error),
    /// No address accepted the connection.
    Connect(io::Error),
}

/// Connects to the first reachable address.
async fn dial(target: &KubeletAddress) -> Result<TcpStream, TcpError> {
    if let Ok(address) = target.host.parse::<IpAddr>() {
        return TcpStream::connect((address, target.port)).await.map_err(TcpError::Connect);
    }
    let found = tokio::net::lookup_host((&*target.host, target.port)).await.map_err(TcpError::Lookup)?;
    let mut last = TcpError::Lookup(io::Error::other("the name has no address"));
    for address in found {
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => last = TcpError::Connect(error),
        }
    }
    Err(last)
}

fn unknown(target: &KubeletAddress) -> ScrapeErrorCause {
    ScrapeErrorCause::UnknownName { name: target.host.clone() }
}

fn unreachable(target: &KubeletAddress, authority: &str, error: &TcpError) -> ScrapeError {
    use io::ErrorKind as Kind;
    let error = match error {
        TcpError::Connect(error) => error,
        TcpError::Lookup(error) => {
            return ScrapeError::new(unknown(target), format!("failed to connect to {authority}: {error}"));
        }
    };
    let cause = match error.kind() {
        Kind::ConnectionRefused => ScrapeErrorCause::Refused,
        Kind::HostUnreachable | Kind::NetworkUnreachable | Kind::NetworkDown | Kind::TimedOut => {
            ScrapeErrorCause::Unreachable
        }
        _ => ScrapeErrorCause::Other(format!("failed to connect: {error}").into()),
    };
    ScrapeError::new(cause, format!("failed to connect to {authority}: {error}"))
}

/// Classifies a failed handshake.
fn refused(target: &KubeletAddress, broken: &StreamError) -> ScrapeErrorCause {
    match broken {
        StreamError::Tls(rustls::Error::InvalidCertificate(wrong)) => certificate(target, wrong),
        StreamError::Tls(rustls::Error::InvalidMessage(_)) => {
            ScrapeErrorCause::Other("the server does not speak TLS".into())
        }
        _ => ScrapeErrorCause::Other(format!("TLS handshake failed: {broken}").into()),
    }
}

fn certificate(target: &KubeletAddress, wrong: &CertificateError) -> ScrapeErrorCause {
    use CertificateError as Wrong;
    match wrong {
        Wrong::Expired | Wrong::ExpiredContext { .. } => ScrapeErrorCause::CertificateExpired,
        Wrong::NotValidYet | Wrong::NotValidYetContext { .. } => ScrapeErrorCause::CertificateNotYetValid,
        // `BadSignature` means a CA with the same name and another key.
        Wrong::UnknownIssuer | Wrong::BadSignature => ScrapeErrorCause::UnknownAuthority,
        Wrong::Other(OtherError(error)) => match error.downcast_ref::<CertificateNameMismatch>() {
            Some(wrong) => ScrapeErrorCause::CertificateWithoutAddress {
                address: target.host.clone(),
                has: wrong.has.clone(),
            },
            None => ScrapeErrorCause::Other(format!("certificate is not valid: {error}").into()),
        },
        other => ScrapeErrorCause::Other(format!("certificate is not valid: {other}").into()),
    }
}
