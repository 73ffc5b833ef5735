//! Connections through an HTTP proxy that the administrator has chosen.

use std::fmt;
use std::io::ErrorKind;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::{DialError, Dialer};
use crate::tenant::in_no_namespace;

/// Time limit of a `CONNECT` request.
const TUNNEL_TIMEOUT: Duration = Duration::from_secs(5);
/// Time limit of the look-up of a name that only the proxy has to know.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum size of the response to `CONNECT`, in bytes.
const MAX_HEAD_BYTES: usize = 8 << 10;

/// An HTTP proxy.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ProxyServer {
    /// Its host.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Value of the header `Proxy-Authorization`.
    pub authorization: Option<String>,
}

impl fmt::Debug for ProxyServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ProxyServer").field(&self.to_string()).finish()
    }
}

impl fmt::Display for ProxyServer {
    /// Without credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}:{}", self.host, self.port)
    }
}

impl ProxyServer {
    /// Connects to the proxy. Its own address is not checked, because the administrator has written it. Those of the server are, as
    /// far as we know them: the proxy may resolve a name to another address.
    pub(super) async fn connect(
        &self,
        dialer: &Dialer,
        host: &str,
        port: u16,
    ) -> Result<TcpStream, DialError> {
        if !dialer.is_unrestricted() {
            match dialer.check_all(host, port, LOOKUP_TIMEOUT).await {
                Err(refused @ DialError::NotAllowed { .. }) => return Err(refused),
                // A tenant could have so many names resolved that none of them is checked in time.
                Err(DialError::Lookup(error)) if error.kind() == ErrorKind::ResourceBusy => {
                    return Err(DialError::Lookup(error));
                }
                // Maybe only the proxy knows the name.
                _ => {}
            }
        }
        // The name of the proxy does not wait for those of sources, which often only the proxy can resolve.
        let connected = in_no_namespace(Dialer::unrestricted().connect(&self.host, self.port)).await;
        connected.map_err(|error| DialError::Proxy(format!("the proxy {self} cannot be reached: {error}")))
    }

    /// Opens a tunnel to a server.
    pub(super) async fn open_tunnel(
        &self,
        stream: &mut TcpStream,
        host: &str,
        port: u16,
    ) -> Result<(), DialError> {
        let opened = timeout(TUNNEL_TIMEOUT, self.request_tunnel(stream, host, port)).await;
        let reason = match opened {
            Ok(Ok(status)) if status.split(' ').nth(1).is_some_and(|code| code.starts_with('2')) => {
                return Ok(());
            }
            Ok(Ok(status)) => format!("it answered {status:?}"),
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer within {TUNNEL_TIMEOUT:?}"),
        };
        Err(DialError::Proxy(format!("the proxy {self} opens no tunnel to {host}:{port}: {reason}")))
    }

    /// Requests a tunnel; returns the status line.
    async fn request_tunnel(&self, stream: &mut TcpStream, host: &str, port: u16) -> std::io::Result<String> {
        let mut request = format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n");
        if let Some(authorization) = &self.authorization {
            request += &format!("Proxy-Authorization: {authorization}\r\n");
        }
        stream.write_all(format!("{request}\r\n").as_bytes()).await?;
        let mut head = Vec::new();
        // Byte by byte, because what follows belongs to the tunnel.
        while !head.ends_with(b"\r\n\r\n") {
            if head.len() >= MAX_HEAD_BYTES {
                return Err(std::io::Error::other("its answer is too long"));
            }
            head.push(stream.read_u8().await?);
        }
        let line: Vec<u8> = head.into_iter().take_while(|byte| *byte != b'\r').take(100).collect();
        Ok(String::from_utf8_lossy(&line).into_owned())
    }
}
