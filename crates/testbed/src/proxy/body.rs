//! Bodies of responses that are forwarded: whole, cut, stalled or copied; and watches.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::stream;
use http::request::Parts;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use tokio::sync::oneshot;

/// The error of a body.
pub(super) type BodyError = Box<dyn std::error::Error + Send + Sync>;

/// A body in either direction.
pub(super) type Body = UnsyncBoxBody<Bytes, BodyError>;

/// The delay before a connection is closed, so that the client receives the bytes that were sent before.
const FLUSH_DELAY: Duration = Duration::from_millis(20);

/// The maximum size of a body that is copied.
const MAX_COPIED_BYTES: usize = 8 << 20;

/// How a body ends early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyEnd {
    /// The connection is closed.
    Cut,
    /// No more bytes are sent, and the connection stays open.
    Stall,
}

pub(super) fn full(body: impl Into<Bytes>) -> Body {
    Full::new(body.into()).map_err(|never| match never {}).boxed_unsync()
}

pub(super) fn whole(body: Incoming) -> Body {
    body.map_err(Into::into).boxed_unsync()
}

/// The first bytes of a body, after which it ends early.
pub(super) fn first(body: Body, bytes: usize, end: BodyEnd) -> Body {
    let frames = stream::unfold((body, Some(bytes)), move |(mut body, left)| async move {
        let left = left?;
        if left > 0
            && let Some(Ok(frame)) = body.frame().await
        {
            let mut data = frame.into_data().unwrap_or_default();
            data.truncate(left);
            let left = left - data.len();
            return Some((Ok(Frame::data(data)), (body, Some(left))));
        }
        match end {
            BodyEnd::Cut => {
                tokio::time::sleep(FLUSH_DELAY).await;
                Some((Err(io::Error::from(io::ErrorKind::ConnectionReset).into()), (body, None)))
            }
            BodyEnd::Stall => std::future::pending().await,
        }
    });
    StreamBody::new(frames).boxed_unsync()
}

/// A body of which `keep` gets a copy when it was received completely.
pub(super) fn copied<B>(body: B, keep: impl FnOnce(Bytes) + Send + 'static) -> Body
where
    B: hyper::body::Body<Data = Bytes, Error: Into<BodyError>> + Send + Unpin + 'static,
{
    let start = (body, Some((BytesMut::new(), keep)));
    let frames = stream::unfold(start, |(mut body, mut copy)| async move {
        match body.frame().await {
            Some(Ok(frame)) => {
                if let (Some((bytes, _)), Some(data)) = (&mut copy, frame.data_ref()) {
                    bytes.extend_from_slice(data);
                }
                copy = copy.filter(|(bytes, _)| bytes.len() <= MAX_COPIED_BYTES);
                // The body is not polled again after the announced length.
                if body.is_end_stream()
                    && let Some((bytes, keep)) = copy.take()
                {
                    keep(bytes.freeze());
                }
                Some((Ok(frame), (body, copy)))
            }
            Some(Err(error)) => Some((Err(error.into()), (body, None))),
            None => {
                if let Some((bytes, keep)) = copy {
                    keep(bytes.freeze());
                }
                None
            }
        }
    });
    StreamBody::new(frames).boxed_unsync()
}

/// The body of a watch. It ends when `cut` is notified, and loses events while `stalled` is true.
pub(super) struct WatchBody {
    pub(super) request: Arc<Parts>,
    /// Whether events are lines, which can be dropped one by one. A watch in another format ends after events were dropped.
    pub(super) lines: bool,
    pub(super) cut: oneshot::Receiver<()>,
}

struct OpenWatch<F> {
    body: Incoming,
    watch: WatchBody,
    stalled: F,
    /// Received bytes that are not yet a whole line.
    rest: BytesMut,
    lost: bool,
}

pub(super) fn watched(
    body: Incoming,
    watch: WatchBody,
    stalled: impl Fn(&Parts) -> bool + Send + 'static,
) -> Body {
    let open = OpenWatch { body, watch, stalled, rest: BytesMut::new(), lost: false };
    let frames = stream::unfold(open, |mut open| async move {
        loop {
            let frame = tokio::select! {
                // The watch also ends when the proxy is dropped.
                _ = &mut open.watch.cut => return None,
                frame = open.body.frame() => frame?,
            };
            let data = match frame {
                Ok(frame) => frame.into_data().unwrap_or_default(),
                Err(error) => return Some((Err(error.into()), open)),
            };
            if let Some(data) = open.pass(data)? {
                return Some((Ok(Frame::data(data)), open));
            }
        }
    });
    StreamBody::new(frames).boxed_unsync()
}

impl<F: Fn(&Parts) -> bool> OpenWatch<F> {
    /// Returns the part of new data that is forwarded, which may be none; an outer `None` ends the watch.
    #[allow(clippy::option_option, reason = "an end is not a pause")]
    fn pass(&mut self, data: Bytes) -> Option<Option<Bytes>> {
        let stalled = (self.stalled)(&self.watch.request);
        if !self.watch.lines {
            self.lost |= stalled;
            return match (stalled, self.lost) {
                (true, _) => Some(None),
                (false, true) => None,
                (false, false) => Some(Some(data)),
            };
        }
        self.rest.extend_from_slice(&data);
        let Some(end) = self.rest.iter().rposition(|byte| *byte == b'\n') else { return Some(None) };
        let lines = self.rest.split_to(end + 1).freeze();
        Some((!stalled).then_some(lines))
    }
}
