//! Bodies of requests and responses.

use bytes::Bytes;
use futures::stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::Frame;

/// An error while a body is read or written.
pub type BodyError = Box<dyn std::error::Error + Send + Sync>;

/// The body of a request or a response.
pub type Body = UnsyncBoxBody<Bytes, BodyError>;

/// A body of known bytes.
pub fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}

/// A long body that is made chunk by chunk while it is sent.
pub(crate) fn pieces(pieces: impl Iterator<Item = Result<Bytes, BodyError>> + Send + 'static) -> Body {
    let frames = stream::iter(pieces.map(|piece| piece.map(Frame::data)));
    StreamBody::new(frames).boxed_unsync()
}
