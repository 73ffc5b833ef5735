//! Responses that a server can confirm by their `ETag` instead of sending them again.

use std::collections::HashMap;

use bytes::Bytes;
use http::header::ETAG;
use http::{HeaderValue, StatusCode};
use sources::http::HttpResponse;
use tokio::time::Instant;

use super::RequestKey;

/// Larger responses are not kept, in bytes.
const MAX_CACHED_BODY_BYTES: usize = 512 << 10;
/// Maximum size of all responses that are kept, in bytes.
const MAX_CACHE_BYTES: usize = 8 << 20;
/// Memory of an entry in addition to its body, in bytes; so that the number of small responses is bounded, too.
const ENTRY_OVERHEAD_BYTES: usize = 512;

/// A response that the server can confirm.
#[derive(Clone)]
pub(super) struct TaggedResponse {
    pub(super) etag: HeaderValue,
    pub(super) status: StatusCode,
    pub(super) body: Bytes,
    used: Instant,
}

/// Responses by request, whose key includes the credentials.
#[derive(Default)]
pub(super) struct Etags {
    by_key: HashMap<RequestKey, TaggedResponse>,
    bytes: usize,
}

impl Etags {
    /// The response that the server may confirm.
    pub(super) fn get(&mut self, key: RequestKey, now: Instant) -> Option<TaggedResponse> {
        let kept = self.by_key.get_mut(&key)?;
        kept.used = now;
        Some(kept.clone())
    }

    /// Keeps a response, if it has a tag. When there is too much, the half that was not used for longest is dropped.
    pub(super) fn keep(&mut self, key: RequestKey, response: &HttpResponse, now: Instant) {
        if let Some(old) = self.by_key.remove(&key) {
            self.bytes -= size(&old);
        }
        let HttpResponse { status, headers, body } = response;
        let Some(etag) =
            headers.get(ETAG).filter(|_| status.is_success() && body.len() <= MAX_CACHED_BODY_BYTES)
        else {
            return;
        };
        // A copy, because the body is a slice of a larger buffer.
        let body = Bytes::copy_from_slice(body);
        let kept = TaggedResponse { etag: etag.clone(), status: *status, body, used: now };
        self.bytes += size(&kept);
        self.by_key.insert(key, kept);
        if self.bytes > MAX_CACHE_BYTES {
            let mut times: Vec<Instant> = self.by_key.values().map(|kept| kept.used).collect();
            times.sort_unstable();
            let middle = times.get(times.len() / 2).copied().unwrap_or(now);
            self.by_key.retain(|_, kept| kept.used > middle);
            self.bytes = self.by_key.values().map(size).sum();
        }
    }
}

fn size(kept: &TaggedResponse) -> usize {
    ENTRY_OVERHEAD_BYTES + kept.etag.len() + kept.body.len()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http::HeaderMap;

    use super::*;

    fn response(bytes: usize) -> HttpResponse {
        let headers = HeaderMap::from_iter([(ETAG, HeaderValue::from_static("\"v1\""))]);
        HttpResponse { status: StatusCode::OK, headers, body: vec![b'x'; bytes].into() }
    }

    #[test]
    fn bytes_are_bounded_and_the_last_ones_stay() {
        let (mut etags, mut now) = (Etags::default(), Instant::now());
        for number in 0..100 {
            now += Duration::from_secs(1);
            etags.keep(RequestKey([number, 0]), &response(MAX_CACHED_BODY_BYTES), now);
            assert!(etags.bytes <= MAX_CACHE_BYTES);
            assert_eq!(etags.bytes, etags.by_key.values().map(size).sum::<usize>());
        }
        assert!(etags.get(RequestKey([99, 0]), now).is_some());
        assert!(etags.get(RequestKey([0, 0]), now).is_none());
        // A response that replaces one that was kept.
        etags.keep(RequestKey([99, 0]), &response(MAX_CACHED_BODY_BYTES + 1), now);
        assert!(etags.get(RequestKey([99, 0]), now).is_none(), "too large");
        let failed = HttpResponse { status: StatusCode::NOT_FOUND, ..response(1) };
        etags.keep(RequestKey([99, 0]), &failed, now);
        assert!(etags.get(RequestKey([99, 0]), now).is_none());
    }
}
