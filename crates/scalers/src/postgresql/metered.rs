//! A stream that fails when a response exceeds a size limit: the driver buffers whole messages before they are decoded.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, ready};

use locks::MutexExt as _;
use sources::http::{ByteBudget, ByteShare, UNCOUNTED_BYTES};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use crate::web::response_budget;

/// Maximum size of one response, in bytes.
const MAX_RESPONSE_BYTES: usize = 8 << 20;
/// Maximum size of what arrives after the value was read, such as further rows, in bytes.
const MAX_UNREAD_BYTES: usize = 1 << 20;
/// A connection that has received more bytes is replaced, because the driver keeps all parameters that a server reports.
const MAX_CONNECTION_BYTES: usize = 1 << 20;

/// Number of bytes that may still be read.
#[derive(Clone)]
pub(super) struct Budget {
    allowance: Arc<Mutex<Allowance>>,
    /// The budget of all responses under way.
    all: ByteBudget,
}

struct Allowance {
    left: usize,
    /// Bytes that need no share of the budget of all responses.
    uncounted: usize,
    share: Option<ByteShare>,
    /// Bytes since the connection was opened.
    received: usize,
}

/// A stream with a byte budget.
pub(super) struct Metered {
    stream: TcpStream,
    budget: Budget,
}

impl Budget {
    /// A full budget for one response.
    pub(super) fn new() -> Self {
        Self::within(response_budget())
    }

    fn within(all: ByteBudget) -> Self {
        let (left, uncounted) = (MAX_RESPONSE_BYTES, UNCOUNTED_BYTES);
        let allowance = Allowance { left, uncounted, share: None, received: 0 };
        Self { allowance: Arc::new(Mutex::new(allowance)), all }
    }

    /// Restores the budget for the next request.
    pub(super) fn renew(&self) {
        self.set(MAX_RESPONSE_BYTES, UNCOUNTED_BYTES);
    }

    /// The response was read, or its caller has gone: its share of the budget of all responses is returned.
    pub(super) fn finish(&self) {
        self.set(MAX_UNREAD_BYTES, MAX_UNREAD_BYTES);
    }

    fn set(&self, left: usize, uncounted: usize) {
        let mut allowance = self.allowance();
        let received = allowance.received;
        *allowance = Allowance { left, uncounted, share: None, received };
    }

    /// Whether the connection has received so much that it is to be replaced.
    pub(super) fn is_used_up(&self) -> bool {
        self.allowance().received > MAX_CONNECTION_BYTES
    }

    fn allowance(&self) -> MutexGuard<'_, Allowance> {
        self.allowance.locked()
    }

    fn spend(&self, bytes: usize) -> io::Result<()> {
        let mut allowance = self.allowance();
        allowance.received = allowance.received.saturating_add(bytes);
        allowance.left = allowance.left.checked_sub(bytes).ok_or_else(|| {
            io::Error::other(format!("it answered more than {} MiB", MAX_RESPONSE_BYTES >> 20))
        })?;
        match allowance.uncounted.checked_sub(bytes) {
            Some(left) => allowance.uncounted = left,
            None if allowance.share.is_some() => {}
            None => {
                // The driver cannot wait here; the next poll of the trigger sends another request.
                let share = self.all.try_share(MAX_RESPONSE_BYTES);
                allowance.share = Some(share.ok_or_else(|| {
                    io::Error::other("too many large answers are read at once; it is asked again later")
                })?);
            }
        }
        Ok(())
    }
}

/// Finishes a response when it is dropped.
pub(super) struct ReadingResponse(pub(super) Budget);

impl Drop for ReadingResponse {
    fn drop(&mut self) {
        self.0.finish();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_are_bounded() {
        let all = ByteBudget::new(MAX_RESPONSE_BYTES);
        let budget = Budget::within(all.clone());
        for _ in 0..MAX_RESPONSE_BYTES >> 10 {
            budget.spend(1 << 10).unwrap();
        }
        assert!(budget.spend(1).unwrap_err().to_string().contains("more than 8 MiB"));
        budget.renew();
        assert!(budget.spend(MAX_RESPONSE_BYTES).is_ok());
        let second = Budget::within(all);
        second.spend(UNCOUNTED_BYTES).unwrap();
        assert!(budget.is_used_up() && !second.is_used_up());
        assert!(second.spend(1).unwrap_err().to_string().contains("too many large answers"));
        drop(ReadingResponse(budget.clone()));
        assert!(second.spend(1).is_ok());
        assert!(budget.spend(MAX_UNREAD_BYTES).is_ok());
        assert!(budget.spend(1).is_err());
    }
}
