//! Byte stream to a kubelet, with or without TLS.
//!
//! The unbuffered API of rustls is used, so that a response is received with few system calls and an idle connection
//! holds no buffers.

use std::sync::Arc;
use std::{fmt, io};

use futures::FutureExt as _;
use rustls::ClientConfig;
use rustls::client::UnbufferedClientConnection;
use rustls::pki_types::ServerName;
use rustls::unbuffered::{ConnectionState, EncodeError, EncryptError, UnbufferedStatus};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Receive buffer in bytes: a whole TLS record, and most kubelet responses.
const READ_BUFFER_BYTES: usize = 32 << 10;
/// Size limit of a handshake message in bytes, certificates included.
const MAX_HANDSHAKE_BYTES: usize = 128 << 10;

/// Why a stream failed.
#[derive(Debug)]
pub(super) enum StreamError {
    /// The peer closed the connection.
    Ended,
    /// TLS error.
    Tls(rustls::Error),
    /// IO error.
    Io(io::Error),
}

impl fmt::Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended => f.write_str("the kubelet closed the connection"),
            Self::Tls(error) => error.fmt(f),
            Self::Io(error) => error.fmt(f),
        }
    }
}

impl From<io::Error> for StreamError {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::UnexpectedEof { Self::Ended } else { Self::Io(error) }
    }
}

impl From<rustls::Error> for StreamError {
    fn from(error: rustls::Error) -> Self {
        Self::Tls(error)
    }
}

/// An open stream.
pub(super) struct KubeletStream {
    tcp: TcpStream,
    tls: Option<Box<TlsSession>>,
}

struct TlsSession {
    session: UnbufferedClientConnection,
    /// Received bytes that are not decrypted, from `at` on; released while no data is expected.
    incoming: Vec<u8>,
    at: usize,
    /// The peer closed its sending side.
    is_closed: bool,
}

/// Next action of the TLS state machine.
enum TlsProgress {
    Again,
    Send,
    /// Wait for data of the peer.
    Receive,
    /// Wait for data of the peer; application data may be sent.
    Ready,
}

impl KubeletStream {
    /// Without TLS.
    pub(super) fn plain(tcp: TcpStream) -> Self {
        Self { tcp, tls: None }
    }

    /// Performs the TLS handshake.
    pub(super) async fn handshake(
        tcp: TcpStream,
        config: Arc<ClientConfig>,
        name: ServerName<'static>,
    ) -> Result<Self, StreamError> {
        let session = UnbufferedClientConnection::new(config, name)?;
        let mut tls = Box::new(TlsSession { session, incoming: Vec::new(), at: 0, is_closed: false });
        let mut stream = Self { tcp, tls: None };
        let result = stream.complete_handshake(&mut tls).await;
        if matches!(result, Err(StreamError::Tls(_))) {
            // Sends the TLS alert to the peer. Only one step, because the received bytes must not be processed again.
            let mut alert = Vec::new();
            let _ = tls.step(&mut Vec::new(), &mut alert, None);
            let _ = stream.tcp.try_write(&alert);
        }
        result?;
        tls.release();
        stream.tls = Some(tls);
        Ok(stream)
    }

    async fn complete_handshake(&mut self, tls: &mut TlsSession) -> Result<(), StreamError> {
        let (mut early_data, mut outgoing) = (Vec::new(), Vec::new());
        loop {
            match tls.step(&mut early_data, &mut outgoing, None)? {
                TlsProgress::Again => {}
                TlsProgress::Send => send(&mut self.tcp, &mut outgoing).await?,
                TlsProgress::Receive => tls.receive(&mut self.tcp).await?,
                // A server must not send data before a request.
                TlsProgress::Ready if early_data.is_empty() && !tls.is_closed => return Ok(()),
                TlsProgress::Ready => return Err(StreamError::Ended),
            }
        }
    }

    /// Whether no unexpected data or close arrived while idle.
    pub(super) fn is_idle(&mut self) -> bool {
        self.read(&mut Vec::new()).now_or_never().is_none()
    }

