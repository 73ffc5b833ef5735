//! The part of AMQP 0-9-1 that reads the length of a queue: a passive declaration on a pooled connection.
//!
//! Implemented here and not with `lapin`, because it needs only five methods and must report why a server closed a channel.

#[cfg(test)]
mod tests;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use sources::http::Secret;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio_rustls::TlsConnector;

use crate::dial::{DialError, Dialer};
use crate::pool::{self, PoolError, PoolFuture};
use crate::responses::excerpt;
use crate::stream::io_error;
use crate::tls::TlsSettings;
use crate::{ScalerError, SourceRefusal};

use wire::{ClientMethod, FRAME_HEADER_BYTES, InvalidFrame, ServerMethod};

/// Timeout of a request, including the connection.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum frame size that the client proposes, in bytes.
const PROPOSED_FRAME_BYTES: u32 = 128 << 10;
/// Maximum number of unrelated methods before a response.
const MAX_UNRELATED_METHODS: usize = 100;

/// Reply codes of a server that closes a channel or connection.
const ACCESS_REFUSED: u16 = 403;
const NOT_FOUND: u16 = 404;

/// A virtual host of a server, its credentials and TLS settings.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct AmqpServer {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) virtual_host: String,
    pub(super) login: Login,
    /// TLS settings; none for plain text.
    pub(super) tls: Option<TlsSettings>,
    /// Opens its connections.
    pub(super) dialer: Dialer,
}

/// Credentials of the client.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) enum Login {
    /// User name and password.
    Plain(String, Secret),
    /// The client certificate.
    Certificate,
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// A connection to the server.
pub(super) struct AmqpConnection {
    stream: Box<dyn Stream>,
    channel: bool,
}

/// Why a request failed.
enum AmqpError {
    /// The server closed the channel or connection and gave a reason.
    Closed { connection: bool, code: u16, reason: String },
    /// Any other failure.
    Broken(ScalerError),
}

impl From<std::io::Error> for AmqpError {
    fn from(error: std::io::Error) -> Self {
        Self::Broken(io_error(&error))
    }
}

impl From<DialError> for AmqpError {
    fn from(error: DialError) -> Self {
        Self::Broken(error.into())
    }
}

impl From<InvalidFrame> for AmqpError {
    fn from(InvalidFrame: InvalidFrame) -> Self {
        Self::Broken(scaler_error!("the server does not speak AMQP 0-9-1"))
    }
}

impl AmqpError {
    fn into_error(self) -> ScalerError {
        match self {
            Self::Closed { code, reason, .. } => {
                let refusal = match code {
                    ACCESS_REFUSED => Some(SourceRefusal::Credentials),
                    NOT_FOUND => Some(SourceRefusal::UnknownName),
                    _ => None,
                };
                scaler_error!("{} ({code})", excerpt(&reason)).with_refusal(refusal)
            }
            Self::Broken(error) => error,
        }
    }
}

impl AmqpConnection {
    async fn send_method(&mut self, what: &ClientMethod<'_>) -> Result<(), AmqpError> {
        let Some(frame) = what.frame() else {
            return Err(AmqpError::Broken(scaler_error!(
                "a name is longer than 255 bytes, which AMQP does not allow"
            )));
        };
        self.stream.write_all(&frame).await?;
        Ok(self.stream.flush().await?)
    }

    /// The next relevant method.
    async fn receive_method(&mut self) -> Result<ServerMethod, AmqpError> {
        for _ in 0..MAX_UNRELATED_METHODS {
            let mut header = [0; FRAME_HEADER_BYTES];
            self.stream.read_exact(&mut header).await?;
            let (kind, size) = wire::header(header)?;
            let mut rest = vec![0; size + 1];
            self.stream.read_exact(&mut rest).await?;
            match wire::method(kind, &rest)? {
                ServerMethod::Other => {}
                ServerMethod::Close { connection, code, reason } => {
                    return Err(AmqpError::Closed { connection, code, reason });
                }
                method => return Ok(method),
            }
        }
        Err(InvalidFrame.into())
    }

