//! Compresses large responses chunk by chunk while they are sent.

use std::io::Write as _;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, HeaderMap, HeaderValue, VARY};
use http::{Response, StatusCode};
use http_body::{Body as _, Frame};
use http_body_util::BodyExt as _;

use crate::body::{Body, BodyError};

/// Smaller responses are not compressed.
const MIN_COMPRESSED_BYTES: u64 = 131_072;

/// How much is compressed before other tasks run.
const CHUNK_BYTES: usize = 128 * 1024;

/// Compresses a response if it is large and the client accepts gzip.
pub(crate) fn compressed(response: Response<Body>, headers: &HeaderMap) -> Response<Body> {
    let wanted = headers
        .get_all(ACCEPT_ENCODING)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|text| text.split(','))
        .any(|coding| coding.split(';').next().is_some_and(|name| name.trim() == "gzip"));
    let large = response.body().size_hint().lower() > MIN_COMPRESSED_BYTES;
    let fit = response.status() == StatusCode::OK && !response.headers().contains_key(CONTENT_ENCODING);
    if !(wanted && large && fit) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    parts.headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    parts.headers.append(VARY, HeaderValue::from_static("Accept-Encoding"));
    parts.headers.remove(CONTENT_LENGTH);
    let encoder = Some(GzEncoder::new(Vec::new(), Compression::fast()));
    Response::from_parts(parts, Compressing { body, rest: Bytes::new(), encoder }.boxed_unsync())
}

/// A body that is compressed while it is read.
struct Compressing {
    body: Body,
    rest: Bytes,
    encoder: Option<GzEncoder<Vec<u8>>>,
}

impl http_body::Body for Compressing {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        loop {
            let this = &mut *self;
            let Some(encoder) = this.encoder.as_mut() else { return Poll::Ready(None) };
            if !this.rest.is_empty() {
                let piece = this.rest.split_to(CHUNK_BYTES.min(this.rest.len()));
                if let Err(error) = encoder.write_all(&piece) {
                    return Poll::Ready(Some(Err(error.into())));
                }
                let made = std::mem::take(encoder.get_mut());
                if made.is_empty() {
                    continue;
                }
                return Poll::Ready(Some(Ok(Frame::data(made.into()))));
            }
            match Pin::new(&mut this.body).poll_frame(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(Ok(frame))) => {
                    if let Ok(data) = frame.into_data() {
                        this.rest = data;
                    }
                }
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(error))),
                Poll::Ready(None) => {
                    let end = this.encoder.take().map(GzEncoder::finish);
                    return Poll::Ready(
                        end.map(|end| end.map(|made| Frame::data(made.into())).map_err(Into::into)),
                    );
                }
            }
        }
    }
}

/// Decompresses a body.
#[cfg(test)]
pub(crate) fn expanded(bytes: &[u8]) -> Vec<u8> {
    let mut reader = flate2::write::GzDecoder::new(Vec::new());
    reader.write_all(bytes).unwrap();
    reader.finish().unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::response;

    #[tokio::test]
    async fn large_responses_are_compressed_without_loss() {
        let headers: HeaderMap = [(ACCEPT_ENCODING, "br, gzip;q=0.8".parse().unwrap())].into_iter().collect();
        let text: Vec<u8> = (0..1_000_000_u32).flat_map(|n| (n % 977).to_string().into_bytes()).collect();
        let small = text.get(..131_072).unwrap().to_vec();
        let response = compressed(response::text(200, small.clone()), &headers);
        assert!(!response.headers().contains_key(CONTENT_ENCODING));
        assert!(
            !compressed(response::text(200, text.clone()), &HeaderMap::new()).headers().contains_key(VARY)
        );
        let response = compressed(response::text(200, text.clone()), &headers);
        assert_eq!(
            (&response.headers()[CONTENT_ENCODING], &response.headers()[VARY]),
            (&HeaderValue::from_static("gzip"), &HeaderValue::from_static("Accept-Encoding"))
        );
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        assert!(bytes.len() < text.len() / 2);
        assert!(expanded(&bytes) == text);
    }
}