    /// Appends received data to `plain` and returns its length; 0 is a regular close by the peer.
    pub(super) async fn read(&mut self, plain: &mut Vec<u8>) -> Result<usize, StreamError> {
        let Some(tls) = &mut self.tls else {
            plain.reserve(READ_BUFFER_BYTES);
            return Ok(self.tcp.read_buf(plain).await?);
        };
        let (before, mut outgoing) = (plain.len(), Vec::new());
        loop {
            match tls.step(plain, &mut outgoing, None)? {
                TlsProgress::Again => {}
                TlsProgress::Send => send(&mut self.tcp, &mut outgoing).await?,
                TlsProgress::Receive | TlsProgress::Ready if plain.len() > before || tls.is_closed => {
                    return Ok(plain.len() - before);
                }
                TlsProgress::Receive | TlsProgress::Ready => tls.receive(&mut self.tcp).await?,
            }
        }
    }

    /// Sends data.
    pub(super) async fn write(&mut self, data: &[u8]) -> Result<(), StreamError> {
        let Some(tls) = &mut self.tls else {
            return Ok(self.tcp.write_all(data).await?);
        };
        let (mut unexpected, mut outgoing) = (Vec::new(), Vec::with_capacity(data.len() + 64));
        loop {
            match tls.step(&mut unexpected, &mut outgoing, Some(data))? {
                TlsProgress::Again => {}
                TlsProgress::Send => send(&mut self.tcp, &mut outgoing).await?,
                TlsProgress::Receive => tls.receive(&mut self.tcp).await?,
                TlsProgress::Ready => return Ok(send(&mut self.tcp, &mut outgoing).await?),
            }
        }
    }

    /// Releases buffers until the next request.
    pub(super) fn release_buffers(&mut self) {
        if let Some(tls) = &mut self.tls {
            tls.release();
        }
    }
}

impl TlsSession {
    /// Performs one step: decrypts received data into `plain` and appends data to send to `outgoing`. `data` are
    /// encrypted as soon as the state allows it; then the step returns `Ready`.
    fn step(
        &mut self,
        plain: &mut Vec<u8>,
        outgoing: &mut Vec<u8>,
        data: Option<&[u8]>,
    ) -> Result<TlsProgress, rustls::Error> {
        let incoming = self.incoming.get_mut(self.at..).unwrap_or_default();
        let UnbufferedStatus { mut discard, state } = self.session.process_tls_records(incoming);
        let progress = match state? {
            ConnectionState::ReadTraffic(mut records) => {
                while let Some(record) = records.next_record() {
                    let record = record?;
                    discard += record.discard;
                    plain.extend_from_slice(record.payload);
                }
                TlsProgress::Again
            }
            ConnectionState::EncodeTlsData(mut data) => {
                add(outgoing, |space| match data.encode(space) {
                    Err(EncodeError::InsufficientSize(size)) => Err(Some(size.required_size)),
                    other => other.map_err(|_| None),
                })?;
                TlsProgress::Again
            }
            ConnectionState::TransmitTlsData(data) => {
                data.done();
                TlsProgress::Send
            }
            ConnectionState::WriteTraffic(mut traffic) => {
                if let Some(data) = data {
                    add(outgoing, |space| match traffic.encrypt(data, space) {
                        Err(EncryptError::InsufficientSize(size)) => Err(Some(size.required_size)),
                        other => other.map_err(|_| None),
                    })?;
                }
                TlsProgress::Ready
            }
            ConnectionState::PeerClosed | ConnectionState::Closed => {
                self.is_closed = true;
                TlsProgress::Ready
            }
            ConnectionState::BlockedHandshake => TlsProgress::Receive,
            _ => return Err(rustls::Error::General("TLS is in a state that is not known".to_owned())),
        };
        self.at += discard;
        Ok(progress)
    }

    async fn receive(&mut self, tcp: &mut TcpStream) -> Result<(), StreamError> {
        self.incoming.drain(..self.at.min(self.incoming.len()));
        self.at = 0;
        if self.incoming.len() == self.incoming.capacity() {
            if self.incoming.len() >= MAX_HANDSHAKE_BYTES {
                return Err(StreamError::Tls(rustls::Error::General(
                    "a message of TLS is too long".to_owned(),
                )));
            }
            self.incoming.reserve_exact(READ_BUFFER_BYTES.max(self.incoming.len()));
        }
        if tcp.read_buf(&mut self.incoming).await? == 0 {
            return Err(StreamError::Ended);
        }
        Ok(())
    }

    /// Keeps only bytes that are not decrypted, usually none.
    fn release(&mut self) {
        let left = self.incoming.get(self.at..).unwrap_or_default().to_vec();
        (self.incoming, self.at) = (left, 0);
    }
}

/// Appends what `write` produces; `write` may request more space once.
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
