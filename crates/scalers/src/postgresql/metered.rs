//! A connection that gives up when a server answers without end: what it says is put together before it is looked at.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// What one answer may have; a count has a few bytes.
const AT_MOST: usize = 16 << 20;

/// How much may still be read.
#[derive(Clone)]
pub(super) struct Budget(Arc<AtomicUsize>);

/// A connection with a budget.
pub(super) struct Metered {
    stream: TcpStream,
    budget: Budget,
}

impl Budget {
    /// Of one answer.
    pub(super) fn new() -> Self {
        Self(Arc::new(AtomicUsize::new(AT_MOST)))
    }

    /// Another question was asked.
    pub(super) fn renew(&self) {
        self.0.store(AT_MOST, Ordering::Relaxed);
    }

    fn spend(&self, bytes: usize) -> io::Result<()> {
        let left = self.0.load(Ordering::Relaxed).checked_sub(bytes);
        let left =
            left.ok_or_else(|| io::Error::other(format!("it answered more than {} MiB", AT_MOST >> 20)))?;
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
