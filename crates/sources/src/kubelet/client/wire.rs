//! Bytes to and from a kubelet, with or without TLS.
//!
//! TLS works on buffers of ours: an answer comes in with few system calls, and a connection on which nothing happens
//! has no buffers at all.

use std::sync::Arc;
use std::{fmt, io};

use futures::FutureExt as _;
use rustls::ClientConfig;
use rustls::client::UnbufferedClientConnection;
use rustls::pki_types::ServerName;
use rustls::unbuffered::{ConnectionState, EncodeError, EncryptError, UnbufferedStatus};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// What is received at a time: a whole record of TLS, and most answers of kubelets.
const PIECE: usize = 32 << 10;
/// The longest message of a handshake, certificates included.
const LONGEST: usize = 128 << 10;

/// Why nothing more comes or goes.
#[derive(Debug)]
pub(super) enum Broken {
    /// The other side has closed the connection.
    Ended,
    /// TLS was not understood.
    Tls(rustls::Error),
    /// The network says so.
    Io(io::Error),
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended => f.write_str("the other side closed the connection"),
            Self::Tls(error) => error.fmt(f),
            Self::Io(error) => error.fmt(f),
        }
    }
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::UnexpectedEof { Self::Ended } else { Self::Io(error) }
    }
}

impl From<rustls::Error> for Broken {
    fn from(error: rustls::Error) -> Self {
        Self::Tls(error)
    }
}

/// An open connection.
pub(super) struct Wire {
    tcp: TcpStream,
    tls: Option<Box<Tls>>,
}

struct Tls {
    session: UnbufferedClientConnection,
    /// What came and was not decrypted yet, from `at` on; without memory while nothing is expected.
    incoming: Vec<u8>,
    at: usize,
    /// The other side will say no more.
    is_closed: bool,
}

/// What is to be done next.
enum Turn {
    Again,
    Send,
    /// Nothing more without the other side.
    Receive,
    /// The same, and we may speak.
    Ready,
}

impl Wire {
    /// Without TLS.
    pub(super) fn plain(tcp: TcpStream) -> Self {
        Self { tcp, tls: None }
    }

    /// With TLS, as soon as both sides have greeted.
    pub(super) async fn greet(
        tcp: TcpStream,
        config: Arc<ClientConfig>,
        name: ServerName<'static>,
    ) -> Result<Self, Broken> {
        let session = UnbufferedClientConnection::new(config, name)?;
        let mut tls = Box::new(Tls { session, incoming: Vec::new(), at: 0, is_closed: false });
        let mut wire = Self { tcp, tls: None };
        let greeted = wire.turns(&mut tls).await;
        if matches!(greeted, Err(Broken::Tls(_))) {
            // The other side should know why; one step, as what came must not be looked at again.
            let mut alert = Vec::new();
            let _ = tls.step(&mut Vec::new(), &mut alert, None);
            let _ = wire.tcp.try_write(&alert);
        }
        greeted?;
        tls.release();
        wire.tls = Some(tls);
        Ok(wire)
    }

    async fn turns(&mut self, tls: &mut Tls) -> Result<(), Broken> {
        let (mut early, mut outgoing) = (Vec::new(), Vec::new());
        loop {
            match tls.step(&mut early, &mut outgoing, None)? {
                Turn::Again => {}
                Turn::Send => send(&mut self.tcp, &mut outgoing).await?,
                Turn::Receive => tls.receive(&mut self.tcp).await?,
                // Nobody may say anything before he is asked.
                Turn::Ready if early.is_empty() && !tls.is_closed => return Ok(()),
                Turn::Ready => return Err(Broken::Ended),
            }
        }
    }

    /// Whether nothing came that nobody asked for, the end included.
    pub(super) fn is_quiet(&mut self) -> bool {
        self.read(&mut Vec::new()).now_or_never().is_none()
    }

    /// Adds what comes next to `plain`; how much that was. 0 is the end, if the other side said that it is.
    pub(super) async fn read(&mut self, plain: &mut Vec<u8>) -> Result<usize, Broken> {
        let Some(tls) = &mut self.tls else {
            plain.reserve(PIECE);
            return Ok(self.tcp.read_buf(plain).await?);
        };
        let (before, mut outgoing) = (plain.len(), Vec::new());
        loop {
            match tls.step(plain, &mut outgoing, None)? {
                Turn::Again => {}
                Turn::Send => send(&mut self.tcp, &mut outgoing).await?,
                Turn::Receive | Turn::Ready if plain.len() > before || tls.is_closed => {
                    return Ok(plain.len() - before);
                }
                Turn::Receive | Turn::Ready => tls.receive(&mut self.tcp).await?,
            }
        }
    }

