//! What was asked, and what came of it.

use std::collections::{BTreeMap, VecDeque};
use std::time::SystemTime;

use http::Method;
use http::header::USER_AGENT;
use http::request::Parts;
use localkube::request::{Query, RequestPath};

/// How many requests are remembered one by one; all are counted.
const MAX_LOG_ENTRIES: usize = 50_000;

/// How much is remembered of why a request was refused, in bytes.
const MAX_REFUSAL_BYTES: usize = 1024;

/// A request that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// When it came.
    pub at: SystemTime,
    /// Its method.
    pub method: Method,
    /// Its path and query, as the client sent them.
    pub path: String,
    /// The code of the answer; none while there is none, and where the connection was closed instead.
    pub status: Option<u16>,
    /// Why it was refused, where it was (401, 403): the beginning of the answer.
    pub refusal: Option<String>,
    /// Who the client says it is.
    pub user_agent: String,
}

/// How often requests were made, by method and shape of the path.
pub type Counts = BTreeMap<(String, String), u64>;

#[derive(Debug, Default)]
pub(super) struct Log {
    entries: VecDeque<Entry>,
    forgotten: usize,
    counts: Counts,
}

impl Log {
    /// Notes a request and gives its number.
    pub(super) fn begin(&mut self, parts: &Parts) -> usize {
        let agent = parts.headers.get(USER_AGENT).and_then(|value| value.to_str().ok());
        let path =
            parts.uri.path_and_query().map_or_else(|| parts.uri.path().to_owned(), ToString::to_string);
        *self.counts.entry((parts.method.to_string(), shape(&path))).or_default() += 1;
        if self.entries.len() == MAX_LOG_ENTRIES {
            self.entries.pop_front();
            self.forgotten += 1;
        }
        self.entries.push_back(Entry {
            at: SystemTime::now(),
            method: parts.method.clone(),
            path,
            status: None,
            refusal: None,
            user_agent: agent.unwrap_or_default().to_owned(),
        });
        self.forgotten + self.entries.len() - 1
    }

    pub(super) fn answered(&mut self, number: usize, status: u16) {
        if let Some(entry) = self.entry(number) {
            entry.status = Some(status);
        }
    }

    /// Notes the answer to a request that was refused.
    pub(super) fn refused(&mut self, number: usize, answer: &[u8]) {
        if let Some(entry) = self.entry(number) {
            let words = answer.get(..MAX_REFUSAL_BYTES).unwrap_or(answer);
            entry.refusal = Some(String::from_utf8_lossy(words).into_owned());
        }
    }

    fn entry(&mut self, number: usize) -> Option<&mut Entry> {
        let place = number.checked_sub(self.forgotten)?;
        self.entries.get_mut(place)
    }

    pub(super) fn entries(&self) -> Vec<Entry> {
        self.entries.iter().cloned().collect()
    }

    pub(super) fn counts(&self) -> Counts {
        self.counts.clone()
    }

    /// Numbers go on, so that answers to earlier requests change nothing.
    pub(super) fn clear(&mut self) {
        self.forgotten += self.entries.len();
        self.entries.clear();
        self.counts.clear();
    }
}

/// A path whose namespaces and names are left out, so that requests of one kind count as one: `…/namespaces/{ns}/pods/{name}`,
/// with `?watch` for watches and no query else.
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
        log.answered(two, 403);
        log.refused(two, &[b'x'; MAX_REFUSAL_BYTES + 1]);
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
        log.answered(one, 500);
        log.refused(one, b"no");
        assert_eq!((log.entries()[0].status, &log.entries()[0].refusal), (None, &None));
        log.answered(three, 200);
        assert_eq!(log.entries()[0].status, Some(200));
    }
}
