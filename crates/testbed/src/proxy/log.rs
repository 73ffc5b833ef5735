//! The log of requests and their responses.

use std::collections::{BTreeMap, VecDeque};
use std::time::SystemTime;

use http::Method;
use http::header::USER_AGENT;
use http::request::Parts;
use localkube::request::{Query, RequestPath};

/// The maximum number of requests in the log. Older ones are dropped, but still counted.
const MAX_LOG_ENTRIES: usize = 50_000;

/// The maximum number of bytes of a refusal that are kept.
const MAX_REFUSAL_BYTES: usize = 1024;

/// A request in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// The time of the request.
    pub at: SystemTime,
    /// The method.
    pub method: Method,
    /// The path and query, as the client sent them.
    pub path: String,
    /// The status code of the response; none if there is no response yet, or if the connection was closed instead.
    pub status: Option<u16>,
    /// The beginning of the response to a refused request (401, 403).
    pub refusal: Option<String>,
    /// The `User-Agent` header.
    pub user_agent: String,
}

/// The number of requests, by method and shape of the path.
pub type Counts = BTreeMap<(String, String), u64>;

#[derive(Debug, Default)]
pub(super) struct Log {
    entries: VecDeque<LogEntry>,
    dropped: usize,
    counts: Counts,
}

impl Log {
    /// Appends a request and returns its number.
    pub(super) fn begin(&mut self, parts: &Parts) -> usize {
        let agent = parts.headers.get(USER_AGENT).and_then(|value| value.to_str().ok());
        let path =
            parts.uri.path_and_query().map_or_else(|| parts.uri.path().to_owned(), ToString::to_string);
        *self.counts.entry((parts.method.to_string(), shape(&path))).or_default() += 1;
        if self.entries.len() == MAX_LOG_ENTRIES {
            self.entries.pop_front();
            self.dropped += 1;
        }
        self.entries.push_back(LogEntry {
            at: SystemTime::now(),
            method: parts.method.clone(),
            path,
            status: None,
            refusal: None,
            user_agent: agent.unwrap_or_default().to_owned(),
        });
        self.dropped + self.entries.len() - 1
    }

    pub(super) fn record_status(&mut self, number: usize, status: u16) {
        if let Some(entry) = self.entry(number) {
            entry.status = Some(status);
        }
    }

    /// Records the response to a refused request.
    pub(super) fn record_refusal(&mut self, number: usize, response: &[u8]) {
        if let Some(entry) = self.entry(number) {
            let words = response.get(..MAX_REFUSAL_BYTES).unwrap_or(response);
            entry.refusal = Some(String::from_utf8_lossy(words).into_owned());
        }
    }

    fn entry(&mut self, number: usize) -> Option<&mut LogEntry> {
        let index = number.checked_sub(self.dropped)?;
        self.entries.get_mut(index)
    }

    pub(super) fn entries(&self) -> Vec<LogEntry> {
        self.entries.iter().cloned().collect()
    }

    pub(super) fn counts(&self) -> Counts {
        self.counts.clone()
    }

    /// Removes all requests. Numbers continue, so that responses to earlier requests are ignored.
    pub(super) fn clear(&mut self) {
        self.dropped += self.entries.len();
        self.entries.clear();
        self.counts.clear();
    }
}

/// The path with placeholders for namespace and name, so that requests of one kind are counted together: `…/namespaces/{ns}/pods/{name}`,
/// with `?watch` for watches and no query otherwise.
pub fn shape(path: &str) -> String {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let Some(RequestPath::Resource(found)) = RequestPath::parse(path) else { return path.to_owned() };
    let root = if found.group.is_empty() { "/api".to_owned() } else { format!("/apis/{}", found.group) };
    let mut shape = format!("{root}/{}", found.version);
    if found.namespace.is_some() {
        shape += "/namespaces/{ns}";
    }
    shape += &format!("/{}", found.resource);
    if found.name.is_some() {
        shape += "/{name}";
    }
    if let Some(subresource) = &found.subresource {
        shape += &format!("/{subresource}");
    }
    if found.watch || Query::parse(query).is_some_and(|query| query.is_set("watch")) {
        shape += "?watch";
    }
    shape
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use super::*;

    #[test]
    fn request_shapes_omit_names() {
        let cases = [
            ("/api/v1/namespaces/shop/pods/web-0?x=1", "/api/v1/namespaces/{ns}/pods/{name}"),
            ("/api/v1/pods?watch=true&resourceVersion=9", "/api/v1/pods?watch"),
            (
                "/apis/apps/v1/namespaces/shop/deployments/web/scale",
                "/apis/apps/v1/namespaces/{ns}/deployments/{name}/scale",
            ),
            ("/api/v1/namespaces/shop", "/api/v1/namespaces/{name}"),
            ("/apis", "/apis"),
            ("/readyz?verbose", "/readyz"),
        ];
        for (path, expected) in cases {
            assert_eq!(shape(path), expected);
        }
    }

    #[test]
    fn responses_are_logged_at_their_requests() {
        let parts = |path: &str| {
            http::Request::get(path).header("user-agent", "test/1").body(()).unwrap().into_parts().0
        };
        let mut log = Log::default();
        let (one, two) = (log.begin(&parts("/api/v1/pods")), log.begin(&parts("/api/v1/nodes?limit=1")));
        log.record_status(two, 403);
        log.record_refusal(two, &[b'x'; MAX_REFUSAL_BYTES + 1]);
        let entries = log.entries();
        assert_eq!((entries[one].status, entries[two].status), (None, Some(403)));
        assert_eq!(entries[one].refusal, None);
        assert_eq!(entries[two].refusal, Some("x".repeat(MAX_REFUSAL_BYTES)));
        assert_eq!(
            (entries[two].path.as_str(), entries[two].user_agent.as_str()),
            ("/api/v1/nodes?limit=1", "test/1")
        );
        assert_eq!(log.counts().len(), 2);
        log.clear();
        let three = log.begin(&parts("/api/v1/pods"));
        log.record_status(one, 500);
        log.record_refusal(one, b"no");
        assert_eq!((log.entries()[0].status, &log.entries()[0].refusal), (None, &None));
        log.record_status(three, 200);
        assert_eq!(log.entries()[0].status, Some(200));
    }
}