    /// Says something.
    pub(super) async fn write(&mut self, words: &[u8]) -> Result<(), Broken> {
        let Some(tls) = &mut self.tls else {
            return Ok(self.tcp.write_all(words).await?);
        };
        let (mut unasked, mut outgoing) = (Vec::new(), Vec::with_capacity(words.len() + 64));
        loop {
            match tls.step(&mut unasked, &mut outgoing, Some(words))? {
                Turn::Again => {}
                Turn::Send => send(&mut self.tcp, &mut outgoing).await?,
                Turn::Receive => tls.receive(&mut self.tcp).await?,
                Turn::Ready => return Ok(send(&mut self.tcp, &mut outgoing).await?),
            }
        }
    }

    /// Gives memory back until something is expected again.
    pub(super) fn rest(&mut self) {
        if let Some(tls) = &mut self.tls {
            tls.release();
        }
    }
}

impl Tls {
    /// Goes one step: what came is decrypted to `plain`, what is to be sent is added to `outgoing`. `words` are said as
    /// soon as that is possible: then it is ready.
    fn step(
        &mut self,
        plain: &mut Vec<u8>,
        outgoing: &mut Vec<u8>,
        words: Option<&[u8]>,
    ) -> Result<Turn, rustls::Error> {
        let incoming = self.incoming.get_mut(self.at..).unwrap_or_default();
        let UnbufferedStatus { mut discard, state } = self.session.process_tls_records(incoming);
        let turn = match state? {
            ConnectionState::ReadTraffic(mut records) => {
                while let Some(record) = records.next_record() {
                    let record = record?;
                    discard += record.discard;
                    plain.extend_from_slice(record.payload);
                }
                Turn::Again
            }
            ConnectionState::EncodeTlsData(mut data) => {
                add(outgoing, |space| match data.encode(space) {
                    Err(EncodeError::InsufficientSize(size)) => Err(Some(size.required_size)),
                    other => other.map_err(|_| None),
                })?;
                Turn::Again
            }
            ConnectionState::TransmitTlsData(data) => {
                data.done();
                Turn::Send
            }
            ConnectionState::WriteTraffic(mut traffic) => {
                if let Some(words) = words {
                    add(outgoing, |space| match traffic.encrypt(words, space) {
                        Err(EncryptError::InsufficientSize(size)) => Err(Some(size.required_size)),
                        other => other.map_err(|_| None),
                    })?;
                }
                Turn::Ready
            }
            ConnectionState::PeerClosed | ConnectionState::Closed => {
                self.is_closed = true;
                Turn::Ready
            }
            ConnectionState::BlockedHandshake => Turn::Receive,
            _ => return Err(rustls::Error::General("TLS is in a state that is not known".to_owned())),
        };
        self.at += discard;
        Ok(turn)
    }

    async fn receive(&mut self, tcp: &mut TcpStream) -> Result<(), Broken> {
        self.incoming.drain(..self.at.min(self.incoming.len()));
        self.at = 0;
        if self.incoming.len() == self.incoming.capacity() {
            if self.incoming.len() >= LONGEST {
                return Err(Broken::Tls(rustls::Error::General("a message of TLS is too long".to_owned())));
            }
            self.incoming.reserve_exact(PIECE.max(self.incoming.len()));
        }
        if tcp.read_buf(&mut self.incoming).await? == 0 {
            return Err(Broken::Ended);
        }
        Ok(())
    }

    /// Keeps only what was not decrypted, which is nothing almost always.
    fn release(&mut self) {
        let left = self.incoming.get(self.at..).unwrap_or_default().to_vec();
        (self.incoming, self.at) = (left, 0);
    }
}

/// Adds what `write` writes into the space that it is given; it may ask for more space once.
fn add(
    outgoing: &mut Vec<u8>,
    mut write: impl FnMut(&mut [u8]) -> Result<usize, Option<usize>>,
) -> Result<(), rustls::Error> {
    let before = outgoing.len();
    let mut written = write(&mut []);
    if let Err(Some(size)) = written {
        outgoing.resize(before + size, 0);
        written = write(outgoing.get_mut(before..).unwrap_or_default());
    }
    let Ok(written) = written else { return Err(rustls::Error::EncryptError) };
    outgoing.truncate(before + written);
    Ok(())
}

async fn send(tcp: &mut TcpStream, outgoing: &mut Vec<u8>) -> io::Result<()> {
    tcp.write_all(outgoing).await?;
    outgoing.clear();
    Ok(())
}
