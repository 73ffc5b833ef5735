//! A connection whose TLS handshake is inside of PRELOGIN packets, as SQL Server requires. After the handshake it is a plain stream.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::wire::{HEADER_BYTES, PRELOGIN, packets};
use crate::stream::BoxStream;

/// The stream below TLS.
pub(super) struct PreloginStream {
    stream: BoxStream,
    /// Whether the handshake is under way.
    shaking: Arc<AtomicBool>,
    /// What TLS has written since the last flush.
    unframed: Vec<u8>,
    /// Packets to be written, and how much of them is.
    framed: Vec<u8>,
    written: usize,
    /// The header of the packet that is read, and how much of it is.
    head: [u8; HEADER_BYTES],
    head_read: usize,
    /// Bytes of the packet that are still to be read.
    left: usize,
}

impl PreloginStream {
    /// Wraps a stream until the flag becomes false.
    pub(super) fn new(stream: BoxStream, shaking: Arc<AtomicBool>) -> Self {
        let (unframed, framed) = (Vec::new(), Vec::new());
        Self { stream, shaking, unframed, framed, written: 0, head: [0; HEADER_BYTES], head_read: 0, left: 0 }
    }

    fn is_shaking(&self) -> bool {
        self.shaking.load(Ordering::Acquire)
    }

    /// Writes what TLS has written so far, as packets.
    fn poll_packets(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.unframed.is_empty() {
            self.framed.extend(packets(PRELOGIN, &std::mem::take(&mut self.unframed)));
        }
        while let Some(rest) = self.framed.get(self.written..).filter(|rest| !rest.is_empty()) {
            let written = ready!(Pin::new(&mut self.stream).poll_write(cx, rest))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.written += written;
        }
        self.framed.clear();
        self.written = 0;
        Poll::Ready(Ok(()))
    }

    /// Reads the header of a packet; false at the end of the stream.
    fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        while let Some(rest) = self.head.get_mut(self.head_read..).filter(|rest| !rest.is_empty()) {
            let mut buffer = ReadBuf::new(rest);
            ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buffer))?;
            match buffer.filled().len() {
                0 => return Poll::Ready(Ok(false)),
                read => self.head_read += read,
            }
        }
        let [kind, _, high, low, ..] = self.head;
        let length = usize::from(u16::from_be_bytes([high, low]));
        if kind != PRELOGIN || length < HEADER_BYTES {
            return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
        }
        (self.head_read, self.left) = (0, length - HEADER_BYTES);
        Poll::Ready(Ok(true))
    }
}

impl AsyncRead for PreloginStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.is_shaking() && this.left == 0 && this.head_read == 0 {
            return Pin::new(&mut this.stream).poll_read(cx, out);
        }
        while this.left == 0 {
            if !ready!(this.poll_head(cx))? {
                return Poll::Ready(Ok(()));
            }
        }
        let wanted = this.left.min(out.remaining());
        let mut part = ReadBuf::new(out.initialize_unfilled_to(wanted));
        ready!(Pin::new(&mut this.stream).poll_read(cx, &mut part))?;
        let read = part.filled().len();
        out.advance(read);
        this.left -= read;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for PreloginStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if this.is_shaking() {
            this.unframed.extend_from_slice(bytes);
            return Poll::Ready(Ok(bytes.len()));
        }
        ready!(this.poll_packets(cx))?;
        Pin::new(&mut this.stream).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_packets(cx))?;
        Pin::new(&mut this.stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_packets(cx))?;
        Pin::new(&mut this.stream).poll_shutdown(cx)
    }
}
