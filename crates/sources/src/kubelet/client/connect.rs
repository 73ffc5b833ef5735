//! A connection to a kubelet, and why there is none.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{CertificateError, ClientConfig, OtherError};
use tokio::net::TcpStream;

use super::Failure;
use super::wire::{Broken, Wire};
use crate::kubelet::address::Place;
use crate::kubelet::report::{Cause, Stage};
use crate::kubelet::trust::WrongName;

/// Connects and greets; `stage` tells how far it came.
pub(super) async fn connect(
    place: &Place,
    authority: &str,
    config: Arc<ClientConfig>,
    stage: &mut Stage,
) -> Result<Wire, Failure> {
    *stage = Stage::Connecting;
    let tcp = dial(place).await.map_err(|(named, error)| unreachable(place, authority, named, &error))?;
    // A request is one small packet: it must not wait for another.
    let _ = tcp.set_nodelay(true);
    if place.plain {
        return Ok(Wire::plain(tcp));
    }
    let name = ServerName::try_from(&*place.host).map_err(|_| {
        Failure::new(unknown(place), format!("failed to connect to {authority}: no name of a host"))
    })?;
    *stage = Stage::Greeting;
    Wire::greet(tcp, config, name.to_owned()).await.map_err(|broken| {
        Failure::new(refused(place, &broken), format!("failed to greet {authority}: {broken}"))
    })
}

/// The error tells whether the name could be resolved.
async fn dial(place: &Place) -> Result<TcpStream, (bool, io::Error)> {
    if let Ok(address) = place.host.parse::<IpAddr>() {
        return TcpStream::connect((address, place.port)).await.map_err(|error| (true, error));
    }
    let found = tokio::net::lookup_host((&*place.host, place.port)).await.map_err(|error| (false, error))?;
    let mut last = (false, io::Error::other("the name has no address"));
    for address in found {
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => last = (true, error),
        }
    }
    Err(last)
}

fn unknown(place: &Place) -> Cause {
    Cause::UnknownName { name: place.host.clone() }
}

fn unreachable(place: &Place, authority: &str, named: bool, error: &io::Error) -> Failure {
    use io::ErrorKind as Kind;
    let cause = match error.kind() {
        _ if !named => unknown(place),
        Kind::ConnectionRefused => Cause::Refused,
        Kind::HostUnreachable | Kind::NetworkUnreachable | Kind::NetworkDown | Kind::TimedOut => {
            Cause::Unreachable
        }
        _ => Cause::Other(format!("failed to connect: {error}").into()),
    };
    Failure::new(cause, format!("failed to connect to {authority}: {error}"))
}

/// Why the handshake failed.
fn refused(place: &Place, broken: &Broken) -> Cause {
    match broken {
        Broken::Tls(rustls::Error::InvalidCertificate(wrong)) => certificate(place, wrong),
        Broken::Tls(rustls::Error::InvalidMessage(_)) => {
            Cause::Other("whoever listens there does not speak TLS".into())
        }
        _ => Cause::Other(format!("TLS handshake failed: {broken}").into()),
    }
}

fn certificate(place: &Place, wrong: &CertificateError) -> Cause {
    use CertificateError as Wrong;
    match wrong {
        Wrong::Expired | Wrong::ExpiredContext { .. } => Cause::CertificateExpired,
        Wrong::NotValidYet | Wrong::NotValidYetContext { .. } => Cause::CertificateNotYetValid,
        // An authority that has the right name and another key is another one.
        Wrong::UnknownIssuer | Wrong::BadSignature => Cause::UnknownAuthority,
        Wrong::Other(OtherError(error)) => match error.downcast_ref::<WrongName>() {
            Some(wrong) => {
                Cause::CertificateWithoutAddress { asked: place.host.clone(), has: wrong.has.clone() }
            }
            None => Cause::Other(format!("certificate is not good: {error}").into()),
        },
        other => Cause::Other(format!("certificate is not good: {other}").into()),
    }
}