    async fn log_in(&mut self, server: &AmqpServer) -> Result<(), AmqpError> {
        self.stream.write_all(wire::PROTOCOL_HEADER).await?;
        let ServerMethod::Start { mechanisms } = self.receive_method().await? else {
            return Err(InvalidFrame.into());
        };
        let (mechanism, response) = match &server.login {
            Login::Plain(user, password) => {
                ("PLAIN", Secret::new(format!("\0{user}\0{}", password.reveal())))
            }
            Login::Certificate => ("EXTERNAL", Secret::default()),
        };
        if !mechanisms.split_whitespace().any(|offered| offered == mechanism) {
            return Err(AmqpError::Broken(scaler_error!(
                "the server does not offer {mechanism}, only {}",
                excerpt(&mechanisms)
            )));
        }
        self.send_method(&ClientMethod::StartOk { mechanism, response: response.reveal() }).await?;
        let ServerMethod::Tune { channels, frame } = self.receive_method().await? else {
            return Err(InvalidFrame.into());
        };
        let frame = if frame == 0 { PROPOSED_FRAME_BYTES } else { frame.min(PROPOSED_FRAME_BYTES) };
        self.send_method(&ClientMethod::TuneOk { channels, frame }).await?;
        self.send_method(&ClientMethod::Open { host: &server.virtual_host }).await?;
        match self.receive_method().await? {
            ServerMethod::Opened => Ok(()),
            _ => Err(InvalidFrame.into()),
        }
    }

    async fn messages(&mut self, queue: &str) -> Result<u32, AmqpError> {
        if !self.channel {
            self.send_method(&ClientMethod::ChannelOpen).await?;
            let ServerMethod::ChannelOpened = self.receive_method().await? else {
                return Err(InvalidFrame.into());
            };
            self.channel = true;
        }
        self.send_method(&ClientMethod::Declare { queue }).await?;
        match self.receive_method().await? {
            ServerMethod::Declared { messages } => Ok(messages),
            _ => Err(InvalidFrame.into()),
        }
    }
}

impl AmqpServer {
    async fn open(&self) -> Result<AmqpConnection, AmqpError> {
        let stream = self.dialer.connect(&self.host, self.port).await?;
        let stream: Box<dyn Stream> = match &self.tls {
            None => Box::new(stream),
            Some(tls) => {
                let config = tls.config(&[]).map_err(AmqpError::Broken)?;
                let name = ServerName::try_from(self.host.clone()).map_err(|_| {
                    AmqpError::Broken(scaler_error!("{} cannot be the name of a server", self.host))
                })?;
                Box::new(TlsConnector::from(Arc::clone(&config)).connect(name, stream).await?)
            }
        };
        let mut connection = AmqpConnection { stream, channel: false };
        connection.log_in(self).await?;
        Ok(connection)
    }
}

/// Decodes the frames of a server as a connection does, for fuzzing; returns how many were valid.
#[doc(hidden)]
pub fn count_frames(mut bytes: &[u8]) -> usize {
    let mut count = 0;
    while let Some((header, rest)) = bytes.split_first_chunk::<FRAME_HEADER_BYTES>() {
        let Ok((kind, size)) = wire::header(*header) else { break };
        let Some((frame, rest)) = rest.split_at_checked(size + 1) else { break };
        if wire::method(kind, frame).is_err() {
            break;
        }
        bytes = rest;
        count += 1;
    }
    count
}

impl pool::PooledServer for AmqpServer {
    type Connection = AmqpConnection;
    /// The queue.
    type Request = String;
    /// The number of ready messages.
    type Response = u32;
    const MAX_CONNECTIONS: usize = 2;
    const TIMEOUT: Duration = REQUEST_TIMEOUT;

    fn name(&self) -> String {
        let scheme = if self.tls.is_some() { "amqps" } else { "amqp" };
        format!("{scheme}://{}:{}", self.host, self.port)
    }

    fn sharing_key(queue: &String) -> String {
        queue.clone()
    }

    fn connect(&self) -> PoolFuture<'_, AmqpConnection, ScalerError> {
        Box::pin(async move {
            let made = self.open().await;
            made.map_err(|amqp_error| amqp_error.into_error().inside(self.name()))
        })
    }

    fn query<'a>(
        &'a self,
        connection: &'a mut AmqpConnection,
        queue: &'a String,
    ) -> PoolFuture<'a, u32, PoolError> {
        Box::pin(async move {
            let amqp_error = match connection.messages(queue).await {
                Ok(messages) => return Ok(messages),
                Err(amqp_error) => amqp_error,
            };
            // A missing queue closes only the channel, not the connection.
            let mut lost = true;
            if let AmqpError::Closed { connection: false, .. } = amqp_error {
                connection.channel = false;
                lost = connection.send_method(&ClientMethod::ChannelClosed).await.is_err();
            }
            let error = amqp_error.into_error().inside(self.name());
            Err(if lost { PoolError::Lost(error) } else { PoolError::Refused(error) })
        })
    }
}
