//! A stream that fails when a response exceeds a size limit: the driver buffers whole messages before they are decoded.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Maximum size of one response, in bytes.
const MAX_RESPONSE_BYTES: usize = 16 << 20;

/// Number of bytes that may still be read.
#[derive(Clone)]
pub(super) struct Budget(Arc<AtomicUsize>);

/// A stream with a byte budget.
pub(super) struct Metered {
    stream: TcpStream,
    budget: Budget,
}

impl Budget {
    /// A full budget for one response.
    pub(super) fn new() -> Self {
        Self(Arc::new(AtomicUsize::new(MAX_RESPONSE_BYTES)))
    }

    /// Restores the budget for the next request.
    pub(super) fn renew(&self) {
        self.0.store(MAX_RESPONSE_BYTES, Ordering::Relaxed);
    }

    fn spend(&self, bytes: usize) -> io::Result<()> {
        let left = self.0.load(Ordering::Relaxed).checked_sub(bytes);
        let left = left.ok_or_else(|| {
            io::Error::other(format!("it answered more than {} MiB", MAX_RESPONSE_BYTES >> 20))
        })?;
        self.0.store(left, Ordering::Relaxed);
        Ok(())
    }
}

impl Metered {
    pub(super) fn new(stream: TcpStream, budget: Budget) -> Self {
        Self { stream, budget }
    }
}

impl AsyncRead for Metered {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, into))?;
        Poll::Ready(self.budget.spend(into.filled().len().saturating_sub(before)))
    }
}

impl AsyncWrite for Metered {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
