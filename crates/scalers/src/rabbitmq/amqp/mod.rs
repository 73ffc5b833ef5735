//! AMQP 0-9-1, as far as one needs it to ask how long a queue is: a passive declaration on a connection that is kept.
//!
//! Written out here because it is little, and because libraries keep to themselves why a server closed a channel.

#[cfg(test)]
mod tests;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use sources::http::{HttpErrorCause, Secret};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::Error;
use crate::pool::{self, Fault, Step};
use crate::tls::Tls;

use wire::{Garbage, HEADER, Method, Say};

/// How long an answer may take, the connection included.
const WITHIN: Duration = Duration::from_secs(5);
/// The largest frame that we want.
const FRAME: u32 = 128 << 10;
/// Messages that have nothing to do with what was asked; a server that sends more of them is none.
const OTHERS: usize = 100;

/// A virtual host of a server, and how to speak with it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Server {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) virtual_host: String,
    pub(super) login: Login,
    /// None for plain text.
    pub(super) tls: Option<Tls>,
}

/// How we show who we are.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) enum Login {
    /// By user and password.
    Plain(String, Secret),
    /// By our certificate.
    Certificate,
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// A connection to it.
pub(super) struct Connection {
    stream: Box<dyn Stream>,
    channel: bool,
}

/// Why a step failed.
enum Trouble {
    /// The server closed something and said why.
    Closed { connection: bool, code: u16, reason: String },
    /// All else.
    Broken(String),
}

impl From<std::io::Error> for Trouble {
    fn from(error: std::io::Error) -> Self {
        if error.kind() == std::io::ErrorKind::UnexpectedEof {
            return Self::Broken("the server closed the connection".to_owned());
        }
        Self::Broken(HttpErrorCause::classify(&error).to_string())
    }
}

impl From<Garbage> for Trouble {
    fn from(Garbage: Garbage) -> Self {
        Self::Broken("the server does not speak AMQP 0-9-1".to_owned())
    }
}

impl Trouble {
    fn words(self) -> String {
        match self {
            Self::Closed { code, reason, .. } => format!("{reason} ({code})"),
            Self::Broken(reason) => reason,
        }
    }
}

impl Connection {
    async fn say(&mut self, what: &Say<'_>) -> Result<(), Trouble> {
        let Some(frame) = what.frame() else {
            return Err(Trouble::Broken(
                "a name is longer than 255 bytes, which AMQP does not allow".to_owned(),
            ));
        };
        self.stream.write_all(&frame).await?;
        Ok(self.stream.flush().await?)
    }

    /// The next method that matters.
    async fn hear(&mut self) -> Result<Method, Trouble> {
        for _ in 0..OTHERS {
            let mut header = [0; HEADER];
            self.stream.read_exact(&mut header).await?;
            let (kind, size) = wire::header(header)?;
            let mut rest = vec![0; size + 1];
            self.stream.read_exact(&mut rest).await?;
            match wire::method(kind, &rest)? {
                Method::Other => {}
                Method::Close { connection, code, reason } => {
                    return Err(Trouble::Closed { connection, code, reason });
                }
                method => return Ok(method),
            }
        }
        Err(Garbage.into())
    }

    async fn log_in(&mut self, server: &Server) -> Result<(), Trouble> {
        self.stream.write_all(wire::GREETING).await?;
        let Method::Start { mechanisms } = self.hear().await? else { return Err(Garbage.into()) };
        let (mechanism, response) = match &server.login {
            Login::Plain(user, password) => {
                ("PLAIN", Secret::new(format!("\0{user}\0{}", password.reveal())))
            }
            Login::Certificate => ("EXTERNAL", Secret::default()),
        };
        if !mechanisms.split_whitespace().any(|offered| offered == mechanism) {
            return Err(Trouble::Broken(format!("the server does not offer {mechanism}, only {mechanisms}")));
        }
        self.say(&Say::StartOk { mechanism, response: response.reveal() }).await?;
        let Method::Tune { channels, frame } = self.hear().await? else { return Err(Garbage.into()) };
        let frame = if frame == 0 { FRAME } else { frame.min(FRAME) };
        self.say(&Say::TuneOk { channels, frame }).await?;
        self.say(&Say::Open { host: &server.virtual_host }).await?;
        match self.hear().await? {
            Method::Opened => Ok(()),
            _ => Err(Garbage.into()),
        }
    }

    async fn messages(&mut self, queue: &str) -> Result<u32, Trouble> {
        if !self.channel {
            self.say(&Say::ChannelOpen).await?;
            let Method::ChannelOpened = self.hear().await? else { return Err(Garbage.into()) };
            self.channel = true;
        }
        self.say(&Say::Declare { queue }).await?;
        match self.hear().await? {
            Method::Declared { messages } => Ok(messages),
            _ => Err(Garbage.into()),
        }
    }
}

impl Server {
    async fn open(&self) -> Result<Connection, Trouble> {
        let stream = TcpStream::connect((&*self.host, self.port)).await?;
        stream.set_nodelay(true)?;
        let stream: Box<dyn Stream> = match &self.tls {
            None => Box::new(stream),
            Some(tls) => {
                let broken = |reason: String| Trouble::Broken(reason);
                let config = tls.config(&[]).map_err(|error| broken(error.0))?;
                let name = ServerName::try_from(self.host.clone())
                    .map_err(|_| broken(format!("{} cannot be the name of a server", self.host)))?;
                Box::new(TlsConnector::from(Arc::clone(&config)).connect(name, stream).await?)
            }
        };
        let mut connection = Connection { stream, channel: false };
        connection.log_in(self).await?;
        Ok(connection)
    }
}

impl pool::Server for Server {
    type Connection = Connection;
    /// The queue.
    type Question = String;
    /// Messages that are ready.
    type Said = u32;
    const AT_ONCE: usize = 2;

    fn name(&self) -> String {
        let scheme = if self.tls.is_some() { "amqps" } else { "amqp" };
        format!("{scheme}://{}:{}", self.host, self.port)
    }

    fn within(&self) -> Duration {
        WITHIN
    }

    fn connect(&self) -> Step<'_, Connection, Error> {
        Box::pin(async move {
            let made = self.open().await;
            made.map_err(|trouble| Error::new(format!("{}: {}", self.name(), trouble.words())))
        })
    }

    fn ask<'a>(&'a self, connection: &'a mut Connection, queue: &'a String) -> Step<'a, u32, Fault> {
        Box::pin(async move {
            let trouble = match connection.messages(queue).await {
                Ok(messages) => return Ok(messages),
                Err(trouble) => trouble,
            };
            // A missing queue costs only the channel.
            let mut lost = true;
            if let Trouble::Closed { connection: false, .. } = trouble {
                connection.channel = false;
                lost = connection.say(&Say::ChannelClosed).await.is_err();
            }
            let error = Error::new(format!("{}: {}", self.name(), trouble.words()));
            Err(if lost { Fault::Lost(error) } else { Fault::Answer(error) })
        })
    }
}
